"""What a solver is, what it refuses, and what is left out or tried in turn.

How far optimal attributions scatter with the draws of their target: the jackknife.
Where W is no linear function of its target, it is solved for again with each block of
draws left out:

    Ĝ_(b) = Ĝ − (Ĝ_b − Ĝ)/(B − 1),   se² = (B − 1)/B Σ_b (W(Ĝ_(b)) − mean)²

(Quenouille 1956, Tukey 1958). For squared losses alone it is the scatter of W(Ĝ_b) over
√B. An attribution that is zero whichever block is left out has an error of zero.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar, final

import numpy as np

from propopt.base.arrays import Array, Attributions
from propopt.base.errors import SolverFailure
from propopt.base.resources import few_threads
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Reason
from propopt.losses import GradientMatching, Program
from propopt.losses.faithfulness import Estimate
from propopt.proofs.certificate import certificate_of, values_at
from propopt.proofs.target_error import sampled_blocks


# ---- What a solver is: it refuses with a reason, prepares once, and solves many times


@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """The answer of a solver for one vector of weights.

    Parameters
    ----------
    W : array (N, D)
        Attributions.
    duals : mapping of arrays
        By loss name, a subgradient of weight·φ at the residual, where one is known.
    multipliers : tuple of float
        One for each bound of the program.
    """

    W: Attributions
    duals: Mapping[str, Array] = field(default_factory=dict)
    multipliers: tuple[float, ...] = ()


class Prepared(ABC):
    """A program made ready: factorised, diagonalised or compiled, once."""

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
            The relative gap that is wanted.
        start : Solution, optional
            The solution for weights nearby.
        """


@final
@dataclass(frozen=True, eq=False)
class PreparedFunction(Prepared):
    """A program that one function solves, which holds what was made ready."""

    answer: Callable[[Array, float, Solution | None], Solution]

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        return self.answer(weights, tolerance, start)


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """The losses of the optimum for one vector of weights, known without forming it."""

    losses: Array  # (k,): the value of each loss, in the order of the program
    excess: float  # the objective of these losses is above the optimum by at most this


class Curve(Prepared):
    """A prepared program that knows the losses for any weights without forming W."""

    @abstractmethod
    def measure(self, weights: Array, tolerance: float) -> Measurement:
        """The losses of the minimiser for these weights.

        Parameters
        ----------
        weights : array (k,)
            One weight ≥ 0 for each loss, that of gradient matching above zero.
        tolerance : float
            The relative error that is wanted.
        """


class Solver(ABC):
    """A method for some programs."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What results call it."""

    @abstractmethod
    def refusal(self, program: Program) -> str | None:
        """Why this solver cannot treat the program, in a sentence; None if it can."""

    def take(self, program: Program) -> Solver | Reason:
        """The solver that is to prepare the program, or why there is none.

        It is asked once: what it gives takes the program. By default it is this one,
        where that has no refusal.
        """
        reason = self.refusal(program)
        return self if reason is None else Reason(reason)

    @abstractmethod
    def prepare(self, program: Program) -> Prepared:
        """Do all the work that does not depend on the weights."""


class Dispatcher(Solver):
    """A solver that hands programs on: it takes what another solver takes."""

    @abstractmethod
    def take(self, program: Program) -> Solver | Reason:
        """This solver, settled on the one that it hands the program to."""

    def refusal(self, program: Program) -> str | None:
        answer = self.take(program)
        return answer.reason if isinstance(answer, Reason) else None


# ---- A program that is solved as another, in other coordinates


@dataclass(frozen=True)
class Reduction(Dispatcher):
    """Another solver, given another program that stands for the first."""

    solver: Solver | None  # None where there is nothing to solve
    how: ClassVar[str]  # what results call it, behind the solver

    @property
    def name(self) -> str:
        return self.how if self.solver is None else f"{self.solver.name}, {self.how}"

    @abstractmethod
    def reduced(self, program: Program) -> Program | Reason:
        """The other program, or why there is none."""

    def take(self, program: Program) -> Solver | Reason:
        reduced = self.reduced(program)
        if isinstance(reduced, Reason):
            return reduced
        if self.solver is None:
            return Reason("more than one explanation is left")
        inner = self.solver.take(reduced)
        return inner if isinstance(inner, Reason) else replace(self, solver=inner)

    def inner(self, program: Program) -> Prepared:
        """The other program made ready."""
        reduced = self.reduced(program)
        assert isinstance(reduced, Program), "see take"
        assert self.solver is not None, "see take"
        return self.solver.prepare(reduced)


