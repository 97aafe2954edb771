"""What replicates decide: shares of successes, and exact intervals of them.

Intervals are those of Clopper and Pearson, so that they hold for any share, and for the
mean of shares that differ from place to place. Each end is wrong in at most one of 200
cases: a statement that is said to hold, or not to hold, is so wrongly at most as often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
import pandas as pd
from scipy.stats import beta

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
        return pd.DataFrame({"at": self.places, **self.shares})

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


def difference_between(one: Mask, other: Mask) -> Between:
    """Of the share of one less that of another, from replicates of their own.

    Half of the error is left to either share.
    """
    low, high = share_between(one, ERROR / 2)
    least, most = share_between(other, ERROR / 2)
    return low - most, high - least


def excess_between(one: Mask, other: Mask, n_others: int = 1) -> Between:
    """Of the share of one less that of another, in the same replicates.

    Only replicates in which they differ count for or against: both shares have their
    interval, and half of the error, of which each of several others has its part.
    """
    error = ERROR / (2 * n_others)
    low, high = share_between(one & ~other, error)
    least, most = share_between(~one & other, error)
    return low - most, high - least
