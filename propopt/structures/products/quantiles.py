"""Quantiles of truncated normal laws, for many samples of few laws."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
from scipy.special import ndtr, ndtri

from propopt._typing import Array, Positions, Truths
from propopt.structures.products.normals import Normals
from propopt.structures.products.standard_normal import (
    FAR_INTERVAL,
    decay,
    is_narrow,
    mills,
)


_STRAIGHT: Final = 1e-4
"""Intervals as narrow as this have densities that are exponential to nine digits."""


@final
@dataclass(frozen=True, eq=False)
class Quantiles:
    """F⁻¹ of B truncated normal laws, with what they need computed once.

    Parameters
    ----------
    normals : Normals
        The laws, (B,).

    Examples
    --------
    >>> import numpy as np
    >>> quantiles = Quantiles(Normals.of(0.0, 1.0, [-np.inf, 0.0], np.inf))
    >>> quantiles.at(np.array([0, 1]), np.array([0.5, 0.5])).round(4)
    array([0.    , 0.6745])
    """

    normals: Normals

    def at(self, which: Positions, uniforms: Array) -> Array:
        """F⁻¹(u) of law ``which`` for each u in [0, 1), both of shape (S,)."""
        special = self._straight | self._far
        if not special.any():
            return self._between(which, uniforms)
        values = np.empty(uniforms.shape)
        ways = (
            (self._straight, self._along),
            (self._far, self._in_tail),
            (~special, self._between),
        )
        for laws, way in ways:
            chosen = laws[which]
            if chosen.any():
                values[chosen] = way(which[chosen], uniforms[chosen])
        return values

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        normals = self.normals
        return normals.standardised(normals.low), normals.standardised(normals.high)

    @cached_property
    def _straight(self) -> Truths:
        return is_narrow(*self._ends, _STRAIGHT)

    @cached_property
    def _far(self) -> Truths:
        low, high = self._ends
        return (np.maximum(low, -high) > -FAR_INTERVAL) & ~self._straight

    @cached_property
    def _masses(self) -> tuple[Array, Array, Array]:
        """Below, within and above the interval."""
        low, high = self._ends
        return ndtr(low), np.exp(self.normals.log_mass), ndtr(-high)

    def _between(self, which: Positions, u: Array) -> Array:
        below, within, above = (mass[which] for mass in self._masses)
        left, right = below + u * within, above + (1.0 - u) * within
        z = np.where(left < right, 1.0, -1.0) * ndtri(np.minimum(left, right))
        normals = self.normals
        values = normals.mean[which] + normals.sd[which] * z
        return np.clip(values, normals.low[which], normals.high[which])

    def _along(self, which: Positions, u: Array) -> Array:
        """Low + h s with a density ∝ exp(−m h s) of s in [0, 1]."""
        a, b = (ends[which] for ends in self._ends)
        v = 0.5 * (b - a) * (a + b)
        flat = v == 0.0
        curved = np.where(flat, 1.0, v)
        s = np.where(flat, u, -np.log1p(u * np.expm1(-curved)) / curved)
        low, high = self.normals.low[which], self.normals.high[which]
        return np.asarray(np.clip(low + (high - low) * s, low, high))

    def _in_tail(self, which: Positions, u: Array) -> Array:
        """The end nearer to the mean, and what lies between, by Newton's method.

        With y = |z| at that end and R = (1 − Φ)/φ, the distance t beyond it solves
        log R(y + t) − log R(y) − t (y + t/2) = log v, v the share beyond.
        """
        low, high = (ends[which] for ends in self._ends)
        right = low > 0.0
        near, far = np.where(right, low, -high), np.where(right, high, -low)
        beyond = mills(far) / mills(near) * decay(-far, -near)
        log_v = np.log1p(-np.where(right, u, 1.0 - u) * (1.0 - beyond))
        t = -log_v / near
        for _ in range(4):
            R = mills(near + t)
            t += R * (np.log(R / mills(near)) - t * (near + 0.5 * t) - log_v)
        normals = self.normals
        start = np.where(right, normals.low[which], normals.high[which])
        values = start + np.where(right, t, -t) * normals.sd[which]
        return np.clip(values, normals.low[which], normals.high[which])
