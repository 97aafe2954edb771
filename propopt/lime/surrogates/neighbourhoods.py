"""Neighbourhoods of a law of LIME: bits are regressed on, with the law's weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Points
from propopt.errors import InvalidInput
from propopt.lime.laws.base import LimeLaw
from propopt.sampling.neighbourhoods import Neighbourhood
from propopt.sampling.perturbations import PERTURBED_POINTS


@final
@dataclass(frozen=True, eq=False)
class LawNeighbourhoods:
    """Samples of a law, with their bits as regressors.

    Parameters
    ----------
    law : LimeLaw
        How samples are drawn, coded and weighted.
    n_samples : int
        S.
    first_row : bool
        Whether the row itself is the first of them, with weight one and all its bits.
    """

    law: LimeLaw
    n_samples: int
    first_row: bool

    def around(
        self, points: Points, rng: np.random.Generator
    ) -> Iterator[tuple[slice, Neighbourhood]]:
        """Samples around points, in blocks."""
        row_bytes = 8 * points.shape[1]
        for rows in PERTURBED_POINTS.blocks(len(points), row_bytes, self.n_samples):
            yield rows, self._near(points[rows], rng)

    def _near(self, points: Points, rng: np.random.Generator) -> Neighbourhood:
        drawn = self.law.draw(points, self.n_samples, rng, first_row=self.first_row)
        weights = drawn.weights
        if weights.max(axis=1).min() < np.finfo(float).tiny:
            raise InvalidInput(
                f"law: its kernel width {self.law.kernel_width:g} is so small that all "
                "weights of a row vanish"
            )
        changes = self._changes(points)
        bits = drawn.bits * changes[:, None]
        zeros, ones = np.zeros(points.shape), np.ones(points.shape)
        return Neighbourhood(drawn.samples, bits, weights, zeros, changes, ones)

    def _changes(self, points: Points) -> Array:
        """1 where a bit is not always the same, else 0, (n, D)."""
        tilts = self.law.tilts(points, np.full(len(points), np.inf))
        outside = np.stack([tilt.outside.any(axis=0) for tilt in tilts], axis=1)
        if self.first_row:
            return outside.astype(float)
        inside = np.stack([tilt.alpha > 0.0 for tilt in tilts], axis=1)
        return np.asarray((inside & outside).astype(float))
