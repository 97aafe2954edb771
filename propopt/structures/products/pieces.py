"""What mixtures of laws of one column are made of: single values, and normals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Truths
from propopt.structures.products.factors import Factors
from propopt.structures.products.normals import Normals


@final
@dataclass(frozen=True, eq=False)
class Pieces:
    """B laws of one column, or B for each of n rows.

    Parameters
    ----------
    single : array (B,)
        Which are one value: a number, a code, or NaN for missing; others are truncated
        normals.
    mean : array (B,) or (B, n)
        The value, or the mean of the normal before it is restricted.
    sd, low, high : array (B,) or (B, n)
        As in :class:`~propopt.structures.products.normals.Normals`; not read of single
        values.
    """

    single: Truths
    mean: Array
    sd: Array
    low: Array
    high: Array

    @classmethod
    def of_values(cls, values: Array) -> Pieces:
        """Single values (B,)."""
        nothing = np.zeros(len(values))
        every = np.ones(len(values), dtype=bool)
        return cls(every, values, nothing, nothing, nothing)

    @classmethod
    def of_normals(cls, normals: Normals) -> Pieces:
        """Truncated normals, (B,) or (B, n)."""
        none = np.zeros(normals.shape[0], dtype=bool)
        return cls(none, normals.mean, normals.sd, normals.low, normals.high)

    def __len__(self) -> int:
        return len(self.single)

    @property
    def normals(self) -> Normals:
        """Those that are truncated normals."""
        some = ~self.single
        return Normals(self.mean[some], self.sd[some], self.low[some], self.high[some])

    def expect(self, factors: Factors) -> Array:
        """E g_u(V) of U factors of the column, (U, B) or (U, B, n)."""
        expected = np.empty((len(factors), *self.mean.shape))
        expected[:, self.single] = factors.at(self.mean[self.single])
        if not self.single.all():
            expected[:, ~self.single] = factors.under(self.normals)
        return expected
