"""Means of the factors of a sum of products around rows, by the bits of columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from propopt._typing import Array, Values
from propopt.lime.laws.tilt import Tilt
from propopt.structures.products import Measures


@final
@dataclass(frozen=True, eq=False)
class FactorMeans:
    """What the weighted law makes of U factors in n situations.

    Parameters
    ----------
    tilts : tuple of Tilt (D,)
        The law of each column.
    one, zero : array (U, n)
        E_Q[g_u | z_j = 1] and E_Q[g_u | z_j = 0], j the column of factor u.
    alpha, complement : array (U, n)
        α_j and 1 − α_j of these columns.
    contrasted : array (U, n)
        1 where both bits of the column occur, else 0.
    """

    tilts: tuple[Tilt, ...]
    one: Array
    zero: Array
    alpha: Array
    complement: Array
    contrasted: Array

    @cached_property
    def mean(self) -> Array:
        """E_Q g_u, (U, n)."""
        return self.alpha * self.one + self.complement * self.zero

    @property
    def measures(self) -> Measures:
        """Means, and the contrasts E_Q[g_u | z_j = 1] − E_Q[g_u | z_j = 0]."""
        return Measures.of_sets(self.mean, (self.one - self.zero) * self.contrasted)

    @property
    def column_alpha(self) -> Array:
        """α of every column, (n, D)."""
        return np.stack([tilt.alpha for tilt in self.tilts], axis=1)

    @property
    def log_weight(self) -> Values:
        """Log C, the mean weight of a sample, (n,)."""
        return np.asarray(np.sum([tilt.log_weight for tilt in self.tilts], axis=0))
