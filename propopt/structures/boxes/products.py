"""Sums of products of measures, Σ_l v_l Π_k z_u, and their derivatives by each z_u."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
import scipy.sparse as sp

from propopt._typing import Array, Positions, Sparse, Truths, Values
from propopt.structures.boxes.sets import ranks


class Slopes(NamedTuple):
    """A sum of products and what each factor does to it, at N points."""

    values: Values
    """Σ_l v_l Π_{u in path l} z_u, shape (N,)."""

    derivatives: Array
    """Its derivatives by z_u, shape (U, N)."""


@final
@dataclass(frozen=True, eq=False)
class Products:
    """f(z) = base + Σ_l v_l Π_{u in path l} z_u, of z with U entries.

    Parameters
    ----------
    base : float
        The constant.
    values : array (L,)
        v.
    paths : array (L, K)
        The factors u of each product, padded with −1 at the end.
    n_factors : int
        U.
    """

    base: float
    values: Array
    paths: Positions
    n_factors: int

    @property
    def lengths(self) -> Positions:
        """How many factors each product has, (L,)."""
        return (self.paths >= 0).sum(axis=1)

    def value(self, factors: Array) -> Values:
        """Values of f, of ``factors`` z of shape (U, N)."""
        total = np.full(factors.shape[1], self.base + self._constant)
        for same in self._lots:
            product = factors[same.paths[0]]
            for k in range(1, len(same.paths)):
                product = product * factors[same.paths[k]]
            total += (same.sums @ product)[0]
        return total

    def slopes(self, factors: Array) -> Slopes:
        """Values f and ∂f/∂z_u, of ``factors`` z of shape (U, N).

        By products of all factors before and of all behind, so nothing is divided.
        """
        total = np.full(factors.shape[1], self.base + self._constant)
        derivatives = np.zeros(factors.shape)
        for same in self._lots:
            others, product = _products_of_others(factors, same.paths)
            total += (same.sums @ product)[0]
            derivatives[same.factors] += same.scatter @ others
        return Slopes(total, derivatives)

    def with_factors(
        self, places: Positions, dropped: Truths, n_factors: int
    ) -> Products:
        """The same sum of other factors: z_u is the new z at ``places[u]``.

        Products of the same factors become one; those with a factor u that is
        ``dropped``, because it is always 0, go; factors at place −1 are always 1.
        """
        padded = np.append(places, -1)[self.paths]
        kept = ~np.append(dropped, False)[self.paths].any(axis=1)
        paths, values = _packed(padded[kept]), self.values[kept]
        if len(paths) == 0:
            return Products(self.base, values, paths, n_factors)
        if paths.shape[1] == 0:  # trees that are one leaf
            return Products(self.base, values.sum(keepdims=True), paths[:1], n_factors)
        _, first, where = np.unique(
            ranks(paths.T), return_index=True, return_inverse=True
        )
        summed = np.bincount(where, values).astype(np.float64)
        return Products(self.base, summed, paths[first], n_factors)

    @property
    def row_bytes(self) -> int:
        """The memory that :meth:`slopes` takes for each point, but for its factors."""
        at_once = min(len(self.values), _PRODUCTS_AT_ONCE)
        return 8 * (at_once * (self.paths.shape[1] + 3) + 2 * self.n_factors)

    @cached_property
    def _constant(self) -> float:
        """The products of no factors."""
        return float(self.values[self.lengths == 0].sum())

    @cached_property
    def _lots(self) -> tuple[_SameLength, ...]:
        return tuple(self._of_same_lengths())

    def _of_same_lengths(self) -> Iterator[_SameLength]:
        lengths = self.lengths
        for length in range(1, self.paths.shape[1] + 1):
            which = np.flatnonzero(lengths == length)
            for start in range(0, len(which), _PRODUCTS_AT_ONCE):
                some = which[start : start + _PRODUCTS_AT_ONCE]
                paths = np.ascontiguousarray(self.paths[some, :length].T)
                yield _SameLength.of(self.values[some], paths)


_PRODUCTS_AT_ONCE = 512
"""So many are multiplied at once: their parts stay near the processor."""


class _SameLength(NamedTuple):
    """Products with the same number of factors."""

    paths: Positions
    """(K, L)."""

    sums: Sparse
    """(1, L), with v."""

    factors: Positions
    """Those that occur, increasing, (F,)."""

    scatter: Sparse
    """(F, K L), with v_l where factor k of product l is the one of the row."""

    @classmethod
    def of(cls, values: Array, paths: Positions) -> _SameLength:
        factors, place = np.unique(paths, return_inverse=True)
        repeated = np.tile(values, len(paths))
        entries = (repeated, (place.ravel(), np.arange(paths.size)))
        scatter = sp.csr_array(entries, shape=(len(factors), paths.size))
        return cls(paths, sp.csr_array(values[None, :]), factors, scatter)


def _products_of_others(factors: Array, paths: Positions) -> tuple[Array, Array]:
    """Π_{i≠k} z of each k and product (K L, N), and Π z (L, N)."""
    n_factors, n_products = paths.shape
    n_points = factors.shape[1]
    others = np.empty((n_factors, n_products, n_points))
    others[0] = 1.0
    for k in range(1, n_factors):  # those before
        np.multiply(others[k - 1], factors[paths[k - 1]], out=others[k])
    product = others[-1] * factors[paths[-1]]
    behind = factors[paths[-1]]
    for k in range(n_factors - 2, -1, -1):
        others[k] *= behind
        if k > 0:
            behind *= factors[paths[k]]
    return others.reshape(-1, n_points), product


def _packed(paths: Positions) -> Positions:
    """Paths with their factors sorted in front, and −1 behind."""
    largest = np.iinfo(paths.dtype).max
    sorted_paths = np.sort(np.where(paths < 0, largest, paths), axis=1)
    packed = np.where(sorted_paths == largest, -1, sorted_paths)
    width = int((packed >= 0).sum(axis=1).max(initial=0))
    return packed[:, :width]
