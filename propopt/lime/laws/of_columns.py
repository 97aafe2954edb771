"""Laws that are their columns, a kernel width and names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from propopt._typing import Positions
from propopt.checks import read_positive
from propopt.lime.laws.base import LimeLaw
from propopt.lime.laws.column import LimeColumn
from propopt.results.conclusions.words import plural
from propopt.tables.names import Labels


@dataclass(frozen=True, eq=False, repr=False)
class LawOfColumns(LimeLaw):
    """A law that is known by these three, so that others are made of it by replacing.

    Parameters
    ----------
    columns : tuple of LimeColumn (D,)
        The law of each column.
    kernel_width : float
        ν.
    labels : Labels
        Names of the columns.
    """

    columns: tuple[LimeColumn, ...]
    kernel_width: float
    labels: Labels = Labels()

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns, (D,)."""
        return self.labels.feature_names(len(self.columns))

    def with_width(self, kernel_width: float) -> Self:
        """The same columns with another width; those of columns keep their ratios."""
        return replace(self, kernel_width=read_positive(kernel_width, "kernel_width"))

    def reordered(self, order: Positions) -> Self:
        """The same law of columns in another order, (D,)."""
        columns = tuple(self.columns[j] for j in order.tolist())
        return replace(self, columns=columns, labels=self.labels.of_features(order))

    def __repr__(self) -> str:
        n_bins = sum(len(column.bins) for column in self.columns)
        return (
            f"{type(self).__name__}({plural(len(self.columns), 'column')}, "
            f"{plural(n_bins, 'bin')}, kernel_width={self.kernel_width:.4g})"
        )
