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
        NewInputs first.
    otherwise : Solver
        Prepares the other, once it is needed.
    """

    def __init__(self, program: Program, curve: Curve, otherwise: Solver) -> None:
        self._program = program
        self._curve = curve
        self._solver = otherwise

    def measure(self, weights: Array, tolerance: float) -> Measurement:
        enough = max(tolerance, _ROUNDING)

        def wanted(found: Measurement) -> bool:
            return found.excess <= enough * float(weights @ found.losses)

        found = self._first(lambda curve: curve.measure(weights, tolerance), wanted)
        return min(found, key=lambda measured: measured.excess)

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        def wanted(found: Solution) -> bool:
            return self._gap(found, weights) <= max(tolerance, _ROUNDING)

        def ask(curve: Curve) -> Solution:
            return curve.solve(weights, tolerance, start)

        found = self._first(ask, wanted)
        if len(found) == 1:
            return found[0]
        return min(found, key=lambda solved: self._gap(solved, weights))

    def _first(
        self, ask: Callable[[Curve], _Answer], wanted: Callable[[_Answer], bool]
    ) -> list[_Answer]:
        """What the first says, or what both say where that is not as it is wanted."""
        found: list[_Answer] = []
        with suppress(SolverFailure):
            found.append(ask(self._curve))
            if wanted(found[0]):
                return found
        try:
            return [*found, ask(self._other)]
        except SolverFailure:
            if found:
                return found
            raise

    def _gap(self, found: Solution, weights: Array) -> float:
        objective = self._program.weighed(weights)
        values = values_at(objective.losses, found.W, {})
        gap = certificate_of(objective, found.W, values, duals=found.duals).gap
        return math.inf if math.isnan(gap) else gap

    @cached_property
    def _other(self) -> Curve:
        prepared = self._solver.prepare(self._program)
        assert isinstance(prepared, Curve), "krylov is not followed by other solvers"
        return prepared
