"""Masses of a bin and of what is outside it, where one of them rounds to zero."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx

from propopt._typing import Array


class Tails(NamedTuple):
    """A standard normal law and the interval (lo, hi], of any shape S.

    The smaller one of the masses in and outside is known as e^{−c²/2} s, with c the
    distance of the nearer end, and so is the difference of densities at both ends,
    e^{−c²/2} t: in their ratio the factor cancels.
    """

    alpha: Array
    """Φ(hi) − Φ(lo)."""

    complement: Array
    """1 − α, with digits of its own."""

    theta: Array
    """φ(hi) − φ(lo)."""

    contrast: Array
    """E[V | in] − E[V | out] = −θ / (α (1 − α)); 0 where nothing is outside."""


def tails(lo: Array, hi: Array) -> Tails:
    """The masses of lo < V ≤ hi, and of what is outside."""
    nearer = np.minimum(np.abs(lo), np.abs(hi))
    scaled_low, scaled_high = _scaled_tail(lo, nearer), _scaled_tail(hi, nearer)
    around = (lo <= 0.0) & (hi >= 0.0)
    # around 0 both tails are outside; else the bin is what one has beyond the other
    scaled = np.where(
        around, scaled_low + scaled_high, np.abs(scaled_low - scaled_high)
    )
    factor = np.exp(-0.5 * nearer**2)
    small = factor * scaled
    step = _scaled_density(hi, nearer) - _scaled_density(lo, nearer)
    contrast = np.zeros(scaled.shape)
    np.divide(-step, scaled * (1.0 - small), out=contrast, where=scaled != 0.0)
    return Tails(
        np.where(around, 1.0 - small, small),
        np.where(around, small, 1.0 - small),
        factor * step,
        contrast,
    )


def _scaled_tail(z: Array, nearer: Array) -> Array:
    """P(V > |z|) e^{c²/2}."""
    u = np.abs(z)
    return np.asarray(0.5 * erfcx(u / math.sqrt(2.0)) * _beyond(u, nearer))


def _scaled_density(z: Array, nearer: Array) -> Array:
    """φ(z) e^{c²/2}."""
    return np.asarray(_beyond(np.abs(z), nearer) / math.sqrt(2.0 * math.pi))


def _beyond(u: Array, nearer: Array) -> Array:
    """e^{−(u² − c²)/2}; 1 where both are infinite, which has no tail."""
    with np.errstate(invalid="ignore"):
        apart = (u - nearer) * (u + nearer)
    return np.asarray(np.exp(-0.5 * np.where(np.isnan(apart), 0.0, apart)))
