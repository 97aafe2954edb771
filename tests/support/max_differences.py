"""Programs with max-differences: data, random objectives, and paths of weights."""

from __future__ import annotations

import numpy as np

import propopt as po
from propopt.losses import Program
from propopt.solvers import Solution, Solver, Task
from propopt.solvers.splitting import Splitting


REFERENCE = 1e-7  # the relative gap that is asked of Clarabel
NORMS = ("l2", "l1", "linf")
AGGREGATES = ("max", "sum")


def gaussian_data(seed: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, d))


def natural_weight(loss: po.PropertyLoss, G: np.ndarray) -> float:
    """The weight at which the loss of G is about what component means cost."""
    return float(((G - G.mean(axis=0)) ** 2).sum() / max(loss.value(G), 1e-300))


def some_graph(rng: np.random.Generator, X: np.ndarray) -> po.graphs.Graph:
    n = len(X)
    match int(rng.integers(4)):
        case 0:
            return po.complete_graph(n)
        case 1:
            return po.chain_graph(n)
        case 2:
            return po.knn_graph(X, min(3, n - 1))
        case _:
            return po.group_graph(np.concatenate([[0, 0], rng.integers(0, 3, n - 2)]))


def random_losses(
    rng: np.random.Generator, X: np.ndarray, G: np.ndarray
) -> list[tuple[float, po.PropertyLoss]]:
    """Losses with weights relative to their natural size."""
    terms: list[tuple[float, po.PropertyLoss]] = []
    n_differences = int(rng.integers(0, 3))
    for k in range(n_differences):
        loss = po.MaxDifferenceRobustness(
            some_graph(rng, X),
            AGGREGATES[rng.integers(2)],
            NORMS[rng.integers(3)],
            name=f"difference_{k}",
        )
        reach = 6 if rng.random() < 0.3 else 2
        terms.append((natural_weight(loss, G) * 10 ** rng.uniform(-reach, reach), loss))
    if n_differences == 0 or rng.random() < 0.4:
        size = np.abs(G).mean() * 10 ** rng.uniform(-3, 0.5)
        terms.append((float(size), po.Sparsity()))
    return terms + random_couplings(rng, X)


def random_couplings(
    rng: np.random.Generator, X: np.ndarray
) -> list[tuple[float, po.PropertyLoss]]:
    n, d = X.shape
    points = [
        None,
        po.PairwiseRobustness(po.knn_graph(X, 1)),
        po.PairwiseRobustness(po.gaussian_graph(rng.normal(size=(n, d)))),
        po.KernelRobustness(
            np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2)) + 1e-3 * np.eye(n),
            mean=("none", "per_feature")[rng.integers(2)],
        ),
    ][rng.integers(4)]
    features = [
        None,
        po.Smoothness(po.chain_graph(d)),
        po.Smoothness(po.correlation_graph(rng.normal(size=(n + 1, d)))),
    ][rng.integers(3)]
    return [
        (10 ** rng.uniform(-2, 1.5), loss)
        for loss in (points, features)
        if loss is not None
    ]


def random_objective(seed: int) -> po.Objective:
    """Data scales 1e-6 to 1e6, weights up to 1e±6 of their natural size and more."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 16)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d))
    if rng.random() < 0.2:
        X[n // 2 :] = X[0]
    G = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-6, 7)
    if rng.random() < 0.3:
        G += 10 * np.abs(G).max()
    objective = po.Objective.of(po.GradientMatching(G))
    for weight, loss in random_losses(rng, X, G):
        objective = objective + weight * loss
    return 10.0 ** rng.integers(-6, 7) * objective


def path(loss: po.PropertyLoss, G: np.ndarray) -> list[po.Objective]:
    objective = po.GradientMatching(G) + 1.0 * loss
    natural = natural_weight(loss, G)
    weights = natural * np.geomspace(1e-2, 1e2, 12)
    return [objective.with_weights({loss.name: float(weight)}) for weight in weights]


def task_of(objective: po.Objective, solver: Solver | None = None) -> Task:
    """All losses of an objective, for any weights."""
    return Task(Program(objective.losses), solver or Splitting())


def solved(objective: po.Objective) -> Solution:
    """The optimum to eleven digits."""
    return task_of(objective).solve(objective.coefficients, 1e-11)
