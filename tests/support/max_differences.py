"""Programs with max-differences: data, random objectives, and paths of weights."""

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


def natural_weight(loss: po.losses.PropertyLoss, G: np.ndarray) -> float:
    """The weight at which the loss of G is about what component means cost."""
    return float(((G - G.mean(axis=0)) ** 2).sum() / max(loss.value(G), 1e-300))


def path(loss: po.losses.PropertyLoss, G: np.ndarray) -> list[po.losses.Objective]:
    objective = po.GradientMatching(G) + 1.0 * loss
    natural = natural_weight(loss, G)
    weights = natural * np.geomspace(1e-2, 1e2, 12)
    return [objective.with_weights({loss.name: float(weight)}) for weight in weights]


def task_of(objective: po.losses.Objective, solver: Solver | None = None) -> Task:
    """All losses of an objective, for any weights."""
    return Task(Program(objective.losses), solver or Splitting())


def solved(objective: po.losses.Objective) -> Solution:
    """The optimum to eleven digits."""
    return task_of(objective).solve(objective.coefficients, 1e-11)
