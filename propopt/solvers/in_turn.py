"""Two solvers that know whole curves: the second where the first gives up."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import TypeVar, final

from propopt._typing import Array
from propopt.certificate import certificate_of
from propopt.errors import SolverFailure
from propopt.losses import Program
from propopt.lower_bounds import values_at
from propopt.solvers.base import Curve, Measurement, Solution, Solver


_ROUNDING = 1e-9  # a gap that is none of the first's fault

_Answer = TypeVar("_Answer")


@final
class InTurn(Curve):
    """A curve, and another solver's for weights at which it fails or misses.

    Parameters
    ----------
    program : Program
        What is solved.
    curve : Curve
        Asked first.
    otherwise : Solver
        Prepares the other, once it is needed.
    """

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
