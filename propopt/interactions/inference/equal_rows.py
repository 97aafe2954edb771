"""What is known of a mean where all rows are equal, and no spread can be estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt._typing import Truths, Values


ROUNDING_OF_ERRORS: Final = 1e-12
"""A spread below this share of the errors themselves is one of rounding."""


@final
@dataclass(frozen=True)
class ErrorRange:
    """Between what an error of one row lies.

    Parameters
    ----------
    low, high : float
        The ends.
    proved : bool
        Whether no error can be outside, as of probabilities; else these are the ends of
        what was seen.
    """

    low: float
    high: float
    proved: bool

    def of_score(self, order: int) -> float:
        """The largest |Σ_T ± Err| of a set of so many features: 2^(r − 1) (high − low).

        Examples
        --------
        >>> ErrorRange(0.0, 1.0, True).of_score(2)
        2.0
        """
        return 2.0 ** (order - 1) * (self.high - self.low)

    def rounding(self, order: int) -> float:
        """Spreads of scores of so many features that rounding makes."""
        return float(
            ROUNDING_OF_ERRORS * 2.0**order * max(abs(self.low), abs(self.high))
        )


@final
@dataclass(frozen=True, eq=False)
class EqualRows:
    """Of Q means z̄, each of N rows that are all equal to it.

    If a share p of the population has another score, all N rows are equal with a
    probability of at most (1 − p)^(N − 1), whatever the law. So p is at most
    1 − α^(1/(N − 1)) at the level 1 − α, and the mean is no farther from z̄ than that
    share of the way to the end of the range, on either side.

    Parameters
    ----------
    means : array (Q,)
        z̄.
    half_range : float
        Scores lie between −half_range and half_range.
    n_rows : int
        N, at least 2.
    """

    means: Values
    half_range: float
    n_rows: int

    def low(self, alpha: float) -> Values:
        """The lower end of the interval, shape (Q,)."""
        return self.means - self._share(alpha) * self._below

    def high(self, alpha: float) -> Values:
        """The upper end of the interval, shape (Q,)."""
        return self.means + self._share(alpha) * self._above

    def p_greater(self, null: Values) -> Values:
        """Of "the mean is at most null": the α at which the lower end is null."""
        return self._p_value(self.means - null, self._below)

    def p_less(self, null: Values) -> Values:
        """Of "the mean is at least null"."""
        return self._p_value(null - self.means, self._above)

    @property
    def _below(self) -> Values:
        return np.maximum(self.half_range + self.means, 0.0)

    @property
    def _above(self) -> Values:
        return np.maximum(self.half_range - self.means, 0.0)

    def _share(self, alpha: float) -> float:
        return float(-np.expm1(np.log(alpha) / (self.n_rows - 1)))

    def _p_value(self, distance: Values, room: Values) -> Values:
        """(1 − distance/room)^(N − 1); 1 where the mean is on the side of the null."""
        wanted = np.clip(distance, 0.0, None)
        share = np.divide(
            wanted, room, out=(wanted > 0.0).astype(np.float64), where=room > 0.0
        )
        return np.asarray((1.0 - np.minimum(share, 1.0)) ** (self.n_rows - 1))


def are_equal(standard_errors: Values, n_rows: int, rounding: float) -> Truths:
    """Whether the spread of the rows is zero, or what rounding leaves of zero."""
    return np.asarray(standard_errors * np.sqrt(n_rows) <= rounding)
