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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, final

import numpy as np

from propopt.base.arrays import Array, Attributions
from propopt.base.errors import SolverFailure
from propopt.base.resources import few_threads
from propopt.base.text import Reason
from propopt.losses import GradientMatching, Program
from propopt.losses.faithfulness import Estimate
from propopt.results.certificate import certificate_of, values_at
from propopt.results.target_error import sampled_blocks


# ---- What a solver is: it refuses with a reason, prepares once, and solves many times


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


class Elsewhere(Prepared):
    """A program that another stands for: starts go into that, solutions come out."""

    def __init__(
        self,
        inner: Prepared,
        into: Callable[[Solution], Solution],
        out: Callable[[Solution], Solution],
    ) -> None:
        self._inner = inner
        self._into = into
        self._out = out

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        begin = None if start is None else self._into(start)
        return self._out(self._inner.solve(weights, tolerance, begin))


@final
class CurveElsewhere(Elsewhere, Curve):
    """The same, where the other has a curve, of the same losses."""

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        assert isinstance(self._inner, Curve), "it is chosen for curves"
        return self._inner.measure(weights, tolerance)


def with_infinite(
    multipliers: Iterable[float], is_taken: Iterable[bool]
) -> tuple[float, ...]:
    """Multipliers of all bounds: infinite for those that were taken out."""
    rest = iter(multipliers)
    return tuple(math.inf if taken else next(rest) for taken in is_taken)


# ---- How far optimal attributions scatter with the draws of their target: the
# jackknife


def left_out_errors(
    program: Program,
    solver: Solver,
    weights: Array,  # shape (k,)
    tolerance: float,
    start: Solution,
) -> Array:
    """Standard errors of the optimal attributions (N, D)."""
    optima = []
    for without in _programs_without_a_block(program):
        with few_threads(program.shape[0]):
            optima.append(solver.prepare(without).solve(weights, tolerance, start).W)
    errors: Array = np.sqrt((len(optima) - 1) * np.stack(optima).var(axis=0))
    return errors


def _programs_without_a_block(program: Program) -> Iterator[Program]:
    [loss] = (loss for loss in program.losses if sampled_blocks(loss) is not None)
    assert isinstance(loss, GradientMatching)
    blocks = sampled_blocks(loss)
    assert blocks is not None
    for block in blocks:
        values = loss.G - (block - loss.G) / (len(blocks) - 1)
        target = Estimate(values=values, source="a block left out", labels=loss.labels)
        other = GradientMatching(target, loss.norm, name=loss.name)
        losses = tuple(other if one is loss else one for one in program.losses)
        yield Program(losses, program.bounds, program.shape)


# ---- Two solvers that know whole curves: the second where the first gives up


_ROUNDING = 1e-9  # a gap that is none of the first's fault

_Answer = TypeVar("_Answer")


@final
class InTurn(Curve):
    """A curve, and another solver's for weights at which it fails or misses."""

    def __init__(self, program: Program, curve: Curve, otherwise: Solver) -> None:
        self._program = program
        self._curve = curve
        self._solver = otherwise

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        enough = max(tolerance, _ROUNDING)

        def is_enough(measured: Measurement) -> bool:
            return measured.excess <= enough * float(weights @ measured.losses)

        answers = self._first(
            lambda curve: curve.measure(weights, tolerance), is_enough
        )
        return min(answers, key=lambda measured: measured.excess)

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        def is_enough(solution: Solution) -> bool:
            return self._gap(solution, weights) <= max(tolerance, _ROUNDING)

        def ask(curve: Curve) -> Solution:
            return curve.solve(weights, tolerance, start)

        answers = self._first(ask, is_enough)
        if len(answers) == 1:
            return answers[0]
        return min(answers, key=lambda solution: self._gap(solution, weights))

    def _first(
        self, ask: Callable[[Curve], _Answer], is_enough: Callable[[_Answer], bool]
    ) -> list[_Answer]:
        """What the first says, or what both say where that is not enough."""
        answers: list[_Answer] = []
        with suppress(SolverFailure):
            answers.append(ask(self._curve))
            if is_enough(answers[0]):
                return answers
        try:
            return [*answers, ask(self._other)]
        except SolverFailure:
            if answers:
                return answers
            raise

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
