"""Means of the factors of a sum of products around rows, by the bits of columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from propopt._typing import Array, Positions, Values
from propopt.lime.laws.tilt import Tilt
from propopt.structures.products import SetMeasures


@final
@dataclass(frozen=True, eq=False)
class FactorMeans:
    """What the weighted law makes of U factors in n situations.

    Parameters
    ----------
    tilts : tuple of Tilt (D,)
        The law of each column.
    column : array (U,)
        The column of each factor.
    one, zero : array (U, n)
        E_Q[g_u | z_j = 1] and E_Q[g_u | z_j = 0], j the column of factor u.
    """

    tilts: tuple[Tilt, ...]
    column: Positions
    one: Array
    zero: Array

    @cached_property
    def alpha(self) -> Array:
        """α of every column, (D, n)."""
        return np.stack([tilt.alpha for tilt in self.tilts])

    @cached_property
    def complement(self) -> Array:
        """1 − α of every column, (D, n)."""
        return np.stack([tilt.complement for tilt in self.tilts])

    @cached_property
    def contrasted(self) -> Array:
        """1 where both bits of a column occur, else 0, (D, n)."""
        return np.stack([tilt.has_contrast for tilt in self.tilts])

    @cached_property
    def mean(self) -> Array:
        """E_Q g_u, (U, n)."""
        return self.mixed(self.one, self.zero)

    def mixed(self, one: Array, zero: Array) -> Array:
        """α_j one + (1 − α_j) zero, j the column of each factor, (U, n)."""
        alpha, complement = self.alpha[self.column], self.complement[self.column]
        return alpha * one + complement * zero

    def contrast(self, one: Array, zero: Array) -> Array:
        """One less zero, where both bits of the column occur, (U, n)."""
        contrast = one - zero
        if not self.contrasted.all():
            contrast *= self.contrasted[self.column]
        return contrast

    @property
    def measures(self) -> SetMeasures:
        """Means, and the contrasts E_Q[g_u | z_j = 1] − E_Q[g_u | z_j = 0]."""
        return SetMeasures(self.mean, self.contrast(self.one, self.zero))

    @property
    def log_weight(self) -> Values:
        """Log C, the mean weight of a sample, (n,)."""
        return np.asarray(np.sum([tilt.log_weight for tilt in self.tilts], axis=0))
