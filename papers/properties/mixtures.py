"""Optimized aggregation: the best weighted mean of some explanations."""

from __future__ import annotations

from collections.abc import Sequence

import cvxpy as cp
import numpy as np

from propopt.losses import Objective
from propopt.results.explanation import Explanation


_ACCURACY = 1e-10


def aggregated(objective: Objective, parts: Sequence[Explanation]) -> Explanation:
    """Minimise F(Σ_k α_k W_k) over α ≥ 0 with Σ_k α_k = 1, for squared losses.

    (Bhatt et al. 2020; Decker et al. 2024.) As Σ α = 1, residuals mix like
    attributions, and a loss is ‖Rα‖² with a triangle R. The result is never worse than
    the best of the parts, and never better than the optimum.
    """
    stack = np.array([part.attributions for part in parts])
    values = np.array([objective.value(W) for W in stack])
    unit = values.min() or 1.0
    shares = cp.Variable(len(stack), nonneg=True)
    total = 0.0
    for weight, loss in objective.terms:
        residuals = np.stack([loss.residual(W).ravel() for W in stack], axis=1)
        R = np.linalg.qr(residuals, mode="r")
        total += weight / unit * cp.sum_squares(R @ shares)
    problem = cp.Problem(cp.Minimize(total), [cp.sum(shares) == 1])
    tolerances = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    problem.solve(solver="CLARABEL", **dict.fromkeys(tolerances, _ACCURACY))
    alpha = np.maximum(shares.value, 0.0)
    W = np.tensordot(alpha / alpha.sum(), stack, axes=1)
    if objective.value(W) >= values.min():
        W = stack[values.argmin()]
    return Explanation(
        attributions=W,
        method="aggregation",
        labels=parts[0].labels,
        units=parts[0].units,
        weights=objective.weights,
        losses=objective.breakdown(W),
        evaluations=sum(part.evaluations for part in parts),
    )
