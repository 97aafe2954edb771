"""Functions that are sums of products of functions of one column each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Self, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Points, Positions, Values
from propopt.base.resources import Budget
from propopt.structures.products.algebra import Products
from propopt.structures.products.families import Factors


PRODUCTS_TOLERANCE: Final = 1e-9
"""How far a function may be from what it is read as, over the range of f."""

FACTORS_AT_ONCE: Final = Budget(2**26)
"""Of its own: sums of factors of other numbers of rows have other last digits."""

_NEAR: Final = Budget(2**19)
"""What is multiplied over and over stays near the processor."""


@dataclass(frozen=True, eq=False, repr=False)
class SumOfProducts:
    """f(x) = base + Σ_l v_l Π_{u in path l} g_u(x_j(u)), a factor of a column each.

    Sums of trees are (:class:`~propopt.structures.boxes.boxes.Boxes`: their factors are
    indicators), gaussian kernels, linear and additive functions, products of functions
    of one column, and sums of all these.
    Under independent columns the mean of f, and any contrast in one column, are the
    same sum with the mean, or the contrast, of g_u in place of g_u: nothing is sampled.
    """

    products: Products  # what is made of the factors
    factors: tuple[Factors, ...]  # families of them, numbered one after the other
    # how far f may be from the model that it was read of, over the range of f
    tolerance: float = PRODUCTS_TOLERANCE

    @classmethod
    def additive(
        cls, base: float, weights: Array, terms: Factors, n_columns: int
    ) -> SumOfProducts:
        """Base + Σ_u weights_u g_u."""
        paths = np.arange(len(terms))[:, None]
        products = Products(base, weights, paths, terms.column, n_columns)
        return cls(products, (terms,))

    @classmethod
    def constant(cls, value: float, n_columns: int) -> SumOfProducts:
        """The same at all points of D columns."""
        nothing = np.zeros((0, 0), np.intp)
        columns = np.zeros(0, np.intp)
        return cls(Products(value, np.zeros(0), nothing, columns, n_columns), ())

    def __repr__(self) -> str:
        kinds = ", ".join(type(family).__name__ for family in self.factors)
        return (
            f"{type(self).__name__}({len(self.products.values)} products of "
            f"{self.n_factors} factors ({kinds}) in {self.n_columns} columns)"
        )

    @property
    def n_columns(self) -> int:
        """D."""
        return self.products.n_columns

    @property
    def n_factors(self) -> int:
        """U."""
        return len(self.products.column)

    @cached_property
    def columns(self) -> Positions:
        """The columns that f depends on, increasing."""
        return self.products.columns

    def of_column(self, j: int) -> Iterator[tuple[Positions, Factors]]:
        """The factors of a column: their numbers, and themselves, by families."""
        return self.chosen(np.flatnonzero(self.products.column == j))

    def chosen(self, numbers: Positions) -> Iterator[tuple[Positions, Factors]]:
        """Some factors by their numbers, by families."""
        start = 0
        for family in self.factors:
            own = numbers[(start <= numbers) & (numbers < start + len(family))]
            if len(own) > 0:
                yield own, family.take(own - start)
            start += len(family)

    def value(self, points: Points) -> Values:
        """Values of f at points (N, D)."""
        values = np.empty(len(points))
        for rows, G in self.factors_at(points):
            values[rows] = self.products.sums(G)
        return values

    def terms(self, points: Points) -> Values:
        """|base| + Σ_l |v_l Π_u g_u| at points: what the rounding of f is of, (N,)."""
        products, sizes = self.products, np.empty(len(points))
        whole = replace(
            products, base=abs(products.base), values=np.abs(products.values)
        )
        for rows, G in self.factors_at(points):
            sizes[rows] = whole.sums(np.abs(G))
        return sizes

    def factors_at(self, points: Points) -> Iterator[tuple[slice, Array]]:
        """Some rows at a time, with the factors there (U, n)."""
        row_bytes = 8 * self.n_factors + self.products.row_bytes
        own = [
            (j, numbers, factors)
            for j in self.columns.tolist()
            for numbers, factors in self.of_column(j)
        ]
        for rows in FACTORS_AT_ONCE.blocks(len(points), row_bytes):
            G = np.empty((self.n_factors, len(points[rows])))
            for j, numbers, factors in own:
                G[numbers] = factors.at(points[rows, j])
            yield rows, G

    def plus(self, number: float) -> Self:
        """``number`` + f."""
        products = replace(self.products, base=self.products.base + number)
        return replace(self, products=products)

    def scaled(self, weight: float) -> Self:
        """``weight`` · f."""
        return replace(self, products=self.products.scaled(weight))

    @staticmethod
    def sum_of(parts: Sequence[SumOfProducts]) -> SumOfProducts:
        """The sum of several, at least one, of the same columns; boxes if all are."""
        kinds = {type(part) for part in parts if part.factors}
        kind = kinds.pop() if len(kinds) == 1 else SumOfProducts
        products = Products.sum_of([part.products for part in parts])
        families = tuple(family for part in parts for family in part.factors)
        return kind(products, families, max(part.tolerance for part in parts)).merged()

    def merged(self) -> SumOfProducts:
        """With each factor once, where it is told which are equal."""
        return self


@final
@dataclass(frozen=True, eq=False)
class ProductShapley:
    """Shapley values of a sum of products against background rows, exactly.

    A feature that is known with probability t has the factor t a + (1 − t) b on
    average, a = g(x) and b = g(y) at a background row y, so that

    φ_j = mean_y Σ_{u of j} (a_u − b_u) ∫_0^1 Σ_{l with u} v_l Π_{w≠u} c_w(t) dt

    with c = t a + (1 − t) b (the multilinear extension, Owen 1972). Of products of K
    factors that is a polynomial in t of degree K − 1, for which ⌈K/2⌉ nodes of Gauss
    are exact: N rows against B take N B L K ⌈K/2⌉ multiplications.
    """

    structure: SumOfProducts  # f
    background: Points  # shape (B, D)

    def values(self, points: Points) -> Attributions:
        """Shapley values of points (N, D), exactly 0.0 in columns without a factor."""
        structure, phi = self.structure, np.zeros(points.shape)
        products = structure.products
        B = np.concatenate(
            [G for _, G in structure.factors_at(self.background)], axis=1
        )
        for rows, A in structure.factors_at(points):
            for some, path in self._blocks():
                b, column = B[path], products.column[path]
                weights = products.values[some] / len(self.background)
                for a, own in zip(A.T, phi[rows], strict=True):
                    np.add.at(own, column, self._of_paths(a[path], b) * weights)
        return phi

    def _of_paths(self, a: Array, b: Array) -> Array:
        """Of each factor of products: a (K, L) at a row, b (K, L, B); gives (K, L)."""
        step, total = a[:, :, None] - b, np.zeros(a.shape)
        nodes, weights = np.polynomial.legendre.leggauss(max(-(-len(a) // 2), 1))
        for t, weight in zip((nodes + 1.0) / 2.0, weights / 2.0, strict=True):
            mixed = b + t * step
            others = np.ones(b.shape)  # products of all before, and of all behind
            np.multiply.accumulate(mixed[:-1], axis=0, out=others[1:])
            others[:-1] *= np.multiply.accumulate(mixed[:0:-1], axis=0)[::-1]
            total += weight * np.einsum("klb,klb->kl", others, step)
        return total

    def _blocks(self) -> Iterator[tuple[Positions, Positions]]:
        """Some products of as many factors, and their factors (K, L)."""
        products = self.structure.products
        for length in np.unique(products.lengths[products.lengths > 0]).tolist():
            of_length = np.flatnonzero(products.lengths == length)
            row_bytes = 8 * length * len(self.background)
            for some in _NEAR.blocks(len(of_length), row_bytes):
                own = of_length[some]
                yield own, products.paths[own, :length].T
