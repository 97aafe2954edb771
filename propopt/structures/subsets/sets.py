"""Sets of words, their probabilities, and functions of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Protocol, final

import numpy as np

from propopt.base.arrays import Array, Indices, Mask, Values
from propopt.base.text import Reason
from propopt.tables.documents import TextDocument


# ---- Sets of words: all, all of one size, or random ones


def all_sets(n_words: int) -> Mask:
    """Bits of all sets of words, (2^d, d); word j is in set i if bit j of i is 1."""
    indices = np.arange(2**n_words)[:, None]
    return np.asarray((indices >> np.arange(n_words)) & 1, bool)


def sets_of_size(n_words: int, size: int) -> Mask:
    """All sets of one size as bits, shape (C(d, m), d)."""
    few = min(size, n_words - size)
    inside = np.array(list(combinations(range(n_words), few)), np.intp)
    bits = np.zeros((len(inside), n_words), bool)
    np.put_along_axis(bits, inside.reshape(len(inside), few), True, axis=1)
    return bits if few == size else ~bits


def random_sets(n_words: int, sizes: Indices, rng: np.random.Generator) -> Mask:
    """Random sets of given sizes (n,), uniform for each size, as bits (n, d)."""
    ranks = rng.random((len(sizes), n_words)).argsort(axis=1).argsort(axis=1)
    return ranks >= (n_words - sizes)[:, None]


def shapley_of_coalitions(coalition_values: Array) -> Array:
    """Shapley values φ (..., D) from the values of all coalitions, (..., 2^D).

    φ_j = Σ_{S ∌ j} |S|! (D − |S| − 1)! / D! (v(S ∪ j) − v(S)); bit j of an index stands
    for column j.
    """
    n = coalition_values.shape[-1].bit_length() - 1
    index = np.arange(2**n)
    values = np.zeros((*coalition_values.shape[:-1], n))
    shares = np.array([1.0 / (n * math.comb(n - 1, size)) for size in range(n)])
    for j in range(n):
        without = index[(index >> j) % 2 == 0]
        with_j = coalition_values[..., without | (1 << j)]
        gains = with_j - coalition_values[..., without]
        values[..., j] = gains @ shares[np.bitwise_count(without)]
    return values


# ---- Probabilities that a random set of one size contains and lacks given words


def shares_keeping(n_words: int, most_present: int, most_absent: int) -> Array:
    """C(d − p − a, m − p) / C(d, m) for p ≤ P and a ≤ A, (P + 1, A + 1, d + 1).

    0 where p + a > d.
    """
    # Π_{i<p} (m − i)/(d − i) · Π_{i<a} (d − m − i)/(d − p − i)
    m = np.arange(n_words + 1.0)
    p = np.arange(most_present + 1)
    result = np.zeros((len(p), most_absent + 1, n_words + 1))
    result[0, 0] = 1.0
    for i in range(min(most_present, n_words)):
        result[i + 1, 0] = result[i, 0] * np.maximum(m - i, 0.0) / (n_words - i)
    for a in range(most_absent):
        defined = p[p + a < n_words]  # so that p + a + 1 ≤ d
        shares = result[defined, a] * np.maximum(n_words - m - a, 0.0)
        result[defined, a + 1] = shares / (n_words - defined - a)[:, None]
    return result


# ---- Functions of sets of words with exact means


class SizeMeans(Protocol):
    """Exact means E_m f of a function of d bits over all sets of m words."""

    @property
    def n_words(self) -> int:
        """The number d of bits, one for each word."""

    def mean_by_size(self) -> Values:
        """Means E_m f for m = 0, ..., d retained words, shape (d + 1,)."""

    def first_moments(self, weights: Array, /) -> Array:
        """Sums Σ_m w_m E_m[z_j f] for weights w (K, d + 1) by size, shape (K, d)."""


class SetFunction(SizeMeans, Protocol):
    """A function of d bits with exact means over all sets of one size."""

    def value(self, bits: Mask, /) -> Values:
        """Values at bits (n, d), shape (n,)."""


class TextStructure(Protocol):
    """A text model with an exact structure: a function of the words of any document."""

    def at(self, document: TextDocument, /) -> SetFunction | Reason:
        """The output as an exact function of retained words, or the reason why not."""


def word_shapley(function: SetFunction) -> Values:
    """Exact Shapley values φ (d,) of the d ≥ 1 words of a document.

    φ_j = Σ_{m=1..d} E_m[z_j f] / m − Σ_{m=0..d−1} (E_m f − E_m[z_j f]) / (d − m),

    for a set with j of m words has the weight (m − 1)! (d − m)! / d!, one over m times
    the number of all sets of m words; and one of m words without j one over d − m times
    that. So Σ_j φ_j = f(text) − f(empty text), and f is evaluated at no set: φ is exact
    and takes the time of the means, for any number of words.
    """
    d = function.n_words
    m = np.arange(d + 1.0)
    with_word = np.zeros(d + 1)
    without = np.zeros(d + 1)
    with_word[1:] = 1.0 / m[1:]
    without[:-1] = 1.0 / (d - m[:-1])
    moments = function.first_moments((with_word + without)[None])[0]
    return moments - without @ function.mean_by_size()


@final
@dataclass(frozen=True, eq=False, repr=False)
class Blocks:
    """G blocks of b words each, with two numbers for each set of words of a block."""

    words: Indices  # (G, b): the words of each block; no word is in two blocks
    # (G, 2^b): the value of each set; set s retains word k if bit k of s is 1
    values: Array
    sizes: Array  # (G, 2^b): the contribution of each set to the norm's power, ≥ 0

    @property
    def n_words(self) -> int:
        """The number b of words of each block."""
        return self.words.shape[1]

    @cached_property
    def retained(self) -> Mask:
        """The words of a block that each set retains, shape (2^b, b)."""
        return all_sets(self.n_words)

    @staticmethod
    def shares_of(n_words: int) -> Array:
        """1 / C(b, i) in column i for a set of i words, (2^b, b + 1)."""
        sizes = np.bitwise_count(np.arange(2**n_words))
        has_size = sizes[:, None] == np.arange(n_words + 1)
        return has_size / has_size.sum(axis=0)

    @cached_property
    def shares(self) -> Array:
        """The matrix :meth:`shares_of` for the words of a block."""
        return self.shares_of(self.n_words)

    def look_up(self, table: Array, bits: Mask) -> Array:
        """The sum over blocks of entries of a table (G, 2^b) at bits (n, d), (n,)."""
        states = np.asarray(bits[:, self.words] @ (1 << np.arange(self.n_words)))
        return table[np.arange(len(table)), states].sum(axis=1)
