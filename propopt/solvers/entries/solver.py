"""Losses of single entries and of differences between entries: entries become points.

Whole curves of weights, sparse factors, Newton's method for sparsity and bounds are
those of the graph of the entries; see :mod:`propopt.losses.entries`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from propopt._typing import Array
from propopt.losses import Program
from propopt.losses.entries import Support, entries_refusal
from propopt.solvers.base import (
    Curve,
    Dispatcher,
    Measurement,
    Prepared,
    Solution,
    Solver,
)


@final
@dataclass(frozen=True)
class Entries(Dispatcher):
    """Another solver, given the program with entries for points.

    It takes losses of W itself, squared or absolute, and squared losses over entries,
    such as :class:`propopt.SharedRobustness`, and bounds on these.

    Parameters
    ----------
    solver : Solver
        What solves the program of the entries.
    """

    solver: Solver

    @property
    def name(self) -> str:
        return f"{self.solver.name}, of entries"

    def take(self, program: Program) -> Solver | str:
        reason = entries_refusal(program.all_losses)
        if reason is not None:
            return reason
        inner = self.solver.take(_support(program).program(program))
        return inner if isinstance(inner, str) else Entries(inner)

    def prepare(self, program: Program) -> Prepared:
        support = _support(program)
        inner = self.solver.prepare(support.program(program))
        kind = _PlacedCurve if isinstance(inner, Curve) else _Placed
        return kind(inner, support, program)


def _support(program: Program) -> Support:
    return Support.of(program.all_losses, program.shape)


class _Placed(Prepared):
    def __init__(self, inner: Prepared, support: Support, program: Program) -> None:
        self._inner = inner
        self._support = support
        self._losses = program.losses

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        begin = None if start is None else self._of_entries(start)
        solution = self._inner.solve(weights, tolerance, begin)
        return replace(
            solution,
            W=self._support.expanded(solution.W),
            duals=self._support.expanded_duals(self._losses, solution.duals),
        )

    def _of_entries(self, solution: Solution) -> Solution:
        return replace(
            solution,
            W=self._support.values(solution.W),
            duals=self._support.duals(self._losses, solution.duals),
        )


class _PlacedCurve(_Placed, Curve):
    def measure(self, weights: Array, tolerance: float) -> Measurement:
        assert isinstance(self._inner, Curve), "see Entries.prepare"
        return self._inner.measure(weights, tolerance)
