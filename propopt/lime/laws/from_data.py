"""Bins of the columns of a table, with their shares."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from propopt._typing import Array, Points, Truths
from propopt.errors import InvalidInput
from propopt.lime.bins import BinRule, CodeBins, NumberBins, read_rules
from propopt.lime.laws.binned import BinnedColumn
from propopt.tables.columns import Coded, Column
from propopt.tables.frames import is_frame
from propopt.tables.names import Labels, listed, read_points
from propopt.tables.schema import TableSchema


BinWeights: TypeAlias = Literal["frequency", "uniform"]


def read_data(
    X: Any, schema: TableSchema | None, categorical: Sequence[Hashable]
) -> tuple[Points, Labels, TableSchema | None, Truths]:
    """Encoded rows, their names, and which columns are categories."""
    if schema is not None and len(categorical) > 0:
        raise InvalidInput("categorical: the schema says which columns are categories")
    if schema is None and len(categorical) > 0 and is_frame(X, "X"):
        schema = TableSchema.of(X, categorical)
    if schema is not None:
        points, labels = schema.encode(X)
        return points, labels, schema, schema.categorical
    points, labels = read_points(X, "X")
    coded = np.zeros(points.shape[1], dtype=bool)
    coded[_positions(categorical, points.shape[1])] = True
    return points, labels, None, coded


def _positions(categorical: Sequence[Hashable], n_columns: int) -> list[int]:
    known = range(n_columns)
    unknown = [column for column in categorical if column not in known]
    if unknown:
        raise InvalidInput(
            f"categorical: expected positions from 0 to {n_columns - 1}, got "
            f"{listed(unknown)}"
        )
    return [int(column) for column in categorical]  # type: ignore[call-overload]


def columns_of(
    points: Points,
    names: Sequence[str],
    schema: TableSchema | None,
    coded: Truths,
    n_bins: object,
    weights: BinWeights,
    package: bool,
) -> list[BinnedColumn]:
    """The bins of each column, with a share for each."""
    if weights not in get_args(BinWeights):
        raise InvalidInput(
            f"weights: expected 'frequency' or 'uniform', got {weights!r}"
        )
    own: Sequence[Column | None] = (
        [None] * len(names) if schema is None else schema.columns
    )
    rules = read_rules(n_bins, names)
    columns = []
    for j, (name, values) in enumerate(zip(names, points.T, strict=True)):
        if coded[j]:
            columns.append(coded_column(_codes(values, own[j]), weights))
        elif package:
            bins = _of_package(values, rules[j], name)
            columns.append(number_column(bins, weights, rules[j].n_bins))
        else:
            bins = NumberBins.of(values, rules[j].inner_edges(_known(values)))
            columns.append(number_column(bins, weights, rules[j].n_bins))
    return columns


def number_column(
    bins: NumberBins, weights: BinWeights = "frequency", asked: int = 0
) -> BinnedColumn:
    """The column of bins of numbers."""
    return BinnedColumn(
        bins.pieces,
        _shares(bins.frequencies, weights),
        bins.edges,
        bins.words,
        bins.missing,
        asked=asked,
    )


def coded_column(bins: CodeBins, weights: BinWeights = "frequency") -> BinnedColumn:
    """The column of categories."""
    shares = _shares(bins.frequencies, weights)
    return BinnedColumn(bins.pieces, shares, np.zeros(0), bins.words, coded=True)


def _codes(values: Array, column: Column | None) -> CodeBins:
    if not isinstance(column, Coded):
        return CodeBins.of(values)
    n_codes = len(column.frequencies)
    counts = np.bincount(column.codes(values), minlength=n_codes)
    names = tuple(str(category) for category in column.categories)
    return CodeBins(np.arange(float(n_codes)), counts / counts.sum(), names)


def _of_package(values: Array, rule: BinRule, name: str) -> NumberBins:
    if np.isnan(values).any():
        raise InvalidInput(
            f"X: column {name!r} has missing numbers, and the lime package takes none; "
            "without package=True they are a bin of their own"
        )
    return NumberBins.of_package(values, rule.inner_edges(values))


def _known(values: Array) -> Array:
    return values[~np.isnan(values)]


def _shares(frequencies: Array, weights: BinWeights) -> Array:
    """Frequencies, or the same share for each bin that has data."""
    if weights == "frequency":
        return frequencies
    some = frequencies > 0.0
    return np.asarray(some / some.sum())
