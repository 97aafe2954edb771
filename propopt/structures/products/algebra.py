"""Sums of products of measures, and their contrasts in each column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Positions, Sparse, Truths, Values
from propopt.base.resources import Budget
from propopt.structures.products.families import Factors
from propopt.structures.products.normals import Normals


# ---- Sums of products of measures, Σ_l v_l Π_k P_u, and their contrasts in each column


@final
@dataclass(frozen=True, eq=False)
class SetMeasures:
    """Means P_u and contrasts R_u of U factors at N rows; of sets probabilities."""

    law: Array  # (U, N): P
    contrast: Array  # (U, N): R


# ---- Paths: which factors each product has, as a padded table


def padded_paths(product: Positions, factor: Positions, n_products: int) -> Positions:
    """One row of factors for each product, padded with −1, (L, K).

    product (E,), factor (E,).
    """
    lengths = np.bincount(product, minlength=n_products)
    paths = np.full((n_products, int(lengths.max(initial=0))), -1)
    starts = np.cumsum(lengths) - lengths
    paths[product, np.arange(len(product)) - starts[product]] = factor
    return paths


# ---- What mixtures of laws of one column are made of: single values, and normals


@final
@dataclass(frozen=True, eq=False)
class Pieces:
    """B laws of one column, or B for each of n rows."""

    single: Truths  # (B,): which are one value: a number, a code, or NaN for missing
    # (B,) or (B, n): the value, or the mean of the normal before it is restricted
    mean: Array
    sd: Array  # (B,) or (B, n): as in Normals; not read of single values
    low: Array  # shape (B,) or (B, n)
    high: Array  # shape (B,) or (B, n)

    @classmethod
    def of_values(cls, values: Array) -> Pieces:
        """Single values (B,)."""
        nothing = np.zeros(len(values))
        every = np.ones(len(values), dtype=bool)
        return cls(every, values, nothing, nothing, nothing)

    @classmethod
    def of_normals(cls, normals: Normals) -> Pieces:
        """Truncated normals, (B,) or (B, n)."""
        none = np.zeros(normals.shape[0], dtype=bool)
        return cls(none, normals.mean, normals.sd, normals.low, normals.high)

    def __len__(self) -> int:
        return len(self.single)

    @property
    def normals(self) -> Normals:
        """Those that are truncated normals."""
        some = ~self.single
        return Normals(self.mean[some], self.sd[some], self.low[some], self.high[some])

    def expect(self, factors: Factors) -> Array:
        """E g_u(V) of U factors of the column, (U, B) or (U, B, n)."""
        expected = np.empty((len(factors), *self.mean.shape))
        expected[:, self.single] = factors.at(self.mean[self.single])
        if not self.single.all():
            expected[:, ~self.single] = factors.under(self.normals)
        return expected


# ---- Places of rows in their order


def ranks(parts: Iterable[NDArray[Any]]) -> Positions:
    """Places of rows in their lexicographic order, equal for equal rows."""
    indices = np.zeros(1, np.intp)
    for part in parts:
        values, ordered = np.unique(part, return_inverse=True)
        both = indices * max(len(values), 1) + ordered
        _, indices = np.unique(both, return_inverse=True)
    return indices


_FACTORS_AT_ONCE: Final = 8192
"""So many are multiplied at once: what is made of them stays near the processor."""

ROWS_AT_ONCE: Final = Budget(2**26, 32)
"""At which factors are measured: so few rows stay near too (all took up to thrice)."""


@final
@dataclass(frozen=True, eq=False)
class Products:
    """base + Σ_l v_l Π_{u in path l} P_u, of sets u that are each of one column."""

    base: float  # the constant
    values: Array  # (L,): v
    paths: Positions  # (L, K): the factors u of each product, padded with −1 at the end
    column: Positions  # (U,): the column of each factor
    n_columns: int  # D

    @classmethod
    def sum_of(cls, parts: Sequence[Products]) -> Products:
        """The sum of several, at least one, of factors one after the other."""
        starts = np.cumsum([0, *(len(part.column) for part in parts)])
        width = max(part.paths.shape[1] for part in parts)
        paths = np.full((sum(len(part.paths) for part in parts), width), -1)
        row = 0
        for part, start in zip(parts, starts, strict=False):
            moved = np.where(part.paths >= 0, part.paths + start, -1)
            paths[row : row + len(moved), : moved.shape[1]] = moved
            row += len(moved)
        return cls(
            sum(part.base for part in parts),
            np.concatenate([part.values for part in parts]),
            paths,
            np.concatenate([part.column for part in parts]),
            parts[0].n_columns,
        )

    def scaled(self, weight: float) -> Products:
        """``weight`` times the sum."""
        return replace(self, base=weight * self.base, values=weight * self.values)

    @property
    def columns(self) -> Positions:
        """The columns that it depends on, increasing."""
        used = np.unique(self.paths)
        return np.unique(self.column[used[used >= 0]])

    @property
    def lengths(self) -> Positions:
        """How many factors each product has, (L,)."""
        return np.asarray((self.paths >= 0).sum(axis=1))

    def contrasts(self, measures: SetMeasures) -> tuple[Values, Attributions]:
        """The sum (N,), and with R in place of P in each column in turn (N, D).

        By products of all factors before and of all behind, so nothing is divided.
        """
        n_points = measures.law.shape[1]
        # generating functions are measured at complex numbers
        kind = measures.law.dtype
        total = np.full(n_points, self.base + self._constant, kind)
        attributions = np.zeros((self.n_columns, n_points), kind)
        for lot in self.lots:
            others, product = _products_of_others(
                measures.law.take(lot.factors, 0), lot.paths
            )
            total += (lot.sums @ product)[0]
            pulls = (lot.scatter @ others) * measures.contrast.take(lot.factors, 0)
            attributions += lot.by_column @ pulls
        return total, np.ascontiguousarray(attributions.T)

    def sums(self, P: Array) -> Values:
        """The sum (N,) of measures of each set, (U, N)."""
        total = np.full(P.shape[1], self.base + self._constant)
        for lot in self.lots:
            product = P[lot.factors[lot.paths[0]]]
            for indices in lot.paths[1:]:
                product *= P[lot.factors[indices]]
            total += (lot.sums @ product)[0]
        return total

    def slopes(self, P: Array) -> tuple[Values, Array]:
        """The sum (N,), and its derivatives by the measure of each factor (U, N).

        With any measure of factors of column j in place of P the sum changes by the
        derivatives times the difference, as a product has one factor of j at most.
        """
        total = np.full(P.shape[1], self.base + self._constant)
        slopes = np.zeros(P.shape)
        for lot in self.lots:
            others, product = _products_of_others(P[lot.factors], lot.paths)
            total += (lot.sums @ product)[0]
            slopes[lot.factors] += lot.scatter @ others
        return total, slopes

    def with_factors(
        self, indices: Positions, dropped: Truths, column: Positions
    ) -> Products:
        """The same sum of other factors: factor u is the new one at ``places[u]``.

        Products with a factor that is ``dropped``, because it is always 0, go; factors
        at place −1 are always 1.
        """
        padded = np.append(indices, -1)[self.paths]
        kept = ~np.append(dropped, False)[self.paths].any(axis=1)
        paths, values = _packed(padded[kept]), self.values[kept]
        return Products(self.base, values, paths, column, self.n_columns)

    def collected(self) -> Products:
        """The same sum, in which products of the same factors are one.

        They are added in the order of their values, so that sums of the same products
        are the same in whatever order they come, to the last bit.
        """
        place = ranks(self.paths.T) if self.paths.shape[1] > 0 else self.lengths
        order = np.lexsort([self.values, place])
        _, first, where = np.unique(
            place[order], return_index=True, return_inverse=True
        )
        values = np.bincount(where, self.values[order]).astype(np.float64)
        return replace(self, values=values, paths=self.paths[order[first]])

    @property
    def row_bytes(self) -> int:
        """The memory that :meth:`contrasts` takes for each point."""
        return 8 * 5 * _FACTORS_AT_ONCE

    @cached_property
    def _constant(self) -> float:
        """The products of no factors."""
        return float(self.values[self.lengths == 0].sum())

    @cached_property
    def lots(self) -> tuple[SameLength, ...]:
        """All products of at least one factor, in lots of as many factors each."""
        return tuple(self._of_same_lengths())

    def _of_same_lengths(self) -> Iterator[SameLength]:
        lengths = self.lengths
        for length in range(1, self.paths.shape[1] + 1):
            which = np.flatnonzero(lengths == length)
            size = max(1, _FACTORS_AT_ONCE // length)
            for start in range(0, len(which), size):
                some = which[start : start + size]
                yield self._lot(self.values[some], self.paths[some, :length].T)

    def _lot(self, values: Array, paths: Positions) -> SameLength:
        factors, place = np.unique(paths, return_inverse=True)
        place = place.reshape(paths.shape)
        scatter = (np.tile(values, len(paths)), (place.ravel(), np.arange(paths.size)))
        n = len(factors)
        by_column = (np.ones(n), (self.column[factors], np.arange(n)))
        return SameLength(
            factors,
            place,
            sp.csr_array(values[None, :]),
            sp.csr_array(scatter, shape=(n, paths.size)),
            sp.csr_array(by_column, shape=(self.n_columns, n)),
        )


class SameLength(NamedTuple):
    """L products of K factors each."""

    factors: Positions
    """Those that occur, (F,)."""

    paths: Positions
    """Those of each product, as positions among them, (K, L)."""

    sums: Sparse
    """What sums products, with v, (1, L)."""

    scatter: Sparse
    """v_l where factor k of product l is the one of the row, (F, K L)."""

    by_column: Sparse
    """What sums the factors of each column, (D, F)."""


def _products_of_others(P: Array, paths: Positions) -> tuple[Array, Array]:
    """Π_{i≠k} P of each k and product (K L, N), and Π P (L, N)."""
    own = P[paths]
    others = np.empty(own.shape, own.dtype)
    others[0] = 1.0
    for k in range(1, len(paths)):
        np.multiply(others[k - 1], own[k - 1], out=others[k])
    product = others[-1] * own[-1]
    behind = own[-1]
    for k in range(len(paths) - 2, -1, -1):
        others[k] *= behind
        if k > 0:
            behind *= own[k]
    return others.reshape(-1, own.shape[-1]), product


def _packed(paths: Positions) -> Positions:
    """Paths with their factors sorted in front, and −1 behind."""
    largest = np.iinfo(paths.dtype).max
    sorted_paths = np.sort(np.where(paths < 0, largest, paths), axis=1)
    packed = np.where(sorted_paths == largest, -1, sorted_paths)
    width = int((packed >= 0).sum(axis=1).max(initial=0))
    return packed[:, :width]
