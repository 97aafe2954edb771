"""Coefficients of two columns in each cell of their bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd

from propopt._typing import Array, Points
from propopt.lime.laws import LimeLaw
from propopt.lime.views.columns import values_in_bins
from propopt.lime.views.profile import LimitsAt


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RowCells:
    """β of two columns, with a row moved to each cell of their bins.

    All rows in one cell have the same coefficients, however far they are from each
    other; those of a cell beside it may be quite other ones.

    Parameters
    ----------
    features : (str, str)
        The columns.
    bins : pair of tuples of str
        Their bins, in words.
    coefficients : array (B_1, B_2, 2)
        Of the first column and of the second.
    own : (int, int)
        The cell of the row.
    """

    features: tuple[str, str]
    bins: tuple[tuple[str, ...], tuple[str, ...]]
    coefficients: Array
    own: tuple[int, int]

    def to_frame(self) -> pd.DataFrame:
        """One row for each cell."""
        first, second = self.features
        rows = [
            [one, other, *self.coefficients[a, b].tolist(), (a, b) == self.own]
            for a, one in enumerate(self.bins[0])
            for b, other in enumerate(self.bins[1])
        ]
        names = [f"bin of {first}", f"bin of {second}"]
        slopes = [f"coefficient of {first}", f"coefficient of {second}"]
        return pd.DataFrame(rows, columns=[*names, *slopes, "own"])


def cell_coefficients(
    limits: LimitsAt, law: LimeLaw, point: Points, pair: tuple[int, int]
) -> Array:
    """β of a pair of columns with one row (1, D) moved to each cell, (B_1, B_2, 2).

    Parameters
    ----------
    limits : callable
        Limits at rows.
    law : LimeLaw
        Of the samples.
    point : array (1, D)
        The row.
    pair : (int, int)
        The columns.
    """
    one, other = (law.columns[j] for j in pair)
    first, second = values_in_bins(one), values_in_bins(other)
    moved = np.repeat(point, len(first) * len(second), axis=0)
    moved[:, pair[0]] = np.repeat(first, len(second))
    moved[:, pair[1]] = np.tile(second, len(first))
    found = limits(moved).coefficients[:, list(pair)]
    cells = np.full((len(one.bins), len(other.bins), 2), np.nan)
    places = np.ix_(one.place(first), other.place(second))
    cells[places] = found.reshape(len(first), len(second), 2)
    return cells
