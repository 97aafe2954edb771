"""Statistics of numbers in bins, as the analysis has them and as the package does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt._typing import Array, Positions, Truths
from propopt.lime.bins.words import interval_words
from propopt.structures.products import Pieces


PACKAGE_SD: Final = 1e-11
"""What the ``lime`` package adds to each standard deviation."""


@final
@dataclass(frozen=True, eq=False)
class NumberBins:
    """Bins (low, high] of one column of numbers, the first one closed.

    Parameters
    ----------
    edges : array (B − 1,)
        Where bins end but for the last; each edge is in the bin below it.
    low, high : array (B,)
        Ends of what is drawn: those of the data outside, edges inside.
    mean, sd : array (B,)
        Of the data in each bin; sd divides by their number. They are location and scale
        of a truncated normal law, which has another mean than ``mean``.
    single : array (B,)
        Bins in which only the value ``mean`` is drawn.
    counts : array (B,)
        How many numbers of the data are in each bin, or what share of them.
    n_missing : int
        How many are missing; where some are, they are a bin behind the others.

    Examples
    --------
    >>> import numpy as np
    >>> bins = NumberBins.of(np.array([0.0, 1.0, 2.0, 3.0, 4.0, 4.0]), np.array([2.0]))
    >>> bins.mean, bins.counts
    (array([1. , 3.66...]), array([3, 3]))
    >>> bins.words
    ('≤ 2', '> 2')
    """

    edges: Array
    low: Array
    high: Array
    mean: Array
    sd: Array
    single: Truths
    counts: Array | Positions
    n_missing: int = 0

    @classmethod
    def of(cls, column: Array, edges: Array) -> NumberBins:
        """Bins of data (m,): a bin of one value is that value.

        Edges at or above the largest number end the last bin. A bin without data has
        the share 0 and stands at its middle.
        """
        known = column[~np.isnan(column)]
        edges = edges[edges < known.max(initial=-np.inf)]
        parts, low, high = _parted(known, edges)
        mean = np.array([part.mean() if len(part) > 0 else np.nan for part in parts])
        sd = np.array([_deviation(part) if len(part) > 0 else 0.0 for part in parts])
        single = np.array([len(part) == 0 or np.ptp(part) == 0.0 for part in parts])
        mean[single] = [
            part[0] if len(part) > 0 else 0.5 * (a + b)
            for part, a, b, one in zip(parts, low, high, single, strict=True)
            if one
        ]
        counts = np.array([len(part) for part in parts], np.intp)
        missing = len(column) - len(known)
        return cls(edges, low, high, mean, sd, single, counts, missing)

    @classmethod
    def of_package(cls, column: Array, edges: Array) -> NumberBins:
        """As the ``lime`` package has them, with its conventions.

        1e-11 is added to each sd; a bin without data has the mean 0 and the share 0;
        in a bin whose ends are equal the package draws (low − mean) / sd and not the
        value, so that a constant column of sevens is drawn as zeros.
        """
        parts, low, high = _parted(column, edges)
        mean = np.array([part.mean() if len(part) > 0 else 0.0 for part in parts])
        sd = np.array([part.std() if len(part) > 0 else 0.0 for part in parts])
        counts = np.array([len(part) for part in parts], np.intp)
        return cls.of_moments(edges, low, high, mean, sd + PACKAGE_SD, counts)

    @classmethod
    def of_moments(
        cls,
        edges: Array,
        low: Array,
        high: Array,
        mean: Array,
        sd: Array,
        counts: Array | Positions,
    ) -> NumberBins:
        """Those of the package's tables: see :meth:`of_package`."""
        start, stop = (low - mean) / sd, (high - mean) / sd
        single = start == stop
        location = np.where(single, start, mean)
        return cls(edges, low, high, location, sd, single, counts)

    @property
    def frequencies(self) -> Array:
        """The share of the data in each bin; that of missing ones last, if any are."""
        missing = [self.n_missing] if self.n_missing > 0 else []
        counts = np.append(self.counts, missing)
        return np.asarray(counts / counts.sum())

    @property
    def pieces(self) -> Pieces:
        """The law of each bin, with NaN for missing last, if any are."""
        if self.n_missing == 0:
            return Pieces(self.single, self.mean, self.sd, self.low, self.high)
        nan = (np.append(part, np.nan) for part in (self.mean, self.low, self.high))
        mean, low, high = nan
        sd, single = np.append(self.sd, 0.0), np.append(self.single, True)
        return Pieces(single, mean, sd, low, high)

    @property
    def missing(self) -> int:
        """The bin of missing numbers; −1 if there is none."""
        return len(self.counts) if self.n_missing > 0 else -1

    @property
    def words(self) -> tuple[str, ...]:
        """What each bin is, to be read on behind the name of the column."""
        words = interval_words(self.edges)
        return (*words, "missing") if self.n_missing > 0 else words


def _parted(known: Array, edges: Array) -> tuple[list[Array], Array, Array]:
    """The numbers in each bin, and the ends of bins."""
    places = np.searchsorted(edges, known, side="left")
    order = np.argsort(places, kind="stable")
    counts = np.bincount(places, minlength=len(edges) + 1)
    parts = np.split(known[order], np.cumsum(counts)[:-1])
    ends = (known.min(), known.max()) if len(known) > 0 else (0.0, 0.0)
    return parts, np.append(ends[0], edges), np.append(edges, ends[1])


def _deviation(part: Array) -> float:
    """The standard deviation, also of numbers whose squares are no floats."""
    size = float(np.abs(part).max())
    if size == 0.0 or 1e-140 < size < 1e140:
        return float(part.std())
    scale = 2.0 ** np.floor(np.log2(size))
    return float((part / scale).std() * scale)
