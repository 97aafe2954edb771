"""Coefficients of one row as functions of the kernel width."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike

from propopt._typing import Array, Values
from propopt.checks import read_array
from propopt.errors import InvalidInput
from propopt.lime.expectations import ExactLimits
from propopt.lime.fidelity.effective import effective_share
from propopt.lime.paths.curve import repeated
from propopt.lime.paths.sign_changes import SignChanges, sign_changes
from propopt.tables.names import Labels


GRID_SIZE: Final = 50
"""Widths of a path when none are given."""

GRID_REACH: Final = 10.0
"""They go from the law's width divided by this to the law's width times this."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class BandwidthPath:
    """What LIME tends to for one row, at many kernel widths.

    Parameters
    ----------
    widths : array (M,)
        ν, increasing.
    coefficients : array (M, D)
        β_j, exact at each width.
    intercept : array (M,)
        β_0.
    mean_weight : array (M,)
        C = E π, the mean weight of a sample.
    effective_share : array (M,)
        (E π)² / E π², the share of the samples that count.
    exact : ExactLimits
        What they are made of.
    point : array (D,)
        The row.
    """

    widths: Values
    coefficients: Array
    intercept: Values
    mean_weight: Values
    effective_share: Values
    exact: ExactLimits
    point: Array

    def __repr__(self) -> str:
        low, high = self.widths[[0, -1]]
        return (
            f"{type(self).__name__}({len(self.widths)} widths from {low:.3g} to "
            f"{high:.3g}, {self.coefficients.shape[1]} columns)"
        )

    @property
    def labels(self) -> Labels:
        """The names of the columns."""
        return self.exact.law.labels

    @cached_property
    def sign_changes(self) -> SignChanges:
        """All widths in (0, ∞), also outside the path, where coefficients are zero."""
        return sign_changes(self.exact, self.point)


def bandwidth_path(
    exact: ExactLimits, point: ArrayLike, widths: ArrayLike | None = None
) -> BandwidthPath:
    """Coefficients of one row at many kernel widths, exact at each.

    Parameters
    ----------
    exact : ExactLimits
        A sum of products and a law.
    point : array (D,)
        The row, encoded as the function's table encodes it.
    widths : array (M,), optional
        Kernel widths; by default 50, evenly spaced in their logarithm, from a tenth of
        the law's width to ten times it.

    Returns
    -------
    BandwidthPath

    Raises
    ------
    InvalidInput
        If a width is not a positive number.
    """
    row = np.asarray(point, np.float64)
    grid = read_widths(widths, exact.law.kernel_width)
    points = repeated(row, len(grid))
    limits = exact.of(points, grid)
    return BandwidthPath(
        grid,
        limits.coefficients,
        limits.intercept,
        np.exp(limits.log_weight),
        effective_share(exact.law, points, grid),
        exact,
        row,
    )


def default_widths(width: float) -> Values:
    """Widths around that of a law, evenly spaced in their logarithm."""
    return np.geomspace(width / GRID_REACH, width * GRID_REACH, GRID_SIZE)


def read_widths(widths: ArrayLike | None, own: float) -> Values:
    """Widths in increasing order; :func:`default_widths` if there are none."""
    if widths is None:
        return default_widths(own)
    grid = read_array(widths, "widths", ndim=1)
    if (grid <= 0.0).any():
        wrong = float(grid[grid <= 0.0][0])
        raise InvalidInput(f"widths: expected numbers > 0, got {wrong}")
    return np.sort(grid)
