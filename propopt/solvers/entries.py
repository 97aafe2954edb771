"""Losses over single entries: entries become points of a smaller program.

Curves of weights, sparse factors, Newton's method for sparsity and bounds are those of
the graph of the entries (:mod:`propopt.losses.restricted`). With given sums,

    min_w  a‖w − g‖² + c‖B w‖²   subject to   Σ_{p in row n} v_p w_p = t_n

for the P entries w in use, each entry is in one row, so that the multipliers of the
rows have a closed form: with A the sums and D the diagonal of H = aI + cBᵀB,

    y = (A D⁻¹ Aᵀ)⁻¹ A D⁻¹ r,   A D⁻¹ Aᵀ diagonal,   r ↦ D⁻¹(r − Aᵀy)

is a preconditioner that never leaves the constraint (Gould, Hribar and Nocedal 2001).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from propopt.base.arrays import Array, Indices
from propopt.base.text import Reason
from propopt.losses import Program
from propopt.losses.maps import Identity, OverPoints, RowSums, Squared
from propopt.losses.restricted import (
    Support,
    entries_refusal,
    entry_support,
    is_completeness,
)
from propopt.solvers.normal_equations import Descent, positive_terms
from propopt.solvers.solver import (
    Prepared,
    PreparedFunction,
    PreparedReduction,
    Reduction,
    Solution,
    Solver,
)


# ---- Losses over entries, where rows add up over different entries


@final
@dataclass(frozen=True)
class ConstrainedEntryCg(Solver):
    """Conjugate gradients over entries whose rows have given sums."""

    name = "entries, complete"

    def refusal(self, program: Program) -> str | None:
        if len(program.bounds) != 1 or not is_completeness(program.bounds[0]):
            return "it takes one constraint, on row sums, and no other bound"
        reason = entries_refusal(program.losses)
        if reason is not None:
            return reason
        for loss in program.losses:
            if not isinstance(loss.penalty, Squared):
                return f"{loss.name} is not squared"
        if not any(isinstance(loss.map, Identity) for loss in program.losses):
            return "no loss ties each entry to a number, as gradient matching does"
        return None

    def prepare(self, program: Program) -> Prepared:
        sums = program.bounds[0].loss
        assert isinstance(sums.map, RowSums), "see is_complete"
        v = np.broadcast_to(sums.map.weights, program.shape)
        support = entry_support(program)
        assert support is not None, "see refusal"
        losses = tuple(map(support.loss, program.losses))
        rows = GivenSums(
            of=support.positions // program.shape[1],
            weights=support.values(v)[:, 0],
            totals=np.asarray(sums.target)[:, 0],
        )

        def solve(weights: Array, tolerance: float, start: Solution | None) -> Solution:
            system = _System(positive_terms(weights, losses), rows)
            begin = system.aim if start is None else support.values(start.W)
            w = system.minimum(rows.nearest(begin), tolerance)
            return Solution(W=support.expanded(w), multipliers=(math.inf,))

        return PreparedFunction(solve)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class GivenSums:
    """The given sums of the entries of each row."""

    of: Indices  # (P,): the row n of each entry
    weights: Array  # (P,): v
    totals: Array  # (N,): t

    def sums(self, w: Array) -> Array:
        """Row sums A w (N,) of a column (P, 1)."""
        sums = np.bincount(self.of, self.weights * w[:, 0], len(self.totals))
        return np.asarray(sums, float)

    def row_part(self, r: Array, diagonal: Array) -> Array:
        """The part Aᵀy (P, 1) of r, for y = (A D⁻¹ Aᵀ)⁻¹ A D⁻¹ r."""
        return self._spread(self.sums(r / diagonal), diagonal)

    def nearest(self, w: Array) -> Array:
        """The nearest entries with the given sums, projected twice for rounding."""
        ones = np.ones(w.shape)
        once = w + self._spread(self.totals - self.sums(w), ones)
        return np.asarray(once + self._spread(self.totals - self.sums(once), ones))

    def _spread(self, sums: Array, diagonal: Array) -> Array:
        squares = self.weights**2 / diagonal[:, 0]
        sizes = np.bincount(self.of, squares, len(self.totals))
        y = np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > 0.0)
        return np.asarray((self.weights * y[self.of])[:, None])


@final
@dataclass(frozen=True, eq=False)
class _System(Descent):
    """The optimum of Σ c‖A w − T‖² among complete entries w (P, 1)."""

    rows: GivenSums

    def minimum(self, w: Array, tolerance: float) -> Array:
        """The optimum, started at complete entries w, which are overwritten."""
        return self.rows.nearest(super().minimum(w, tolerance))

    @cached_property
    def aim(self) -> Array:
        """The target of the first loss of w itself, (P, 1)."""
        loss = next(loss for _, loss in self.terms if isinstance(loss.map, Identity))
        size = len(self.rows.of)
        return np.array(np.broadcast_to(loss.target, (size, 1)), dtype=np.float64)

    def _slope(self, w: Array) -> Array:
        slope = super()._slope(w)
        return slope - self.rows.row_part(slope, np.ones(w.shape))

    def _descend(self, w: Array, slope: Array, goal: float) -> None:
        super()._descend(w, slope, goal)
        w[:] = self.rows.nearest(w)

    def _conditioned(self, r: Array) -> Array:
        r -= self.rows.row_part(r, self._diagonal)
        return np.asarray(r / self._diagonal)

    @cached_property
    def _diagonal(self) -> Array:
        """The diagonal of 2 Σ c AᵀA, (P, 1)."""
        diagonal = np.zeros(len(self.rows.of))
        for c, loss in self.terms:
            match loss.map:
                case OverPoints(gram=gram):
                    diagonal += 2.0 * c * gram.diagonal()
                case _:
                    diagonal += 2.0 * c
        return diagonal[:, None]


# ---- Losses of single entries and their differences: entries become points


@final
@dataclass(frozen=True)
class EntryReduction(Reduction):
    """Solve the program with entries in place of points."""

    how = "of entries"

    def reduced(self, program: Program) -> Program | Reason:
        reason = entries_refusal(program.all_losses)
        return _support(program).program(program) if reason is None else Reason(reason)

    def prepare(self, program: Program) -> Prepared:
        support, losses = _support(program), program.losses

        def into(start: Solution) -> Solution:
            duals = support.duals(losses, start.duals)
            return replace(start, W=support.values(start.W), duals=duals)

        def out(solution: Solution) -> Solution:
            duals = support.duals(losses, solution.duals, back=True)
            return replace(solution, W=support.expanded(solution.W), duals=duals)

        return PreparedReduction.of(self.inner(program), into, out)


def _support(program: Program) -> Support:
    return Support.of(program.all_losses, program.shape)
