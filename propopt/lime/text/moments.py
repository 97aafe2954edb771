"""The constants of LIME on texts: moments of words that are kept, and their inverse."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from propopt._typing import Array, Values
from propopt.errors import InvalidInput
from propopt.lime.moments import ExchangeableBits
from propopt.lime.text.law import TextLaw


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
class TextMoments:
    """Σ = E[π Z Zᵀ] of Z = (1, z_1, ..., z_d), and its inverse.

    Bits are exchangeable, so that all is in E π, the share α_1 / α_0 of a word, and two
    eigenvalues of the covariance of bits (Mardaoui and Garreau 2021, Propositions 8 and
    9). With these nothing cancels, as it does in c_d as it is printed, which is 0 in
    float64 for d = 2 and ν ≤ 0.1.

    Parameters
    ----------
    law : TextLaw
        How words are deleted.
    n_words : int
        d ≥ 2.

    Raises
    ------
    InvalidInput
        If there are less than two words: Σ is singular.

    Examples
    --------
    >>> constants = TextMoments(TextLaw(0.25), 29)
    >>> round(constants.c, 8), round(constants.sigmas.two, 8)
    (0.27028198, 11.21927719)
    """

    law: TextLaw
    n_words: int

    def __post_init__(self) -> None:
        if self.n_words < 2:
            raise InvalidInput(
                f"n_words: expected at least 2, got {self.n_words}: of one word its "
                "coefficient and the intercept cannot be told apart"
            )

    @cached_property
    def bits(self) -> ExchangeableBits:
        """The same as moments of bits under the weighted law."""
        logs = self.law.log_weights(self.n_words) - np.log(self.n_words)
        return ExchangeableBits.of_sizes(logs[None])

    @property
    def mean_weight(self) -> float:
        """α_0 = E π."""
        return float(np.exp(self.bits.log_weight[0]))

    def alphas(self, n_moments: int | None = None) -> Values:
        """α_p = E[π z_1 ... z_p] for p = 0, ..., P, by default d, (P + 1,)."""
        return self.law.moments(self.n_words, n_moments)

    @property
    def c(self) -> float:
        """c_d = α_0² Var_Q(m) / d > 0, in the sizes m of what is kept."""
        return float(self.mean_weight**2 * self.bits.along[0])

    @property
    def apart(self) -> float:
        """α_1 − α_2 > 0, as a sum of what is positive."""
        return float(self.mean_weight * self.bits.apart[0])

    @cached_property
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

    @property
    def inverse_norm(self) -> float:
        """‖Σ⁻¹‖, the largest factor by which errors of Γ grow; bounded in d.

        It is inf where weights are so small that they are zero.
        """
        least = self.mean_weight * min(float(self.bits.apart[0]), self._ends[0])
        return 1.0 / least if least > 0.0 else np.inf

    @property
    def condition(self) -> float:
        """‖Σ‖ ‖Σ⁻¹‖."""
        apart, (least, largest) = float(self.bits.apart[0]), self._ends
        least = min(apart, least)
        return max(apart, largest) / least if least > 0.0 else np.inf

    @property
    def _ends(self) -> tuple[float, float]:
        """Over α_0, of [[α_0, √d α_1], [√d α_1, α_1 + (d − 1) α_2]].

        Its determinant is c_d.
        """
        d, one = self.n_words, float(self.bits.share[0])
        last = d * one - (d - 1.0) * float(self.bits.apart[0])
        largest = 0.5 * (1.0 + last + np.hypot(1.0 - last, 2.0 * np.sqrt(d) * one))
        return float(self.bits.along[0] / largest), float(largest)

    @property
    def effective_share(self) -> float:
        """(E π)² / E π², the share of the samples that count."""
        logs = self.law.log_weights(self.n_words)
        weights = np.exp(logs - logs.max())
        return float(weights.sum() ** 2 / (weights**2).sum() / self.n_words)


def exchangeable_matrix(
    n_words: int, zero: float, one: float, two: float, three: float
) -> Array:
    """The matrix (d + 1, d + 1) of an intercept and words that are all alike.

    Parameters
    ----------
    n_words : int
        d.
    zero, one, two, three : float
        Of the intercept itself, it and a word, a word itself, and two words.
    """
    found = np.full((n_words + 1, n_words + 1), three)
    np.fill_diagonal(found, two)
    found[0], found[:, 0] = one, one
    found[0, 0] = zero
    return found
