"""Means of a function over the bins of a column, the other columns as LIME has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, final

import numpy as np
import pandas as pd

from propopt._typing import Array, Points, Positions, Values
from propopt.lime.laws import LimeLaw
from propopt.lime.views.columns import values_in_bins


class LimitsLike(Protocol):
    """Limits, exact or estimated."""

    @property
    def coefficients(self) -> Array:
        """β, (n, D)."""

    @property
    def mean(self) -> Values:
        """E_Q f, (n,)."""

    @property
    def alpha(self) -> Array:
        """Q(z_j = 1), (n, D)."""


LimitsAt: TypeAlias = Callable[[Points], LimitsLike]
"""Limits at encoded rows (n, D)."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RowProfile:
    """What f is in the mean, with a row moved to each bin of one column.

    h_j(b) = E_Q[f | b_j = b]; β_j is h_j in the bin of the row less its mean over the
    other bins, by their shares.

    Parameters
    ----------
    features : tuple of str (D,)
        The columns.
    bins : tuple of tuples of str (D,)
        The bins of each column, in words.
    means : tuple of arrays (B_j,)
        h_j; NaN for a bin in which no value is.
    own : array (D,)
        The bin of the row.
    mean : float
        E_Q f.
    """

    features: tuple[str, ...]
    bins: tuple[tuple[str, ...], ...]
    means: tuple[Values, ...]
    own: Positions
    mean: float

    def to_frame(self) -> pd.DataFrame:
        """One row for each column and bin."""
        rows: list[list[Any]] = [
            [feature, word, float(value), b == own]
            for feature, words, values, own in zip(
                self.features, self.bins, self.means, self.own, strict=True
            )
            for b, (word, value) in enumerate(zip(words, values, strict=True))
        ]
        return pd.DataFrame(rows, columns=["feature", "bin", "mean", "own"])


def profile_means(limits: LimitsAt, law: LimeLaw, points: Points, j: int) -> Array:
    """h_j(b) = E_Q f + (1 − α_j) β_j with rows moved to bin b of column j, (N, B_j).

    Parameters
    ----------
    limits : callable
        Limits at rows.
    law : LimeLaw
        Of the samples.
    points : array (N, D)
        The rows.
    j : int
        The column.
    """
    column = law.columns[j]
    values = values_in_bins(column)
    moved = np.repeat(points, len(values), axis=0)
    moved[:, j] = np.tile(values, len(points))
    found = limits(moved)
    inside = found.mean + (1.0 - found.alpha[:, j]) * found.coefficients[:, j]
    means = np.full((len(points), len(column.bins)), np.nan)
    means[:, column.place(values)] = inside.reshape(len(points), len(values))
    return means
