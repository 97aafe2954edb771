"""``solve``: one objective to one certified explanation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from propopt.base.checks import read_positive
from propopt.base.declared import lazily
from propopt.base.errors import InvalidInput
from propopt.losses import Objective, Program, PropertyLoss
from propopt.losses.completeness import Constraint, bounds_of
from propopt.results.explanation import Explanation
from propopt.solvers.solver import Solver
from propopt.solvers.task import Task


def solve(
    objective: Objective | PropertyLoss,
    solver: str | Solver = "auto",
    *,
    subject_to: Sequence[Constraint] = (),
    tolerance: float = 1e-6,
) -> Explanation:
    """The attributions with the smallest objective, with proof.

    Parameters
    ----------
    objective : Objective
        A weighted sum of losses.
    solver : str or Solver
        ``"auto"`` (see :class:`propopt.solvers.Auto`), ``"spectral"``, ``"conic"``,
        ``"minimum_norm"``, or a cvxpy backend by name, such as ``"CLARABEL"``.
    subject_to : sequence of Bound or Completeness
        Constraints such as ``po.PairwiseRobustness(graph) <= 2.0``, and
        ``po.Completeness(total)``: rows that add up. Of the latter ``details`` has the
        multipliers (N,), and for each loss what no complete explanation can remove.
    tolerance : float
        The certified relative gap that is wanted; a warning says if it was missed.

    Returns
    -------
    Explanation
        With ``.attributions``, ``.losses``, ``.objective``, ``.gap``, ``.certificate``,
        ``.multipliers``, ``.solver`` and ``.seconds``; ``.target`` tells what an
        estimated target costs, and ``.standard_errors`` what it does to attributions.

    Raises
    ------
    Refused
        If the solver cannot treat the objective, with the reason.
    Infeasible
        If no attributions satisfy all bounds, with what is attainable.
    SolverFailure
        If the backend stopped without an answer.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.linspace(-1, 1, 5)[:, None]
    >>> objective = po.GradientMatching(3 * X**2) + po.PairwiseRobustness(
    ...     po.chain_graph(5)
    ... )
    >>> best = po.solve(objective)
    >>> best.solver, best.gap < 1e-12
    ('spectral', True)
    """
    began = time.perf_counter()
    weighed = Objective.of(objective)
    weights = weighed.coefficients
    if not weights.any():
        raise InvalidInput("weights: all are zero, so every explanation is optimal")
    goal = read_positive(tolerance, "tolerance")
    program = Program(weighed.losses, bounds_of(subject_to, weighed.losses))
    task = Task(program, solver, active=tuple(np.flatnonzero(weights).tolist()))
    solution = task.solve(weights, goal)
    errors = lazily(partial(task.standard_errors, weights, goal, solution))
    return task.explain(solution, weights, goal, began, errors)
