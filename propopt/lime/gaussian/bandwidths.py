"""The kernel widths at which coefficients of linear functions change sign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from propopt._typing import Array, Attributions, Points
from propopt.lime.gaussian.gains import Gains, gains_at
from propopt.lime.gaussian.geometry import Geometry, rows_of_law
from propopt.lime.gaussian.tails import tails
from propopt.lime.laws.base import LimeLaw
from propopt.tables.names import Labels


@final
@dataclass(frozen=True, eq=False)
class CriticalBandwidths:
    """Where gains g_j(ν) of rows are zero, and what they are on both sides.

    Parameters
    ----------
    widths : array (n, D)
        ν_crit; NaN where the gain never changes its sign.
    gain : array (n, D)
        g at the kernel width of the law.
    narrow, wide : array (n, D)
        Its limits as ν → 0 and as ν → ∞. A narrow kernel leaves the distance from the
        value to the nearer end of its bin: positive to the lower one, negative to the
        upper one. A wide one leaves the law of the samples: negative in bins below the
        mean.
    kernel_width : float
        That of the law.
    labels : Labels
        Names of rows and columns.
    """

    widths: Array
    gain: Attributions
    narrow: Attributions
    wide: Attributions
    kernel_width: float
    labels: Labels = Labels()

    @property
    def distance(self) -> Array:
        """|ν / ν_crit − 1|: how near the law's width is; NaN where there is none."""
        return np.asarray(np.abs(self.kernel_width / self.widths - 1.0))

    def to_frame(self) -> pd.DataFrame:
        """The widths, with the names of rows and columns."""
        return self.labels.frame(self.widths)


def critical_bandwidths(law: LimeLaw, X: Any) -> CriticalBandwidths:
    """The kernel width at which LIME hides a column from linear functions.

    Where the mean μ̃_j(ν) of the weighted samples crosses the middle of the bin of ξ_j,
    the bin is no better than what is outside, and β_j = 0 whatever the slope is:

    (u_j ν)² = σ_j² (2 ξ_j − q_j⁻ − q_j⁺) / (q_j⁻ + q_j⁺ − 2 μ_j),

    if that is positive: in a bin that ends on both sides, whose middle lies between the
    value and μ_j. For narrower kernels the coefficient has the other sign than for
    wider ones. Functions that are not linear may have other roots, and several: see the
    path of their coefficients.

    Parameters
    ----------
    law : GaussianLaw or GlimeLaw
        The law, of any kernel width.
    X : DataFrame or array (n, D)
        The rows; categories as codes.

    Returns
    -------
    CriticalBandwidths

    Raises
    ------
    InvalidInput
        If the law has no normal samples, or X is no table of its columns.

    Examples
    --------
    >>> import propopt as po
    >>> law = po.lime.GaussianLaw.of([0.0, 0.0], scale=1.0, kernel_width=1.0)
    >>> po.lime.critical_bandwidths(law, [[0.432, 0.1]]).widths.round(4)
    array([[0.5301,    nan]])
    """
    law, points, labels = rows_of_law(law, X)
    geometry = Geometry.of(law)
    return critical_at(geometry, points, gains_at(geometry, points, labels))


def critical_at(geometry: Geometry, points: Points, found: Gains) -> CriticalBandwidths:
    """As :func:`critical_bandwidths`, at rows of which the gains are known."""
    low, high = geometry.ends(points)
    return CriticalBandwidths(
        _roots(geometry, points, low, high),
        found.gain,
        _narrow(points, low, high),
        geometry.scale
        * tails(
            (low - geometry.mean) / geometry.scale,
            (high - geometry.mean) / geometry.scale,
        ).contrast,
        geometry.law.kernel_width,
        found.labels,
    )


def _roots(geometry: Geometry, points: Points, low: Array, high: Array) -> Array:
    """ν_crit, NaN where there is none."""
    finite = np.isfinite(low) & np.isfinite(high)
    middle = np.where(finite, 0.5 * low + 0.5 * high, np.nan)
    # a bin around the mean has its middle there but for rounding
    off = middle - geometry.mean
    rounding = 16.0 * np.finfo(float).eps * (np.abs(low) + np.abs(geometry.mean))
    square = np.full(points.shape, np.nan)
    np.divide(points - middle, off, out=square, where=np.abs(off) > rounding)
    unit = geometry.width / geometry.law.kernel_width
    root = np.sqrt(np.where(square > 0.0, square, np.nan))
    return np.asarray(root * geometry.scale / unit)


def _narrow(points: Points, low: Array, high: Array) -> Array:
    """The way from the nearer end of the bin to the value; 0 in the middle."""
    below, above = points - low, high - points
    ends = np.where(below < above, below, -above)
    tied = (below == above) | (np.isinf(below) & np.isinf(above))
    return np.where(tied, 0.0, ends)
