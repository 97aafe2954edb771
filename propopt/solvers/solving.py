"""``solve``: one objective, its constraints, and the explanation that is optimal."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from propopt.base.checks import read_positive
from propopt.base.errors import InvalidInput, Refused
from propopt.base.suggestions import suggests_arguments
from propopt.losses import Objective, Program, PropertyLoss
from propopt.losses.completeness import Constraint, has_custom, split_constraints
from propopt.losses.custom import ConstraintFunction
from propopt.results.explanation import Explanation
from propopt.solvers.aims import Aim, AimCase, AimLike
from propopt.solvers.custom import solve_custom
from propopt.solvers.solver import Solver
from propopt.solvers.task import Task


@suggests_arguments
def solve(
    objective: Objective | PropertyLoss,
    solver: str | Solver = "auto",
    *,
    subject_to: Sequence[Constraint | ConstraintFunction] | ConstraintFunction = (),
    tolerance: float = 1e-6,
    aim: AimLike | None = None,
) -> Explanation:
    """Find the attributions with the smallest objective, with a certified gap.

    Parameters
    ----------
    objective : Objective
        A weighted sum of losses.
    solver : str or Solver
        ``"auto"`` (see :class:`propopt.solvers.Auto`), ``"spectral"``, ``"conic"``,
        ``"minimum_norm"``, or the name of a cvxpy backend, such as ``"CLARABEL"``.
    subject_to : sequence of Bound or Completeness
        Constraints such as ``po.PairwiseRobustness(graph) <= 2.0``, or
        ``po.losses.Completeness(total)`` for rows that add up. For the latter,
        ``details`` has the multipliers (N,) and the irreducible part of each loss.
        Constraints of cvxpy are functions, ``lambda W: [W[:, 0] >= 0]``. Programs with
        these or a :class:`propopt.losses.Custom` use a conic solver, and their gap
        follows from verified conic duals. If no dual gives a bound, ``gap`` is None and
        ``parameters["not proved"]`` has the reason.
    tolerance : float
        The required certified relative gap; a warning reports a larger one.
    aim : Aim, mapping, list of losses or "knee", optional
        A goal instead of weights, such as ``{"pairwise_robustness": "-50%"}``; see
        :class:`propopt.solvers.Aim`. ``parameters["aim"]`` describes it.

    Returns
    -------
    Explanation
        The optimum, with ``attributions``, ``losses``, ``objective``, ``gap``,
        ``certificate``, ``multipliers``, ``solver`` and ``seconds``. For an estimated
        target, ``target`` has the error of the objective and ``standard_errors`` those
        of the attributions.

    Raises
    ------
    Refused
        If the solver does not support the objective, with the reason.
    Infeasible
        If no attributions satisfy all bounds, with attainable ones.
    SolverFailure
        If the backend stopped without a solution.

    See Also
    --------
    sweep : Solve for many weights.
    explain : Choose target, losses and weights automatically.
    propopt.proofs.certify : Certify attributions from elsewhere.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.linspace(-1, 1, 5)[:, None]
    >>> objective = po.GradientMatching(3 * X**2) + po.PairwiseRobustness(
    ...     po.graphs.chain_graph(5)
    ... )
    >>> best = po.solve(objective)
    >>> best.solver, best.gap < 1e-12
    ('spectral', True)
    """
    began = time.perf_counter()
    weighed = Objective.of(objective)
    losses = weighed.losses
    weights = weighed.coefficients
    if not weights.any():
        raise InvalidInput("weights: all are zero, so every explanation is optimal")
    goal = read_positive(tolerance, "tolerance")
    custom, bounds = split_constraints(subject_to, losses)
    if custom or has_custom(losses, bounds):
        if aim is not None:
            raise Refused(
                "aim: it takes only losses and constraints of this library; give "
                "weights, or limits in subject_to"
            )
        return solve_custom(weighed, bounds, custom, solver, goal)
    if aim is not None:
        case = AimCase(
            objective=weighed,
            bounds=bounds,
            solver=solver,
            tolerance=goal,
            began=began,
        )
        return Aim.of(aim).reach(case)
    program = Program(losses, bounds)
    task = Task(program, solver, active=tuple(np.flatnonzero(weights).tolist()))
    return task.best(weights, goal, began)
