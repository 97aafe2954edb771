"""What single words and pairs of words add, and Shapley values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from propopt.base.arrays import Array, Truths, Values
from propopt.structures.subsets.sets import SetFunction


@final
@dataclass(frozen=True, eq=False, repr=False)
class WordPairs:
    """f(z) = g(m) + Σ_j γ_j z_j + Σ_{j<k} B_jk z_j z_k, with m = Σ_j z_j.

    With q_1 = m / d, q_2 = q_1 (m − 1) / (d − 1) and q_3 = q_2 (m − 2) / (d − 2), the
    shares of the sets of m words that have one, two and three given words,

    E_m f = g + a q_1 + b q_2,
    E_m[z_j f] = g q_1 + a q_2 + b q_3 + γ_j (q_1 − q_2) + B_j (q_2 − q_3),

    where a = Σ_j γ_j, b = Σ_{j<k} B_jk and B_j = Σ_k B_jk.
    """

    levels: Values  # (d + 1,): g of m = 0, ..., d
    slopes: Values  # (d,): γ
    pairs: Array | None = None  # (d, d): B, symmetric with zeros on its diagonal

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_words} words)"

    @property
    def n_words(self) -> int:
        return len(self.slopes)

    def value(self, bits: Truths, /) -> Values:
        z = np.asarray(bits, float)
        sizes = z.sum(axis=1).astype(int)
        values = self.levels[sizes] + z @ self.slopes
        if self.pairs is not None:
            values += 0.5 * np.einsum("nj,nj->n", z @ self.pairs, z)
        return np.asarray(values)

    def mean_by_size(self) -> Values:
        one, two, _ = self._shares
        a, b = self.slopes.sum(), 0.5 * self._of_words.sum()
        return np.asarray(self.levels + a * one + b * two)

    def kept(self, weights: Array, /) -> Array:
        one, two, three = self._shares
        a, b = self.slopes.sum(), 0.5 * self._of_words.sum()
        level = weights @ (self.levels * one + a * two + b * three)
        alone, paired = weights @ (one - two), weights @ (two - three)
        return np.asarray(
            level[:, None]
            + alone[:, None] * self.slopes
            + paired[:, None] * self._of_words
        )

    @cached_property
    def _of_words(self) -> Values:
        """B_j of each word, (d,)."""
        if self.pairs is None:
            return np.zeros(self.n_words)
        return np.asarray(self.pairs.sum(axis=1))

    @cached_property
    def _shares(self) -> tuple[Values, Values, Values]:
        """q_1, q_2 and q_3 of m = 0, ..., d."""
        d = self.n_words
        m = np.arange(d + 1.0)
        one = m / d
        two = one * np.maximum(m - 1.0, 0.0) / max(d - 1, 1)
        three = two * np.maximum(m - 2.0, 0.0) / max(d - 2, 1)
        return one, two, three


def word_shapley(function: SetFunction) -> Values:
    """What each of d ≥ 1 words adds to f, on average over all orders of them, φ (d,).

    φ_j = Σ_{m=1..d} E_m[z_j f] / m − Σ_{m=0..d−1} (E_m f − E_m[z_j f]) / (d − m),

    for a set with j of m words has the weight (m − 1)! (d − m)! / d!, one over m times
    the number of all sets of m words; and one of m words without j one over d − m times
    that. So Σ_j φ_j = f(text) − f(empty text), and no set is asked for: φ is exact and
    as fast as the means are, however many words there are.
    """
    d = function.n_words
    m = np.arange(d + 1.0)
    with_word, without = np.zeros(d + 1), np.zeros(d + 1)
    with_word[1:] = 1.0 / m[1:]
    without[:-1] = 1.0 / (d - m[:-1])
    kept = function.kept((with_word + without)[None])[0]
    return np.asarray(kept - without @ function.mean_by_size())
