"""A sample of the rows of a large table, and intervals of shares among its rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Self, final

import numpy as np

from propopt.base.arrays import Indices
from propopt.base.document import share_text
from propopt.base.text import plural


SAMPLED_ABOVE: Final = 2_000
"""Rows up to which reports use every row; shares of as many are known to 2.2 %."""

SHARE_LEVEL: Final = 0.95
"""The level of intervals of shares."""

_NORMAL: Final = 1.959963984540054
"""The quantile of the normal law for two-sided intervals of this level."""


@final
@dataclass(frozen=True, eq=False)
class RowSample:
    """Rows that stand for a table: all of them, or some drawn with a fixed seed."""

    rows: Indices  # (n,): positions, in ascending order
    n_rows: int  # N: the rows of the table

    @classmethod
    def of(cls, n_rows: int, most: int = SAMPLED_ABOVE) -> Self:
        """All rows, or ``most`` of them; the draw depends only on both numbers."""
        if n_rows <= most:
            return cls(np.arange(n_rows), n_rows)
        rng = np.random.default_rng(0)
        return cls(np.sort(rng.choice(n_rows, most, replace=False)), n_rows)

    @property
    def is_whole(self) -> bool:
        """True if the sample has all rows."""
        return len(self.rows) == self.n_rows

    def in_words(self) -> str:
        """The rows in words, such as "a sample of 2,000 of 1,000,000 rows"."""
        if self.is_whole:
            return plural(self.n_rows, "row")
        return f"a sample of {len(self.rows):,} of {self.n_rows:,} rows"

    def interval(self, share: float, count: int) -> tuple[float, float]:
        r"""The 95 % interval of a share in the table, from ``count`` sampled rows.

        Draws without replacement say more than as many independent ones: ``count`` of
        them have the variance of m = count (N − 1)/(N − n). With z = 1.96 the interval
        of Wilson (1927) is

        .. math::

            \frac{p + z²/2m ± z \sqrt{p(1 - p)/m + z²/4m²}}{1 + z²/m}.
        """
        rest = self.n_rows - len(self.rows)
        if rest == 0:
            return share, share
        m = count * (self.n_rows - 1) / rest
        z = _NORMAL
        middle = share + z**2 / (2.0 * m)
        reach = z * math.sqrt(share * (1.0 - share) / m + (z / (2.0 * m)) ** 2)
        low, high = ((middle + x) / (1.0 + z**2 / m) for x in (-reach, reach))
        return max(low, 0.0), min(high, 1.0)

    def percent(self, share: float, count: int) -> str:
        """A share in per cent, with its interval if rows were sampled."""
        if self.is_whole:
            return share_text(share)
        low, high = self.interval(share, count)
        ends = f"{math.floor(100.0 * low)} to {math.ceil(100.0 * high)}%"
        return f"{share_text(share)} ({ends})"
