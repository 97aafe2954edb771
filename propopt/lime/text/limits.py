"""What LIME on a text tends to, exactly, from the means of f over sets of one size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt._typing import Array, Values
from propopt.errors import InvalidInput
from propopt.lime.text.law import TextLaw
from propopt.structures.subsets import SizeMeans


_NOTHING: Final = 1e-290
"""Of the weight of all sizes but the largest: there the limit ν → 0 is had."""


@final
@dataclass(frozen=True, eq=False)
class WordLimits:
    """Coefficients of infinitely many samples, at K bandwidths, for one document.

    Parameters
    ----------
    coefficients : array (K, d)
        β_1, ..., β_d.
    intercept : array (K,)
        β_0.
    standard_errors : array (K, d) or None
        Of coefficients that samples told; None where they are exact.
    intercept_error : array (K,) or None
        Of the intercept.
    """

    coefficients: Array
    intercept: Values
    standard_errors: Array | None = None
    intercept_error: Values | None = None


@final
@dataclass(frozen=True, eq=False)
class ExactWordLimits:
    """Limits of a function of words under laws that know the number of words kept.

    (β_0, mean of β) are intercept and slope of the weighted regression of E_m f on m,
    with weights π of sizes m, and

    β_j = slope + (Γ_j − mean of Γ) / (α_1 − α_2),   Γ_j = E[π z_j f]:

    Σ⁻¹Γ of Mardaoui and Garreau (2021, Eq. 12), without the differences of large
    numbers that cancel in their σ_0, ..., σ_3 and c_d.

    Parameters
    ----------
    function : SizeMeans
        f, of d ≥ 2 words: a set function, or what samples told of one.
    """

    function: SizeMeans

    def __post_init__(self) -> None:
        if self.function.n_words < 2:
            raise InvalidInput(
                "a text needs two distinct words: of one word its coefficient and the "
                "intercept cannot be told apart, as it is always deleted"
            )

    def at(self, bandwidths: Values) -> WordLimits:
        """The limits at bandwidths ν (K,).

        Parameters
        ----------
        bandwidths : array (K,)
            ν, each positive or inf.
        """
        d = self.function.n_words
        shares = np.array([TextLaw(float(nu)).shares(d) for nu in bandwidths])
        return self.weighed(shares)

    def weighed(self, shares: Array) -> WordLimits:
        """The limits for weights of sizes (K, d + 1), of m = 0, ..., d words kept.

        Parameters
        ----------
        shares : array (K, d + 1)
            π, over any constant of each row; 0 for m = d.
        """
        d, means = self.function.n_words, self._means
        # u = d − 1 − m and E_m f − E_(d−1) f: sums of what is small are small
        u = d - 1.0 - np.arange(d)
        level = means[:d] - means[d - 1]
        w = shares[:, :d]
        total = w.sum(axis=1)
        u_mean, level_mean = w @ u / total, w @ level / total
        square = (w * (u - u_mean[:, None]) ** 2).sum(axis=1)
        product = (w * (u - u_mean[:, None]) * level).sum(axis=1)
        tiny = square < _NOTHING
        fall = np.divide(product, square, out=np.zeros(len(w)), where=~tiny)
        fall[tiny] = level[d - 2]
        slope = -fall
        at_full = means[d - 1] + np.where(tiny, 0.0, level_mean - fall * u_mean)
        gamma = self.function.kept(shares)
        m = np.arange(d + 1.0)
        apart = (shares @ (m * (d - m))) / (d * (d - 1.0))  # d (α_1 − α_2)
        contrast = gamma - gamma.mean(axis=1, keepdims=True)
        coefficients = slope[:, None] + contrast / apart[:, None]
        return WordLimits(coefficients, at_full - slope * (d - 1.0))

    @cached_property
    def _means(self) -> Values:
        return self.function.mean_by_size()
