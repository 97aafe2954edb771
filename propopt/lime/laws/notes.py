"""What readers of explanations have to know of the bins behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from propopt._typing import Array, Points, Truths
from propopt.lime.laws.binned import BinnedColumn
from propopt.tables.names import listed


_UNEVEN: Final = 1.1
"""Shares of bins are uneven where the largest is so many times the smallest."""

_MOVED: Final = 0.25
"""Samples of a bin have another mean where it is so many deviations away."""

_Named: TypeAlias = Sequence[tuple[str, BinnedColumn]]


def notes_of_bins(
    names: Sequence[str], columns: Sequence[BinnedColumn], points: Points
) -> tuple[str, ...]:
    """A sentence for each thing that is so of some rows (n, D), or of some bins."""
    named = list(zip(names, columns, strict=True))
    of_rows = (
        (_outside, "values outside those of the data, which count as in the end bins"),
        (_in_empty_bins, "values in bins without data, where coefficients are 0"),
        (_on_edges, "values on an edge, which belong to the bin below it"),
    )
    of_columns = (
        (_constant, "have one bin, so that their coefficients are 0"),
        (_merged, "have fewer bins than asked for, as quantiles are equal"),
        (_uneven, "have bins that are not drawn alike, but as often as in the data"),
    )
    rows = (_note_of_rows(named, points, test, what) for test, what in of_rows)
    bins = (_note_of_columns(named, test, what) for test, what in of_columns)
    return tuple(note for note in (*rows, *bins, _moved(named)) if note)


def _note_of_rows(
    named: _Named,
    points: Points,
    test: Callable[[BinnedColumn, Array], Truths],
    what: str,
) -> str:
    found = np.stack(
        [test(column, x) for (_, column), x in zip(named, points.T, strict=True)],
        axis=1,
    )
    if not found.any():
        return ""
    wrong = [name for (name, _), some in zip(named, found.T, strict=True) if some.any()]
    n_rows = int(found.any(axis=1).sum())
    return f"{_rows(n_rows)} {what}: {listed(wrong, 3)}"


def _note_of_columns(
    named: _Named, test: Callable[[BinnedColumn], bool], what: str
) -> str:
    found = [name for name, column in named if test(column)]
    return f"columns {what}: {listed(found, 3)}" if found else ""


def _rows(count: int) -> str:
    return "1 row has" if count == 1 else f"{count:,} rows have"


def _outside(column: BinnedColumn, x: Array) -> Truths:
    low, high = column.extent
    return (x < low) | (x > high)


def _in_empty_bins(column: BinnedColumn, x: Array) -> Truths:
    return np.asarray(column.shares[column.place(x)] == 0.0)


def _on_edges(column: BinnedColumn, x: Array) -> Truths:
    return np.isin(x, column.edges)


def _constant(column: BinnedColumn) -> bool:
    return int((column.shares > 0.0).sum()) == 1


def _merged(column: BinnedColumn) -> bool:
    return len(column.edges) + 1 < column.asked and not _constant(column)


def _uneven(column: BinnedColumn) -> bool:
    if column.coded:
        return False
    shares = column.shares[: len(column.edges) + 1]
    drawn = shares[shares > 0.0]
    return len(drawn) > 0 and bool(drawn.max() > _UNEVEN * drawn.min())


def _moved(named: _Named) -> str:
    """Of bins whose samples have another mean than the data, the one that is worst."""
    found = list(_means(named))
    if not found:
        return ""
    _, name, word, sampled, mean = max(found)
    more = f", and {len(found) - 1:,} other bins" if len(found) > 1 else ""
    return (
        f"samples of a bin have another mean than its data: {sampled:.4g} and "
        f"{mean:.4g} for {name} {word}{more}"
    )


def _means(named: _Named) -> Iterator[tuple[float, str, str, float, float]]:
    for name, column in named:
        pieces = column.pieces
        if column.coded or pieces.single.all():
            continue
        normals = pieces.normals
        gaps = np.abs(normals.means - normals.mean) / normals.sd
        words = [
            word
            for word, one in zip(column.bins, pieces.single, strict=True)
            if not one
        ]
        for k in np.flatnonzero(gaps > _MOVED).tolist():
            sampled, mean = float(normals.means[k]), float(normals.mean[k])
            yield float(gaps[k]), name, words[k], sampled, mean
