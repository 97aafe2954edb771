"""Coefficients of two columns in every cell of their bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from propopt._typing import Array, Values
from propopt.lime.expectations import ExactLimits
from propopt.lime.laws.binned import BinnedColumn
from propopt.lime.paths.profile import binned_or_refused


@final
@dataclass(frozen=True, eq=False)
class CellCoefficients:
    """β_i and β_j of rows in each cell of the bins of columns i and j.

    All rows of one cell have the same coefficients.

    Parameters
    ----------
    columns : tuple of int
        i and j.
    coefficients : array (B_i, B_j, 2)
        β_i and β_j.
    bins : tuple of tuple of str
        The bins of both columns in words.
    own : tuple of int
        The cell of the row.
    """

    columns: tuple[int, int]
    coefficients: Array
    bins: tuple[tuple[str, ...], tuple[str, ...]]
    own: tuple[int, int]


def cell_map(
    exact: ExactLimits, i: int, j: int, point: ArrayLike, width: float | None = None
) -> CellCoefficients:
    """Coefficients of two columns if the row were in other bins of them.

    Parameters
    ----------
    exact : ExactLimits
        A sum of products and a law that weights samples by bits.
    i, j : int
        Two columns.
    point : array (D,)
        The row, encoded; in other columns it stays.
    width : float, optional
        The kernel width; by default the law's.

    Raises
    ------
    InvalidInput
        If the law weights samples by their distance from the row.
    """
    row = np.asarray(point, np.float64)
    columns = binned_or_refused(exact)
    first, second = columns[i], columns[j]
    values = [_value_in_each(column) for column in (first, second)]
    sizes = len(values[0]), len(values[1])
    points = np.repeat(row[None], sizes[0] * sizes[1], axis=0)
    points[:, i] = np.repeat(values[0], sizes[1])
    points[:, j] = np.tile(values[1], sizes[0])
    widths = None if width is None else np.full(len(points), float(width))
    found = exact.of(points, widths).coefficients[:, [i, j]]
    return CellCoefficients(
        (i, j),
        found.reshape(*sizes, 2),
        (first.bins, second.bins),
        (int(first.place(row[[i]])[0]), int(second.place(row[[j]])[0])),
    )


def _value_in_each(column: BinnedColumn) -> Values:
    """A value in each bin of a column."""
    values = column.pieces.mean.copy()
    # a bin holds its upper edge, the last one all beyond
    n_bins = len(column.edges) + 1
    if not column.coded:
        values[: n_bins - 1] = column.edges
        values[n_bins - 1] = np.inf
    return values
