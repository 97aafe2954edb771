"""Coefficients of one document at any bandwidths, and how far rounding goes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt._typing import Array, Values
from propopt.lime.moments import ExchangeableBits
from propopt.lime.paths.curve import ROUNDING, CurveValues
from propopt.lime.paths.variables import RationalVariable
from propopt.lime.text.law import TextLaw
from propopt.lime.text.limits import ExactWordLimits
from propopt.lime.text.paths.by_size import TabledMeans


_SCALE: Final = 0.25
"""The package's bandwidth, in the middle of the variable."""

_NOTHING: Final = 40.0
"""Below exp of less this weights do not count: there is the limit ν → 0."""


@final
@dataclass(frozen=True, eq=False)
class WordCurve:
    """β_j as functions of u = ν² / (ν² + s²) in (0, 1).

    Parameters
    ----------
    function : TabledMeans
        f.
    """

    function: TabledMeans

    @cached_property
    def variable(self) -> RationalVariable:
        """U; it begins where all but one word is kept in all that counts."""
        d = self.function.n_words
        gap = -float(np.diff(TextLaw(np.sqrt(0.5)).log_weights(d)[-3:-1])[0])
        smallest = abs(gap) / (2.0 * _NOTHING)
        start = smallest / (smallest + _SCALE**2)
        return RationalVariable(_SCALE, d, start)

    def at(self, u: Values, rest: Values, /) -> CurveValues:
        """Values at u (n,), where 1 − u is ``rest``, and what rounding may be."""
        widths = self.variable.widths(u, rest)
        found = self._limits.at(widths)
        return CurveValues(found.coefficients, self._rounding(widths))

    def values(self, u: Values, rest: Values, /) -> Array:
        """Values alone, (n, d)."""
        return self._limits.at(self.variable.widths(u, rest)).coefficients

    @cached_property
    def _limits(self) -> ExactWordLimits:
        return ExactWordLimits(self.function)

    def _rounding(self, widths: Values) -> Array:
        """Of slopes, and of Γ_j less their mean over α_1 − α_2, (n, d)."""
        d = self.function.n_words
        logs = np.array([TextLaw(float(nu)).log_weights(d) for nu in widths])
        bits = ExchangeableBits.of_sizes(logs)
        # E |m − E m| / Var m is at most two, where sizes are whole numbers
        of_slope = 1.0 / np.sqrt(np.maximum(d * bits.along, 0.25))
        of_word = bits.share / bits.apart
        size = ROUNDING * self.function.size * (of_slope + of_word)
        return np.repeat(size[:, None], d, axis=1)
