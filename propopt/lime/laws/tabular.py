"""The law of tabular LIME: quantile bins, and weights by agreement of bins."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

from propopt.checks import read_positive
from propopt.lime.laws.base import LimeLaw
from propopt.lime.laws.binned import BinnedColumn
from propopt.tables.names import Labels


@final
@dataclass(frozen=True, eq=False, repr=False)
class TabularLaw(LimeLaw):
    """Bins drawn by their shares, values by the law of their bin, weights by bits.

    π = exp(−‖1 − z‖² / (2 ν²)) (Garreau and von Luxburg 2020, Eq. 2).

    Parameters
    ----------
    columns : tuple of BinnedColumn (D,)
        The bins.
    kernel_width : float
        ν.
    labels : Labels
        Names of the columns.
    """

    columns: tuple[BinnedColumn, ...]
    kernel_width: float
    labels: Labels = Labels()

    @classmethod
    def of(
        cls,
        columns: tuple[BinnedColumn, ...],
        kernel_width: float | None = None,
        labels: Labels | None = None,
    ) -> TabularLaw:
        """The law of bins; without a width it is the package's, 0.75 √D."""
        width = 0.75 * math.sqrt(len(columns)) if kernel_width is None else kernel_width
        read_positive(width, "kernel_width")
        return cls(columns, width, Labels() if labels is None else labels)

    def with_width(self, kernel_width: float) -> TabularLaw:
        """The same bins with another width."""
        return replace(self, kernel_width=kernel_width)
