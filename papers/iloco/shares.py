"""What replicates decide: shares of successes, their differences, and intervals.

Each end of an interval is wrong in about one of 200 cases. A single share has the exact
interval of Clopper and Pearson, which holds for the mean of shares that differ from
place to place, too. Differences have Newcombe's hybrid score interval: subtracting the
ends of two exact intervals supposes that both shares are at their worst at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
import pandas as pd
from scipy.stats import beta, norm

from propopt.base.arrays import Mask, Values


Between: TypeAlias = tuple[float, float]
ERROR: Final = 0.005
"""How often an end of an interval is wrong, at most."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Successes:
    """In which replicates each method finds what it should.

    Parameters
    ----------
    places : array (K,)
        What varies, such as snr, ascending.
    found : mapping of bool arrays (K, R)
        By method, at each place in each replicate.
    """

    places: Values
    found: Mapping[str, Mask]

    @classmethod
    def of(
        cls, indices: Values, runs: Sequence[Sequence[Mapping[str, bool]]]
    ) -> Successes:
        """From the replicates (inner sequence) at each place (outer sequence)."""
        return cls(
            places=indices,
            found={
                method: np.array([[bool(one[method]) for one in own] for own in runs])
                for method in runs[0][0]
            },
        )

    @property
    def shares(self) -> dict[str, Values]:
        """Shares (K,) of replicates, by method."""
        return {name: own.mean(axis=1) for name, own in self.found.items()}

    def to_frame(self) -> pd.DataFrame:
        """One row for each place, one column for each method."""
        at = [f"{place:g}" for place in self.places]
        return pd.DataFrame({"at": at, **self.shares})

    def told(self, method: str) -> str:
        """Shares at all places."""
        return ", ".join(f"{share:.2f}" for share in self.shares[method])


def share_between(successes: Mask, error: float = ERROR) -> Between:
    """The interval of a share.

    Parameters
    ----------
    successes : bool array
        Of independent replicates, of any shape.
    error : float
        How often each end is wrong, at most.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = share_between(np.ones(20, bool))
    >>> round(low, 3), high
    (0.767, 1.0)
    """
    k, n = int(successes.sum()), successes.size
    low = float(beta.ppf(error, k, n - k + 1)) if k else 0.0
    high = float(beta.ppf(1.0 - error, k + 1, n - k)) if k < n else 1.0
    return low, high


def difference_between(one: Mask, other: Mask, error: float = ERROR) -> Between:
    """Of the share of one minus that of another, from replicates of their own.

    Newcombe (1998), Interval estimation for the difference between independent
    proportions, method 10: with d_i the distances of p_i to its Wilson ends,
    p_1 − p_2 − √(d_1low² + d_2high²) and p_1 − p_2 + √(d_1high² + d_2low²).

    Examples
    --------
    >>> low, high = difference_between(np.ones(24, bool), np.arange(24) < 2)
    >>> round(low, 3), round(high, 3)
    (0.588, 0.984)
    """
    return _squares_added(one, other, 0.0, error)


def excess_between(one: Mask, other: Mask, error: float = ERROR) -> Between:
    """Of the share of one minus that of another, in the same replicates.

    Newcombe (1998), Improved confidence intervals for the difference between binomial
    proportions based on paired data, method 10: as
    :func:`difference_between`, with −2 φ d_1 d_2 under each root, where φ is the
    correlation of the successes, continuity-corrected if it is positive. The
    replicates of several places together are as many more: that their shares differ
    makes the mean more certain than the interval says, not less.
    """
    return _squares_added(one, other, _correlation(one, other), error)


def _squares_added(one: Mask, other: Mask, phi: float, error: float) -> Between:
    (p, low, high), (q, least, most) = (_wilson(own, error) for own in (one, other))

    def length(d: float, e: float) -> float:
        return float(np.sqrt(max(d**2 + e**2 - 2.0 * phi * d * e, 0.0)))

    return p - q - length(p - low, most - q), p - q + length(high - p, q - least)


def _wilson(successes: Mask, error: float) -> tuple[float, float, float]:
    """A share, and the ends of its score interval."""
    n, p, z = successes.size, float(successes.mean()), float(norm.isf(error))
    middle = (p + z**2 / (2 * n)) / (1.0 + z**2 / n)
    half = z * np.sqrt(p * (1.0 - p) / n + (z / (2 * n)) ** 2) / (1.0 + z**2 / n)
    return p, middle - float(half), middle + float(half)


def _correlation(one: Mask, other: Mask) -> float:
    """φ of a table of two by two; 0 where a row or a column of it is empty."""
    n = one.size
    a, d = int((one & other).sum()), int((~one & ~other).sum())
    b, c = int((one & ~other).sum()), int((~one & other).sum())
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    joint = float(a * d - b * c)
    if joint > 0:
        joint = max(joint - n / 2, 0.0)
    return joint / np.sqrt(margins) if margins else 0.0
