"""Gaussian bumps of one column: the factors of gaussian kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Positions, Truths
from propopt.structures.products.normals import Normals
from propopt.structures.products.standard_normal import log_mass


@final
@dataclass(frozen=True, eq=False)
class Bumps:
    """g(x) = exp(−(x − center)² / (2 width²)).

    Parameters
    ----------
    column : array (U,)
        The position of the column that each is of.
    center, width : array (U,)
        width > 0.
    """

    column: Positions
    center: Array
    width: Array

    def __len__(self) -> int:
        return len(self.column)

    def take(self, chosen: Positions | Truths) -> Bumps:
        """Those that are chosen."""
        return Bumps(self.column[chosen], self.center[chosen], self.width[chosen])

    def at(self, values: Array) -> Array:
        """Values, (U, S)."""
        center, width = self._for(values.ndim)
        return np.asarray(np.exp(-0.5 * ((values - center) / width) ** 2))

    def under(self, normals: Normals) -> Array:
        """Means, (U, S): another normal's mass between the same ends.

        E g = (τ/σ) exp(−(μ − c)²/(2(γ² + σ²))) [Φ((b − m)/τ) − Φ((a − m)/τ)] / mass,
        m = (γ²μ + σ²c)/(γ² + σ²), τ² = γ²σ²/(γ² + σ²)
        (Garreau and von Luxburg 2020, Proposition 8).
        """
        center, width = self._for(len(normals.shape))
        total = width**2 + normals.sd**2
        middle = (width**2 * normals.mean + normals.sd**2 * center) / total
        narrow = width * normals.sd / np.sqrt(total)
        ends = (normals.low - middle) / narrow, (normals.high - middle) / narrow
        apart = -0.5 * (normals.mean - center) ** 2 / total
        log_mean = (
            np.log(narrow / normals.sd) + apart + log_mass(*ends) - normals.log_mass
        )
        return np.asarray(np.exp(np.minimum(log_mean, 0.0)))

    def _for(self, ndim: int) -> tuple[Array, Array]:
        """Centers and widths, (U, 1, ..., 1)."""
        shape = (-1, *(1,) * ndim)
        return self.center.reshape(shape), self.width.reshape(shape)
