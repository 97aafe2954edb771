"""Values that are bins by themselves: codes of categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.structures.products import Pieces


@final
@dataclass(frozen=True, eq=False)
class CodeBins:
    """Categories of one column, each a bin with one value.

    Parameters
    ----------
    values : array (B,)
        Their codes, increasing; NaN is the last.
    frequencies : array (B,)
        The share of the data in each.
    names : tuple of str (B,)
        What each is called.

    Examples
    --------
    >>> import numpy as np
    >>> bins = CodeBins.of(np.array([2.0, 5.0, 2.0, 2.0]))
    >>> bins.words, bins.frequencies
    (('= 2', '= 5'), array([0.75, 0.25]))
    """

    values: Array
    frequencies: Array
    names: tuple[str, ...]

    @classmethod
    def of(cls, column: Array) -> CodeBins:
        """Those of the different values of data (m,)."""
        values, counts = np.unique(column, return_counts=True)
        names = tuple(f"{value:.17g}" for value in values)
        return cls(values, counts / counts.sum(), names)

    @property
    def pieces(self) -> Pieces:
        """The law of each bin."""
        return Pieces.of_values(self.values)

    @property
    def words(self) -> tuple[str, ...]:
        """What each bin is, to be read on behind the name of the column."""
        return tuple(f"= {name}" for name in self.names)
