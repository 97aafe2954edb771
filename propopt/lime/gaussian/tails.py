"""Masses of a bin and of what is outside it, where one of them rounds to zero."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from propopt._typing import Array
from propopt.structures.products.standard_normal import (
    log_mass,
    mean_of_interval,
    mills,
)


class Tails(NamedTuple):
    """A standard normal law and the interval (lo, hi], of any shape S."""

    alpha: Array
    """Φ(hi) − Φ(lo)."""

    complement: Array
    """1 − α, with digits of its own."""

    theta: Array
    """φ(hi) − φ(lo) = −α E[V | in] = (1 − α) E[V | out]."""

    contrast: Array
    """E[V | in] − E[V | out] = −θ / (α (1 − α)); 0 where nothing is outside."""


def tails(lo: Array, hi: Array) -> Tails:
    """The masses of lo < V ≤ hi, and of what is outside; NaN where an end is."""
    with np.errstate(invalid="ignore"):
        log_out = np.logaddexp(log_ndtr(lo), log_ndtr(-hi))
    alpha, complement = np.exp(log_mass(lo, hi)), np.exp(log_out)
    inside = np.asarray(sum(mean_of_interval(lo, hi)))
    outside = _pull(hi, log_out) - _pull(-lo, log_out)
    theta = np.where(alpha < 0.5, -alpha * inside, complement * outside)
    contrast = np.where(np.isneginf(log_out), 0.0, inside - outside)
    return Tails(alpha, complement, theta, contrast)


def _pull(z: Array, log_out: Array) -> Array:
    """E[V 1(V > z)] over what is outside: its share, times φ(z) / (1 − Φ(z))."""
    log_tail = log_ndtr(-z)
    some = ~np.isneginf(log_tail)
    shares = np.exp(log_tail - np.where(some, log_out, 0.0))
    return np.divide(shares, mills(z), out=np.zeros(z.shape), where=some)
