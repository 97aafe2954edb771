"""Columns in bins: their edges, their names, and the law of their samples."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias, final

import numpy as np

from propopt.base.arrays import Array, Indices, Mask, Points, Values, quotient
from propopt.base.checks import largest_entry, read_array, read_option
from propopt.base.errors import InvalidInput
from propopt.lime.laws.lime_law import LimeLaw, Tilt
from propopt.structures.products.families import Pieces
from propopt.tables.columns import CategoricalColumn, Column
from propopt.tables.frames import (
    Labels,
    is_frame,
    listed,
    position_of,
    read_points,
)
from propopt.tables.schema import TableSchema


# ---- The bins of each column


BinChoice: TypeAlias = int | Sequence[float] | Array
BinsOfColumns: TypeAlias = int | Sequence[BinChoice] | Mapping[str, BinChoice]

BinRule: TypeAlias = int | Array
"""The number of bins between quantiles of the data, at least 2; or inner edges."""


def inner_edges_of(rule: BinRule, values: Array) -> Array:
    """The inner edges of bins of these numbers, fewer if quantiles are equal."""
    if not isinstance(rule, int):
        return rule
    if len(values) == 0:
        return np.zeros(0)
    return np.unique(np.percentile(values, 100.0 * np.arange(1, rule) / rule))


def read_rules(n_bins: object, names: Sequence[str]) -> tuple[BinRule, ...]:
    """The rule for the bins of each of D columns; names (D,)."""
    if isinstance(n_bins, str) or not isinstance(
        n_bins, Mapping | Sequence | np.ndarray
    ):
        return (_rule(n_bins, "n_bins"),) * len(names)
    if isinstance(n_bins, Mapping):
        choices: list[Any] = [4] * len(names)
        for key, one in n_bins.items():
            choices[position_of(key, "n_bins", names)] = one
    elif len(n_bins) == len(names):
        choices = list(n_bins)
    else:
        raise InvalidInput(
            f"n_bins: expected one for each of {len(names)} columns, got "
            f"{len(n_bins)}; for some columns give a mapping by name"
        )
    labels = [f"n_bins[{name!r}]" for name in names]
    return tuple(map(_rule, choices, labels))


def _rule(user_bins: Any, label: str) -> BinRule:
    if isinstance(user_bins, Sequence | np.ndarray) and np.ndim(user_bins) > 0:
        edges = read_array(user_bins, label, ndim=1)
        if (np.diff(edges) <= 0.0).any():
            raise InvalidInput(
                f"{label}: expected increasing edges, got {edges.tolist()}"
            )
        return edges
    if (
        isinstance(user_bins, bool)
        or not isinstance(user_bins, int | np.integer)
        or user_bins < 2
    ):
        raise InvalidInput(
            f"{label}: expected a number of bins >= 2, or edges of bins, got "
            f"{user_bins!r}"
        )
    return int(user_bins)


# ---- The names of bins, in which no two edges look the same


def interval_words(edges: Array, *, below: bool = True) -> tuple[str, ...]:
    """The words of bins between inner edges, which follow the name of a column.

    Edges belong to the bin below them, or to the bin above.
    """
    if len(edges) == 0:
        return ("any",)
    ends = _distinct_numbers(edges)
    over, under = (">", "≤") if below else ("≥", "<")
    between = [f"{over} {low} and {under} {high}" for low, high in pairwise(ends)]
    return (f"{under} {ends[0]}", *between, f"{over} {ends[-1]}")


def _distinct_numbers(edges: Array) -> list[str]:
    """The edges as text, each within a tenth of the narrowest bin."""
    narrowest = np.diff(edges).min(initial=np.inf)
    for digits in range(4, 17):
        ends = [f"{edge:.{digits}g}" for edge in edges]
        close = np.abs(np.array(ends, np.float64) - edges) <= 0.1 * narrowest
        if len(set(ends)) == len(ends) and close.all():
            return ends
    return [f"{edge:.17g}" for edge in edges]


@final
@dataclass(frozen=True, eq=False)
class BinnedColumn:
    """The bins of one column, with a separate law of samples in each bin.

    A sample falls into bin b with probability w_b. Its weight by bits is 1 if that is
    the bin of the row, else ε = exp(−1 / (2 ν²)).
    """

    pieces: Pieces  # the law of V_j in each bin, (B,)
    shares: Array  # (B,): w, with the sum 1
    edges: Array  # (B' − 1,): inner edges of bins of numbers
    bins: tuple[str, ...]  # (B,): the words of bins, after the name of the column
    missing: int = -1  # the piece of missing numbers; −1 if there is none
    coded: bool = False  # whether pieces are codes, in increasing order

    @classmethod
    def of_numbers(
        cls,
        edges: Array,
        moments: tuple[Array, Array],
        ends: tuple[Array, Array],
        single: Mask,
        shares: Array,
    ) -> BinnedColumn:
        """Bins (low, high] of numbers; an additional share is that of missing ones."""
        mean, sd = moments
        low, high = ends
        words = interval_words(edges)
        missing = -1
        if len(shares) > len(single):
            missing = len(single)
            words = (*words, "missing")
            mean, low, high = (np.append(part, np.nan) for part in (mean, low, high))
            sd = np.append(sd, 0.0)
            single = np.append(single, True)
        return cls(Pieces(single, mean, sd, low, high), shares, edges, words, missing)

    @classmethod
    def of_data(cls, values: Array, edges: Array) -> BinnedColumn:
        """Bins of data (m,), with their means and sds; a bin may be a single value.

        Outer ends are those of the data; edges at or above the largest number are
        dropped. A bin without data has the share 0, and its middle as value.
        """
        numbers = values[~np.isnan(values)]
        edges = edges[edges < numbers.max(initial=-np.inf)]
        ends = (numbers.min(), numbers.max()) if len(numbers) > 0 else (0.0, 0.0)
        low = np.append(ends[0], edges)
        high = np.append(edges, ends[1])
        indices = np.searchsorted(edges, numbers, side="left")
        order = np.argsort(indices, kind="stable")
        counts = np.bincount(indices, minlength=len(low))
        parts = np.split(numbers[order], np.cumsum(counts)[:-1])
        single = np.ones(len(parts), bool)
        mean = np.empty(len(parts))
        sd = np.zeros(len(parts))
        for b, part in enumerate(parts):
            if len(part) == 0:
                mean[b] = 0.5 * (low[b] + high[b])
                continue
            single[b] = np.ptp(part) == 0.0
            mean[b] = part[0] if single[b] else part.mean()
            sd[b] = _deviation(part)
        if len(numbers) < len(values):
            counts = np.append(counts, len(values) - len(numbers))
        shares = counts / counts.sum()
        return cls.of_numbers(edges, (mean, sd), (low, high), single, shares)

    @classmethod
    def of_codes(
        cls, values: Array, shares: Array, names: Sequence[str]
    ) -> BinnedColumn:
        """Categories: increasing values, NaN as the last, and their names."""
        words = tuple(f"= {name}" for name in names)
        return cls(Pieces.of_values(values), shares, np.zeros(0), words, coded=True)

    @property
    def with_equal_shares(self) -> BinnedColumn:
        """The same bins with equal shares for all bins that occur."""
        occurs = self.shares > 0.0
        return replace(self, shares=occurs / occurs.sum())

    def beyond(self, x: Values) -> Mask:
        """True if values are outside of all samples, or in a bin without any, (n,)."""
        empty: Mask = self.shares[self.bin_index(x)] == 0.0
        if self.coded:
            return empty
        high = self.pieces.high[len(self.edges)]
        return empty | (x < self.pieces.low[0]) | (x > high)

    def bin_index(self, x: Values) -> Indices:
        """The index of the bin of each value, (n,); end bins have values beyond."""
        if self.coded:
            codes = self.pieces.mean
            candidates = np.minimum(np.searchsorted(codes, x), len(codes) - 1)
            same = (codes[candidates] == x) | (
                np.isnan(codes[candidates]) & np.isnan(x)
            )
            indices = np.where(same, candidates, -1)
        else:
            above = np.searchsorted(self.edges, x, side="left")
            indices = np.where(np.isnan(x), self.missing, above)
        if (indices < 0).any():
            value = x[indices < 0][0]
            word = "a missing value" if np.isnan(value) else f"{value:g}"
            raise InvalidInput(
                f"X: expected values that occur in the data of the law, got {word}, "
                "which has no bin"
            )
        return indices

    def tilt(self, x: Values, widths: Values) -> Tilt:
        """The weighted law: weights by bits multiply the shares of other bins by ε.

        A bin with the share 0 has no samples, so that bits of rows there are never 1.
        """
        row_bins = self.bin_index(x)
        rows = np.arange(len(x))
        w = self.shares[row_bins]
        inside = np.zeros((len(self.shares), len(x)))
        inside[row_bins, rows] = w > 0.0
        outside = np.repeat(self.shares[:, None], len(x), axis=1)
        outside[row_bins, rows] = 0.0
        rest = outside.sum(axis=0)
        outside = quotient(outside, rest)
        with np.errstate(divide="ignore"):
            log_in = np.log(w)
            log_out = np.log(rest) - 0.5 / widths**2
        log_weight = np.logaddexp(log_in, log_out)
        return Tilt(
            self.pieces,
            inside,
            outside,
            alpha=np.exp(log_in - log_weight),
            complement=np.exp(log_out - log_weight),
            log_weight=log_weight,
        )

    def log_kernel(self, x: Array, values: Array, bits: Array, width: Array) -> Array:
        """−(1 − z) / (2 ν²)."""
        del x, values
        return (bits - 1.0) / (2.0 * width**2)


# ---- Statistics of numbers in bins


def _deviation(part: Array) -> float:
    """The standard deviation, also for numbers with squares beyond floats."""
    size = largest_entry(part)
    if size == 0.0 or 1e-140 < size < 1e140:
        return float(part.std())
    scale = 2.0 ** np.floor(np.log2(size))
    return float((part / scale).std() * scale)


def binned_columns(law: LimeLaw) -> tuple[BinnedColumn, ...] | None:
    """The columns in bins, (D,); None if some are of normal numbers."""
    columns = tuple(x for x in law.columns if isinstance(x, BinnedColumn))
    return columns if len(columns) == len(law.columns) else None


# ---- Bins of the columns of a table, with their shares


BinWeights: TypeAlias = Literal["frequency", "uniform"]


def read_data(
    X: Any,
    schema: TableSchema | None,
    categorical: Sequence[Hashable],
) -> tuple[Points, Labels, TableSchema | None, Mask]:
    """Encoded rows, labels, the schema, and whether columns hold categories."""
    if schema is not None and len(categorical) > 0:
        raise InvalidInput(
            "categorical: leave it out with a schema, which has the categories"
        )
    if schema is None and len(categorical) > 0 and is_frame(X, "X"):
        schema = TableSchema.of(X, categorical, what="X")
    if schema is not None:
        points, labels = schema.encode(X, "X")
        return points, labels, schema, schema.categorical
    points, labels = read_points(X, "X")
    coded = np.zeros(points.shape[1], dtype=bool)
    unknown = [column for column in categorical if column not in range(len(coded))]
    if unknown:
        raise InvalidInput(
            f"categorical: expected positions from 0 to {len(coded) - 1}, got "
            f"{listed(unknown)}"
        )
    coded[[int(column) for column in categorical]] = True  # type: ignore[call-overload]
    return points, labels, None, coded


def columns_of(
    points: Points,
    names: Sequence[str],
    schema: TableSchema | None,
    coded: Mask | None = None,
    n_bins: object = 4,
    weights: BinWeights = "frequency",
) -> list[BinnedColumn]:
    """The bins of each column of a table, with their shares."""
    read_option(weights, BinWeights, "weights")
    column_types: Sequence[Column | None] = (
        [None] * len(names) if schema is None else schema.columns
    )
    if coded is None:
        coded = np.array(
            [isinstance(column, CategoricalColumn) for column in column_types]
        )
    rules = read_rules(n_bins, names)
    columns = []
    for values, rule, column, is_coded in zip(
        points.T, rules, column_types, coded, strict=True
    ):
        if is_coded:
            columns.append(BinnedColumn.of_codes(*codes_of(values, column)))
            continue
        edges = inner_edges_of(rule, values[~np.isnan(values)])
        columns.append(BinnedColumn.of_data(values, edges))
    return (
        columns
        if weights == "frequency"
        else [column.with_equal_shares for column in columns]
    )


def codes_of(
    values: Array, column: Column | None
) -> tuple[Array, Array, tuple[str, ...]]:
    """The codes of a column, the share of each, and their names."""
    if isinstance(column, CategoricalColumn):
        n_codes = len(column.frequencies)
        codes = np.arange(float(n_codes))
        counts = np.bincount(column.codes(values), minlength=n_codes)
        names = tuple(str(category) for category in column.categories)
    else:
        codes, counts = np.unique(values, return_counts=True)
        names = tuple(f"{value:.17g}" for value in codes)
    return codes, counts / counts.sum(), names
