"""Sums of products of what a model sees, by the columns of the table."""

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


_Run: TypeAlias = list[tuple[Factors, SeenColumn]]
"""Factors, one each, of one column of the table, and how their columns are seen."""


def _product(run: _Run, values: Array) -> Array:
    """At values (n,) of the table."""
    factors = [factor.at(seen.of(values))[0] for factor, seen in run]
    return np.asarray(np.prod(factors, axis=0))


def _knots(run: _Run) -> Array:
    """Where maps have kinks, increasing."""
    bent = [seen.knots for _, seen in run if isinstance(seen, Bent)]
    return np.unique(np.concatenate([np.zeros(0), *bent]))


def _of_x(
    factors: Factors, column: Indices, slope: Array, center: Array
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


_Part: TypeAlias = tuple[Sequence[Factors], Indices, Indices]
"""Families of new factors, and, entry by entry, a product and its factor among them."""


def by_table(
    function: SumOfProducts, seen: Sequence[SeenColumn], n_columns: int
) -> SumOfProducts:
    """The same function of the columns of the table, a factor of a product for each."""
    paths, values = function.paths, function.values
    product, place = np.nonzero(paths >= 0)  # entries: factors, product by product
    factor = paths[product, place]
    k = function.column[factor]
    column = np.array([each.column for each in seen], np.intp)[k]
    is_line = np.array([isinstance(each, Line) for each in seen], bool)[k]
    is_bent = np.array([isinstance(each, Bent) for each in seen], bool)[k]
    is_joint = _are_joint(product, column, is_line, is_bent)
    alone, listed = is_line & ~is_joint, ~is_line & ~is_joint
    multiple = np.ones(len(values))
    parts = [
        _lines(function, seen, product[alone], factor[alone], multiple),
        _joint(function, seen, product[is_joint], column[is_joint], factor[is_joint]),
    ]
    for j in np.unique(column[listed]).tolist():
        own = listed & (column == j)
        parts.append(_listed(function, seen, product[own], j, factor[own]))
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
    """Which are bent, or of a column that their product has again, as a line."""
    pairs = np.stack([product, column])
    _, place, counts = np.unique(pairs, axis=1, return_inverse=True, return_counts=True)
    place, n = place.ravel(), len(counts)
    lines = np.bincount(place, is_line, minlength=n) > 0
    bent = np.bincount(place, is_bent, minlength=n) > 0
    return np.asarray((bent | (lines & (counts > 1)))[place])


def _lines(
    function: SumOfProducts,
    seen: Sequence[SeenColumn],
    product: Indices,
    factor: Indices,
    multiple: Array,  # (L,): times what is left over
) -> _Part:
    """Factors of columns that are seen as lines, each a factor of the column itself."""
    no_line = Line(-1, np.nan, np.nan)
    lines = [each if isinstance(each, Line) else no_line for each in seen]
    table = np.array(
        [(own.column, own.slope, own.center, own.missing) for own in lines]
    )
    numbers, place = np.unique(factor, return_inverse=True)
    families, multiples = list[Factors](), [np.zeros(0)]
    for _, chosen in function.chosen(numbers):
        column, slope, center, missing = np.ascontiguousarray(table[chosen.column].T)
        moved, times = _of_x(chosen, column.astype(np.intp), slope, center)
        if not np.isnan(missing).all():
            moved = Imputed(moved, _each_at(chosen, missing) / times)
        families.append(moved)
        multiples.append(times)
    np.multiply.at(multiple, product, np.concatenate(multiples)[place])
    return families, product, place


def _joint(
    function: SumOfProducts,
    seen: Sequence[SeenColumn],
    product: Indices,
    column: Indices,
    factor: Indices,
) -> _Part:
    """One curve for all factors of a column that are in one product."""
    runs: dict[tuple[int, int], _Run] = {}
    for key, number in zip(
        zip(product.tolist(), column.tolist(), strict=True), factor, strict=True
    ):
        ((_, own),) = function.chosen(np.array([number]))
        how = seen[int(function.column[number])]
        runs.setdefault(key, []).append((own, how))
    rules = tuple(partial(_product, run) for run in runs.values())
    pairs = np.array(list(runs), np.intp).reshape(-1, 2)
    curves = Curves(pairs[:, 1], rules, tuple(map(_knots, runs.values())))
    return [curves] if rules else [], pairs[:, 0], np.arange(len(rules))


def _listed(
    function: SumOfProducts,
    seen: Sequence[SeenColumn],
    product: Indices,
    column: int,
    factor: Indices,
) -> _Part:
    """Factors of one column of which values are listed; one for each product."""
    numbers, place = np.unique(factor, return_inverse=True)
    of = function.column[numbers]
    known = {
        k: each for k in np.unique(of).tolist() if isinstance(each := seen[k], Listed)
    }
    keys = np.unique(np.concatenate([each.keys for each in known.values()]))
    entries = np.empty((len(numbers), len(keys) + 2))
    for k, each in known.items():
        for own, factors in function.chosen(numbers[of == k]):
            entries[np.searchsorted(numbers, own)] = factors.at(each.on(keys))
    starts = np.flatnonzero(np.diff(product, prepend=-1))
    if len(starts) < len(product):
        entries = np.multiply.reduceat(entries[place], starts, axis=0)
        place = np.arange(len(starts))
    at = np.full(len(entries), column, np.intp)
    family = Tables(at, keys, entries[:, :-2], entries[:, -2], entries[:, -1])
    return [family], product[starts], place
