"""A column in bins, weighted by how far samples are from the row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from propopt._typing import Array, Positions, Values
from propopt.lime.laws.binned import BinnedColumn
from propopt.lime.laws.mixture import tilt_of_masses
from propopt.lime.laws.smooth.polyline import Polyline
from propopt.lime.laws.tilt import Tilt
from propopt.structures.products import Pieces
from propopt.structures.products.standard_normal import log_mass


@final
@dataclass(frozen=True, eq=False)
class SmoothColumn:
    """Bins of numbers, weighted by exp(−(τ(ξ) − τ(V))² / (2 ν_j²)).

    On a straight piece τ(v) = a + k v of τ, a truncated normal law N(μ, σ²) times the
    kernel is one again: with r = (k σ / ν_j)² and δ = τ(ξ) − a − k μ

    mean μ + k σ² δ / (ν_j² (1 + r)),  sd σ / √(1 + r),
    E[kernel] = exp(−δ² / (2 ν_j² (1 + r))) / √(1 + r) · (its mass) / (mass of N(μ, σ²))

    (Garreau and von Luxburg 2020, Appendix A, for τ(x) = x). A number that is missing
    on one side only counts as a distance of 1.

    Parameters
    ----------
    binned : BinnedColumn
        The bins, of numbers; and the width over that of the law.
    tau : Polyline
        τ.
    """

    binned: BinnedColumn
    tau: Polyline

    @property
    def bins(self) -> tuple[str, ...]:
        """What each bin is."""
        return self.binned.bins

    def place(self, x: Values) -> Positions:
        """The bin of each value, (n,)."""
        return self.binned.place(x)

    def tilt(self, x: Values, widths: Values) -> Tilt:
        """The weighted law, whose pieces lie in bins and on straight pieces of τ."""
        parts, pieces = self._parts, self._parts.pieces
        widths = self.binned.scale * widths
        shape = len(pieces), len(x)
        single, (mean, sd, low, high) = pieces.single, parts.columns
        absent = np.isnan(x)
        near = np.where(absent, 0.0, parts.slope)  # all numbers are as far
        at_mean = np.where(single[:, None], parts.value, parts.start + near * mean)
        delta = np.where(absent, 1.0, self.tau.at(np.where(absent, 0.0, x)) - at_mean)
        delta = np.where(parts.missing, np.where(absent, 0.0, 1.0), delta)
        pull = np.where(single[:, None], 0.0, near * sd / widths)
        spread = 1.0 + pull**2
        log_kernel = -0.5 * (delta / widths) ** 2 / spread - 0.5 * np.log(spread)
        moved = mean + sd * pull * (delta / widths) / spread
        narrow = np.where(single[:, None], 1.0, sd) / np.sqrt(spread)
        ends = [np.broadcast_to(end, shape) for end in (low, high)]
        some = ~single
        standardised = [((end - moved) / narrow)[some] for end in ends]
        log_kernel[some] += log_mass(*standardised)
        tilted = Pieces(single, moved, narrow, *ends)
        ones = parts.bins[:, None] == self.place(x)
        return tilt_of_masses(tilted, log_kernel + parts.log_shares, ones)

    def log_kernel(
        self, x: Array | float, values: Array, bits: Array, width: Array | float
    ) -> Array:
        """−(τ(ξ) − τ(v))² / (2 ν_j²)."""
        del bits
        absent = np.isnan(values).astype(float) + np.isnan(x)
        apart = self.tau.at(np.nan_to_num(values)) - self.tau.at(np.nan_to_num(x))
        distance = np.where(absent > 0.0, absent == 1.0, apart)
        return np.asarray(-0.5 * (distance / (self.binned.scale * width)) ** 2)

    @cached_property
    def _parts(self) -> _Parts:
        """The pieces of bins, cut at the knots of τ."""
        found = [self._cut(b) for b in range(len(self.binned.pieces))]
        columns = np.concatenate([ends for ends, _ in found], axis=1)
        bins = np.repeat(np.arange(len(found)), [ends.shape[1] for ends, _ in found])
        log_shares = np.concatenate([logs for _, logs in found])
        mean, sd, low, high = columns
        single = self.binned.pieces.single[bins]
        k = self.tau.piece(np.where(single, mean, 0.5 * (low + high)))
        slope = np.where(single, 0.0, self.tau.slopes[k])
        value = self.tau.at(np.nan_to_num(mean))
        start = self.tau.values[k] - slope * self.tau.knots[k]
        return _Parts(
            Pieces(single, mean, sd, low, high),
            bins,
            *(part[:, None] for part in (log_shares, slope, start, value)),
        )

    def _cut(self, b: int) -> tuple[Array, Array]:
        """Moments and ends of the parts of a bin, (4, K); their shares less masses."""
        pieces = self.binned.pieces
        moments = (pieces.mean[b], pieces.sd[b], pieces.low[b], pieces.high[b])
        with np.errstate(divide="ignore"):
            log_share = np.log(self.binned.shares[b : b + 1])
        if pieces.single[b]:
            return np.array(moments)[:, None], log_share
        mean, sd, low, high = moments
        inner = self.tau.knots[1:-1]
        ends = np.concatenate([[low], inner[(inner > low) & (inner < high)], [high]])
        whole = log_mass(*(np.array([(end - mean) / sd]) for end in (low, high)))
        n = len(ends) - 1
        table = np.stack([np.full(n, mean), np.full(n, sd), ends[:-1], ends[1:]])
        return table, np.repeat(log_share - whole, n)


class _Parts(NamedTuple):
    """Laws on straight pieces of τ, S of them."""

    pieces: Pieces
    bins: Positions
    """The bin of each, (S,)."""

    log_shares: Array
    """Log of the share of the bin over the mass of its normal law, (S, 1)."""

    slope: Array
    start: Array
    """τ(v) = start + slope v, (S, 1)."""

    value: Array
    """τ of single values, (S, 1)."""

    @property
    def missing(self) -> Array:
        """Which is a missing number, (S, 1)."""
        return np.isnan(self.pieces.mean)[:, None]

    @property
    def columns(self) -> tuple[Array, Array, Array, Array]:
        """Mean, sd, low and high, (S, 1) each."""
        pieces = self.pieces
        mean, sd, low, high = (
            part[:, None] for part in (pieces.mean, pieces.sd, pieces.low, pieces.high)
        )
        return mean, sd, low, high