def innermost(solver: Solver | None) -> Solver | None:
    """The solver that is given the last of other programs."""
    while isinstance(solver, Reduction):
        solver = solver.solver
    return solver


class PreparedReduction(Prepared):
    """A program that another stands for: starts go into that, solutions come out."""

    def __init__(
        self,
        inner: Prepared,
        into: Callable[[Solution], Solution],
        out: Callable[[Solution], Solution],
        reduced: Program | None = None,  # the other, where zero is tried first
        constants: Array | float = 0.0,  # what losses are above those of the other
    ) -> None:
        self._inner = inner
        self._into = into
        self._out = out
        self._reduced = reduced
        self._constants = constants

    @classmethod
    def of(cls, inner: Prepared, *rest: Any) -> PreparedReduction:
        """A curve, where the other has one."""
        return (PreparedCurveReduction if isinstance(inner, Curve) else cls)(
            inner, *rest
        )

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        if self._zero_is_free(weights):
            assert self._reduced is not None, "its zero is free"
            return self._out(Solution(W=np.zeros(self._reduced.shape)))
        begin = None if start is None else self._into(start)
        return self._out(self._inner.solve(weights, tolerance, begin))

    def _zero_is_free(self, weights: Array) -> bool:
        if self._reduced is None or self._reduced.bounds:
            return False
        return not (weights * self._costs_of_zero).any()

    @cached_property
    def _costs_of_zero(self) -> Array:
        assert self._reduced is not None, "see _zero_is_free"
        return np.array([loss.value_at_zero for loss in self._reduced.losses])


@final
class PreparedCurveReduction(PreparedReduction, Curve):
    """The same, where the other has a curve, of the same losses but for constants."""

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        assert isinstance(self._inner, Curve), "it is chosen for curves"
        measured = self._inner.measure(weights, tolerance)
        return replace(measured, losses=measured.losses + self._constants)


def restored_multipliers(
    multipliers: Iterable[float], is_taken: Iterable[bool]
) -> tuple[float, ...]:
    """Multipliers of all bounds: infinite for those that were taken out."""
    rest = iter(multipliers)
    return tuple(math.inf if taken else next(rest) for taken in is_taken)


# ---- How far optimal attributions scatter with the draws of their target: the
# jackknife


def jackknife_errors(
    program: Program,
    solver: Solver,
    weights: Array,  # shape (k,)
    tolerance: float,
    start: Solution,
) -> Array:
    """Standard errors of the optimal attributions (N, D)."""
    [loss] = (loss for loss in program.losses if sampled_blocks(loss) is not None)
    assert isinstance(loss, GradientMatching)
    blocks = sampled_blocks(loss)
    assert blocks is not None
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


# ---- Two solvers that know whole curves: the second where the first gives up


_ROUNDING = 1e-9  # a gap that is none of the first's fault

_Answer = TypeVar("_Answer")


@final
class Fallback(Curve):
    """A curve, and another solver's for weights at which it fails or misses."""

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
            lambda solution: self._gap(solution, weights),
            tolerance,
        )

    def _better(
        self,
        ask: Callable[[Curve], _Answer],
        gap: Callable[[_Answer], float],
        tolerance: float,
    ) -> _Answer:
        """What the first says; the better of both where that is not enough."""
        answers: list[_Answer] = []
        with suppress(SolverFailure):
            answers.append(ask(self._curve))
            if gap(answers[0]) <= max(tolerance, _ROUNDING):
                return answers[0]
        try:
            answers.append(ask(self._other))
        except SolverFailure:
            if not answers:
                raise
        return answers[0] if len(answers) == 1 else min(answers, key=gap)

    def _gap(self, solution: Solution, weights: Array) -> float:
        objective = self._program.weighed(weights)
        values = values_at(objective.losses, solution.W, {})
        gap = certificate_of(objective, solution.W, values, duals=solution.duals).gap
        return math.inf if math.isnan(gap) else gap

    @cached_property
    def _other(self) -> Curve:
        prepared = self._solver.prepare(self._program)
        assert isinstance(prepared, Curve), "krylov is not followed by other solvers"
        return prepared
