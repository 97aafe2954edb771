"""Factors with values of their own where a number is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Positions, Truths
from propopt.structures.products.factors import Factors
from propopt.structures.products.normals import Normals


@final
@dataclass(frozen=True, eq=False)
class Imputed:
    """Other factors, which are ``missing`` of NaN, as behind an imputer.

    Parameters
    ----------
    factors : Factors (U)
        Of numbers.
    missing : array (U,)
        The values of NaN.
    """

    factors: Factors
    missing: Array

    @property
    def column(self) -> Positions:
        """The position of the column that each is of."""
        return self.factors.column

    def __len__(self) -> int:
        return len(self.missing)

    def take(self, chosen: Positions | Truths) -> Imputed:
        """Those that are chosen."""
        return Imputed(self.factors.take(chosen), self.missing[chosen])

    def at(self, values: Array) -> Array:
        """Values, (U, S)."""
        absent = np.isnan(values)
        if not absent.any():
            return self.factors.at(values)
        missing = self.missing.reshape(-1, *(1,) * values.ndim)
        return np.where(absent, missing, self.factors.at(values))

    def under(self, normals: Normals) -> Array:
        """Means, (U, S): a normal is never missing."""
        return self.factors.under(normals)
