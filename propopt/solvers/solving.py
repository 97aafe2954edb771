"""``solve``, and the optimum for the worst target within a radius.

Minimising the cost of the worst target within a radius is a scalar root search. For
every target within ‖G − Ĝ‖ ≤ δ (Frobenius) the matching loss is at most a(‖W − Ĝ‖ +
δ)², and one target attains it. Its sum with the other losses R,

    J(W) = a(‖W − Ĝ‖ + δ)² + R(W),

has the gradient of a‖W − Ĝ‖² + κR over κ, with κ = r/(r + δ) and r = ‖W − Ĝ‖. Its
minimum therefore lies on that curve, where κ(r(κ) + δ) = r(κ); or at W = Ĝ, where there
is no such κ in (0, 1): if ‖∇R(Ĝ)‖ ≤ 2aδ. As J less a‖W − Ĝ‖² is convex, J(W) − J* ≤
‖∂J(W)‖²/4a for the shortest subgradient.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import final

import numpy as np
import scipy.optimize as opt

from propopt.base.arrays import Array, Attributions
from propopt.base.checks import read_nonnegative, read_positive
from propopt.base.errors import InvalidInput, Refused, SolverFailure
from propopt.base.suggestions import suggests_arguments
from propopt.losses import GradientMatching, Objective, Program, PropertyLoss
from propopt.losses.completeness import Constraint, has_custom, split_constraints
from propopt.losses.custom import ConstraintFunction
from propopt.losses.maps import Squared
from propopt.results.explanation import Explanation
from propopt.solvers.aims import Aim, AimCase, AimLike
from propopt.solvers.custom import solve_custom
from propopt.solvers.solver import Solution, Solver
from propopt.solvers.task import FINEST, Task


_DECADES = 300
"""The search for κ stops at this negative power of ten."""


@final
@dataclass(frozen=True, eq=False)
class WorstCase:
    """The problem for the worst target within a radius of the given one."""

    # squared losses, one of which is gradient matching, without bounds
    program: Program
    weights: Array  # (k,): in their order
    radius: float  # δ > 0

    def refusal(self) -> str | None:
        """The reason why the worst case is not on a curve; None if it is."""
        if self.program.bounds:
            return "target_radius: it takes no bounds"
        pairs = zip(self.weights, self.program.losses, strict=True)
        weighed = [loss for weight, loss in pairs if weight > 0]
        for loss in weighed:
            if not isinstance(loss.penalty, Squared):
                return f"target_radius: {loss.name} is not a squared loss"
        count = sum(isinstance(loss, GradientMatching) for loss in weighed)
        if count != 1:
            return f"target_radius: it takes one gradient-matching loss, not {count}"
        return None

    def at(self, kappa: float) -> Array:
        """Weights of a point of the curve: the other losses get κ times theirs."""
        scaled = kappa * self.weights
        scaled[self._matching_index] = self._a
        return scaled

    def matching(self, task: Task, tolerance: float, weights: Array) -> float:
        """‖W − Ĝ‖² of the optimum for these weights."""
        if task.has_curve(weights):
            return float(task.measure(weights, tolerance).losses[self._matching_index])
        return self.program.losses[self._matching_index].value_at(
            task.solve(weights, tolerance).W
        )

    def kappa(self, matching: Callable[[Array], float]) -> float:
        """κ of the optimum, or zero where the optimum is the target."""

        def height(log_kappa: float) -> float:
            """R + δ − r/κ, which rises with κ."""
            kappa = math.exp(log_kappa)
            r = math.sqrt(matching(self.at(kappa)))
            return r + self.radius - r / kappa

        if self._steepness(self.target) == 0.0:
            return 0.0
        for decades in range(1, _DECADES):
            low = -math.log(10.0) * decades
            if height(low) < 0.0:
                return math.exp(opt.brentq(height, low, 0.0, xtol=1e-15, rtol=1e-14))
        raise SolverFailure(
            "target_radius: the optimum is so close to the target that the worst case "
            "cannot be computed"
        )

    def value(self, W: Attributions) -> float:
        """The worst-case objective J(W)."""
        r = float(np.linalg.norm(W - self.target))
        return self._a * (r + self.radius) ** 2 + math.fsum(
            c * loss.value_at(W) for c, loss in self._others
        )

    def lower_bound(self, W: Attributions) -> float:
        """A lower bound of J, by the shortest subgradient at W."""
        # of ∇R
        rounding = (2.0 * c * loss.map.rounding(W).gradient for c, loss in self._others)
        steepness = self._steepness(W) + math.fsum(rounding)
        return max(self.value(W) - steepness**2 / (4.0 * self._a), 0.0)

    def _steepness(self, W: Attributions) -> float:
        """‖∂J(W)‖, the shortest: at the target, ∂ of 2aδ‖W − Ĝ‖ is a ball."""
        slopes = (
            2.0 * c * loss.map.adjoint(loss.residual(W)) for c, loss in self._others
        )
        slope, D = sum(slopes, np.zeros(self.program.shape)), W - self.target
        r = float(np.linalg.norm(D))
        if r == 0.0:
            return max(float(np.linalg.norm(slope)) - 2.0 * self._a * self.radius, 0.0)
        rise = 2.0 * self._a * (1.0 + self.radius / r)
        return float(np.linalg.norm(rise * D + slope))

    @cached_property
    def _matching_index(self) -> int:
        """Index of the gradient-matching loss with a positive weight."""
        pairs = zip(self.weights, self.program.losses, strict=True)
        return [c > 0 and isinstance(o, GradientMatching) for c, o in pairs].index(True)

    @property
    def _a(self) -> float:
        return float(self.weights[self._matching_index])

    @property
    def target(self) -> Attributions:
        """The given target Ĝ, shape (N, D)."""
        return np.asarray(self.program.losses[self._matching_index].target)

    @property
    def _others(self) -> list[tuple[float, PropertyLoss]]:
        """The losses of R with their weights."""
        terms = list(self.program.weighed(self.weights).terms)
        del terms[self._matching_index]
        return [(c, loss) for c, loss in terms if c > 0]


def solve_worst_case(
    task: Task, weights: Array, radius: float, tolerance: float, began: float
) -> Explanation:
    """Minimise the cost of the worst target within a radius."""
    worst = WorstCase(task.program, weights, radius)
    reason = worst.refusal()
    if reason is not None:
        raise Refused(reason)
    # losses err by the root of the excess
    fine = max(tolerance**2, min(tolerance, FINEST))
    kappa = worst.kappa(partial(worst.matching, task, fine)) if radius else 1.0
    if kappa:
        solution = task.solve(worst.at(kappa), fine)
    else:
        solution = Solution(W=worst.target.copy())
    best = task.explain(solution, worst.at(kappa), tolerance, began)
    numbers = {
        "target_radius": radius,
        "kappa": kappa,
        "worst_case": worst.value(solution.W),
        "worst_case_lower_bound": worst.lower_bound(solution.W),
    }
    return replace(best, parameters={**best.parameters, **numbers})


@suggests_arguments
def solve(
    objective: Objective | PropertyLoss,
    solver: str | Solver = "auto",
    *,
    subject_to: Sequence[Constraint | ConstraintFunction] | ConstraintFunction = (),
    tolerance: float = 1e-6,
    target_radius: float | None = None,
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
    target_radius : float, optional
        A radius δ ≥ 0 of the target: minimise the objective for the worst target G with
        ‖G − Ĝ‖ ≤ δ (Frobenius), where Ĝ is the given target and all losses are squared.
        The result is optimal for the other weights times κ = r/(r + δ), with
        r = ‖W − Ĝ‖. Its weights are these; ``parameters`` has κ, the worst case and a
        lower bound of it.
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
    weights = weighed.coefficients
    if not weights.any():
        raise InvalidInput("weights: all are zero, so every explanation is optimal")
    goal = read_positive(tolerance, "tolerance")
    custom, bounds = split_constraints(subject_to, weighed.losses)
    if custom or has_custom(weighed.losses, bounds):
        if aim is not None or target_radius is not None:
            raise Refused(
                "aim and target_radius take only losses and constraints of this "
                "library; give weights, or limits in subject_to"
            )
        return solve_custom(weighed, bounds, custom, solver, goal)
    if aim is not None:
        if target_radius is not None:
            raise InvalidInput(
                "target_radius: leave it out with an aim, or give weights"
            )
        case = AimCase(
            objective=weighed,
            bounds=bounds,
            solver=solver,
            tolerance=goal,
            began=began,
        )
        return Aim.of(aim).reach(case)
    program = Program(weighed.losses, bounds)
    task = Task(program, solver, active=tuple(np.flatnonzero(weights).tolist()))
    if target_radius is not None:
        delta = read_nonnegative(target_radius, "target_radius")
        return solve_worst_case(task, weights, delta, goal, began)
    return task.best(weights, goal, began)
