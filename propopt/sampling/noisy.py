"""Neighbourhoods of noise: numbers are moved, all else is replaced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Points
from propopt.errors import InvalidInput
from propopt.sampling.neighbourhoods import Neighbourhood
from propopt.sampling.perturbations import Perturbations
from propopt.sampling.replaced import CategoryDraws, MissingDraws
from propopt.tables.atoms import Atoms
from propopt.tables.schema import TableSchema


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyNeighbourhoods:
    """x + ε for numbers, and other categories and observed values for the rest.

    Regressors are ε of numbers; of categories 1[c̃ = c] − p_c; of a number that is
    missing 1 where it still is, and else 0. Their origin is x, and zero for categories
    and what is missing; contrasts are 1, and 1 − p_c for categories.

    Parameters
    ----------
    noise : Perturbations
        ε.
    kernel_width : float or None
        π = exp(−‖ε‖² / (2 kernel_width²)), another category as 1; None: ones.
    scales : array (D,)
        What ε is multiplied by; 0 for categories and constant columns.
    units : array (D,)
        The size of each regressor: 1 for categories; 0 for constant columns, which stay
        as they are and have slopes of 0.
    schema : TableSchema or None
        Of the function.
    observed : tuple of Atoms or None
        The values of each column.
    """

    noise: Perturbations
    kernel_width: float | None
    scales: Array
    units: Array
    schema: TableSchema | None
    observed: tuple[Atoms | None, ...] | None

    def around(
        self, points: Points, rng: np.random.Generator
    ) -> Iterator[tuple[slice, Neighbourhood]]:
        """Samples around points, in blocks."""
        categories = CategoryDraws.of(self.schema, rng)
        missing = MissingDraws.of(self.observed, points, rng)
        blocks = self.noise.blocks(points.shape, rng, units=self.scales)
        for rows, draws in blocks:
            yield rows, self._near(points[rows], draws, categories, missing)

    def _near(
        self,
        points: Points,
        draws: Array,
        categories: CategoryDraws,
        missing: MissingDraws,
    ) -> Neighbourhood:
        """Around points (n, D), with noise (n, S, D) that is zero for categories."""
        places, absent = categories.positions, np.isnan(points)
        categorical = absent.copy()
        categorical[:, places] = True
        samples = points[:, None] + draws
        still = self.units == 0.0
        origin, contrast = (
            np.where(still, 0.0, points),
            np.tile(~still * 1.0, (len(points), 1)),
        )
        if len(places) > 0:
            shares = categories.shares(points)
            codes = categories.draw(points, draws.shape[1])
            same = codes == points[:, None, places]
            samples[..., places] = codes
            draws[..., places] = same - shares[:, None]
            origin[:, places] = 0.0
            contrast[:, places] = 1 - shares
        if absent.any():
            missing.put_into(samples, contrast)
            same = np.isnan(samples) & (contrast > 0)[:, None]
            draws[:] = np.where(absent[:, None], same, draws)
            origin[absent] = 0.0
        sizes = np.where(absent | still, 1.0, self.units)
        changeable = categorical & (contrast > 0)
        weights = self._weights(draws, sizes, categorical, changeable)
        return Neighbourhood(samples, draws, weights, origin, contrast, sizes)

    def _weights(
        self,
        regressors: Array,
        sizes: Array,
        categorical: NDArray[np.bool_],
        changeable: NDArray[np.bool_],
    ) -> Array | None:
        """π, shape (n, S)."""
        if self.kernel_width is None:
            return None
        # ‖ε‖² in units of which the scale is one δ
        scale = self.noise.scale
        per_unit = np.where(categorical, 0.0, scale / sizes)
        steps = regressors * per_unit[:, None]
        squares = np.einsum("nsd,nsd->ns", steps, steps)
        if categorical.any():
            # 1[c̃ = c] − p is positive for the same category and not for another
            changed = (regressors <= 0) & changeable[:, None]
            squares = squares + changed.sum(axis=-1)
        weights: Array = np.exp(-squares / (2 * self.kernel_width**2))
        if weights.max(axis=1).min() < np.finfo(float).tiny:
            raise InvalidInput(
                f"kernel_width: {self.kernel_width} is so small beside scale "
                f"{scale} that all weights of a point vanish"
            )
        return weights
