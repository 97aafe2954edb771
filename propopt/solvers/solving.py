"""One objective to one certified explanation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from propopt.checks import read_nonnegative, read_positive
from propopt.errors import InvalidInput
from propopt.losses import Constraint, Objective, Program, PropertyLoss, bounds_of
from propopt.results.explanation import Explanation
from propopt.results.later import Later
from propopt.solvers.base import Solver
from propopt.solvers.task import Task
from propopt.solvers.worst_case import solve_worst_case


def solve(
    objective: Objective | PropertyLoss,
    solver: str | Solver = "auto",
    *,
    subject_to: Sequence[Constraint] = (),
    tolerance: float = 1e-6,
    target_radius: float | None = None,
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

    target_radius : float, optional
        δ ≥ 0: best for the worst target G with ‖G − Ĝ‖ ≤ δ (Frobenius), Ĝ being the
        given one: min a(‖W − Ĝ‖ + δ)² + the other losses, all squared. That is the
        optimum for the other weights times κ = r/(r + δ) with r = ‖W − Ĝ‖, and these
        weights are those of the result; ``parameters`` has κ, the worst case and a
        lower bound on it.

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
    if target_radius is not None:
        delta = read_nonnegative(target_radius, "target_radius")
        return solve_worst_case(task, weights, delta, goal, began)
    solution = task.solve(weights, goal)
    errors = Later(partial(task.standard_errors, weights, goal, solution))
    return task.explain(solution, weights, goal, began, errors)
