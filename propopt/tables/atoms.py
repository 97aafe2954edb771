"""The values that a column of numbers takes, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array


MOST_ATOMS: Final = 10_000
"""A column of more different values is known by its mean and deviation alone."""


@final
@dataclass(frozen=True, eq=False)
class Atoms:
    """The different values v_1 < ... < v_m of a column, and how often each occurs.

    Parameters
    ----------
    values : array (m,)
        Those that are not missing, in order.
    counts : array of int (m,)
        How often.

    Examples
    --------
    >>> import numpy as np
    >>> atoms = Atoms.of(np.array([3.0, 1.0, np.nan, 3.0]))
    >>> atoms.values, atoms.shares.round(2)
    (array([1., 3.]), array([0.33, 0.67]))
    """

    values: Array
    counts: NDArray[np.intp]

    @classmethod
    def of(cls, column: Array) -> Atoms:
        """Those of numbers (n,), of which some may be missing."""
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        values.setflags(write=False)
        counts.setflags(write=False)
        return cls(values, counts)

    @property
    def shares(self) -> Array:
        """The share of each among the values that are not missing, shape (m,)."""
        return np.asarray(self.counts / self.counts.sum())
