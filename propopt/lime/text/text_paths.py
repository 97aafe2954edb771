"""Coefficients of words over bandwidths.

- :func:`~propopt.lime.text.text_paths.word_path`: a
  :class:`~propopt.lime.text.text_paths.WordPath`, exact at each bandwidth, with its
  limits at 0 and infinity and all bandwidths at which coefficients change their sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Values
from propopt.lime.moments import ExchangeableBits
from propopt.lime.paths import (
    ROUNDING,
    CurveValues,
    RationalVariable,
    SignChanges,
    WidthCurve,
    read_widths,
    roots_of,
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
    variable = RationalVariable(_SCALE, d, smallest / (smallest + _SCALE**2))

    def quick(widths: Values) -> Array:
        return limits.at(widths).coefficients

    def bounded(widths: Values) -> CurveValues:
        return CurveValues(quick(widths), _rounding(function, widths))

    return WidthCurve(variable, bounded, quick)


def _rounding(function: TabledMeans, widths: Values) -> Array:
    """Of slopes, and of Γ_j less their mean over α_1 − α_2, (n, d)."""
    d = function.n_words
    logs = np.array([TextLaw(float(nu)).log_weights(d) for nu in widths])
    bits = ExchangeableBits.of_sizes(logs)
    # E |m − E m| / Var m is at most two, where sizes are whole numbers
    of_slope = 1.0 / np.sqrt(np.maximum(d * bits.along, 0.25))
    of_word = bits.share / bits.apart
    size = ROUNDING * function.size * (of_slope + of_word)
    return np.repeat(size[:, None], d, axis=1)


# ---- Coefficients of the words of one document as functions of the bandwidth


_DIRECTIONS, _ALL = 25, 70
"""Of weights, in 50 bandwidths and in all of them."""

_ALL_BUT_ONE: Final = 1e-100
"""A bandwidth at which only texts without one word count."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class WordPath:
    """What LIME tends to for one document, at many bandwidths."""

    bandwidths: Values  # (M,): ν, increasing
    coefficients: Array  # (M, d): β_j, exact at each bandwidth where f was read
    intercept: Values  # (M,): β_0
    limits: WordRegression  # what they are made of
    # (M, d): of coefficients that samples told; None where they are exact
    standard_errors: Array | None = None

    def __repr__(self) -> str:
        low, high = self.bandwidths[[0, -1]]
        return (
            f"{type(self).__name__}({len(self.bandwidths)} bandwidths from {low:.3g} "
            f"to {high:.3g}, {self.coefficients.shape[1]} words)"
        )

    @cached_property
    def at_zero(self) -> WordCoefficients:
        """The limit ν → 0: leaving one word out, and a constant added to all words.

        β_j = 2 E_(d−1) f − E_(d−2) f − f(ξ less w_j), in K = 1 rows.
        """
        return self.limits.at(np.array([_ALL_BUT_ONE]))

    @cached_property
    def effective_share(self) -> Values:
        """(E π)² / E π², the share of the samples that count, (M,)."""
        d = self.limits.function.n_words
        return np.array([TextLaw(nu).effective_share(d) for nu in self.bandwidths])

    @cached_property
    def mean_weight(self) -> Values:
        """E π, the mean weight of a sample, (M,)."""
        d = self.limits.function.n_words
        logs = [TextLaw(nu).bits(d).log_weight[0] for nu in self.bandwidths]
        return np.exp(np.array(logs))

    @cached_property
    def sign_changes(self) -> SignChanges:
        """All bandwidths in (0, ∞), also outside the path, where coefficients are zero.

        They are the roots of interpolants that are as near as rounding lets; means of f
        over sets of one size are not computed again.
        """
        function = self.limits.function
        announce_norms("signs of coefficients", [function], _ALL)
        return roots_of(_curve_of_words(TabledMeans(self.limits)), function.n_words)


def word_path(function: SizeMeans, bandwidths: ArrayLike | None = None) -> WordPath:
    """Coefficients of the words of one document at many bandwidths (M,).

    Bandwidths only weigh sizes anew, and their weights have few directions: 50 of them
    cost as much as some 25, of a norm Q d² steps each.
    """
    grid = read_widths(bandwidths, TextLaw().bandwidth)
    announce_norms("path", [function], min(len(grid), _DIRECTIONS))
    limits = WordRegression(function)
    result = limits.at(grid)
    return WordPath(grid, result.coefficients, result.intercept, limits)
