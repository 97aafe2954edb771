"""Functions of one column that are a number for each code, or for listed values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from propopt._typing import Array, Positions, Truths
from propopt.structures.products.normals import Normals


@final
@dataclass(frozen=True, eq=False)
class Tables:
    """g(x) = entries[k] where x is key k, ``other`` elsewhere, ``missing`` of NaN.

    Parameters
    ----------
    column : array (U,)
        The position of the column, the same of all.
    keys : array (K,)
        Codes, or numbers, increasing.
    entries : array (U, K)
        The values at the keys.
    other, missing : array (U,)
        The values elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.structures.products import Tables
    >>> color = Tables.of_codes(0, np.array([[1.5, -2.0, 0.5]]))
    >>> color.at(np.array([2.0, 0.0]))
    array([[0.5, 1.5]])
    """

    column: Positions
    keys: Array
    entries: Array
    other: Array
    missing: Array

    @classmethod
    def of_codes(cls, column: int, entries: Array) -> Tables:
        """Those of a category with the codes 0, ..., K − 1, (U, K)."""
        unknown = np.full(len(entries), np.nan)
        codes = np.arange(entries.shape[1], dtype=np.float64)
        columns = np.full(len(entries), column, np.intp)
        return cls(columns, codes, entries, unknown, unknown)

    def __len__(self) -> int:
        return len(self.column)

    def take(self, chosen: Positions | Truths) -> Tables:
        """Those that are chosen."""
        return replace(
            self,
            column=self.column[chosen],
            entries=self.entries[chosen],
            other=self.other[chosen],
            missing=self.missing[chosen],
        )

    def at(self, values: Array) -> Array:
        """Values, (U, S)."""
        K = len(self.keys)
        place = np.searchsorted(self.keys, values)
        known = np.append(self.keys, np.nan)[place] == values
        place = np.where(np.isnan(values), K + 1, np.where(known, place, K))
        return self.whole[:, place]

    def under(self, normals: Normals) -> Array:
        """Means, (U, S): single values have no share of a normal."""
        shape = (-1, *(1,) * len(normals.shape))
        return np.broadcast_to(self.other.reshape(shape), (len(self), *normals.shape))

    @property
    def whole(self) -> Array:
        """Entries, then what is elsewhere and of missing values, (U, K + 2)."""
        return np.column_stack([self.entries, self.other, self.missing])
