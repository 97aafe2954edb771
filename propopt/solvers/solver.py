"""Solvers and prepared programs, reductions, fallbacks and the jackknife.

The jackknife gives the standard errors of optimal attributions due to draws of their
target. Where W is not linear in its target, each block of draws is left out and the
program is solved again:

    Ĝ_(b) = Ĝ − (Ĝ_b − Ĝ)/(B − 1),   se² = (B − 1)/B Σ_b (W(Ĝ_(b)) − mean)²

(Quenouille 1956, Tukey 1958). For squared losses it is the spread of W(Ĝ_b) over √B.
An attribution that is zero in all these solutions has an error of zero.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar, final

import numpy as np

from propopt.base.arrays import Array, Attributions
from propopt.base.errors import SolverFailure
from propopt.base.resources import few_threads
from propopt.base.text import Reason
from propopt.losses import GradientMatching, Program
from propopt.losses.faithfulness import Estimate
from propopt.proofs.certificate import certificate_of
from propopt.proofs.sampling_error import sampled_blocks


# ---- Solvers: each refuses with a reason, prepares once, and solves many times


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """The attributions that a solver computed for one vector of weights.

    Parameters
    ----------
    W : array (N, D)
        Attributions.
    duals : mapping of arrays
        By loss name, a subgradient of weight·φ at the residual, if the solver has one.
    multipliers : tuple of float
        One multiplier ≥ 0 for each bound of the program.
    is_free : bool
        Whether it is zero and costs nothing, so that nothing was solved.
    """

    W: Attributions
    duals: Mapping[str, Array] = field(default_factory=dict)
    multipliers: tuple[float, ...] = ()
    is_free: bool = False


class Prepared(ABC):
    """A program prepared for many weights: factorised or compiled once."""

    @abstractmethod
    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        """Minimise the losses with these weights, in the order of the program.

        Parameters
        ----------
        weights : array (k,)
            One weight ≥ 0 for each loss.
        tolerance : float
            The relative gap to reach.
        start : Solution, optional
            The solution for weights nearby.

        Returns
        -------
        Solution
            Attributions (N, D), with duals and multipliers if the solver has them.

        Raises
        ------
        SolverFailure
            If the solver stopped without a usable solution.
        """


@final
@dataclass(frozen=True, eq=False)
class PreparedFunction(Prepared):
    """A prepared program that a single function solves."""

    function: Callable[[Array, float, Solution | None], Solution]

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        return self.function(weights, tolerance, start)


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """The losses of the optimum for one vector of weights, without attributions."""

    losses: Array  # (k,): the value of each loss, in the order of the program
    excess: float  # bounds how far their objective exceeds the optimum


class Curve(Prepared):
    """A prepared program with losses of optima at any weights, without attributions."""

    @abstractmethod
    def measure(self, weights: Array, tolerance: float) -> Measurement:
        """Compute the losses of the minimiser for these weights.

        Parameters
        ----------
        weights : array (k,)
            One weight ≥ 0 for each loss, that of gradient matching above zero.
        tolerance : float
            The relative error to reach.

        Returns
        -------
        Measurement
            The value of each loss (k,), and a bound on the excess of their objective.

        Raises
        ------
        SolverFailure
            If the solver stopped without a usable solution.
        """


class Solver(ABC):
    """A method that solves some programs and refuses others with a reason."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of this solver, as results report it."""

    @abstractmethod
    def refusal(self, program: Program) -> str | None:
        """The reason, in a sentence, why the solver cannot solve a program; or None."""

    def take(self, program: Program) -> Solver | Reason:
        """Return the solver that will prepare the program, or the reason for none.

        It is called once; the returned solver takes the program. The default is this
        solver, unless it refuses.

        """
        reason = self.refusal(program)
        return self if reason is None else Reason(reason)

    @abstractmethod
    def prepare(self, program: Program) -> Prepared:
        """Do the work that does not depend on weights, such as factorizations."""


class Dispatcher(Solver):
    """A solver that passes programs on to another solver."""

    @abstractmethod
    def take(self, program: Program) -> Solver | Reason:
        """The solver that takes the program, or the reason why none does."""

    def refusal(self, program: Program) -> str | None:
        choice = self.take(program)
        return choice.reason if isinstance(choice, Reason) else None


# ---- Reductions: a program is solved as another one, in other coordinates


@dataclass(frozen=True)
class Reduction(Dispatcher):
    """A solver that solves an equivalent program and transforms the solution."""

    solver: Solver | None  # None if a single W is left
    how: ClassVar[str]  # added to the name of the solver in results

    @property
    def name(self) -> str:
        return self.how if self.solver is None else f"{self.solver.name}, {self.how}"

    @abstractmethod
    def reduced(self, program: Program) -> Program | Reason:
        """Return the equivalent program, or the reason for none."""

    def take(self, program: Program) -> Solver | Reason:
        reduced = self.reduced(program)
        if isinstance(reduced, Reason):
            return reduced
        if self.solver is None:
            return Reason("more than one explanation is left")
        inner = self.solver.take(reduced)
        return inner if isinstance(inner, Reason) else replace(self, solver=inner)

    def inner(self, reduced: Program) -> Prepared:
        """Prepare the equivalent program with its solver."""
        assert self.solver is not None, "see take"
        return self.solver.prepare(reduced)


