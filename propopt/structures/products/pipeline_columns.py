"""Sums of products of transformed columns, rewritten in the columns of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, final

import numpy as np

from propopt.base.arrays import Array, Indices, Mask
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
from propopt.structures.products.sums import SumOfProducts, padded_paths


# ---- Input columns of a model, each a transformation of one column of the table


@final
@dataclass(frozen=True)
class AffineColumn:
    """An input column that is affine in a table column, slope · (x − center)."""

    column: int  # the column of the table
    slope: float = 1.0  # not 0, and any number
    center: float = 0.0
    missing: float = np.nan  # the transformed value of NaN; NaN if there is none

    def of(self, values: Array) -> Array:
        """The transformed values of values (n,)."""
        seen = self.slope * (values - self.center)
        return np.where(np.isnan(values), self.missing, seen)


@final
@dataclass(frozen=True, eq=False)
class TabulatedColumn:
    """An input column with listed values for a few keys: codes, or encoded numbers."""

    column: int  # the column of the table
    keys: Array  # (K,): the listed values, increasing
    seen: Array  # (K,): their transformed values
    # the transformed values of all other values, and of NaN; NaN if there is none
    other: float = np.nan
    missing: float = np.nan

    def of(self, values: Array) -> Array:
        """The transformed values of values (n,)."""
        other = np.array([self.other])
        missing = np.array([self.missing])
        column = np.array([self.column])
        table = Tables(column, self.keys, self.seen[None], other, missing)
        return table.at(values)[0]


@final
@dataclass(frozen=True, eq=False)
class CurvedColumn:
    """An input column that is an arbitrary function of a table column."""

    column: int  # the column of the table
    of: CurveRule  # from values (n,), possibly NaN, to transformed values
    knots: Array  # (K,): the kinks of the map, increasing


InputColumn: TypeAlias = AffineColumn | TabulatedColumn | CurvedColumn
"""How an input column of a model is computed from one column of the table."""


def constant(column: int, seen: float, missing: float = np.nan) -> TabulatedColumn:
    """An input column that is constant."""
    nothing = np.zeros(0)
    return TabulatedColumn(column, nothing, nothing, seen, missing)


# ---- Products of factors of one column


_Run: TypeAlias = list[tuple[Factors, InputColumn]]
"""Factors of one table column, each with the transformation of its input column."""


def _product(run: _Run, values: Array) -> Array:
    """The product of the factors at values (n,) of the table column."""
    factors = [factor.at(seen.of(values))[0] for factor, seen in run]
    return np.prod(factors, axis=0)


def _knots(run: _Run) -> Array:
    """The kinks of all transformations, increasing."""
    bent = [seen.knots for _, seen in run if isinstance(seen, CurvedColumn)]
    return np.unique(np.concatenate([np.zeros(0), *bent]))


def _of_x(
    factors: Factors, column: Indices, slope: Array, center: Array
) -> tuple[ClosedFactors, Array]:
    """The factor g(s (x − c)) as a multiple of a function of x of the same family."""
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
    """Each factor at one value, g_u(values_u), shape (U,)."""
    result = np.empty(len(values))
    for value in np.unique(values):
        equal = np.flatnonzero((values == value) | (np.isnan(values) & np.isnan(value)))
        result[equal] = factors.take(equal).at(np.array([value]))[:, 0]
    return result


# ---- Sums of products, by the columns of the table


_Part: TypeAlias = tuple[Sequence[Factors], Indices, Indices]
"""Families of new factors, and for each entry its product and its factor."""


def by_table(
    function: SumOfProducts, seen: Sequence[InputColumn], n_columns: int
) -> SumOfProducts:
    """The same function of the table's columns, with one factor for each of them."""
    paths = function.paths
    values = function.values
    product, position = np.nonzero(paths >= 0)  # entries: factors, product by product
    factor = paths[product, position]
    k = function.column[factor]
    column = np.array([each.column for each in seen], np.intp)[k]
    is_line = np.array([isinstance(each, AffineColumn) for each in seen], bool)[k]
    is_bent = np.array([isinstance(each, CurvedColumn) for each in seen], bool)[k]
    is_joint = _are_joint(product, column, is_line, is_bent)
    alone = is_line & ~is_joint
    listed = ~is_line & ~is_joint
    multiple = np.ones(len(values))
    parts = [
        _lines(function, seen, product[alone], factor[alone], multiple),
        _joint(function, seen, product[is_joint], column[is_joint], factor[is_joint]),
    ]
    for j in np.unique(column[listed]).tolist():
        of_column = listed & (column == j)
        parts.append(_listed(function, seen, product[of_column], j, factor[of_column]))
    families = [family for part in parts for family in part[0]]
    starts = np.cumsum([0, *(sum(map(len, part[0])) for part in parts)])
    product = np.concatenate([part[1] for part in parts])
    factor = np.concatenate([p[2] + n for p, n in zip(parts, starts, strict=False)])
    order = np.argsort(product, kind="stable")
    return SumOfProducts(
        function.base,
        values * multiple,
        padded_paths(product[order], factor[order], len(values)),
        tuple(families),
        n_columns,
        function.tolerance,
    )


