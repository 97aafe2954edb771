"""The values that a column of numbers takes, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.errors import InvalidInput


MOST_ATOMS: Final = 10_000
"""A column of more different values is known by its mean and deviation alone."""


DATA_LAW: Final = "po.smoothed(function, law='data', data=X_train)"
"""What thins a table, and takes arrays too."""


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

    def share_between(self, low: Array, high: Array) -> Array:
        """The share of values with low < v ≤ high, for intervals (n,)."""
        below = np.concatenate([[0.0], np.cumsum(self.shares)])
        ends = np.searchsorted(self.values, [low, np.maximum(low, high)], side="right")
        return np.asarray(below[ends[1]] - below[ends[0]])


def atoms_of(observed: Sequence[Atoms | None] | None, j: int) -> Atoms:
    """The values of a column; refused where they are not known, or too many."""
    atoms = None if observed is None else observed[j]
    if atoms is None:
        told = "no table tells which: give one, by wrap(model, data=X_train)"
        many = (
            f"column {j} of the points has more than {MOST_ATOMS:,}; {DATA_LAW} takes "
            "it from fewer"
        )
        raise InvalidInput(
            "data: the effect of a missing number is f(x) less its mean over all "
            f"observed values, and {told if observed is None else many}"
        )
    return atoms