def innermost(solver: Solver | None) -> Solver | None:
    """The solver behind all nested reductions."""
    while isinstance(solver, Reduction):
        solver = solver.solver
    return solver


class PreparedReduction(Prepared):
    """A prepared reduction: maps starts into the other program, solutions back."""

    def __init__(
        self,
        inner: Prepared,
        into: Callable[[Solution], Solution],
        out: Callable[[Solution], Solution],
        reduced: Program | None = None,  # the other program, if zero is tried first
        constants: Array | float = 0.0,  # losses minus those of the other program
    ) -> None:
        self._inner = inner
        self._into = into
        self._out = out
        self._reduced = reduced
        self._constants = constants

    @classmethod
    def of(cls, inner: Prepared, *rest: Any) -> PreparedReduction:
        """A curve if the other program has one."""
        return (PreparedCurveReduction if isinstance(inner, Curve) else cls)(
            inner, *rest
        )

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        reduced = self._reduced
        if (
            reduced is not None
            and not reduced.bounds
            and not (weights * reduced.trivial.zero).any()
        ):
            return self._out(Solution(W=np.zeros(reduced.shape)))
        begin = None if start is None else self._into(start)
        return self._out(self._inner.solve(weights, tolerance, begin))


@final
class PreparedCurveReduction(PreparedReduction, Curve):
    """A prepared reduction to a curve whose losses differ by constants."""

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        assert isinstance(self._inner, Curve), "it is chosen for curves"
        measured = self._inner.measure(weights, tolerance)
        return replace(measured, losses=measured.losses + self._constants)


# ---- The jackknife: errors of optimal attributions due to draws of their target


def jackknife_errors(
    program: Program,
    solver: Solver,
    weights: Array,  # shape (k,)
    tolerance: float,
    start: Solution,
) -> Array:
    """Jackknife standard errors of the optimal attributions, shape (N, D)."""
    [(loss, blocks)] = (
        (loss, blocks)
        for loss in program.losses
        if (blocks := sampled_blocks(loss)) is not None
    )
    assert isinstance(loss, GradientMatching)
    optima = []
    for block in blocks:
        values = loss.G - (block - loss.G) / (len(blocks) - 1)
        target = Estimate(values=values, source="a block left out", labels=loss.labels)
        other = GradientMatching(target, loss.norm, name=loss.name)
        losses = tuple(other if one is loss else one for one in program.losses)
        without = Program(losses, program.bounds, program.shape)
        with few_threads(program.shape[0]):
            optima.append(solver.prepare(without).solve(weights, tolerance, start).W)
    return np.sqrt((len(optima) - 1) * np.stack(optima).var(axis=0))


# ---- Two solvers with curves: the second is used where the first fails


def gap_of(program: Program, weights: Array, solution: Solution) -> float:
    """The certified gap of a solution; infinite if it is unknown."""
    W = solution.W
    values = program.values_at(W)
    gap = certificate_of(program, weights, W, values, duals=solution.duals).gap
    return math.inf if math.isnan(gap) else gap


_ROUNDING = 1e-9  # a gap due to rounding

_Answer = TypeVar("_Answer")


@final
class Fallback(Curve):
    """A curve with a second solver for weights where it misses the tolerance."""

    def __init__(self, program: Program, curve: Curve, fallback: Solver) -> None:
        self._program = program
        self._curve = curve
        self._solver = fallback

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        tiny = np.finfo(float).tiny
        return self._better(
            lambda curve: curve.measure(weights, tolerance),
            lambda m: m.excess / max(float(weights @ m.losses), tiny),
            tolerance,
        )

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        return self._better(
            lambda curve: curve.solve(weights, tolerance, start),
            lambda solution: gap_of(self._program, weights, solution),
            tolerance,
        )

    def _better(
        self,
        compute: Callable[[Curve], _Answer],
        gap: Callable[[_Answer], float],
        tolerance: float,
    ) -> _Answer:
        """The first solver's result, or the better of both if that is not enough."""
        results: list[_Answer] = []
        with suppress(SolverFailure):
            results.append(compute(self._curve))
            if gap(results[0]) <= max(tolerance, _ROUNDING):
                return results[0]
        try:
            results.append(compute(self._other))
        except SolverFailure:
            if not results:
                raise
        return results[0] if len(results) == 1 else min(results, key=gap)

    @cached_property
    def _other(self) -> Curve:
        prepared = self._solver.prepare(self._program)
        assert isinstance(prepared, Curve), "krylov is not followed by other solvers"
        return prepared
