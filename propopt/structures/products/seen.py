"""Sums of products of what a model sees, by the columns of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, final

import numpy as np

from propopt.base.arrays import Array, Positions, Truths
from propopt.structures.products.algebra import Products, padded_paths
from propopt.structures.products.families import (
    Bumps,
    ClosedFactors,
    CurveRule,
    Curves,
    Exponentials,
    Factors,
    Imputed,
    Powers,
    Tables,
)
from propopt.structures.products.sums import SumOfProducts


# ---- Columns as a model sees them, each made of one column of a table


@final
@dataclass(frozen=True)
class Line:
    """Numbers x that are seen as slope · (x − center)."""

    column: int  # the column of the table, as in all that is seen
    slope: float = 1.0  # not 0, and any number
    center: float = 0.0
    missing: float = np.nan  # what is seen of NaN; NaN where nothing is

    def of(self, values: Array) -> Array:
        """What is seen of values (n,)."""
        seen = self.slope * (values - self.center)
        return np.where(np.isnan(values), self.missing, seen)


@final
@dataclass(frozen=True, eq=False)
class Listed:
    """Values of which a few are seen apart: codes, and numbers that were encoded."""

    column: int  # the column of the table
    keys: Array  # (K,): these values, increasing
    seen: Array  # (K,): what is seen of them
    # what is seen of all other values, and of NaN; NaN where nothing is
    other: float = np.nan
    missing: float = np.nan

    def of(self, values: Array) -> Array:
        """What is seen of values (n,)."""
        place = np.searchsorted(self.keys, values)
        known = np.append(self.keys, np.nan)[place] == values
        seen = np.append(self.seen, self.other)[np.where(known, place, -1)]
        return np.where(np.isnan(values), self.missing, seen)

    def on(self, keys: Array) -> Array:
        """What is seen of keys (K,), of others and of NaN, (K + 2,)."""
        return np.concatenate([self.of(keys), [self.other, self.missing]])


@final
@dataclass(frozen=True, eq=False)
class Bent:
    """Numbers that are seen through any map."""

    column: int  # the column of the table
    of: CurveRule  # from values (n,), NaN among them, to what is seen of them
    knots: Array  # (K,): where the map has kinks, increasing


SeenColumn: TypeAlias = Line | Listed | Bent
"""How a column that a model sees comes from one of the table."""


def constant(column: int, seen: float, missing: float = np.nan) -> Listed:
    """Numbers that are all seen alike."""
    nothing = np.zeros(0)
    return Listed(column, nothing, nothing, seen, missing)


# ---- Products of factors of one column


@final
@dataclass(frozen=True, eq=False)
class Joint:
    """The product of factors of columns that come from one column of the table."""

    # factors, one each, and how their columns are seen
    parts: tuple[tuple[Factors, SeenColumn], ...]

    @property
    def knots(self) -> Array:
        """Where maps have kinks, increasing."""
        bent = [seen.knots for _, seen in self.parts if isinstance(seen, Bent)]
        return np.unique(np.concatenate([np.zeros(0), *bent]))

    def __call__(self, values: Array) -> Array:
        """At values (n,) of the table."""
        factors = [factor.at(seen.of(values))[0] for factor, seen in self.parts]
        return np.asarray(np.prod(factors, axis=0))


# ---- Factors of lines, as multiples of factors of the numbers themselves


def _of_x(
    factors: Factors, column: Positions, slope: Array, center: Array
) -> tuple[ClosedFactors, Array]:
    """g(s (x − c)) as a multiple of a function of x of the same family."""
    ones = np.ones(len(column))
    match factors:
        case Bumps(_, middle, width):
            return Bumps(column, center + middle / slope, width / np.abs(slope)), ones
        case Powers(_, degree, root):
            return Powers(column, degree, center + root / slope), slope**degree
        case Exponentials(_, rate, root):
            return Exponentials(column, rate * slope, center + root / slope), ones
        case _:
            raise TypeError(type(factors))


def _each_at(factors: Factors, values: Array) -> Array:
    """g_u(values_u), (U,)."""
    result = np.empty(len(values))
    for value in np.unique(values):
        own = np.flatnonzero((values == value) | (np.isnan(values) & np.isnan(value)))
        result[own] = factors.take(own).at(np.array([value]))[:, 0]
    return result


# ---- Sums of products of what a model sees, by the columns of the table


def by_table(
    function: SumOfProducts, seen: Sequence[SeenColumn], n_columns: int
) -> SumOfProducts:
    """The same function of the D columns of the table.

    Factors of a product that are of the same column of the table are one factor.

    seen (M,).
    """
    entries = _Entries.of(function, seen)
    pulled = _Pulled(function, seen, entries)
    pulled.put_lines(entries.is_line & ~entries.is_joint)
    if entries.is_joint.any():
        pulled.put_joint(entries.is_joint)
    listed = ~entries.is_line & ~entries.is_joint
    for j in np.unique(entries.column[listed]).tolist():
        pulled.put_listed(listed & (entries.column == j))
    return pulled.whole(n_columns)


@final
@dataclass(frozen=True, eq=False)
class _Entries:
    """Factors of products, one after the other: E of them."""

    product: Positions  # (E,): positions; products are not decreasing
    factor: Positions  # shape (E,)
    column: Positions  # (E,): the column of the table
    is_line: Truths  # (E,): whether it is seen as a line, and whether it is bent
    is_bent: Truths  # shape (E,)

    @classmethod
    def of(cls, function: SumOfProducts, seen: Sequence[SeenColumn]) -> _Entries:
        """All, in the order of products."""
        paths = function.products.paths
        product, place = np.nonzero(paths >= 0)
        factor = paths[product, place]
        k = function.products.column[factor]
        column = np.array([each.column for each in seen], np.intp)
        lines = np.array([isinstance(each, Line) for each in seen], bool)
        bent = np.array([isinstance(each, Bent) for each in seen], bool)
        return cls(product, factor, column[k], lines[k], bent[k])

    @cached_property
    def is_joint(self) -> Truths:
        """Which are bent, or of a column that their product has again, as a line."""
        pairs = np.stack([self.product, self.column])
        _, place, counts = np.unique(
            pairs, axis=1, return_inverse=True, return_counts=True
        )
        place = place.ravel()
        n = len(counts)
        lines = np.bincount(place, self.is_line, minlength=n) > 0
        bent = np.bincount(place, self.is_bent, minlength=n) > 0
        return (bent | (lines & (counts > 1)))[place]


@final
@dataclass(eq=False)
class _Pulled:
    """What has been made so far."""

    function: SumOfProducts  # of what is seen
    seen: Sequence[SeenColumn]  # how
    entries: _Entries  # factors of its products
    families: list[Factors] = field(default_factory=list)
    product: list[Positions] = field(default_factory=list)
    factor: list[Positions] = field(default_factory=list)
    n_factors: int = 0

    def __post_init__(self) -> None:
        self.multiple = np.ones(len(self.function.products.values))

    def put_lines(self, among: Truths) -> None:
        """Factors of columns that are seen as lines."""
        no_line = Line(-1, np.nan, np.nan)
        lines = [each if isinstance(each, Line) else no_line for each in self.seen]
        table = [(own.column, own.slope, own.center, own.missing) for own in lines]
        used = np.isin(np.arange(self.function.n_factors), self.entries.factor[among])
        place = np.full(self.function.n_factors, -1)
        multiples = np.ones(self.function.n_factors)
        start = 0
        for family in self.function.factors:
            own = np.flatnonzero(used[start : start + len(family)])
            if len(own) > 0:
                chosen = family.take(own)
                rows = np.array(table)[chosen.column]
                column, slope, center, missing = np.ascontiguousarray(rows.T)
                moved, multiple = _of_x(chosen, column.astype(np.intp), slope, center)
                if not np.isnan(missing).all():
                    moved = Imputed(moved, _each_at(chosen, missing) / multiple)
                multiples[own + start] = multiple
                place[own + start] = self._add(moved)
            start += len(family)
        product, factor = self.entries.product[among], self.entries.factor[among]
        self.product.append(product)
        self.factor.append(place[factor])
        np.multiply.at(self.multiple, product, multiples[factor])

    def put_joint(self, among: Truths) -> None:
        """One curve for all factors of a column that are in one product."""
        runs: dict[tuple[int, int], list[int]] = {}
        e = self.entries
        for product, column, factor in zip(
            e.product[among], e.column[among], e.factor[among], strict=True
        ):
            runs.setdefault((int(product), int(column)), []).append(int(factor))
        rules = tuple(Joint(tuple(map(self._part, run))) for run in runs.values())
        columns = np.array([column for _, column in runs], np.intp)
        self.product.append(np.array([product for product, _ in runs], np.intp))
        knots = tuple(rule.knots for rule in rules)
        self.factor.append(self._add(Curves(columns, rules, knots)))

    def _part(self, number: int) -> tuple[Factors, SeenColumn]:
        """A factor alone, and how its column is seen."""
        k = int(self.function.products.column[number])
        for numbers, factors in self.function.of_column(k):
            place = np.flatnonzero(numbers == number)
            if len(place) > 0:
                return factors.take(place), self.seen[k]
        raise KeyError(number)

    def put_listed(self, among: Truths) -> None:
        """Factors of one column of which values are listed; one for each product."""
        j = self.entries.column[among][0]
        product, factor = self.entries.product[among], self.entries.factor[among]
        numbers, place = np.unique(factor, return_inverse=True)
        keys, entries = self._tabled(numbers)
        starts = np.flatnonzero(np.diff(product, prepend=-1))
        if len(starts) < len(product):
            entries = np.multiply.reduceat(entries[place], starts, axis=0)
            place = np.arange(len(starts))
        column = np.full(len(entries), j, np.intp)
        family = Tables(column, keys, entries[:, :-2], entries[:, -2], entries[:, -1])
        self.product.append(product[starts])
        self.factor.append(self._add(family)[place])

    def _tabled(self, numbers: Positions) -> tuple[Array, Array]:
        """Keys (K,), and the values of some factors of one column on them."""
        column = self.function.products.column[numbers]
        listed = {k: self.seen[k] for k in np.unique(column).tolist()}
        known = {k: each for k, each in listed.items() if isinstance(each, Listed)}
        keys = np.unique(np.concatenate([each.keys for each in known.values()]))
        entries = np.empty((len(numbers), len(keys) + 2))
        place = np.full(self.function.n_factors, -1)
        place[numbers] = np.arange(len(numbers))
        for k, each in known.items():
            for own, factors in self.function.of_column(k):
                used = place[own] >= 0
                entries[place[own[used]]] = factors.take(used).at(each.on(keys))
        return keys, entries

    def _add(self, family: Factors) -> Positions:
        """The numbers of its factors, behind all others."""
        numbers = self.n_factors + np.arange(len(family))
        self.families.append(family)
        self.n_factors += len(family)
        return numbers

    def whole(self, n_columns: int) -> SumOfProducts:
        """The function of the columns of the table."""
        old = self.function.products
        product, factor = np.concatenate(self.product), np.concatenate(self.factor)
        order = np.argsort(product, kind="stable")
        column = [np.zeros(0, np.intp), *(family.column for family in self.families)]
        products = Products(
            old.base,
            old.values * self.multiple,
            padded_paths(product[order], factor[order], len(old.values)),
            np.concatenate(column),
            n_columns,
        )
        return SumOfProducts(products, tuple(self.families), self.function.tolerance)
