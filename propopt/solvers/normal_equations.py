"""Squared losses of any maps, by preconditioned conjugate gradients.

The minimiser of Σ_i c_i ‖A_i W − T_i‖² solves HW = Σ 2c_i A_iᵀT_i for
H = Σ 2c_i A_iᵀA_i. The preconditioner is the part of H that acts on one point at a
time: the (D, D) blocks 2a I + 2b p_nn I + 2c CᵀC + 2d Z_nᵀZ_n, with P = BᵀB for the
losses over points and the designs Z_n of function matching; for losses over entries it
is the diagonal. Couplings between points are left to the iteration.

With gradient matching F is 2a-strongly convex: the method stops once ‖∇F‖²/(4a) is
within the tolerance. Without it there is no such cheap bound, and the system is solved
to rounding: then 2c(AW − T) are dual feasible, and prove the optimum.

With given sums of the rows of entries,

    min_w  a‖w − g‖² + c‖B w‖²   subject to   Σ_{p in row n} v_p w_p = t_n

for the P entries w in use, each entry is in one row, so that the multipliers of the
rows have a closed form: with A the sums and D the diagonal of H = aI + cBᵀB,

    y = (A D⁻¹ Aᵀ)⁻¹ A D⁻¹ r,   A D⁻¹ Aᵀ diagonal,   r ↦ D⁻¹(r − Aᵀy)

is a preconditioner that never leaves the constraint (Gould, Hribar and Nocedal 2001).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, final, get_args

import numpy as np

from propopt.base.arrays import Array, Attributions, Indices, quotient
from propopt.base.resources import few_threads, memory_refusal
from propopt.losses import Program, PropertyLoss
from propopt.losses.algebra import objective_scale, positive_terms
from propopt.losses.completeness import is_completeness
from propopt.losses.linear_algebra import conjugate_gradients
from propopt.losses.maps import (
    Identity,
    ImplicitOverPoints,
    OverEntries,
    OverFeatures,
    OverPoints,
    PerPoint,
    RowSums,
)
from propopt.losses.restricted import entries_refusal, entry_support
from propopt.proofs.curvature import all_squared_refusal, bounds_refusal
from propopt.solvers.lasso_newton import diagonal
from propopt.solvers.minimum_norm import point_grams, undetermined_refusal
from propopt.solvers.reductions import prepare_centred
from propopt.solvers.solver import Prepared, PreparedFunction, Solution, Solver


_Block: TypeAlias = (
    Identity | OverPoints | ImplicitOverPoints | OverFeatures | PerPoint | OverEntries
)

_RESTARTS = 20  # from the true residual, as the recursion drifts from it
_MOST_STEPS = 2_000
_REDUCTION = 1e-8  # of the residual, from one restart to the next
_ROUNDING = 1e-15


@final
@dataclass(frozen=True)
class NormalEquations(Solver):
    """Preconditioned conjugate gradients on the normal equations."""

    name = "normal_equations"

    def refusal(self, program: Program) -> str | None:
        return (
            bounds_refusal(program)
            or all_squared_refusal(program)
            or _map_refusal(program.losses)
            or _memory_refusal(program)
            or undetermined_refusal(program)
        )

    def prepare(self, program: Program) -> Prepared:
        return prepare_centred(program, _NormalEquations)


def _memory_refusal(program: Program) -> str | None:
    n_points, n_features = program.shape
    # the blocks of one point at a time, their inverse and two temporaries
    n_bytes = 8.0 * n_points * n_features * (4.0 * n_features + 12.0)
    label = f"{n_points} blocks of {n_features} × {n_features} features"
    return memory_refusal(n_bytes, label, "use fewer points or features")


class _NormalEquations(Prepared):
    def __init__(self, program: Program) -> None:
        self._losses = program.losses
        self._shape = program.shape

    def solve(
        self, weights: Array, tolerance: float, start: Solution | None = None
    ) -> Solution:
        terms = positive_terms(weights, self._losses)
        W = np.zeros(self._shape) if start is None else np.array(start.W)
        with few_threads(0):  # blocks are small, and products sparse
            return Solution(W=self._system(terms).minimum(W, tolerance))

    def _system(self, terms: list[tuple[float, PropertyLoss]]) -> _BlockSystem:
        blocks = np.zeros((*self._shape, self._shape[1]))
        for c, loss in terms:
            blocks += (2.0 * c) * self._parts[loss.name]
        return _BlockSystem(terms, _inverses(blocks))

    @cached_property
    def _parts(self) -> dict[str, Array]:
        """For each loss the blocks of AᵀA, of a shape that broadcasts to (N, D, D)."""
        eye = np.eye(self._shape[1])
        return {loss.name: _blocks(loss, eye) for loss in self._losses}


@dataclass(frozen=True, eq=False)
class Descent:
    """Minimise Σ c‖AW − T‖² by conjugate gradients with restarts."""

    terms: Sequence[tuple[float, PropertyLoss]]

    def minimum(self, W: Array, tolerance: float) -> Array:
        """The minimiser, started at W, which is overwritten."""
        smallest = np.inf
        best = W.copy()
        for _ in range(_RESTARTS):
            slope = self._slope(W)
            size = float(np.linalg.norm(slope))
            if size < smallest:
                best = W.copy()
            goal = self._goal(W, tolerance)
            if size <= goal or size > 0.5 * smallest:  # rounding allows no more
                break
            smallest = size
            self._descend(W, slope, max(goal, _REDUCTION * size))
        return best

    @cached_property
    def _modulus(self) -> float:
        """The strong convexity 2a of F, from losses of W itself."""
        return sum(2 * c for c, loss in self.terms if loss.is_direct)

    def _goal(self, W: Array, tolerance: float) -> float:
        """The size of ∇F for which ‖∇F‖²/2m is half the tolerance."""
        value = sum(c * loss.value_at(W) for c, loss in self.terms)
        zero = sum(c * loss.value_at_zero for c, loss in self.terms)
        return math.sqrt(tolerance * self._modulus * objective_scale(value, zero))

    @abstractmethod
    def _conditioned(self, R: Array) -> Array:
        """The residual times an approximate inverse of H."""

    def _descend(self, W: Attributions, slope: Attributions, goal: float) -> None:
        """Conjugate gradients from W, overwriting it, until ‖∇F‖ is at its goal."""
        conjugate_gradients(
            self._product,
            W,
            -slope,
            precondition=self._conditioned,
            most_steps=_MOST_STEPS,
            is_enough=lambda _, R: bool(np.linalg.norm(R) <= goal),
        )

    def _product(self, W: Attributions) -> Attributions:
        """The product H W = Σ 2c AᵀA W."""
        parts = ((2.0 * c) * loss.map.normal(W) for c, loss in self.terms)
        return sum(parts, np.zeros_like(W))

    def _slope(self, W: Attributions) -> Attributions:
        """The gradient ∇F = Σ 2c Aᵀ(AW − T)."""
        parts = (c * loss.gradient_at(W) for c, loss in self.terms)
        return sum(parts, np.zeros_like(W))


@final
@dataclass(frozen=True, eq=False)
class _BlockSystem(Descent):
    """The system HW = Σ 2c AᵀT with inverse blocks of H as preconditioner."""

    inverses: Array

    def _goal(self, W: Attributions, tolerance: float) -> float:
        if self._modulus > 0.0:
            return super()._goal(W, tolerance)
        return _ROUNDING * float(np.linalg.norm(self._pull))

    def _conditioned(self, R: Attributions) -> Attributions:
        return np.einsum("nde,ne->nd", self.inverses, R)

    @cached_property
    def _pull(self) -> Attributions:
        """The right-hand side Σ 2c AᵀT."""
        return -self._slope(np.zeros(self.inverses.shape[:2]))


def _map_refusal(losses: tuple[PropertyLoss, ...]) -> str | None:
    for loss in losses:
        if not isinstance(loss.map, get_args(_Block)):
            return f"{loss.name} has a map without blocks per point"
    return None


def _blocks(loss: PropertyLoss, eye: Array) -> Array:
    """The diagonal blocks of AᵀA, one per point."""
    match loss.map:
        case Identity():
            return eye[None]
        case OverFeatures() as coupled:
            return coupled.gram[None]
        case OverPoints() | ImplicitOverPoints() as coupled:
            return diagonal(coupled.gram)[:, None, None] * eye
        case PerPoint(designs):
            return point_grams(designs)
        case OverEntries() as coupled:
            return coupled.diagonal[:, :, None] * eye
        case other:
            raise TypeError(f"{type(other).__name__} has no blocks")


def _inverses(blocks: Array) -> Array:
    """The inverse of each block, made regular by a rounding error if singular."""
    traces = np.einsum("ndd->n", blocks)
    floor = 1e-12 * np.maximum(traces, max(1e-12 * traces.max(), np.finfo(float).tiny))
    raised = blocks + floor[:, None, None] * np.eye(blocks.shape[1])
    return np.linalg.inv(raised)


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
            if not loss.is_squared:
                return f"{loss.name} is not squared"
        if not any(loss.is_direct for loss in program.losses):
            return "no loss ties each entry to a number, as gradient matching does"
        return None

    def prepare(self, program: Program) -> Prepared:
        sums = program.bounds[0].loss
        assert isinstance(sums.map, RowSums), "see is_complete"
        v = np.broadcast_to(sums.map.weights, program.shape)
        support = entry_support(program)
        assert support is not None, "see refusal"
        losses = tuple(map(support.loss, program.losses))

        def solve(weights: Array, tolerance: float, start: Solution | None) -> Solution:
            system = _EntrySystem(
                positive_terms(weights, losses),
                rows=support.positions // program.shape[1],
                weights=support.values(v)[:, 0],
                totals=np.asarray(sums.target)[:, 0],
            )
            begin = system.aim if start is None else support.values(start.W)
            w = system.minimum(system.nearest(begin), tolerance)
            return Solution(W=support.expanded(w), multipliers=(math.inf,))

        return PreparedFunction(solve)


@final
@dataclass(frozen=True, eq=False)
class _EntrySystem(Descent):
    """The optimum of Σ c‖A w − T‖² among complete entries w (P, 1)."""

    rows: Indices  # (P,): the row n of each entry
    weights: Array  # (P,): v
    totals: Array  # (N,): t

    def minimum(self, w: Array, tolerance: float) -> Array:
        """The optimum, started at complete entries w, which are overwritten."""
        return self.nearest(super().minimum(w, tolerance))

    @cached_property
    def aim(self) -> Array:
        """The target of the first loss of w itself, (P, 1)."""
        loss = next(loss for _, loss in self.terms if loss.is_direct)
        size = len(self.rows)
        return np.array(np.broadcast_to(loss.target, (size, 1)), dtype=np.float64)

    def _slope(self, w: Array) -> Array:
        slope = super()._slope(w)
        return slope - self._row_part(slope, np.ones(w.shape))

    def _descend(self, w: Array, slope: Array, goal: float) -> None:
        super()._descend(w, slope, goal)
        w[:] = self.nearest(w)

    def _conditioned(self, r: Array) -> Array:
        r -= self._row_part(r, self._diagonal)
        return r / self._diagonal

    @cached_property
    def _diagonal(self) -> Array:
        """The diagonal of 2 Σ c AᵀA, (P, 1)."""
        diagonal = np.zeros(len(self.rows))
        for c, loss in self.terms:
            match loss.map:
                case OverPoints(gram=gram):
                    diagonal += 2.0 * c * gram.diagonal()
                case _:
                    diagonal += 2.0 * c
        return diagonal[:, None]

    def _sums(self, w: Array) -> Array:
        """Row sums A w (N,) of a column (P, 1)."""
        sums = np.bincount(self.rows, self.weights * w[:, 0], len(self.totals))
        return np.asarray(sums, float)

    def _row_part(self, r: Array, diagonal: Array) -> Array:
        """The part Aᵀy (P, 1) of r, for y = (A D⁻¹ Aᵀ)⁻¹ A D⁻¹ r."""
        return self._spread(self._sums(r / diagonal), diagonal)

    def nearest(self, w: Array) -> Array:
        """The nearest entries with the given sums, projected twice for rounding."""
        ones = np.ones(w.shape)
        once = w + self._spread(self.totals - self._sums(w), ones)
        return once + self._spread(self.totals - self._sums(once), ones)

    def _spread(self, sums: Array, diagonal: Array) -> Array:
        squares = self.weights**2 / diagonal[:, 0]
        sizes = np.bincount(self.rows, squares, len(self.totals))
        y = quotient(sums, sizes)
        return (self.weights * y[self.rows])[:, None]
