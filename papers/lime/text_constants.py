"""The constants of LIME on texts as they are printed, by what does not cancel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from propopt.base.arrays import Array, Values
from propopt.lime.text.word_limits import ExchangeableBits, TextLaw


class Sigmas(NamedTuple):
    """The four numbers that Σ⁻¹ consists of, σ_0, ..., σ_3 over c_d."""

    zero: float
    """Of the intercept itself."""

    one: float
    """Of the intercept and any word."""

    two: float
    """Of a word itself."""

    three: float
    """Of two words."""


@final
@dataclass(frozen=True, eq=False)
class TextConstants:
    """Σ = E[π Z Zᵀ] of Z = (1, z_1, ..., z_d), and its inverse.

    By E π, the share α_1 / α_0 of a word, and two eigenvalues of the covariance of bits
    (Mardaoui and Garreau 2021, Propositions 8 and 9) nothing cancels, as it does in c_d
    as it is printed, which is 0 in float64 for d = 2 and ν ≤ 0.1.
    """

    law: TextLaw
    n_words: int

    @property
    def bits(self) -> ExchangeableBits:
        """What the library knows of it."""
        return self.law.bits(self.n_words)

    @property
    def mean_weight(self) -> float:
        """α_0 = E π."""
        return float(np.exp(self.bits.log_weight[0]))

    def alphas(self, n_moments: int | None = None) -> Values:
        """α_p = E[π z_1 ... z_p] for p = 0, ..., P, by default d, (P + 1,)."""
        d = self.n_words
        weights = np.exp(self.law.log_weights(d)) / d
        m, share, result = np.arange(d + 1.0), np.ones(d + 1), []
        for p in range((d if n_moments is None else n_moments) + 1):
            result.append(weights @ share)
            share = share * np.maximum(m - p, 0.0) / max(d - p, 1)
        return np.array(result)

    @property
    def c(self) -> float:
        """c_d = α_0² Var_Q(m) / d > 0, in the sizes m of what is kept."""
        return float(self.mean_weight**2 * self.bits.along[0])

    @property
    def apart(self) -> float:
        """α_1 − α_2 > 0, as a sum of what is positive."""
        return float(self.mean_weight * self.bits.apart[0])

    @property
    def sigmas(self) -> Sigmas:
        """σ_0, ..., σ_3 over c_d: Σ⁻¹ by its eigenvalues."""
        d, share = self.n_words, float(self.bits.share[0])
        along = self.mean_weight * float(self.bits.along[0])
        rest = (1.0 / along - 1.0 / self.apart) / d
        zero = 1.0 / self.mean_weight + d * share**2 / along
        return Sigmas(zero, -share / along, 1.0 / self.apart + rest, rest)

    @property
    def matrix(self) -> Array:
        """Σ, (d + 1, d + 1), the intercept first."""
        zero, one, two = self.alphas(2)
        return exchangeable_matrix(self.n_words, zero, one, one, two)

    @property
    def inverse(self) -> Array:
        """Σ⁻¹, (d + 1, d + 1), the intercept first."""
        return exchangeable_matrix(self.n_words, *self.sigmas)


def exchangeable_matrix(
    n_words: int, zero: float, one: float, two: float, three: float
) -> Array:
    """The matrix (d + 1, d + 1) of an intercept and exchangeable words."""
    result = np.full((n_words + 1, n_words + 1), three)
    np.fill_diagonal(result, two)
    result[0] = one
    result[:, 0] = one
    result[0, 0] = zero
    return result


def inverse_norm(law: TextLaw, n_words: int) -> float:
    """‖Σ⁻¹‖, the largest factor by which errors of Γ grow; bounded in d.

    It is inf where weights are so small that they are zero.

    Parameters
    ----------
    law : TextLaw
        Of samples and weights.
    n_words : int
        d.

    Examples
    --------
    >>> round(inverse_norm(TextLaw(0.25), 29), 1)
    28.8
    """
    # over α_0, of [[α_0, √d α_1], [√d α_1, α_1 + (d − 1) α_2]] of determinant c_d
    d, bits = n_words, law.bits(n_words)
    one, apart, along = float(bits.share[0]), float(bits.apart[0]), bits.along[0]
    last = d * one - (d - 1.0) * apart
    largest = 0.5 * (1.0 + last + np.hypot(1.0 - last, 2.0 * np.sqrt(d) * one))
    mean_weight = float(np.exp(bits.log_weight[0]))
    least = mean_weight * min(apart, float(along / largest))
    return 1.0 / least if least > 0.0 else np.inf
