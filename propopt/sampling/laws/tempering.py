"""Observed values weighed by how near they are, never by one of them alone.

At x the weights of values v with counts n are q_v ∝ n_v exp(−t (v − x)²), t = 1/2h².
The bandwidth h starts at half a standard deviation and is widened where more than
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
"""How many ranges away is as far as any: the weights are those of the limit."""


class Tempered(NamedTuple):
    """Weights of m values at n places x, in units of the range around the nearest."""

    weights: Array
    """q, each row of sum 1, shape (n, m)."""

    offsets: Array
    """(v − v_k) over the range, v_k the value nearest to x, shape (n, m)."""

    widening: Array
    """h/h₀ ≥ 1, shape (n,)."""


def deviation(values: Array, shares: Array) -> float:
    """The standard deviation of values, over their range (values increase)."""
    offsets = (values - values[0]) / (values[-1] - values[0])
    centered = offsets - shares @ offsets
    return float(np.sqrt(shares @ centered**2))


def temper(values: Array, shares: Array, x: Array) -> Tempered:
    """Weights of observed values at places x.

    Parameters
    ----------
    values : array (m,)
        At least two, increasing.
    shares : array (m,)
        Their shares, of sum 1.
    x : array (n,)
        Places, which need not be values.
    """
    nearest = _nearest(values, x)
    extent = values[-1] - values[0]
    offsets = (values - values[nearest, None]) / extent
    with np.errstate(over="ignore"):
        place = np.clip((x - values[nearest]) / extent, -_FAR, _FAR)
    # t₀ ((v − x)² − (v_k − x)²), which is not negative: v_k is nearest
    cost = offsets * (offsets - 2.0 * place[:, None])
    cost -= cost.min(axis=1, keepdims=True)
    cost *= 2.0 / deviation(values, shares) ** 2
    slack = _slack(cost, shares, nearest)
    weights = shares * np.exp(-slack[:, None] * cost)
    weights /= weights.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return Tempered(weights, offsets, 1.0 / np.sqrt(slack))


def _nearest(values: Array, x: Array) -> Positions:
    """The position of the value nearest to each x, of two the smaller one."""
    above = np.clip(np.searchsorted(values, x), 1, len(values) - 1)
    with np.errstate(over="ignore"):
        lower = x - values[above - 1] <= values[above] - x
    return above - lower


def _slack(cost: Array, shares: Array, nearest: Positions) -> Array:
    """t/t₀ ≤ 1 with the share ρ beside the nearest value, by bisection, shape (n,)."""
    beside = min(LEAST_BESIDE, (1.0 - shares.max()) / 2.0)
    high = np.ones(len(cost))
    low = np.where(_beside(cost, shares, nearest, high) < beside, 0.0, 1.0)
    for _ in range(MOST_HALVINGS):
        middle = 0.5 * (low + high)
        open_ = np.flatnonzero((low < middle) & (middle < high))
        if len(open_) == 0:
            break
        at = middle[open_]
        left = _beside(cost[open_], shares, nearest[open_], at)
        narrow = left < beside
        high[open_[narrow]] = at[narrow]
        low[open_[~narrow]] = at[~narrow]
    return low


def _beside(cost: Array, shares: Array, nearest: Positions, slack: Array) -> Array:
    """The mass that is not on the nearest value, shape (n,)."""
    masses = shares * np.exp(-slack[:, None] * cost)
    rows = np.arange(len(cost))
    own = masses[rows, nearest].copy()
    masses[rows, nearest] = 0.0
    others = masses.sum(axis=1)
    return np.asarray(others / (others + own))
