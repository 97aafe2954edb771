"""Samples around points, and the regressors of a local linear fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Points
from propopt.explainers.categories import CategoryDraws


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """S samples around each of n points.

    Parameters
    ----------
    samples : array (n, S, D)
        Where f is evaluated: x + ε, and drawn categories.
    regressors : array (n, S, D)
        ε of numeric columns; of categorical ones 1[c̃ = c] − p_c.
    origin : array (n, D)
        What the regressors are counted from: x; zero for categories.
    contrast : array (n, D)
        What slopes are multiplied by: 1; 1 − p_c for categories.
    units : array (D,)
        The sizes of the regressors.
    categorical : array (D,)
        Which columns hold categories.
    """

    samples: Array
    regressors: Array
    origin: Array
    contrast: Array
    units: Array
    categorical: NDArray[np.bool_]

    @classmethod
    def of(
        cls, points: Points, draws: Array, units: Array, categories: CategoryDraws
    ) -> Neighbourhood:
        """Around points (n, D), with noise (n, S, D) that is zero for categories."""
        places = categories.positions
        categorical = np.zeros(points.shape[1], dtype=bool)
        categorical[places] = True
        samples = points[:, None] + draws
        origin, contrast = np.array(points), np.ones(points.shape)
        if len(places) > 0:
            shares = categories.shares(points)
            codes = categories.draw(points, draws.shape[1])
            same = codes == points[:, None, places]
            samples[..., places] = codes
            draws[..., places] = same - shares[:, None]
            origin[:, places] = 0.0
            contrast[:, places] = 1 - shares
        return cls(samples, draws, origin, contrast, units, categorical)

    def parts(self, n_bytes: int) -> Iterator[tuple[slice, Neighbourhood]]:
        """Some points after the other, with regressors of about so many bytes."""
        step = max(1, n_bytes // self.regressors[0].nbytes)
        for start in range(0, len(self.regressors), step):
            rows = slice(start, start + step)
            yield (
                rows,
                replace(
                    self,
                    samples=self.samples[rows],
                    regressors=self.regressors[rows],
                    origin=self.origin[rows],
                    contrast=self.contrast[rows],
                ),
            )

    @property
    def is_constant(self) -> NDArray[np.bool_]:
        """Whether a regressor is zero in all samples, for want of another category."""
        return self.contrast == 0

    def squared_distances(self, scale: float) -> Array:
        """‖ε‖² in units of which ``scale`` is one δ, another category as 1, (n, S)."""
        numeric = ~self.categorical
        steps = self.regressors[..., numeric] * (scale / self.units[numeric])
        squares = np.einsum("nsd,nsd->ns", steps, steps)
        places = np.flatnonzero(self.categorical)
        if len(places) == 0:
            return squares
        # 1[c̃ = c] − p is positive for the same category and not for another
        changed = self.regressors[..., places] <= 0
        changed &= ~self.is_constant[:, None, places]
        return squares + changed.sum(axis=-1)
