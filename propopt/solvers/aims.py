"""Aims of an explanation in place of weights: shares, orders, the knee.

Every trade-off has two ends: the target, W = G, and the most faithful W among those
that minimise the other losses (:mod:`propopt.results.shares`). The range of
a loss goes from its best to its worst value at the two ends; all aims are shares of
that range.

* **shares**: a loss that is 50 % smaller has a limit halfway, and leaves the sum. One
  such limit on squared losses is a root on their exact curve (:mod:`.curves`). Several
  are max_μ F*_{c,μ} − Σ μ_j limit_j over multipliers: each optimum is a plane above
  that concave function, and the mixture of optima that respects all limits is the
  answer.
* **order**: each loss is made as small as the losses before it allow; each of those may
  exceed its minimum by ``within`` of its range.
* **knee**: of faithfulness A against the sum B of the others, each divided by its
  range, the point of the exact front farthest from the chord between both ends. That
  distance is (1 − a − b)/√2, linear in both, so that the knee is the optimum for the
  weights 1/ΔA and 1/ΔB: one solve, and no search.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeAlias, final

import numpy as np
import scipy.optimize as opt

from propopt.base.arrays import Array
from propopt.base.checks import read_share
from propopt.base.errors import InvalidInput, Refused, TrivialObjectiveWarning
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import enumerated
from propopt.losses import Bound, Objective, Program, PropertyLoss
from propopt.losses.algebra import Faithfulness
from propopt.proofs.ideal_nadir import IdealNadir
from propopt.proofs.optimum import Parameter
from propopt.results.explanation import Explanation
from propopt.solvers.conic import Conic
from propopt.solvers.solver import Solution, Solver, innermost
from propopt.solvers.task import Task


_Key: TypeAlias = str | PropertyLoss

_MOST_CUTS = 200
_PENALTY = 1e4
"""The cost of exceeding a limit, paid where no mixture respects it."""
_FINE = dict.fromkeys(
    ("primal_feasibility_tolerance", "dual_feasibility_tolerance"), 1e-10
)
_TINY = 1e-9
"""A multiplier is at least this, so that each loss has a weight."""


@final
@suggests_arguments
@dataclass(frozen=True)
class Aim:
    """A goal for the losses of an explanation, in place of weights.

    Wherever an aim is accepted, a mapping to shares means :meth:`shares`, a list of
    losses :meth:`order`, and ``"knee"`` :meth:`knee`. A loss is given by its name, or
    as an object that need not be in the objective.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> G = np.array([[1.0], [3.0], [2.0]])
    >>> robust = po.PairwiseRobustness(po.graphs.chain_graph(3))
    >>> best = po.solve(
    ...     po.GradientMatching(G) + robust, aim={"pairwise_robustness": "-50%"}
    ... )
    >>> round(best.losses["pairwise_robustness"] / robust.value(G), 6)
    0.5
    """

    reach: Callable[[AimCase], Explanation]
    """Computes the explanation that reaches the aim, with its certificate."""

    @staticmethod
    def of(aim: AimLike) -> Aim:
        """Convert an aim, a mapping, a list or a word to an aim.

        Raises
        ------
        InvalidInput
            If it is none of these.
        """
        given: object = aim
        match given:
            case Aim():
                return given
            case "knee":
                return Aim.knee()
            case Mapping():
                return Aim.shares(given)
            case list() | tuple():
                return Aim.order(given)
            case _:
                got = repr(given) if isinstance(given, str) else type(given).__name__
        raise InvalidInput(
            "aim: expected shares by loss such as {'pairwise_robustness': '-50%'}, a "
            f"list of losses by importance or 'knee', got {got}"
        )

    @staticmethod
    def shares(shares: Mapping[str, str] | Mapping[PropertyLoss, str]) -> Aim:
        """Reduce losses by shares of the range that they have on the trade-off curve.

        The limit of a loss is best + (1 − share)(worst − best), between its values at
        both ends of the front: for robustness, 0 % is the value at the target and 100 %
        the minimum; for faithfulness, 100 % is the target. For a largest squared
        difference the share refers to the difference. The other losses are
        minimised, with their weights.
        """
        read = {key: read_share(share, _name(key)) for key, share in shares.items()}
        if not read:
            raise InvalidInput("aim: shares of no loss are given")
        return Aim(partial(_reach_shares, read))

    @staticmethod
    def order(losses: Sequence[str | PropertyLoss], within: float = 0.01) -> Aim:
        """Minimise losses by importance, each as far as those before it allow.

        Unnamed losses of the objective come last, with their weights.

        Parameters
        ----------
        losses : sequence of str or PropertyLoss
            The most important first.
        within : float
            By how much each may exceed its minimum to leave room for those after it,
            as a share of its range between the ends of the front.

        Returns
        -------
        Aim
            The ``aim`` of :func:`propopt.solve`.
        """
        names = [_name(key) for key in losses]
        if not names or len(set(names)) < len(names):
            raise InvalidInput("aim: expected losses by importance, each once")
        if not 0.0 < float(within) < 1.0:
            raise InvalidInput(
                "within: expected a share of each loss's range, above 0 and below 1, "
                f"got {within!r}"
            )
        return Aim(partial(_reach_order, tuple(losses), float(within)))

    @staticmethod
    def knee() -> Aim:
        """Choose the point of the trade-off curve farthest from the line of its ends.

        The exact curve shows faithfulness against the weighted sum of the other losses,
        each divided by its range: the best is at (0, 0), the ends at (0, 1) and (1, 0).
        """
        return Aim(_reach_knee)


AimLike: TypeAlias = (
    Aim
    | str
    | Mapping[str, str]
    | Mapping[PropertyLoss, str]
    | Sequence[str | PropertyLoss]
)
"""An aim, or a shorthand for one."""


def _name(key: _Key) -> str:
    return key.name if isinstance(key, PropertyLoss) else str(key)


# ---- The programs solved for an aim, and the ends of the front


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class AimCase:
    """An objective and its constraints, for which an aim makes weights and limits."""

    objective: Objective
    bounds: tuple[Bound, ...]  # which every explanation respects
    solver: str | Solver
    tolerance: float
    began: float

    def having(
        self, keys: Sequence[_Key]
    ) -> tuple[AimCase, list[PropertyLoss], tuple[tuple[float, PropertyLoss], ...]]:
        """The case with new losses added, the losses of these keys, other terms."""
        losses = [self.objective.loss(key, "aim") for key in keys]
        new = tuple((1.0, x) for x in losses if x not in self.objective.losses)
        whole = Objective.weighed((*self.objective.terms, *new))
        rest = tuple(t for t in whole.terms if t[1] not in losses)
        return replace(self, objective=whole), losses, rest

    @cached_property
    def program(self) -> Program:
        """The program of all losses, weighted or bounded."""
        return Program(self.objective.losses, self.bounds)

    @cached_property
    def ends(self) -> IdealNadir:
        """The losses at both ends of the front."""
        return IdealNadir.of(
            self.program, {loss.name for loss in self.program.all_losses}
        )

    def best(
        self,
        terms: tuple[tuple[float, PropertyLoss], ...],
        limits: Sequence[Bound] = (),
        **parameters: Parameter,
    ) -> Explanation:
        """The optimum of weighted losses under limits on others."""
        weights = np.array([weight for weight, _ in terms])
        losses = tuple(x for _, x in terms)
        program = Program(losses, (*self.bounds, *limits), self.program.shape)
        active = tuple(np.flatnonzero(weights).tolist())
        task = Task(program, self.solver, active=active)
        result = None
        if self.solver == "auto" and limits:
            result = _within_limits(self, task, weights, limits)
        if result is None:
            result = task.best(weights, self.tolerance, self.began)
        return replace(result, parameters={**result.parameters, **parameters})

    def least(self, loss: PropertyLoss, limits: Sequence[Bound]) -> float:
        """The attained minimum of one loss under limits."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrivialObjectiveWarning)
            try:
                best = self.best(((1.0, loss),), limits)
            except Refused:  # several W attain it: the value of one is enough
                case = replace(self, solver="minimum_norm")
                best = case.best(((1.0, loss),), limits)
        return best.losses[loss.name]


