"""The inverse of half a Hessian: over points, entries, sums of them, and given sums.

With F(W) = a‖W − G‖² + b tr(WᵀPW) + c tr(WQWᵀ) + convex terms and

    H = a I + b P ⊗ I + c I ⊗ Q,    P = U diag(θ) Uᵀ,  Q = V diag(ν) Vᵀ,

a quadratic F is F* + ⟨W − W*, H (W − W*)⟩, and any other lies above that. H⁻¹ says how
far an error of the target moves the optimum, and how wide the set of all explanations
is whose objective is almost the least.

H⁻¹ of losses over single entries, such as words that documents share. With the P
entries of W that count as unknowns, H = a I + c BᵀB couples a word of one document with
the same word of others alone: it comes apart into a small matrix for each
word, and so does its inverse. Where rows add up over entries of their own, A w = t, the
inverse among what that leaves is

    H⁻¹ − MᵀS⁻¹M,   M = A H⁻¹,   S = A H⁻¹Aᵀ.

All other entries are zero in every explanation, and have no variance.

H⁻¹ among attributions whose rows have given sums. W v = t leaves W = V + z uᵀ with V u
= 0 (:mod:`propopt.losses.completeness`), and losses of V that do not see V u. Their
half Hessian H commutes with Π = I − uuᵀ, so that Π H⁻¹ Π is
the inverse on what is left: an ellipsoid of complete W is as wide as that.

The attributions that other losses leave least of, among those whose rows add up. Where
rows add up over entries of their own, such as the words of documents, losses that
couple entries cannot be brought to zero. With W(ε) the optimum of ε‖W − G‖² beside
them,

    2 W(ε/2) − W(ε) = W(0) + O(ε²)

is the one nearest to G of those at which they are least.
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
from propopt.losses.algebra import _RecastLoss
from propopt.losses.completeness import Totals, along, spread
from propopt.losses.linear_algebra import (
    Components,
    conjugate_gradients,
    inverse_by_parts,
    inverse_size,
)
from propopt.losses.maps import Identity, OverEntries, OverPoints, RowSums, Squared
from propopt.losses.restricted import Support, entry_support, is_completeness
from propopt.proofs.curvature import (
    Quadratic,
    QuadraticBasis,
    curvature_refusal,
    eigenbases,
)


# ---- The quadratic part of an objective, and the inverse of half its Hessian


class Hessian(ABC):
    """H⁻¹ of the quadratic part of an objective, for W of shape (N, D)."""

    @abstractmethod
    def solve(self, E: Array) -> Array:
        """H⁻¹E, shape (N, D)."""

    @abstractmethod
    def inverse_block(self, row: int) -> Array:
        """The entries of H⁻¹ between the features of one point, shape (D, D)."""

    def block_of(self, row: int, features: Indices) -> Array:
        """Those between some of its features, shape (d, d)."""
        return np.asarray(self.inverse_block(row)[np.ix_(features, features)])

    @abstractmethod
    def inverse_diagonal(self) -> Attributions:
        """The diagonal of H⁻¹, shape (N, D)."""


# ---- H⁻¹ of losses over single entries, such as words that documents share


MOST_ENTRIES = 2**25
"""Numbers of an inverse that is kept: half a gigabyte, and seconds."""

_MOST_ROWS = 4_000
"""Rows that add up: S is dense."""

_ENTRIES_MOST_STEPS: Final = 2_000
_ENTRIES_REDUCTION: Final = 1e-26
"""Of the energy of the residual: thirteen digits."""

_COLUMNS: Final = Budget(2**26)
"""Of its own: LAPACK rounds a column by how many are solved at once."""


@final
@dataclass(frozen=True, eq=False)
class EntryHessian(Hessian):
    """H⁻¹ between the entries that count, zero at all others."""

    support: Support  # the entries
    # squared losses of W with weights above zero, one of them gradient matching
    terms: tuple[tuple[float, PropertyLoss], ...]
    sums: Sparse | None = None  # (R, P): A, whose rows have no entry in common

    def solve(self, E: Array) -> Array:
        e = self.support.values(E)[:, 0]
        if self.sums is None and "_inverse" not in vars(self):
            w, diagonal = np.zeros_like(e), self._matrix.diagonal()
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
            w -= self._borne.T @ la.cho_solve(self._factor, self.sums @ w)
        return self.support.expanded(w[:, None])

    def inverse_block(self, row: int) -> Array:
        return self.block_of(row, np.arange(self.support.shape[1]))

    def block_of(self, row: int, features: Indices) -> Array:
        wanted = row * self.support.shape[1] + features
        own = np.searchsorted(self.support.positions, wanted)
        own = np.minimum(own, len(self.support.positions) - 1)
        counts = np.flatnonzero(self.support.positions[own] == wanted)
        inner = self._inverse[own[counts]][:, own[counts]].toarray()
        if self.sums is not None:
            M = self._borne[:, own[counts]].toarray()
            inner -= M.T @ la.cho_solve(self._factor, M)
        block = np.zeros((len(features), len(features)))
        block[np.ix_(counts, counts)] = inner
        return block

    def inverse_diagonal(self) -> Attributions:
        """The diagonal of H⁻¹, zero where no entry counts."""
        variances = self._inverse.diagonal()
        if self.sums is not None:
            L, lower = self._factor
            for some in _COLUMNS.blocks(len(variances), 8 * self.sums.shape[0]):
                M = self._borne[:, some].toarray()
                borne = la.solve_triangular(L, M, lower=lower, trans=0 if lower else 1)
                variances[some] -= (borne**2).sum(axis=0)
        return self.support.expanded(np.maximum(variances, 0.0)[:, None])

    @cached_property
    def _matrix(self) -> Sparse:
        """H (P, P)."""
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
        """H⁻¹ (P, P) without sums."""
        if inverse_size(self._parts) > MOST_ENTRIES:
            raise Refused(
                "entries that are coupled, such as a word of many documents, have an "
                f"inverse of {inverse_size(self._parts):,.0f} numbers, and at most "
                f"{MOST_ENTRIES:,} are kept; ask for fewer points at a time"
            )
        return inverse_by_parts(self._matrix, self._parts)

    @cached_property
    def _borne(self) -> Sparse:
        """M (R, P)."""
        assert self.sums is not None
        return sp.csc_array(self.sums @ self._inverse)

    @cached_property
    def _factor(self) -> tuple[Array, bool]:
        """The Cholesky factor of S (R, R)."""
        assert self.sums is not None
        n_rows = self.sums.shape[0]
        if n_rows > _MOST_ROWS:
            raise Refused(
                f"{n_rows:,} rows add up, and what that leaves is known for at most "
                f"{_MOST_ROWS:,}; ask for fewer points at a time"
            )
        S = (self._borne @ self.sums.T).toarray()
        return la.cho_factor((S + S.T) / 2.0)


MAX_SPECTRAL_SIZE = 2_000
"""Points from which conjugate gradients are cheaper than an eigenbasis, O(N³)."""

_MOST_STEPS = 2_000
_REDUCTION, ROUGHLY = 1e-26, 1e-16
"""Of the energy of the residual: thirteen digits, and the eight that errors need."""


@final
@dataclass(frozen=True, eq=False)
class SpectralHessian(Hessian):
    """By the eigenbases of both graphs: H is diag(a + bθ_i + cν_j) in U ⊗ V."""

    over_points: QuadraticBasis  # U
    over_features: QuadraticBasis  # V
    values: Array  # (N, D): a + bθ_i + cν_j

    def rotated(self, E: Array) -> Array:
        """UᵀEV, shape (N, D)."""
        return self.over_features.forward(self.over_points.forward(E).T).T

    def solve(self, E: Array) -> Array:
        rotated = self.rotated(E) / self.values
        return self.over_points.backward(self.over_features.backward(rotated.T).T)

    def inverse_block(self, row: int) -> Array:
        # V diag_j(Σ_i U_ni² / h_ij) Vᵀ
        along = self.points[row] ** 2 @ (1.0 / self.values)
        return np.asarray((self.features * along) @ self.features.T)

    def inverse_diagonal(self) -> Attributions:
        return np.asarray(self.points**2 @ (1.0 / self.values) @ self.features.T**2)

    @cached_property
    def points(self) -> Array:
        """U, shape (N, N)."""
        return self.over_points.forward(np.eye(len(self.values))).T

    @cached_property
    def features(self) -> Array:
        """V, shape (D, D)."""
        return self.over_features.forward(np.eye(self.values.shape[1])).T


@final
@dataclass(frozen=True, eq=False)
class CgHessian(Hessian):
    """By conjugate gradients, for any squared losses and any number of points."""

    # squared losses with weights above zero, one of them gradient matching
    terms: tuple[tuple[float, PropertyLoss], ...]
    shape: tuple[int, int]  # N and D
    reduction: float = _REDUCTION  # of the energy of the residual

    def solve(self, E: Array) -> Array:
        X, residual = np.zeros(self.shape), np.array(E, dtype=np.float64)
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
        """H W."""
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
            f"the diagonal of the inverse takes {self.shape[0] * self.shape[1]:,} "
            "systems; ask for the blocks of some rows"
        )


@final
@dataclass(frozen=True, eq=False)
class ConstrainedHessian(Hessian):
    """Π H⁻¹ Π."""

    inner: Hessian  # H, which commutes with Π
    axis: Array  # (D,): u, of length one

    def solve(self, E: Array) -> Array:
        return self._off(self.inner.solve(self._off(E)))

    def inverse_block(self, row: int) -> Array:
        return self._off(self._off(self.inner.inverse_block(row)).T)

    def inverse_diagonal(self) -> Attributions:
        if not isinstance(self.inner, SpectralHessian):
            return self.inner.inverse_diagonal()  # refuses, or is no less
        features = self._off(self.inner.features.T)  # rows: eigenvectors off the axis
        along = self.inner.points**2 @ (1.0 / self.inner.values)
        return np.asarray(along @ features**2)

    def _off(self, E: Array) -> Array:
        return np.asarray(E - spread(along(E, self.axis), self.axis))


@final
@dataclass(frozen=True, eq=False)
class FeatureSumHessian(Hessian):
    """A H⁻¹ Aᵀ, between sums of the features of each row: a group is a linear form."""

    inner: Hessian  # H
    sums: Array  # (K, D): A

    def solve(self, E: Array) -> Array:
        return np.asarray(self.inner.solve(E @ self.sums) @ self.sums.T)

    def inverse_block(self, row: int) -> Array:
        return np.asarray(self.sums @ self.inner.inverse_block(row) @ self.sums.T)

    def inverse_diagonal(self) -> Attributions:
        n_rows = len(self.inner.inverse_diagonal())  # refuses what cannot be afforded
        blocks = [np.diag(self.inverse_block(n)) for n in range(n_rows)]
        return np.maximum(blocks, 0.0)


@final
@dataclass(frozen=True, eq=False)
class ScaledHessian(Hessian):
    """S H⁻¹ S for one number s_d for each column: that of W = Φ + Z S."""

    inner: Hessian  # H
    scales: Array  # (D,): s; zero where a column does not move

    def solve(self, E: Array) -> Array:
        return np.asarray(self.inner.solve(E * self.scales) * self.scales)

    def inverse_block(self, row: int) -> Array:
        both = np.outer(self.scales, self.scales)
        return np.asarray(self.inner.inverse_block(row) * both)

    def inverse_diagonal(self) -> Attributions:
        return np.asarray(self.inner.inverse_diagonal() * self.scales**2)


@final
@dataclass(frozen=True, eq=False)
class QuadraticPart:
    """The squared losses of a program for any weights, complete if rows add up."""

    # losses of any kind, of which those that are not squared are left out, as are all
    # bounds but that one
    program: Program
    # (QuadraticBasis, QuadraticBasis): U and V, where they were computed before
    known: tuple[QuadraticBasis, QuadraticBasis] | None = None

    def hessian(self, weights: Array) -> Hessian:
        """H, or Π H⁻¹ Π in its place, for weights in the order of the losses."""
        if self.totals is not None:
            return self._complete(self.totals, weights)
        pairs = zip(weights.tolist(), self.program.losses, strict=True)
        terms = [(c, loss) for c, loss in pairs if c > 0.0 and is_squared(loss)]
        if not any(isinstance(loss.map, Identity) for _, loss in terms):
            raise Refused(
                "the quadratic part has no inverse: no squared gradient-matching loss "
                "has a weight above zero"
            )
        few = max(self.program.shape) <= MAX_SPECTRAL_SIZE or self.known is not None
        if few and curvature_refusal(self._losses) is None:
            a, b, c = self._quadratic.coefficients(weights[list(self._squared)])
            points, features = self._bases
            values = a + b * points.values[:, None] + c * features.values
            return SpectralHessian(points, features, values)
        if self._entries is not None:
            return EntryHessian(self._entries, tuple(terms))
        return CgHessian(tuple(terms), self.program.shape)

    def optimum(self, weights: Array) -> Attributions:
        """W₀ − ½H⁻¹∇F(W₀) of squared losses, for W₀ zero or what rows add up to."""
        totals, shape = self.totals, self.program.shape
        start = np.zeros(shape) if totals is None else totals.fixed
        slope = np.zeros(start.shape)
        for c, loss in zip(weights.tolist(), self.program.losses, strict=True):
            if c > 0.0 and is_squared(loss):
                slope += 0.5 * c * loss.gradient_at(start)
        return np.asarray(start - self.hessian(weights).solve(slope))

    def free(self, E: Array) -> Array:
        """What of errors (..., D) can move a complete W: all but their part along u."""
        if self.totals is None:
            return E
        heights = along(E, self.totals.axis)
        return np.asarray(E - heights[..., None] * self.totals.axis)

    @cached_property
    def totals(self) -> Totals | None:
        """What rows add up to; None where nothing says so."""
        return Totals.of(self.program.bounds)

    @cached_property
    def inner(self) -> QuadraticPart:
        """H of V, for what is :meth:`free`; targets have no part in it."""
        losses, totals = self.program.losses, self.totals
        if totals is not None:
            losses = tuple(_RecastLoss(x, totals.loss(x).map, 0.0) for x in losses)
        return QuadraticPart(Program(losses, (), self.program.shape), self.known)

    def _complete(self, totals: Totals, weights: Array) -> Hessian:
        if totals.is_shared:
            return ConstrainedHessian(self.inner.hessian(weights), totals.axis)
        free = Program(self.program.losses, (), self.program.shape)
        inner, support = (
            QuadraticPart(free).hessian(weights),
            entry_support(self.program),
        )
        if support is None or not isinstance(inner, EntryHessian):
            raise Refused(
                "rows add up over features of their own, and losses couple whole points"
            )
        # rows without any entry add up to nothing, and say nothing
        sums = RowSums(totals.axis).flat(self.program.shape)[:, support.positions]
        rows = np.flatnonzero(np.diff(sums.indptr))
        return replace(inner, support=support, sums=sp.csr_array(sums[rows]))

    @cached_property
    def _squared(self) -> tuple[int, ...]:
        losses = self.program.losses
        return tuple(k for k, loss in enumerate(losses) if is_squared(loss))

    @cached_property
    def _losses(self) -> tuple[PropertyLoss, ...]:
        return tuple(self.program.losses[k] for k in self._squared)

    @cached_property
    def _entries(self) -> Support | None:
        """The entries that count, where losses couple single entries."""
        return entry_support(Program(self._losses, (), self.program.shape))

    @cached_property
    def _quadratic(self) -> Quadratic:
        return Quadratic.of(self._losses, self.program.shape)

    @cached_property
    def _bases(self) -> tuple[QuadraticBasis, QuadraticBasis]:
        return self.known or eigenbases(self._quadratic)


def is_squared(loss: PropertyLoss) -> bool:
    """Whether the loss is a sum of squares."""
    return isinstance(loss.penalty, Squared)


# ---- The attributions that other losses leave least of, among those whose rows add up


_LITTLE: Final = 1e-6
"""ε, of the largest curvature."""


def smoothest(
    program: Program, coupled: Sequence[PropertyLoss], G: Attributions
) -> Attributions | None:
    """The complete W nearest to G at which coupled losses are least."""
    if not coupled or not all(map(_is_known, coupled)):
        return None
    maps = [loss.map for loss in coupled if isinstance(loss.map, OverEntries)]
    most = max(float(x.gram.diagonal().max(initial=0.0)) for x in maps) or 1.0
    bounds = tuple(bound for bound in program.bounds if is_completeness(bound))
    own = GradientMatching(G, name="distance from the target")
    part = QuadraticPart(Program((own, *coupled), bounds, program.shape))
    weights = np.ones(1 + len(coupled))
    result = []
    for share in (_LITTLE, _LITTLE / 2.0):
        weights[0] = share * most
        try:
            result.append(part.optimum(weights))
        except Refused:
            return None
    return np.asarray(2.0 * result[1] - result[0])


def least_among(program: Program, totals: Totals, loss: PropertyLoss) -> float | None:
    """The smallest value of a loss among complete attributions; None if not known."""
    if not _is_known(loss) or totals.is_shared:
        return totals.least(loss)
    W = smoothest(program, [loss], totals.fixed)
    return None if W is None else loss.value_at(W)


def _is_known(loss: PropertyLoss) -> bool:
    return isinstance(loss.map, OverEntries) and is_squared(loss)
