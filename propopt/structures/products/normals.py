"""Truncated normal laws, and the logarithms of their masses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.structures.products.standard_normal import (
    log_mass,
    mean_of_interval,
    share,
)


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
        reference, rest = mean_of_interval(low, high)
        at_low, at_high = reference == low, reference == high
        start = np.where(at_low, self.low, np.where(at_high, self.high, self.mean))
        return np.clip(start + self.sd * rest, self.low, self.high)

    def shares(self, low: Array, high: Array) -> Array:
        """P(low < V ≤ high) of the restricted laws; 0 where nothing is between.

        ``low`` and ``high`` broadcast with S.
        """
        start, stop = np.maximum(low, self.low), np.minimum(high, self.high)
        some = start < stop
        ends = self.standardised(self.low), self.standardised(self.high)
        a = self.standardised(np.where(some, start, self.low))
        b = self.standardised(np.where(some, stop, self.high))
        return np.where(some, share(*ends, a, b), 0.0)
