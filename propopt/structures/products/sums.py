"""Functions that are sums of products of functions of one column each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Points, Positions, Values
from propopt.base.resources import Budget
from propopt.structures.products.algebra import Products
from propopt.structures.products.families import Factors


PRODUCTS_TOLERANCE: Final = 1e-9
"""How far a function may be from what it is read as, over the range of f."""

FACTORS_AT_ONCE: Final = Budget(2**26)
"""Of its own: Shapley values are summed over background rows in such blocks."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class SumOfProducts:
    """f(x) = base + Σ_l v_l Π_{u in path l} g_u(x_j(u)), a factor of a column each.

    Sums of trees are (their factors are indicators), gaussian kernels, linear and
    additive functions, products of functions of one column, and sums of all these.
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
        start = 0
        for family in self.factors:
            own = np.flatnonzero(family.column == j)
            if len(own) > 0:
                yield own + start, family.take(own)
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

    def plus(self, number: float) -> SumOfProducts:
        """``number`` + f."""
        products = replace(self.products, base=self.products.base + number)
        return replace(self, products=products)

    def scaled(self, weight: float) -> SumOfProducts:
        """``weight`` · f."""
        return replace(self, products=self.products.scaled(weight))

    @classmethod
    def sum_of(cls, parts: Sequence[SumOfProducts]) -> SumOfProducts:
        """The sum of several, at least one, of the same number of columns."""
        products = Products.sum_of([part.products for part in parts])
        families = tuple(family for part in parts for family in part.factors)
        return cls(products, families, max(part.tolerance for part in parts))


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
        products, phi = self.structure.products, np.zeros(points.shape)
        nodes, weights = self._nodes
        for rows, G in self.structure.factors_at(points):
            for n, a in zip(range(*rows.indices(len(points))), G.T, strict=True):
                by_factor = np.zeros(len(a))
                for b in self._backgrounds:
                    step = a[:, None] - b
                    for t, weight in zip(nodes, weights, strict=True):
                        _, slopes = products.slopes(b + t * step)
                        by_factor += weight * np.einsum("ub,ub->u", slopes, step)
                np.add.at(phi[n], products.column, by_factor / len(self.background))
        return phi

    @cached_property
    def _nodes(self) -> tuple[Array, Array]:
        """Those of Gauss on [0, 1]."""
        longest = int(self.structure.products.lengths.max(initial=1))
        nodes, weights = np.polynomial.legendre.leggauss(max(-(-longest // 2), 1))
        return (nodes + 1.0) / 2.0, weights / 2.0

    @cached_property
    def _backgrounds(self) -> list[Array]:
        """Factors at some of the background rows each, (U, b)."""
        each = 64 * self.structure.n_factors
        return [
            G
            for some in FACTORS_AT_ONCE.blocks(len(self.background), each)
            for _, G in self.structure.factors_at(self.background[some])
        ]
