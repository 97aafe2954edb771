"""Coefficients of the words of one document as functions of the bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike

from propopt._typing import Array, Values
from propopt.lime.paths.path import read_widths
from propopt.lime.paths.sign_changes import SignChanges, roots_of
from propopt.lime.text.law import TextLaw
from propopt.lime.text.lengthy import announce_norms
from propopt.lime.text.limits import ExactWordLimits, WordLimits
from propopt.lime.text.moments import TextMoments
from propopt.lime.text.paths.by_size import MeansBySize
from propopt.lime.text.paths.curve import WordCurve
from propopt.structures.subsets import SizeMeans


_DIRECTIONS, _ALL = 25, 70
"""Of weights, in 50 bandwidths and in all of them."""

_ALL_BUT_ONE: Final = 1e-100
"""A bandwidth at which only texts without one word count."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class WordPath:
    """What LIME tends to for one document, at many bandwidths.

    Parameters
    ----------
    bandwidths : array (M,)
        ν, increasing.
    coefficients : array (M, d)
        β_j, exact at each bandwidth where f was read.
    intercept : array (M,)
        β_0.
    function : MeansBySize
        What they are made of.
    standard_errors : array (M, d) or None
        Of coefficients that samples told; None where they are exact.
    """

    bandwidths: Values
    coefficients: Array
    intercept: Values
    function: MeansBySize
    standard_errors: Array | None = None

    def __repr__(self) -> str:
        low, high = self.bandwidths[[0, -1]]
        return (
            f"{type(self).__name__}({len(self.bandwidths)} bandwidths from {low:.3g} "
            f"to {high:.3g}, {self.function.n_words} words)"
        )

    @cached_property
    def at_zero(self) -> WordLimits:
        """The limit ν → 0: leaving one word out, and a constant added to all words.

        β_j = 2 E_(d−1) f − E_(d−2) f − f(ξ less w_j), in K = 1 rows.
        """
        return self._at(_ALL_BUT_ONE)

    @cached_property
    def at_infinity(self) -> WordLimits:
        """The limit ν → ∞, where all samples count alike, in K = 1 rows."""
        return self._at(np.inf)

    @cached_property
    def effective_share(self) -> Values:
        """(E π)² / E π², the share of the samples that count, (M,)."""
        return np.array([own.effective_share for own in self._moments])

    @cached_property
    def mean_weight(self) -> Values:
        """E π, the mean weight of a sample, (M,)."""
        return np.array([own.mean_weight for own in self._moments])

    @cached_property
    def sign_changes(self) -> SignChanges:
        """All bandwidths in (0, ∞), also outside the path, where coefficients are zero.

        They are the roots of interpolants that are as near as rounding lets; means of f
        over sets of one size are not computed again.
        """
        announce_norms("signs of coefficients", [self.function.function], _ALL)
        return roots_of(WordCurve(self.function.tabled), self.function.n_words)

    def _at(self, bandwidth: float) -> WordLimits:
        return ExactWordLimits(self.function).at(np.array([bandwidth]))

    @property
    def _moments(self) -> list[TextMoments]:
        d = self.function.n_words
        return [TextMoments(TextLaw(float(nu)), d) for nu in self.bandwidths]


def word_path(function: SizeMeans, bandwidths: ArrayLike | None = None) -> WordPath:
    """Coefficients of the words of one document at many bandwidths.

    Bandwidths only weigh sizes anew, and their weights have few directions: 50 of them
    cost as much as some 25, and all that signs are looked for at as much as 40 to 80.
    For trees, sets that were asked for and sums without a norm that is nothing; for a
    norm each direction takes Q d² steps of some 30 ns: 0.1 s in all for 100 words, half
    a minute for 1,000.

    Parameters
    ----------
    function : SizeMeans
        f, as a function of which words are kept; or means of it that samples told.
    bandwidths : array (M,), optional
        ν; by default 50, evenly spaced in their logarithm, from a tenth of the
        package's 0.25 to ten times it.

    Raises
    ------
    InvalidInput
        If a bandwidth is not a positive number, or there is only one word.

    Examples
    --------
    >>> from propopt.structures.subsets import Conjunctions
    >>> f = Conjunctions.of([1.0, -0.7], [[0, 1], [0]], [[], []], 20)
    >>> path = word_path(f, [0.1, 0.15, 0.2, 0.25])
    >>> path.coefficients[:, 0].round(3)
    array([ 0.126,  0.049, -0.01 , -0.054])
    >>> path.sign_changes[0].widths.round(4)
    array([0.1906])
    """
    known = MeansBySize(function)
    grid = read_widths(bandwidths, TextLaw().bandwidth)
    announce_norms("path", [function], min(len(grid), _DIRECTIONS))
    limits = ExactWordLimits(known).at(grid)
    return WordPath(grid, limits.coefficients, limits.intercept, known)
