"""Coefficients of rows and texts over kernel widths, and their changes of sign.

Signs are compared at widths a sixteenth of an octave apart, from a 64th of the width of
the law to LARGEST_WIDTH times it; between two widths with different signs the root is
polished on exact values. Two roots between neighbouring widths are not found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import elementwise

from propopt.base.arrays import Array, Indices, Mask, Points, Values, largest_first
from propopt.base.checks import read_array
from propopt.base.errors import InvalidInput
from propopt.lime.exact_limits import ExactLimits, Limits
from propopt.lime.text.sampled_words import WordMeans, coefficients_of
from propopt.lime.text.word_limits import WordCoefficients, WordRegression
from propopt.structures.subsets.sets import SizeMeans


LARGEST_WIDTH: Final = 1e8
"""The largest ratio to the width of a law: above it weights are 1 in float64."""

_CLEAR: Final = 1e-13
"""Coefficients below this part of the largest of the row have no sign."""

BetaAt: TypeAlias = Callable[[Indices, Values], Array]
"""β (m, D) of rows (m,) at kernel widths (m,)."""


SignChanges: TypeAlias = tuple[Indices, Indices, Values]
"""Row and column of each change of sign, and its width, (C,) each."""


def sign_changes(
    at: BetaAt, n_rows: int, width: float, low: float = -6.0, step: float = 1 / 16
) -> SignChanges:
    """Changes of sign from 2^low times a width to 2^8 times it, and beyond.

    Widths increase for each coefficient.
    """
    ratios = np.append(2.0 ** np.arange(low, 8.0, step), LARGEST_WIDTH)
    widths = width * ratios
    every = at(np.tile(np.arange(n_rows), len(widths)), np.repeat(widths, n_rows))
    values = every.reshape(len(widths), n_rows, -1)
    clear = _CLEAR * np.abs(values).max(axis=(0, 2), initial=0.0)[:, None]
    signs = np.where(np.abs(values) > clear, np.sign(values), 0.0)
    for k in range(1, len(signs)):  # without a sign, that of the width before
        signs[k] = np.where(signs[k] == 0.0, signs[k - 1], signs[k])
    turns = (signs[1:] * signs[:-1] < 0.0).transpose(2, 1, 0)
    column, row, before = np.nonzero(turns)

    def value(inverse: Array, n: Array, j: Array) -> Array:
        beta = at(n.astype(np.intp), 1.0 / inverse)
        return beta[np.arange(len(beta)), j.astype(np.intp)]

    roots = np.zeros(0)
    if len(row) > 0:  # in 1/ν, which is finite at the largest width
        ends = 1.0 / widths[before + 1], 1.0 / widths[before]
        result = elementwise.find_root(value, ends, args=(row, column))
        roots = 1.0 / np.where(result.success, result.x, 0.5 * (ends[0] + ends[1]))
    return row, column, roots


# ---- Paths of one row or document


GRID_SIZE: Final = 50
"""The default number of widths of a path."""

GRID_REACH: Final = 10.0
"""Default widths go from the law's width divided by this to its width times this."""


LimitsAt: TypeAlias = Callable[[Values], Limits | WordCoefficients]
"""The limits of one row or document at kernel widths (n,)."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class BandwidthPath:
    """The coefficients of LIME for one row or document at many kernel widths."""

    widths: Values  # (M,): ν, increasing
    coefficients: Array  # (M, D): β_j
    intercept: Values  # (M,): β_0
    at: LimitsAt  # the limits at other widths
    law_width: float  # of the law
    # (M, D): of estimated coefficients; None if they are exact
    standard_errors: Array | None = None

    def __repr__(self) -> str:
        low, high = self.widths[[0, -1]]
        return (
            f"{type(self).__name__}({len(self.widths)} widths from {low:.3g} to "
            f"{high:.3g}, {self.coefficients.shape[1]} columns)"
        )

    @cached_property
    def sign_changes(self) -> tuple[Values, ...]:
        """For each coefficient the widths at which its sign changes, increasing.

        Also outside the path. They are found by search between widths a sixteenth of an
        octave apart, from a 64th of the width of the law on. Two changes between
        neighbouring widths of the search are not found.
        """

        def at(_: Indices, widths: Values) -> Array:
            return self.at(widths).coefficients

        _, column, width = sign_changes(at, 1, self.law_width)
        return tuple(width[column == j] for j in range(self.coefficients.shape[1]))


def path_of_row(
    exact: ExactLimits, point: Array, widths: ArrayLike | None = None
) -> BandwidthPath:
    """The exact coefficients of one row (D,) of a table at many kernel widths (M,)."""

    def at(widths: Values) -> Limits:
        copies = np.broadcast_to(point, (len(widths), len(point)))
        return exact.of(copies, widths)

    return _path(at, exact.law.kernel_width, widths)


def path_of_words(
    means: WordMeans, width: float = 0.25, widths: ArrayLike | None = None
) -> BandwidthPath:
    """The coefficients of a document at many bandwidths (M,)."""
    at = partial(coefficients_of, means)
    return _path(at, width if np.isfinite(width) else 1.0, widths)


def _path(at: LimitsAt, width: float, widths: ArrayLike | None) -> BandwidthPath:
    grid = read_widths(widths, width)
    result = at(grid)
    return BandwidthPath(
        grid, result.coefficients, result.intercept, at, width, result.standard_errors
    )


def read_widths(widths: ArrayLike | None, center: float) -> Values:
    """The widths in increasing order; by default a geometric grid around a center."""
    if widths is None:
        return np.geomspace(center / GRID_REACH, center * GRID_REACH, GRID_SIZE)
    grid = read_array(widths, "widths", ndim=1)
    if (grid <= 0.0).any():
        wrong = float(grid[grid <= 0.0][0])
        raise InvalidInput(f"widths: expected numbers > 0, got {wrong}")
    return np.sort(grid)


# ---- Many rows at once, for diagnosis


SignsAround: TypeAlias = tuple[Array, Mask, Array]
"""The nearest width with a coefficient of zero, or NaN; whether the sign differs from
that at the largest widths; and the coefficient there: (n, D) each."""


def _around(at: BetaAt, n_rows: int, width: float) -> SignsAround:
    """The signs at widths a quarter of an octave apart, from an eighth of the width."""
    row, column, root = sign_changes(at, n_rows, width, low=-3.0, step=0.25)
    wide = at(np.arange(n_rows), np.full(n_rows, LARGEST_WIDTH * width))
    nearest = np.full(wide.shape, np.nan)
    order = largest_first(np.abs(np.log(root / width)))
    nearest[row[order], column[order]] = root[order]
    later = root > width
    turned = np.zeros(wide.shape, np.intp)
    np.add.at(turned, (row[later], column[later]), 1)
    return nearest, turned % 2 == 1, wide


def signs_around(exact: ExactLimits, points: Points) -> SignsAround:
    """The changes of sign around the width of the law, for rows of points (n, D)."""
    return _around(
        lambda rows, widths: exact.of(points[rows], widths).coefficients,
        len(points),
        exact.law.kernel_width,
    )


def signs_of_words(function: SizeMeans, bandwidth: float) -> SignsAround:
    """The changes of sign around a bandwidth, for the words of a document, (1, d)."""
    limits = WordRegression(function)
    return _around(lambda _, widths: limits.at(widths).coefficients, 1, bandwidth)
