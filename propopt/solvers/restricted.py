"""Limits of zero: the program of what they leave (:mod:`propopt.losses.restricted`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from propopt._typing import Array, Attributions
from propopt.errors import Infeasible
from propopt.losses import Program
from propopt.losses.restricted import Restriction, zeros
from propopt.solvers.base import Dispatcher, Prepared, Solution, Solver


@final
@dataclass(frozen=True)
class Restricted(Dispatcher):
    """Another solver, given the program on what limits of zero leave of W.

    Robustness of zero leaves one attribution vector for each component of the graph,
    smoothness of zero one number for each group of features, gradient matching of zero
    the gradients, sparsity of zero nothing. Their multipliers are infinite.

    Parameters
    ----------
    solver : Solver or None
        What solves that program; None where one W is left and nothing is to be solved.
    """

    solver: Solver | None

    @property
    def name(self) -> str:
        how = "" if self.solver is None else f"{self.solver.name}, "
        return f"{how}restricted"

    def take(self, program: Program) -> Solver | str:
        restriction = Restriction.of(program.bounds, program.shape)
        if restriction is None:
            return "no limit is zero"
        if restriction.only is not None:
            return Restricted(None)
        if self.solver is None:
            return "more than one explanation is left"
        inner = self.solver.take(restriction.program(program))
        return inner if isinstance(inner, str) else Restricted(inner)

    def prepare(self, program: Program) -> Prepared:
        restriction = Restriction.of(program.bounds, program.shape)
        assert restriction is not None, "see take"
        if restriction.only is not None:
            return _Only(program, restriction.only)
        assert self.solver is not None, "see take"
        reduced = restriction.program(program)
        return _Restricted(self.solver.prepare(reduced), program, restriction)


class _Only(Prepared):
    def __init__(self, program: Program, only: Attributions) -> None:
        self._program = program
        self._only = only

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        del weights, start
        zero = zeros(self._program.bounds)
        for bound in self._program.bounds:
            value = bound.loss.value_at(self._only)
            if value > bound.limit * (1.0 + tolerance):
                named = ", ".join(repr(other) for other in zero if other is not bound)
                raise Infeasible(
                    f"{bound} cannot hold: under {named} the smallest attainable "
                    f"value of {bound.loss.name} is {value:.6g}"
                )
        prices = tuple(
            math.inf if bound in zero else 0.0 for bound in self._program.bounds
        )
        return Solution(W=self._only.copy(), multipliers=prices)


class _Restricted(Prepared):
    """Duals are those of the restricted program: the certificate is made there too."""

    def __init__(
        self, inner: Prepared, program: Program, restriction: Restriction
    ) -> None:
        self._inner = inner
        self._restriction = restriction
        zero = zeros(program.bounds)
        self._is_zero = [bound in zero for bound in program.bounds]

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        begin = None if start is None else self._restricted(start)
        solution = self._inner.solve(weights, tolerance, begin)
        multipliers = iter(solution.multipliers)
        prices = tuple(
            math.inf if zero else next(multipliers) for zero in self._is_zero
        )
        W = self._restriction.expanded(solution.W)
        return replace(solution, W=W, multipliers=prices)

    def _restricted(self, solution: Solution) -> Solution:
        prices = tuple(mu for mu in solution.multipliers if np.isfinite(mu))
        W = self._restriction.coordinates(solution.W)
        return replace(solution, W=W, multipliers=prices)