# ---- Solving for each aim


def _reach_shares(shares: Mapping[_Key, float], case: AimCase) -> Explanation:
    case, losses, rest = case.having(list(shares))
    if not any(weight for weight, _ in rest):
        raise InvalidInput(
            "aim: a reduction is given for all losses of the objective, so no loss "
            "is left to minimise; omit one"
        )
    limits = []
    words = []
    for loss, share in zip(losses, shares.values(), strict=True):
        limit = case.ends.limit(loss.name, share)
        if share == 1.0:
            raise Refused(
                f"{loss.name}: a reduction by 100 % is approached but not reached; "
                "give less, such as '-99%'"
            )
        limits.append(Bound(loss, limit))
        words.append(f"{loss.name} {100.0 * share:g} % smaller")
    return case.best(rest, limits, aim=enumerated(words, "and"))


def _reach_order(order: tuple[_Key, ...], within: float, case: AimCase) -> Explanation:
    case, losses, rest = case.having(order)
    first = losses
    if not any(weight for weight, _ in rest):
        *first, last = losses
        rest = (*rest, (1.0, last))
    limits: list[Bound] = []
    for loss in first:
        best, worst = case.ends.range_of(loss.name)
        limits.append(Bound(loss, case.least(loss, limits) + within * (worst - best)))
    words = ", then ".join(loss.name for loss in losses)
    parameters = {f"limit.{bound.loss.name}": bound.limit for bound in limits}
    aim = f"first {words}, each to {100.0 * within:g} % of its range"
    return case.best(rest, limits, aim=aim, **parameters)


