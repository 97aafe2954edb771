"""Other ways to solve the same programs."""

from __future__ import annotations

import time
from typing import Any

import cvxpy as cp
import numpy as np

import propopt as po
from propopt.losses import Program
from propopt.solvers import Task


def pair_loops(G: Any, weight: float, *, aggregate: bool) -> cp.Problem:
    """Gradient matching and max-difference over all pairs, one constraint per pair.

    The straightforward text of Eq. 13 with d_n: a Python loop over ordered pairs.
    """
    n_points = len(G)
    W = cp.Variable(G.shape)
    d = cp.Variable(n_points if aggregate else 1)
    constraints = []
    for n in range(n_points):
        for m in range(n_points):
            if m != n:
                limit = d[n] if aggregate else d[0]
                constraints.append(cp.sum_squares(W[n] - W[m]) <= limit)
    matching = cp.sum_squares(W - G)
    return cp.Problem(cp.Minimize(matching + weight * cp.sum(d)), constraints)


def conic_seconds(
    objective: po.losses.Objective,
    backend: str,
    weights: list[dict[str, float]],
    tolerance: float = 1e-6,
) -> tuple[float, float, float]:
    """Seconds to compile once, median seconds of a solve, and the largest gap.

    The first solve compiles; the others say what a solve takes.
    """
    task = Task(Program(objective.losses), po.solvers.Conic(backend))
    seconds, gaps = [], []
    start = None
    for point in weights:
        chosen = objective.with_weights(point).coefficients
        began = time.perf_counter()
        start = task.solve(chosen, tolerance, start)
        seconds.append(time.perf_counter() - began)
        gaps.append(task.explain(start, chosen, 1.0, began).gap or 0.0)
    solving = float(np.median(seconds[1:]))
    return max(seconds[0] - solving, 0.0), solving, max(gaps)


def dense_seconds(G: Any, L: Any, M: Any, weights: list[tuple[float, float]]) -> float:
    """Median seconds of one dense solve of (I ⊗ I + 2b L ⊗ I + 2c I ⊗ M) w = g."""
    n, d = G.shape
    seconds = []
    for b, c in weights:
        began = time.perf_counter()
        matrix = np.kron(np.eye(n) + 2 * b * L, np.eye(d)) + np.kron(
            np.eye(n), 2 * c * M
        )
        np.linalg.solve(matrix, G.ravel())
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))
