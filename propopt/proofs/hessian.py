"""The inverse of half a Hessian: over points, entries, their sums, and given sums.

With F(W) = a‖W − G‖² + b tr(WᵀPW) + c tr(WQWᵀ) + convex terms and

    H = a I + b P ⊗ I + c I ⊗ Q,    P = U diag(θ) Uᵀ,  Q = V diag(ν) Vᵀ,

a quadratic F is F* + ⟨W − W*, H (W − W*)⟩, and any other lies above that. H⁻¹ gives
the effect of an error of the target on the optimum, and the width of the set of all
near-optimal explanations.

For losses over single entries, such as words that documents share, the P entries of W
in use are the unknowns, and H = a I + c BᵀB couples a word only with the same word of
other documents: H and its inverse have one small block per word. With given row sums
over these entries, A w = t, the inverse on the remaining subspace is

    H⁻¹ − MᵀS⁻¹M,   M = A H⁻¹,   S = A H⁻¹Aᵀ.

All other entries are zero in every explanation, and have no variance.

With given row sums W v = t of whole rows, W = V + z uᵀ with V u = 0
(:mod:`propopt.losses.completeness`), and the losses of V do not depend on V u. Their
half Hessian H commutes with Π = I − uuᵀ, so Π H⁻¹ Π is the inverse on the remaining
subspace.

With given row sums over entries, such as the words of documents, losses that couple
entries cannot be zero. With W(ε) the optimum of ε‖W − G‖² plus these losses,

    2 W(ε/2) − W(ε) = W(0) + O(ε²)

is the W nearest to G among their minimisers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from propopt.base.arrays import Array, Attributions, Indices, Sparse
from propopt.base.errors import Refused
from propopt.base.resources import Budget
from propopt.losses import GradientMatching, Program, PropertyLoss
from propopt.losses.algebra import _RecastLoss, positive_terms
from propopt.losses.completeness import Totals, along, spread
from propopt.losses.linear_algebra import (
    Components,
    conjugate_gradients,
    inverse_by_parts,
    inverse_size,
)
from propopt.losses.maps import OverEntries, OverPoints, RowSums
from propopt.losses.restricted import Support, entry_support
from propopt.proofs.curvature import (
    Quadratic,
    QuadraticBasis,
    curvature_refusal,
    eigenbases,
)


# ---- The quadratic part of an objective, and the inverse of half its Hessian


class Hessian(ABC):
    """The inverse H⁻¹ of the quadratic part of an objective, for W (N, D)."""

    @abstractmethod
    def solve(self, E: Array) -> Array:
        """The solution H⁻¹E, shape (N, D)."""

    @abstractmethod
    def inverse_block(self, row: int) -> Array:
        """The entries of H⁻¹ between the features of one point, shape (D, D)."""

    def block_of(self, row: int, features: Indices) -> Array:
        """The entries of H⁻¹ between some features of one point, shape (d, d)."""
        return self.inverse_block(row)[np.ix_(features, features)]

    @abstractmethod
    def inverse_diagonal(self) -> Attributions:
        """The diagonal of H⁻¹, shape (N, D)."""


# ---- H⁻¹ for losses over single entries, such as words that documents share


MOST_ENTRIES = 2**25
"""The largest stored inverse: half a gigabyte, and seconds."""

_MOST_ROWS = 4_000
"""The largest number of rows with given sums, as S is dense."""

_ENTRIES_MOST_STEPS: Final = 2_000
_ENTRIES_REDUCTION: Final = 1e-26
"""Reduction of the energy of the residual: thirteen digits."""

_COLUMNS: Final = Budget(2**26)
"""A separate budget, as LAPACK rounds depend on the number of columns."""


@final
@dataclass(frozen=True, eq=False)
class EntryHessian(Hessian):
    """H⁻¹ between the entries in use, zero at all others."""

    support: Support  # the entries
    # squared losses of W with weights above zero, one of them gradient matching
    terms: tuple[tuple[float, PropertyLoss], ...]
    sums: Sparse | None = None  # (R, P): A, with disjoint rows

    def solve(self, E: Array) -> Array:
        e = self.support.values(E)[:, 0]
        if self.sums is None and "_inverse" not in vars(self):
            w = np.zeros_like(e)
            diagonal = self._matrix.diagonal()
            conjugate_gradients(
                lambda v: self._matrix @ v,
                w,
                e.copy(),
                precondition=lambda r: r / diagonal,
                most_steps=_ENTRIES_MOST_STEPS,
                reduction=_ENTRIES_REDUCTION,
            )
            return self.support.expanded(w[:, None])
        w = self._inverse @ e
        if self.sums is not None:
            w -= self._sums_of_inverse.T @ la.cho_solve(self._factor, self.sums @ w)
        return self.support.expanded(w[:, None])

    def inverse_block(self, row: int) -> Array:
        return self.block_of(row, np.arange(self.support.shape[1]))

    def block_of(self, row: int, features: Indices) -> Array:
        wanted = row * self.support.shape[1] + features
        indices = np.searchsorted(self.support.positions, wanted)
        indices = np.minimum(indices, len(self.support.positions) - 1)
        present = np.flatnonzero(self.support.positions[indices] == wanted)
        inner = self._inverse[indices[present]][:, indices[present]].toarray()
        if self.sums is not None:
            M = self._sums_of_inverse[:, indices[present]].toarray()
            inner -= M.T @ la.cho_solve(self._factor, M)
        block = np.zeros((len(features), len(features)))
        block[np.ix_(present, present)] = inner
        return block

    def inverse_diagonal(self) -> Attributions:
        """The diagonal of H⁻¹, zero at unused entries."""
        variances = self._inverse.diagonal()
        if self.sums is not None:
            L, lower = self._factor
            for block in _COLUMNS.blocks(len(variances), 8 * self.sums.shape[0]):
                M = self._sums_of_inverse[:, block].toarray()
                part = la.solve_triangular(L, M, lower=lower, trans=0 if lower else 1)
                variances[block] -= (part**2).sum(axis=0)
        return self.support.expanded(np.maximum(variances, 0.0)[:, None])

    @cached_property
    def _matrix(self) -> Sparse:
        """The matrix H (P, P)."""
        size = len(self.support.positions)
        H = sp.csr_array((size, size))
        for c, loss in self.terms:
            match self.support.loss(loss).map:
                case OverPoints(gram=gram):
                    H = H + c * gram
                case _:
                    H = H + c * sp.eye_array(size)
        return sp.csr_array(H)

    @cached_property
    def _parts(self) -> Components:
        return Components.of(self._matrix)

    @cached_property
    def _inverse(self) -> Sparse:
        """The inverse H⁻¹ (P, P) without given sums."""
        if inverse_size(self._parts) > MOST_ENTRIES:
            raise Refused(
                "the proof needs the inverse of a matrix of coupled attributions, such "
                "as those of a word in many documents, with "
                f"{inverse_size(self._parts):,.0f} numbers, above the limit of "
                f"{MOST_ENTRIES:,}; explain fewer points at a time"
            )
        return inverse_by_parts(self._matrix, self._parts)

    @cached_property
    def _sums_of_inverse(self) -> Sparse:
        """The product M = A H⁻¹ (R, P)."""
        assert self.sums is not None
        return sp.csc_array(self.sums @ self._inverse)

    @cached_property
    def _factor(self) -> tuple[Array, bool]:
        """The Cholesky factor of S (R, R)."""
        assert self.sums is not None
        n_rows = self.sums.shape[0]
        if n_rows > _MOST_ROWS:
            raise Refused(
                f"{n_rows:,} rows have given sums, above the limit of "
                f"{_MOST_ROWS:,}; use fewer points at a time"
            )
        S = (self._sums_of_inverse @ self.sums.T).toarray()
        return la.cho_factor((S + S.T) / 2.0)


MAX_SPECTRAL_SIZE = 2_000
"""Above this size conjugate gradients are cheaper than an eigenbasis, O(N³)."""

_MOST_STEPS = 2_000
_REDUCTION = 1e-26
ROUGHLY = 1e-16
"""Reduction of the residual energy: thirteen digits, and eight for errors."""


@final
@dataclass(frozen=True, eq=False)
class SpectralHessian(Hessian):
    """H⁻¹ by the eigenbases of both graphs: diag(a + bθ_i + cν_j) in U ⊗ V."""

    over_points: QuadraticBasis  # U
    over_features: QuadraticBasis  # V
    values: Array  # (N, D): a + bθ_i + cν_j

    def rotated(self, E: Array) -> Array:
        """The coefficients UᵀEV, shape (N, D)."""
        return self.over_features.forward(self.over_points.forward(E).T).T

    def solve(self, E: Array) -> Array:
        rotated = self.rotated(E) / self.values
        return self.over_points.backward(self.over_features.backward(rotated.T).T)

    def inverse_block(self, row: int) -> Array:
        # V diag_j(Σ_i U_ni² / h_ij) Vᵀ
        along = self.points[row] ** 2 @ (1.0 / self.values)
        return (self.features * along) @ self.features.T

    def inverse_diagonal(self) -> Attributions:
        return self.points**2 @ (1.0 / self.values) @ self.features.T**2

    @cached_property
    def points(self) -> Array:
        """The eigenbasis U over points, shape (N, N)."""
        return self.over_points.forward(np.eye(len(self.values))).T

    @cached_property
    def features(self) -> Array:
        """The eigenbasis V over features, shape (D, D)."""
        return self.over_features.forward(np.eye(self.values.shape[1])).T


@final
@dataclass(frozen=True, eq=False)
class CgHessian(Hessian):
    """H⁻¹ by conjugate gradients, for any squared losses and number of points."""

    # squared losses with weights above zero, one of them gradient matching
    terms: tuple[tuple[float, PropertyLoss], ...]
    shape: tuple[int, int]  # N and D
    reduction: float = _REDUCTION  # of the energy of the residual

    def solve(self, E: Array) -> Array:
        X = np.zeros(self.shape)
        residual = np.array(E, dtype=np.float64)
        conjugate_gradients(
            self.product,
            X,
            residual,
            precondition=np.copy,
            most_steps=_MOST_STEPS,
            reduction=self.reduction,
        )
        return X

    def product(self, W: Array) -> Array:
        """The product H W."""
        return np.asarray(sum(c * loss.map.normal(W) for c, loss in self.terms))

    def inverse_block(self, row: int) -> Array:
        _, D = self.shape
        block = np.empty((D, D))
        for d in range(D):
            unit = np.zeros(self.shape)
            unit[row, d] = 1.0
            block[d] = self.solve(unit)[row]
        return block

    def inverse_diagonal(self) -> Attributions:
        """The diagonal of H⁻¹, one system for each entry."""
        raise Refused(
            f"proofs for all rows need {self.shape[0] * self.shape[1]:,} linear solves"
        )


@final
@dataclass(frozen=True, eq=False)
class ConstrainedHessian(Hessian):
    """Π H⁻¹ Π, the inverse among attributions with given row sums."""

    inner: Hessian  # H, which commutes with Π
    axis: Array  # (D,): u, of length one

    def solve(self, E: Array) -> Array:
        return self._off(self.inner.solve(self._off(E)))

    def inverse_block(self, row: int) -> Array:
        return self._off(self._off(self.inner.inverse_block(row)).T)

    def inverse_diagonal(self) -> Attributions:
        if not isinstance(self.inner, SpectralHessian):
            return self.inner.inverse_diagonal()  # refuses, or is an upper bound
        features = self._off(self.inner.features.T)  # rows: eigenvectors off the axis
        along = self.inner.points**2 @ (1.0 / self.inner.values)
        return along @ features**2

    def _off(self, E: Array) -> Array:
        return E - spread(along(E, self.axis), self.axis)


@final
@dataclass(frozen=True, eq=False)
class FeatureSumHessian(Hessian):
    """A H⁻¹ Aᵀ, the inverse between sums of features of each row (groups)."""

    inner: Hessian  # H
    sums: Array  # (K, D): A

    def solve(self, E: Array) -> Array:
        return self.inner.solve(E @ self.sums) @ self.sums.T

    def inverse_block(self, row: int) -> Array:
        return self.sums @ self.inner.inverse_block(row) @ self.sums.T

    def inverse_diagonal(self) -> Attributions:
        n_rows = len(self.inner.inverse_diagonal())  # may refuse
        blocks = [np.diag(self.inverse_block(n)) for n in range(n_rows)]
        return np.maximum(blocks, 0.0)


@final
@dataclass(frozen=True, eq=False)
class ScaledHessian(Hessian):
    """S H⁻¹ S for W = Φ + Z S, with one scale s_d for each column."""

    inner: Hessian  # H
    scales: Array  # (D,): s; zero for fixed columns

    def solve(self, E: Array) -> Array:
        return self.inner.solve(E * self.scales) * self.scales

    def inverse_block(self, row: int) -> Array:
        both = np.outer(self.scales, self.scales)
        return self.inner.inverse_block(row) * both

    def inverse_diagonal(self) -> Attributions:
        return self.inner.inverse_diagonal() * self.scales**2


@final
@dataclass(frozen=True, eq=False)
class QuadraticPart:
    """The squared losses of a program for any weights, with given row sums if any."""

    # other losses, and bounds other than row sums, are ignored
    program: Program
    # U and V, if computed before
    eigenbases: tuple[QuadraticBasis, QuadraticBasis] | None = None

    def hessian(self, weights: Array) -> Hessian:
        """H for weights in the order of the losses, or H on the subspace of sums."""
        if self.totals is not None:
            return self._complete(self.totals, weights)
        terms = self._terms(weights)
        if not any(loss.is_direct for _, loss in terms):
            raise Refused(
                "the quadratic part has no inverse: no squared gradient-matching loss "
                "has a weight above zero"
            )
        few = (
            max(self.program.shape) <= MAX_SPECTRAL_SIZE or self.eigenbases is not None
        )
        if few and curvature_refusal(self._squared_part) is None:
            a, b, c = self._quadratic.coefficients(weights[list(self._squared)])
            points, features = self._bases
            values = a + b * points.values[:, None] + c * features.values
            return SpectralHessian(points, features, values)
        if self._entries is not None:
            return EntryHessian(self._entries, tuple(terms))
        return CgHessian(tuple(terms), self.program.shape)

    def optimum(self, weights: Array) -> Attributions:
        """The optimum W₀ − ½H⁻¹∇F(W₀) of squared losses, W₀ with the given sums."""
        totals = self.totals
        start = np.zeros(self.program.shape) if totals is None else totals.fixed
        slope = np.zeros(start.shape)
        for c, loss in self._terms(weights):
            slope += 0.5 * c * loss.gradient_at(start)
        return start - self.hessian(weights).solve(slope)

    def _terms(self, weights: Array) -> list[tuple[float, PropertyLoss]]:
        """The squared losses with positive weights."""
        terms = positive_terms(weights, self.program.losses)
        return [(c, loss) for c, loss in terms if loss.is_squared]

    def free(self, E: Array) -> Array:
        """Errors (..., D) without their part along u, which W cannot follow."""
        if self.totals is None:
            return E
        heights = along(E, self.totals.axis)
        return E - heights[..., None] * self.totals.axis

    @cached_property
    def totals(self) -> Totals | None:
        """The given row sums, or None."""
        return Totals.of(self.program)

    @cached_property
    def inner(self) -> QuadraticPart:
        """The quadratic part of V, for errors after :meth:`free`, without targets."""
        losses = self.program.losses
        totals = self.totals
        if totals is not None:
            losses = tuple(_RecastLoss(x, totals.loss(x).map, 0.0) for x in losses)
        return QuadraticPart(Program(losses, (), self.program.shape), self.eigenbases)

    def _complete(self, totals: Totals, weights: Array) -> Hessian:
        if totals.is_shared:
            return ConstrainedHessian(self.inner.hessian(weights), totals.axis)
        free = Program(self.program.losses, (), self.program.shape)
        inner = QuadraticPart(free).hessian(weights)
        support = entry_support(self.program)
        if support is None or not isinstance(inner, EntryHessian):
            raise Refused(
                "proofs are not available if row sums have weights that differ by row "
                "and losses couple whole points"
            )
        # drop rows without entries
        sums = RowSums(totals.axis).flat(self.program.shape)[:, support.positions]
        rows = np.flatnonzero(np.diff(sums.indptr))
        return replace(inner, support=support, sums=sp.csr_array(sums[rows]))

    @cached_property
    def _squared(self) -> tuple[int, ...]:
        return tuple(k for k, loss in enumerate(self.program.losses) if loss.is_squared)

    @cached_property
    def _squared_part(self) -> Program:
        losses = tuple(self.program.losses[k] for k in self._squared)
        return Program(losses, (), self.program.shape)

    @cached_property
    def _entries(self) -> Support | None:
        """The entries in use, if losses couple single entries."""
        return entry_support(self._squared_part)

    @cached_property
    def _quadratic(self) -> Quadratic:
        return Quadratic.of(self._squared_part)

    @cached_property
    def _bases(self) -> tuple[QuadraticBasis, QuadraticBasis]:
        return self.eigenbases or eigenbases(self._quadratic)


# ---- Minimisers of the other losses with given row sums over entries


_LITTLE: Final = 1e-6
"""The weight ε, relative to the largest curvature."""


def smoothest(
    program: Program, coupled: Sequence[PropertyLoss], G: Attributions
) -> Attributions | None:
    """The complete W nearest to G among the minimisers of coupled losses."""
    if not coupled or not all(map(_is_squared_over_entries, coupled)):
        return None
    maps = [loss.map for loss in coupled if isinstance(loss.map, OverEntries)]
    most = max(float(x.gram.diagonal().max(initial=0.0)) for x in maps) or 1.0
    distance = GradientMatching(G, name="distance from the target")
    part = QuadraticPart(Program((distance, *coupled), program.row_sums, program.shape))
    weights = np.ones(1 + len(coupled))
    result = []
    for share in (_LITTLE, _LITTLE / 2.0):
        weights[0] = share * most
        try:
            result.append(part.optimum(weights))
        except Refused:
            return None
    return 2.0 * result[1] - result[0]


def least_among(program: Program, totals: Totals, loss: PropertyLoss) -> float | None:
    """The minimum of a loss among complete attributions; None if not available."""
    if not _is_squared_over_entries(loss) or totals.is_shared:
        return totals.least(loss)
    W = smoothest(program, [loss], totals.fixed)
    return None if W is None else loss.value_at(W)


def _is_squared_over_entries(loss: PropertyLoss) -> bool:
    return isinstance(loss.map, OverEntries) and loss.is_squared