def _reach_knee(case: AimCase) -> Explanation:
    terms = case.objective.terms
    if len({isinstance(loss, Faithfulness) for c, loss in terms if c > 0.0}) < 2:
        raise Refused(
            "aim: 'knee' needs an objective of faithfulness and other losses, got "
            f"{case.objective!r}"
        )
    least, span = _span(case, True)
    low, other = _span(case, False)
    rate = span / other
    terms = tuple(
        (c if isinstance(loss, Faithfulness) else rate * c, loss) for c, loss in terms
    )
    best = case.best(terms, aim="the knee of the exact front")
    proof = best.certificate
    assert proof is not None, "it is optimized"
    # (1 − a − b)/√2 of the optimum, and of its lower bound
    distance = [
        (1.0 - (F - least - rate * low) / span) / math.sqrt(2.0)
        for F in (proof.value, proof.lower_bound)
    ]
    distances = {
        "distance from the chord": float(distance[0]),
        "at most": float(distance[1]),
    }
    return replace(best, parameters={**best.parameters, **distances})


def _span(case: AimCase, is_faithful: bool) -> tuple[float, float]:
    """The least of one side's weighted losses at the ends, and their range."""
    least = span = 0.0
    for c, loss in case.objective.terms:
        if c > 0.0 and isinstance(loss, Faithfulness) is is_faithful:
            best, worst = case.ends.range_of(loss.name)
            least = least + c * best
            span = span + c * (worst - best)
    return least, span


# ---- Mixtures of optima at many weights: several limits at once


