"""How far a column moves where its bit turns on: what coefficients are per."""

from __future__ import annotations

import numpy as np

from propopt._typing import Array, Points, Values
from propopt.lime.laws.base import LimeLaw
from propopt.lime.laws.tilt import Tilt


def bit_steps(law: LimeLaw, points: Points, widths: Values | None = None) -> Array:
    """E_Q[x_j | z_j = 1] − E_Q[x_j | z_j = 0] of each row and column, (n, D).

    The coefficient of a linear function is its slope times this, whatever the kernel
    width is of laws whose weights are of bits alone. Missing values have no part in
    it; where a bin has nothing else it is NaN.

    Parameters
    ----------
    law : LimeLaw
        Of the samples, bits and weights.
    points : array (n, D)
        Encoded rows.
    widths : array (n,), optional
        Kernel widths; by default the law's own.
    """
    widths = law.widths(points, widths)
    columns = zip(law.columns, points.T, strict=True)
    return np.stack([_step(column.tilt(x, widths)) for column, x in columns], axis=1)


def _step(tilt: Tilt) -> Values:
    """Of one column, (n,)."""
    pieces = tilt.pieces
    means = pieces.mean.astype(float)
    means[~pieces.single] = pieces.normals.means
    means = means.reshape(len(means), -1)  # (B, 1) or (B, n)
    known = ~np.isnan(means)
    means = np.where(known, means, 0.0)
    return _mean(tilt.inside * known, means) - _mean(tilt.outside * known, means)


def _mean(shares: Array, means: Array) -> Values:
    """The mean over pieces by shares (B, n) that need not sum to 1; NaN of none."""
    total = shares.sum(axis=0)
    mean: Values = np.full(total.shape, np.nan)
    np.divide((shares * means).sum(axis=0), total, out=mean, where=total > 0.0)
    return mean
