"""Sums over words divided by a norm, and sums of functions of words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt.base.arrays import Array, Mask, Values
from propopt.base.checks import read_only
from propopt.structures.subsets.sets import Blocks, SetFunction
from propopt.structures.subsets.sizes import SymmetricMeans


# ---- Powers as sums of exponentials, which turn functions of sums into products


_STEP: Final = 0.26
_TAIL: Final = 37.0
"""Beyond this, e^(−u R) is below 1e-16 of the sum."""


def exponential_sum(power: float, smallest: float) -> tuple[Values, Values]:
    r"""Rates u and weights w (Q,) of a sum of exponentials, both positive.

    R^(−s) = Σ_q w_q exp(−u_q R) for r ≤ R ≤ 1, to a relative error below 2e-14.

    Γ(s) R^(−s) = ∫ u^(s−1) exp(−u R) du, with u = exp(x − e^(−x)), is by the trapezoid
    rule with step h = 0.26 of the integrand

    g(x) = u(x)^s (1 + e^(−x)) exp(−u(x) R).

    g is analytic, and in the strip of \|Im x\| ≤ 1.5 the integral of \|g\| R^s / Γ(s)
    along any parallel to the real axis is at most M = 12.4 for s = 1/2 and 39.3 for
    s = 1, both at R = 1. The error is thus at most 2 M / (e^(2π 1.5/h) − 1), which is
    4.5e-15 and 1.5e-14 (Trefethen and Weideman 2014, Theorem 5.1); measured are 1e-15
    and 2e-15. Left of the nodes u falls like exp(−e^\|x\|), and right of them uR > 37:
    each end leaves out less than 2e-16. So (33 + log(37/r)) / 0.26 nodes do at most,
    of which few are on the left: 48 for r = 0.01, 66 for 1e-4, 101 for 1e-8.
    """
    lowest = (math.log(math.gamma(power + 1.0)) + math.log(1e-16)) / power
    highest = math.log(_TAIL / smallest)
    # log u = x − e^(−x) rises; at x = −log(2 − lowest) it is below the lowest
    first = math.floor(-math.log(2.0 - lowest) / _STEP)
    last = math.ceil((highest + 1.0) / _STEP)
    x = _STEP * np.arange(first, last + 1)
    logs = x - np.exp(-x)
    used = (logs > lowest) & (logs < highest)
    slopes = (1.0 + np.exp(-x[used])) * _STEP / math.gamma(power)
    return np.exp(logs[used]), np.exp(power * logs[used]) * slopes


# ---- Sums over words that are divided by the norm of the retained words


_RANK: Final = 1e-15
"""Directions of weights with a smaller share are left out."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class NormalisedSum:
    """Normalised sums f(z) = base + Σ_B v_B(z_B) / (Σ_B r_B(z_B))^s, base where r is 0.

    With TF-IDF c_j of word j and coefficients λ, it has v = λ_j c_j, and r = c_j² with
    s = 1/2 for the L2 norm, r = c_j with s = 1 for the L1 norm. Errors of means are at
    most 1e-13 of the largest Σ |v_B| / (Σ r)^s. There are Q nodes, 66 where words
    differ by 10^4 in r, and U different r of single words. Means take at most 13 Q U √d
    numbers: for 1,000 words some .003 s if U = 2, .08 s if U = 200, .22 s if all r
    differ.
    """

    base: float  # the constant
    # v and r as values and sizes; each word is in one block
    blocks: tuple[Blocks, ...]
    power: float  # s

    @cached_property
    def n_words(self) -> int:
        """The number d of words."""
        return sum(blocks.words.size for blocks in self.blocks)

    @property
    def n_steps(self) -> float:
        """An upper bound on the numbers that means take; 0 for one word."""
        return self._symmetric.n_steps if self.n_words > 1 else 0.0

    def value(self, bits: Mask, /) -> Values:
        z = np.asarray(bits, bool)
        values = np.zeros(len(z))
        sizes = np.zeros(len(z))
        for blocks in self.blocks:
            values += blocks.look_up(blocks.values, z)
            sizes += blocks.look_up(blocks.sizes, z)
        nonempty = sizes > 0.0
        norms = np.where(nonempty, sizes, 1.0) ** self.power
        return self.base + np.where(nonempty, values / norms, 0.0)

    def mean_by_size(self) -> Values:
        return self._means

    @cached_property
    def _means(self) -> Values:
        result = np.full(self.n_words + 1, self.base)
        if self.n_words > 1:
            result[1:-1] += self._symmetric.means()
        result[-1] = self._at_all
        return read_only(result)

    def first_moments(self, weights: Array, /) -> Array:
        d = self.n_words
        sure = self.base * (weights[:, :d] @ (np.arange(d) / d))
        sure += weights[:, d] * self._at_all
        result = np.repeat(sure[:, None], d, axis=1)
        if d > 1:
            largest = np.abs(weights).max(axis=1, initial=0.0)
            scale = np.where(largest > 0.0, largest, 1.0)[:, None]
            # a product (K, R) · (R, d + 1) of minimal rank R
            left, sizes, right = np.linalg.svd(weights / scale, full_matrices=False)
            used = sizes > _RANK * sizes.max(initial=0.0)
            mix = left[:, used] * sizes[used]
            result += scale * (mix @ self._symmetric.first_moments(right[used]))
        return result

    @cached_property
    def _at_all(self) -> float:
        """The value for the whole document."""
        return float(self.value(np.ones((1, self.n_words), bool))[0])

    @cached_property
    def _symmetric(self) -> SymmetricMeans:
        """Means over sets of some words, but not all, without the base."""
        total = sum(float(b.sizes.max(axis=1).sum()) for b in self.blocks) or 1.0
        # sizes with a sum of at most 1
        blocks = [
            Blocks(b.words, b.values / total**self.power, b.sizes / total)
            for b in self.blocks
        ]
        positive = [b.sizes[b.sizes > 0.0].min(initial=np.inf) for b in blocks]
        exponentials = exponential_sum(self.power, min(1.0, *positive))
        return SymmetricMeans(blocks, *exponentials)


# ---- Weighted sums of functions of sets of words


@final
@dataclass(frozen=True, eq=False)
class AddedSets:
    """A weighted sum of functions of sets of words, f = base + Σ_k weight_k f_k."""

    # pairs of weight and function, at least one, all of the same words
    parts: Sequence[tuple[float, SetFunction]]
    base: float | Values = 0.0  # or (d + 1,), by the number of retained words

    @property
    def n_words(self) -> int:
        return self.parts[0][1].n_words

    def value(self, bits: Mask, /) -> Values:
        sizes = np.asarray(bits, bool).sum(axis=1)
        values = np.broadcast_to(self.base, self.n_words + 1)[sizes]
        return values + sum(w * part.value(bits) for w, part in self.parts)

    def mean_by_size(self) -> Values:
        means = sum(weight * part.mean_by_size() for weight, part in self.parts)
        return np.asarray(self.base + means)

    def first_moments(self, weights: Array, /) -> Array:
        # E_m z_j = m / d
        share = np.arange(self.n_words + 1) / self.n_words
        moments = sum(w * part.first_moments(weights) for w, part in self.parts)
        return (self.base * np.asarray(weights) @ share)[:, None] + moments
