"""Truncated normal laws, and the logarithms of their masses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import log_ndtr

from propopt._typing import Array


@final
@dataclass(frozen=True, eq=False)
class Normals:
    """Laws N(mean, sd²) restricted to low < V ≤ high, of any common shape S.

    Parameters
    ----------
    mean, sd : array (S)
        Of the normal law before it is restricted; sd > 0.
    low, high : array (S)
        low < high, infinite where there is no end.

    Examples
    --------
    >>> import numpy as np
    >>> half = Normals.of(0.0, 1.0, 0.0, np.inf)
    >>> half.means * np.sqrt(np.pi / 2)
    array([1.])
    """

    mean: Array
    sd: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, mean: object, sd: object, low: object, high: object) -> Normals:
        """Those of numbers and arrays that can be broadcast together."""
        parts = [np.atleast_1d(np.asarray(x, float)) for x in (mean, sd, low, high)]
        return cls(*np.broadcast_arrays(*parts))

    @property
    def shape(self) -> tuple[int, ...]:
        """S."""
        return self.mean.shape

    def standardised(self, x: Array) -> Array:
        """(x − mean) / sd."""
        return (x - self.mean) / self.sd

    @property
    def log_mass(self) -> Array:
        """Log P(low < V ≤ high) of the normal law before it is restricted, (S)."""
        return log_mass(self.standardised(self.low), self.standardised(self.high))

    @property
    def means(self) -> Array:
        """E V = mean + sd (φ(l) − φ(r)) / (Φ(r) − Φ(l)), (S)."""
        low, high = self.standardised(self.low), self.standardised(self.high)
        total = log_mass(low, high)
        pull = np.exp(log_density(low) - total) - np.exp(log_density(high) - total)
        return np.clip(self.mean + self.sd * pull, self.low, self.high)

    def shares(self, low: Array, high: Array) -> Array:
        """P(low < V ≤ high) of the restricted laws; 0 where nothing is between.

        ``low`` and ``high`` broadcast with S.
        """
        start, stop = np.maximum(low, self.low), np.minimum(high, self.high)
        some = start < stop
        a, b = self.standardised(start), self.standardised(stop)
        with np.errstate(invalid="ignore"):
            inside = log_mass(a, np.where(some, b, a + 1.0)) - self.log_mass
        return np.where(some, np.exp(np.minimum(inside, 0.0)), 0.0)


def log_mass(low: Array, high: Array) -> Array:
    """log(Φ(high) − Φ(low)) for low < high, in the tail where it has digits."""
    right = low > 0.0
    a, b = np.where(right, -high, low), np.where(right, -low, high)
    upper = log_ndtr(b)
    with np.errstate(divide="ignore"):
        return np.asarray(upper + np.log(-np.expm1(log_ndtr(a) - upper)))


def log_density(z: Array) -> Array:
    """Log φ(z)."""
    return np.asarray(-0.5 * z**2 - 0.5 * np.log(2.0 * np.pi))
