"""Coefficients of words over bandwidths.

- :func:`~propopt.lime.text.text_paths.word_path`: exact at each bandwidth, with all
  bandwidths at which coefficients change their sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Values
from propopt.lime.moments import ExchangeableBits
from propopt.lime.paths import (
    ROUNDING,
    BandwidthPath,
    Bounded,
    WidthCurve,
    rational_widths,
    read_widths,
)
from propopt.lime.text.text_reading import (
    TextLaw,
    WordCoefficients,
    WordRegression,
    announce_norms,
)
from propopt.structures.subsets.sets import SizeMeans


# ---- Coefficients of words as functions of the bandwidth


_WIDTHS: Final = np.append(np.geomspace(1e-3, 1e3, 400), np.inf)
"""Bandwidths whose weights tell those of all others."""

_RANK: Final = 1e-15
"""Of the largest singular value: directions of weights with less are left out."""

_APART: Final = 1e-12
"""Of its largest number: weights that are farther off have their own means."""


@final
@dataclass(frozen=True, eq=False)
class TabledMeans:
    """Means of sums over sizes whose weights are those of some bandwidth.

    These weights vary so smoothly that R directions hold them to rounding, 40 for 50
    words and 80 for 5,000: Σ_m w_m E_m[z_j f] is known from R sums for each word, not
    from d + 1. Other weights are seen to be others, and have sums of their own.
    """

    limits: WordRegression  # of f, with E_m f at hand

    @property
    def n_words(self) -> int:
        """The number of words, d."""
        return self.limits.function.n_words

    @property
    def size(self) -> float:
        """The largest |E_m f|."""
        return float(np.abs(self.limits.means).max())

    def mean_by_size(self) -> Values:
        """E_m f for m = 0, ..., d words kept, (d + 1,)."""
        return self.limits.means

    def kept(self, weights: Array, /) -> Array:
        """Σ_m w_m E_m[z_j f] for weights (K, d + 1) of sizes m = 0, ..., d: (K, d)."""
        parts = weights @ self._directions.T
        off = np.abs(parts @ self._directions - weights).max(axis=1)
        other = off > _APART * np.abs(weights).max(axis=1)
        result = parts @ self._table
        if other.any():
            result[other] = self.limits.function.kept(weights[other])
        return np.asarray(result)

    @cached_property
    def _directions(self) -> Array:
        """An orthonormal basis of weights of bandwidths, (R, d + 1)."""
        d = self.n_words
        weights = np.array([TextLaw(float(nu)).shares(d) for nu in _WIDTHS])
        _, sizes, directions = np.linalg.svd(weights, full_matrices=False)
        return np.asarray(directions[sizes > _RANK * sizes[0]])

    @cached_property
    def _table(self) -> Array:
        """The sums for each direction, (R, d)."""
        return self.limits.function.kept(self._directions)


# ---- Coefficients of one document at any bandwidths, and how far rounding goes


_SCALE: Final = 0.25
"""The package's bandwidth, in the middle of the variable."""

_NOTHING: Final = 40.0
"""Below exp of less this weights do not count: there is the limit ν → 0."""


def _curve_of_words(function: TabledMeans) -> WidthCurve:
    """β_j as functions of u = ν² / (ν² + s²) in (0, 1).

    U begins where all but one word is kept in all that counts.
    """
    limits, d = WordRegression(function), function.n_words
    gap = -float(np.diff(TextLaw(np.sqrt(0.5)).log_weights(d)[-3:-1])[0])
    smallest = abs(gap) / (2.0 * _NOTHING)

    def quick(widths: Values) -> Array:
        return limits.at(widths).coefficients

    def bounded(widths: Values) -> Bounded:
        return quick(widths), _rounding(function, widths)

    return WidthCurve(
        widths=partial(rational_widths, _SCALE),
        bounded=bounded,
        quick=quick,
        start=smallest / (smallest + _SCALE**2),
    )


def _rounding(function: TabledMeans, widths: Values) -> Array:
    """Of slopes, and of Γ_j less their mean over α_1 − α_2, (n, d)."""
    d = function.n_words
    logs = np.array([TextLaw(float(nu)).log_weights(d) for nu in widths])
    bits = ExchangeableBits(logs)
    # E |m − E m| / Var m is at most two, where sizes are whole numbers
    of_slope = 1.0 / np.sqrt(np.maximum(d * bits.along, 0.25))
    of_word = bits.share / bits.apart
    size = ROUNDING * function.size * (of_slope + of_word)
    return np.repeat(size[:, None], d, axis=1)


# ---- Coefficients of the words of one document as functions of the bandwidth


_DIRECTIONS, _ALL = 25, 70
"""Of weights, in 50 bandwidths and in all of them."""


def word_path(
    function: SizeMeans,
    bandwidths: ArrayLike | None = None,
    known: WordCoefficients | None = None,
) -> BandwidthPath:
    """Coefficients of the words of one document at many bandwidths (M,).

    Bandwidths only weigh sizes anew, and their weights have few directions: 50 of them
    cost as much as some 25, of a norm Q d² steps each. What is known at bandwidths, and
    means of f over sets of one size for changes of sign, are not computed again.
    """
    grid, limits = (
        read_widths(bandwidths, TextLaw().bandwidth),
        WordRegression(function),
    )
    if known is None:
        announce_norms("path", [function], min(len(grid), _DIRECTIONS))
        known = limits.at(grid)

    def curve() -> WidthCurve:
        announce_norms("signs of coefficients", [function], _ALL)
        return _curve_of_words(TabledMeans(limits))

    return BandwidthPath(
        grid, known.coefficients, known.intercept, curve, known.standard_errors
    )