@final
class _Optima:
    """Optima at several weights, with their losses and their mixtures."""

    def __init__(self, case: AimCase, task: Task) -> None:
        self.case = case
        self.task = task
        self.weights: list[Array] = []  # (k,): solved so far
        self.losses: list[Array] = []  # (k,): of each optimum
        self._solutions: list[Solution | None] = []  # None where a curve has the losses

    def add(self, c: Array) -> tuple[float, float]:
        """Solve for weights c; returns F_c* and a lower bound of it."""
        task = self.task
        tolerance = self.case.tolerance
        if task.has_curve(c):
            measured = task.measure(c, tolerance**2)
            losses = np.nan_to_num(
                measured.losses
            )  # losses without a weight do not count
            value = float(c @ losses)
            lower = value - measured.excess
            solution = None
        else:
            start = self._solutions[-1] if self._solutions else None
            solution = task.solve(c, 0.1 * tolerance, start)
            best = task.explain(solution, c, tolerance, self.case.began)
            assert best.certificate is not None, "it is optimized"
            losses = np.array([best.losses[x.name] for x in task.program.losses])
            value = best.certificate.value
            lower = best.certificate.lower_bound
        self.weights.append(c)
        self.losses.append(losses)
        self._solutions.append(solution)
        return value, lower

    def mixture(self, theta: Array, index: int) -> Solution:
        """The mixed attributions, with duals and multipliers of one of the optima."""
        task = self.task
        fine = self.case.tolerance**2
        last = self._solutions[index] or task.solve(self.weights[index], fine)
        W = np.zeros(task.program.shape)
        for n in np.flatnonzero(theta):
            optimum = self._solutions[n]
            optimum = optimum or task.solve(self.weights[n], fine, last)
            W += theta[n] * optimum.W
        return replace(last, W=W)


def _mixed(
    A: Array, b: Array, costs: Array, slack: Array, S: Array, low: float | None
) -> tuple[Array, Array, float]:
    """Shares θ of optima at minimal cost, prices of rows, and that cost.

    A θ ≤ b + S σ, where each σ costs its slack, and is at least ``low``.
    """
    n = len(costs)
    m = len(slack)
    result = opt.linprog(
        np.append(costs, slack),
        A_ub=np.hstack([A, -S]),
        b_ub=b,
        A_eq=np.append(np.ones(n), np.zeros(m))[None],
        b_eq=[1.0],
        bounds=[*[(0.0, None)] * n, *[(low, None)] * m],
        options=_FINE,
    )
    theta = np.maximum(result.x[:n], 0.0)
    prices = np.maximum(-result.ineqlin.marginals, 0.0)
    return theta / theta.sum(), prices, float(result.fun)


def _within_limits(
    case: AimCase, task: Task, weights: Array, limits: Sequence[Bound]
) -> Explanation | None:
    """The optimum under limits by their multipliers, without a conic solver.

    max_μ F*_{c,μ} − Σ μ_j limit_j: its cutting planes are optima, and the mixture
    of these that respects all limits is the answer. None without convergence.
    """
    if not isinstance(innermost(task.chosen), Conic):
        return None
    losses = (*task.program.losses, *(bound.loss for bound in limits))
    program = Program(losses, case.bounds, task.program.shape)
    active = (*np.flatnonzero(weights), *range(len(weights), len(losses)))
    free = Task(program, active=tuple(map(int, active)))
    if isinstance(innermost(free.chosen), Conic):
        return None
    optima = _Optima(case, free)
    k = len(weights)
    most = np.array([bound.limit for bound in limits])
    size = float(weights @ [loss.value_at_zero for loss in losses[:k]])
    size = size or float(max(loss.value_at_zero for loss in losses)) or 1.0
    least = -math.inf
    best_index = 0

    def add(mu: Array) -> float:
        nonlocal least, best_index
        _, lower = optima.add(np.append(weights, mu))
        if lower - mu @ most > least:
            least = float(lower - mu @ most)
            best_index = len(optima.weights) - 1
        return least

    unit = size / most
    for scale in np.geomspace(1e-4, 1e2, 13):
        add(scale * unit)
    for _ in range(_MOST_CUTS):
        L = np.array(optima.losses)
        theta, prices, cost = _mixed(
            (L[:, k:] / most).T,
            np.ones(len(most)),
            L[:, :k] @ weights / size,
            np.full(len(most), _PENALTY),
            np.eye(len(most)),
            0.0,
        )
        if size * cost - add(np.maximum(prices, _TINY) * unit) <= (
            0.5 * case.tolerance * size * cost
        ):
            break
    else:
        return None
    solution = optima.mixture(theta, best_index)
    mu = (*solution.multipliers, *map(float, optima.weights[best_index][k:]))
    solution = replace(solution, multipliers=mu)
    best = task.explain(solution, weights, case.tolerance, case.began)
    return replace(best, solver=f"{free.chosen.name}, mixed")
