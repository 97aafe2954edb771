"""Observed values weighed by how near they are, never by one of them alone.

At x the weights of values v with counts n are q_v ∝ n_v exp(−t (v − x)²), t = 1/2h².
The bandwidth h starts at half a standard deviation, h₀, and is widened where more than
1 − ρ of the mass would be on the nearest value.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from propopt._typing import Array, Positions


LEAST_BESIDE: Final = 0.02
"""The share ρ that stays beside the nearest value; less if nearly all rows have it."""

MOST_HALVINGS: Final = 200

_FAR: Final = 1e40
"""So many bandwidths away is as far as any: the weights are those of the limit."""


class Tempered(NamedTuple):
    """Weights of m values at n places x, around the value v_k nearest to each."""

    masses: Array
    """q, but for a factor of each row, (n, m)."""

    totals: Array
    """Their sums, (n,)."""

    offsets: Array
    """(v − v_k) / (√2 h₀), (n, m)."""

    widening: Array
    """h/h₀ ≥ 1, (n,)."""

    nearest: Positions
    """k, (n,)."""


def deviation(values: Array, shares: Array) -> float:
    """The standard deviation of values, over their range (values increase)."""
    offsets = (values - values[0]) / (values[-1] - values[0])
    centered = offsets - shares @ offsets
    return float(np.sqrt(shares @ centered**2))


def temper(values: Array, shares: Array, unit: float, x: Array) -> Tempered:
    """Weights of observed values at places x.

    Parameters
    ----------
    values : array (m,)
        At least two, increasing.
    shares : array (m,)
        Their shares, of sum 1.
    unit : float
        √2 h₀, the standard deviation over √2.
    x : array (n,)
        Places, which need not be values.
    """
    nearest = _nearest(values, x)
    offsets = (values - values[nearest, None]) / unit
    with np.errstate(over="ignore"):
        place = np.clip((x - values[nearest]) / unit, -_FAR, _FAR)
    # t₀ ((v_k − x)² − (v − x)²) ≤ 0, as v_k is nearest
    gain = 2.0 * place[:, None] - offsets
    gain *= offsets
    masses = np.exp(gain)
    masses *= shares
    totals = masses.sum(axis=1)
    slack = np.ones(len(x))
    beside = min(LEAST_BESIDE, (1.0 - shares.max()) / 2.0)
    narrow = np.flatnonzero(1.0 - shares[nearest] / totals < beside)
    if len(narrow) > 0:
        slack[narrow] = _slack(gain[narrow], shares, nearest[narrow], beside)
        masses[narrow] = shares * np.exp(slack[narrow, None] * gain[narrow])
        totals[narrow] = masses[narrow].sum(axis=1)
    with np.errstate(divide="ignore"):
        return Tempered(masses, totals, offsets, 1.0 / np.sqrt(slack), nearest)


def _nearest(values: Array, x: Array) -> Positions:
    """The position of the value nearest to each x, of two the smaller one."""
    above = np.clip(np.searchsorted(values, x), 1, len(values) - 1)
    with np.errstate(over="ignore"):
        lower = x - values[above - 1] <= values[above] - x
    return above - lower


def _slack(gain: Array, shares: Array, nearest: Positions, beside: float) -> Array:
    """The largest t/t₀ with ρ beside the nearest value, by bisection, (n,)."""
    low, high = np.zeros(len(gain)), np.ones(len(gain))
    for _ in range(MOST_HALVINGS):
        middle = 0.5 * (low + high)
        open_ = np.flatnonzero((low < middle) & (middle < high))
        if len(open_) == 0:
            break
        at = middle[open_]
        narrow = _beside(gain[open_], shares, nearest[open_], at) < beside
        high[open_[narrow]] = at[narrow]
        low[open_[~narrow]] = at[~narrow]
    return low


def _beside(gain: Array, shares: Array, nearest: Positions, slack: Array) -> Array:
    """The mass that is not on the nearest value, shape (n,)."""
    masses = shares * np.exp(slack[:, None] * gain)
    masses[np.arange(len(gain)), nearest] = 0.0
    others = masses.sum(axis=1)
    return np.asarray(others / (others + shares[nearest]))
