"""How far a column moves where its bit turns on: what coefficients are per."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from propopt._typing import Array, Points, Values
from propopt.lime.laws.base import LimeLaw
from propopt.lime.laws.tilt import Tilt


class BitSteps(NamedTuple):
    """What columns do where their bits turn on, in n rows.

    Missing values have no part in either; NaN where a column has nothing else.
    """

    steps: Array
    """v_j = E_Q[x_j | z_j = 1] − E_Q[x_j | z_j = 0], (n, D)."""

    spans: Array
    """The distance between the largest and the smallest mean of a bin, (n, D)."""


def bit_steps(law: LimeLaw, points: Points) -> BitSteps:
    """How far each column moves where its bit turns on.

    The coefficient of a linear function is its slope times the step.

    Parameters
    ----------
    law : LimeLaw
        Of the samples, bits and weights.
    points : array (n, D)
        Encoded rows.
    """
    widths = law.widths(points)
    columns = zip(law.columns, points.T, strict=True)
    found = [_of_column(column.tilt(x, widths)) for column, x in columns]
    steps, spans = (np.stack(part, axis=1) for part in zip(*found, strict=True))
    return BitSteps(steps, spans)


def _of_column(tilt: Tilt) -> tuple[Values, Values]:
    """Step and span of one column, (n,) each."""
    pieces = tilt.pieces
    means = pieces.mean.astype(float)
    means[~pieces.single] = pieces.normals.means
    means = means.reshape(len(means), -1)  # (B, 1) or (B, n)
    known = ~np.isnan(means)
    low = np.where(known, means, np.inf).min(axis=0)
    high = np.where(known, means, -np.inf).max(axis=0)
    span = np.where(known.any(axis=0), high, np.nan) - low
    means = np.where(known, means, 0.0)
    step = _mean(tilt.inside * known, means) - _mean(tilt.outside * known, means)
    return step, np.broadcast_to(span, step.shape)


def _mean(shares: Array, means: Array) -> Values:
    """The mean over pieces by shares (B, n) that need not sum to 1; NaN of none."""
    total = shares.sum(axis=0)
    mean: Values = np.full(total.shape, np.nan)
    np.divide((shares * means).sum(axis=0), total, out=mean, where=total > 0.0)
    return mean
