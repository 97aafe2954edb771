"""Names of points and features: read from DataFrames, written back to them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import pandas as pd

from propopt._typing import Array
from propopt.checks import read_array


@dataclass(frozen=True)
class Labels:
    """Names of the N points and the D features of a table.

    Parameters
    ----------
    points, features : tuple or None
        The index and the columns of the DataFrame that the table came from; None where
        the input had no names (a NumPy array).
    """

    points: tuple[Hashable, ...] | None = None
    features: tuple[str, ...] | None = None

    def table(self, values: Array) -> Array | pd.DataFrame:
        """``values`` (any number of rows, D) in the form that the input had."""
        if self.features is None:
            return values
        index = self.points if self._names(values) else None
        return pd.DataFrame(values, columns=list(self.features), index=index)

    def frame(self, values: Array) -> pd.DataFrame:
        """``values`` (N, D) as a DataFrame, with ``x0, x1, ...`` for missing names."""
        features = self.features or [f"x{j}" for j in range(values.shape[1])]
        return pd.DataFrame(values, columns=list(features), index=self.points)

    def or_else(self, other: Labels) -> Labels:
        """These names, with those of ``other`` where there are none."""
        return Labels(
            points=other.points if self.points is None else self.points,
            features=other.features if self.features is None else self.features,
        )

    def _names(self, values: Array) -> bool:
        return self.points is not None and len(self.points) == len(values)


def read_table(table: object, what: str) -> tuple[Array, Labels]:
    """A finite float64 array (N, D) and the names that came with it.

    Raises
    ------
    InvalidInput
        If the table is not two-dimensional, is empty, is not numeric, or holds a value
        that is not finite.
    """
    labels = Labels()
    if isinstance(table, pd.DataFrame):
        labels = Labels(tuple(table.index), tuple(str(c) for c in table.columns))
    return read_array(table, what, ndim=2), labels