def _are_joint(product: Indices, column: Indices, is_line: Mask, is_bent: Mask) -> Mask:
    """Which entries are nonlinear, or share their table column with another entry."""
    pairs = np.stack([product, column])
    _, index, counts = np.unique(pairs, axis=1, return_inverse=True, return_counts=True)
    index = index.ravel()
    n = len(counts)
    lines = np.bincount(index, is_line, minlength=n) > 0
    bent = np.bincount(index, is_bent, minlength=n) > 0
    return (bent | (lines & (counts > 1)))[index]


def _lines(
    function: SumOfProducts,
    seen: Sequence[InputColumn],
    product: Indices,
    factor: Indices,
    multiple: Array,  # (L,): updated with the factors' multiples
) -> _Part:
    """Factors of affine input columns, each as a factor of the table column."""
    no_line = AffineColumn(-1, np.nan, np.nan)
    lines = [each if isinstance(each, AffineColumn) else no_line for each in seen]
    table = np.array(
        [(line.column, line.slope, line.center, line.missing) for line in lines]
    )
    numbers, index = np.unique(factor, return_inverse=True)
    families = list[Factors]()
    multiples = [np.zeros(0)]
    for _, chosen in function.chosen(numbers):
        column, slope, center, missing = np.ascontiguousarray(table[chosen.column].T)
        moved, times = _of_x(chosen, column.astype(np.intp), slope, center)
        if not np.isnan(missing).all():
            moved = Imputed(moved, _each_at(chosen, missing) / times)
        families.append(moved)
        multiples.append(times)
    np.multiply.at(multiple, product, np.concatenate(multiples)[index])
    return families, product, index


def _joint(
    function: SumOfProducts,
    seen: Sequence[InputColumn],
    product: Indices,
    column: Indices,
    factor: Indices,
) -> _Part:
    """One curve for all factors of a table column in one product."""
    runs: dict[tuple[int, int], _Run] = {}
    for key, number in zip(
        zip(product.tolist(), column.tolist(), strict=True), factor, strict=True
    ):
        ((_, factors),) = function.chosen(np.array([number]))
        transformation = seen[int(function.column[number])]
        runs.setdefault(key, []).append((factors, transformation))
    rules = tuple(partial(_product, run) for run in runs.values())
    pairs = np.array(list(runs), np.intp).reshape(-1, 2)
    curves = Curves(pairs[:, 1], rules, tuple(map(_knots, runs.values())))
    return [curves] if rules else [], pairs[:, 0], np.arange(len(rules))


def _listed(
    function: SumOfProducts,
    seen: Sequence[InputColumn],
    product: Indices,
    column: int,
    factor: Indices,
) -> _Part:
    """Factors of one table column with listed values; one for each product."""
    numbers, index = np.unique(factor, return_inverse=True)
    of = function.column[numbers]
    tabulated = {
        k: each
        for k in np.unique(of).tolist()
        if isinstance(each := seen[k], TabulatedColumn)
    }
    keys = np.unique(np.concatenate([each.keys for each in tabulated.values()]))
    entries = np.empty((len(numbers), len(keys) + 2))
    for k, each in tabulated.items():
        seen_at = np.concatenate([each.of(keys), [each.other, each.missing]])
        for chosen, factors in function.chosen(numbers[of == k]):
            entries[np.searchsorted(numbers, chosen)] = factors.at(seen_at)
    starts = np.flatnonzero(np.diff(product, prepend=-1))
    if len(starts) < len(product):
        entries = np.multiply.reduceat(entries[index], starts, axis=0)
        index = np.arange(len(starts))
    columns = np.full(len(entries), column, np.intp)
    family = Tables(columns, keys, entries[:, :-2], entries[:, -2], entries[:, -1])
    return [family], product[starts], index
