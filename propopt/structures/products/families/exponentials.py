"""Exponentials of one column: the factors of models with a logarithmic link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Positions, Truths
from propopt.structures.products.normals import Normals
from propopt.structures.products.standard_normal import log_mass


@final
@dataclass(frozen=True, eq=False)
class Exponentials:
    """g(x) = exp(rate (x − center)).

    Parameters
    ----------
    column : array (U,)
        The position of the column that each is of.
    rate, center : array (U,)
        Any numbers.
    """

    column: Positions
    rate: Array
    center: Array

    def __len__(self) -> int:
        return len(self.column)

    def take(self, chosen: Positions | Truths) -> Exponentials:
        """Those that are chosen."""
        return Exponentials(self.column[chosen], self.rate[chosen], self.center[chosen])

    def at(self, values: Array) -> Array:
        """Values, (U, S)."""
        rate, center = self._for(values.ndim)
        return np.asarray(np.exp(rate * (values - center)))

    def under(self, normals: Normals) -> Array:
        """Means, (U, S): another normal's mass between the same ends.

        E g = exp(r (μ − c) + r²σ²/2) [Φ(b/σ − s) − Φ(a/σ − s)] / mass, where a and b
        are ends less μ, and s = r σ.
        """
        rate, center = self._for(len(normals.shape))
        shift = rate * normals.sd
        low = normals.standardised(normals.low) - shift
        high = normals.standardised(normals.high) - shift
        peak = rate * (normals.mean - center) + 0.5 * shift**2
        return np.asarray(np.exp(peak + log_mass(low, high) - normals.log_mass))

    def _for(self, ndim: int) -> tuple[Array, Array]:
        """Rates and centers, (U, 1, ..., 1)."""
        shape = (-1, *(1,) * ndim)
        return self.rate.reshape(shape), self.center.reshape(shape)
