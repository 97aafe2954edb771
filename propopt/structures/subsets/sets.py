"""Sets of words, and means over all sets of one size.

Means of products over all sets of one size, and what each word adds to them. Of factors
a_k, one for each word that is kept, let e_m be the mean of their product over the sets
of m of t words. A block of b more words, whose sets of i words have the
mean factor ā_i, makes of them

e_m ← Σ_i P(i of the b are kept | m of t + b) ā_i e_(m − i),

of one word (1 − m/t) e_m + (m/t) a e_(m − 1): elementary symmetric means. Nothing is
negative, so that relative errors grow by roundings only. Beside e stands e′, the mean
of the product times the sum of values, whose block has the mean tilt ã_i of factors
times values. The chain rule, from the end, tells what a weighted sum of e′ owes to each
ā_i and ã_i: for all words at the cost of a few more such passes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Final, Protocol, final

import numpy as np

from propopt.base.arrays import Array, Positions, Truths, Values


# ---- Sets of words: all, all of one size, or some of given sizes


def all_sets(n_words: int) -> Truths:
    """The bits of all sets of words, (2^d, d): word j is in set i if bit j of i is."""
    indices = np.arange(2**n_words)[:, None]
    return np.asarray((indices >> np.arange(n_words)) & 1, bool)


def sets_of_size(n_words: int, size: int) -> Truths:
    """All sets of one size as bits, (C(d, m), d)."""
    few = min(size, n_words - size)
    inside = np.array(list(combinations(range(n_words), few)), np.intp)
    bits = np.zeros((len(inside), n_words), bool)
    np.put_along_axis(bits, inside.reshape(len(inside), few), True, axis=1)
    return bits if few == size else ~bits


def random_sets(n_words: int, sizes: Positions, rng: np.random.Generator) -> Truths:
    """Sets of given sizes (n,), all sets of one size alike likely, as bits (n, d)."""
    ranks = rng.random((len(sizes), n_words)).argsort(axis=1).argsort(axis=1)
    return np.asarray(ranks >= (n_words - sizes)[:, None])


def shapley_of_worths(worths: Array) -> Array:
    """φ (..., D) of what all sets are worth, (..., 2^D); bit j of a place is column j.

    φ_j = Σ_{S ∌ j} |S|! (D − |S| − 1)! / D! (v(S ∪ j) − v(S)).
    """
    n = worths.shape[-1].bit_length() - 1
    place, values = np.arange(2**n), np.zeros((*worths.shape[:-1], n))
    shares = np.array([1.0 / (n * math.comb(n - 1, size)) for size in range(n)])
    for j in range(n):
        without = place[(place >> j) % 2 == 0]
        gains = worths[..., without | (1 << j)] - worths[..., without]
        values[..., j] = gains @ shares[np.bitwise_count(without)]
    return values


# ---- How likely it is that a set of words of one size keeps these and not those


def share_keeping(m: Array, d: int, present: int, absent: int) -> Array:
    """C(d − p − a, m − p) / C(d, m), of the sets of m of d words; 0 where p + a > d."""
    # Π_{i<p} (m − i)/(d − i) · Π_{i<a} (d − m − i)/(d − p − i)
    if present + absent > d:
        return np.zeros(m.shape)
    result = np.ones(m.shape)
    for i in range(present):
        result *= np.maximum(m - i, 0.0) / (d - i)
    for i in range(absent):
        result *= np.maximum(d - m - i, 0.0) / (d - present - i)
    return result


def shares_sampled(d: int, b: int) -> Array:
    """P(i of b words are kept | m of all d are), (b + 1, d + 1)."""
    m = np.arange(d + 1.0)
    if b == 1:  # most blocks: asked for at each word of a text
        result = np.empty((2, d + 1))
        np.divide(d - m, d, out=result[0])
        np.divide(m, d, out=result[1])
        return result
    return np.array(
        [math.comb(b, i) * share_keeping(m, d, i, b - i) for i in range(b + 1)]
    )


def shares_keeping(n_words: int, most_present: int, most_absent: int) -> Array:
    """The same of all p and a up to these, and all m: (P + 1, A + 1, d + 1)."""
    m = np.arange(n_words + 1.0)
    p = np.arange(most_present + 1)
    result = np.zeros((len(p), most_absent + 1, n_words + 1))
    result[:, 0] = [share_keeping(m, n_words, i, 0) for i in p.tolist()]
    for a in range(most_absent):
        some = p[p + a < n_words]  # with one more all words are asked for at most
        left = result[some, a] * np.maximum(n_words - m - a, 0.0)
        result[some, a + 1] = left / (n_words - some - a)[:, None]
    return result


# ---- Functions of sets of words, and the means of them that are known without samples


class SizeMeans(Protocol):
    """Means of a function of d bits over all sets of m words kept, E_m f."""

    @property
    def n_words(self) -> int:
        """The number of bits, d."""

    def mean_by_size(self) -> Values:
        """E_m f for m = 0, ..., d words kept, (d + 1,)."""

    def kept(self, weights: Array, /) -> Array:
        """Σ_m w_m E_m[z_j f] for weights (K, d + 1) of sizes m = 0, ..., d: (K, d)."""


class SetFunction(SizeMeans, Protocol):
    """A function of d bits whose means over all sets of one size are known exactly."""

    def value(self, bits: Truths, /) -> Values:
        """Values at bits (n, d), (n,)."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Blocks:
    """G blocks of b words each, with two numbers for each set of words of a block."""

    words: Positions  # (G, b): which words each block has; no word is in two
    # (G, 2^b): what each set adds to the value; set s keeps word k if bit k of s is 1
    values: Array
    sizes: Array  # (G, 2^b): what each set adds to the norm's power, ≥ 0

    @classmethod
    def of_words(cls, values: Array, sizes: Array, words: Positions) -> Blocks:
        """Blocks of one word: values (G,) and sizes (G,) of the words kept."""
        nothing = np.zeros(len(words))
        return cls(
            words[:, None],
            np.column_stack([nothing, values]),
            np.column_stack([nothing, sizes]),
        )

    @property
    def n_words(self) -> int:
        """The number of words of each block, b."""
        return self.words.shape[1]

    @cached_property
    def kept(self) -> Truths:
        """Which words of a block each set keeps, (2^b, b)."""
        return all_sets(self.n_words)

    @cached_property
    def shares(self) -> Array:
        """1 / C(b, i) where a set has i words, (2^b, b + 1): means of one size."""
        b, sizes = self.n_words, self.kept.sum(axis=1)
        shares = np.zeros((2**b, b + 1))
        for i in range(b + 1):
            shares[sizes == i, i] = 1.0 / math.comb(b, i)
        return shares

    def read(self, table: Array, bits: Truths) -> Array:
        """Σ over blocks of a table (G, 2^b) at bits (n, d), (n,)."""
        states = np.asarray(bits[:, self.words] @ (1 << np.arange(self.n_words)))
        return np.asarray(table[np.arange(len(table)), states].sum(axis=1))


# ---- Means of products over all sets of one size, and what each word adds to them


_STORED: Final = 2**25
"""Bytes of e and e′ that are held at once; with more, they are computed twice."""


@final
@dataclass(frozen=True, eq=False)
class _Step:
    """A block of b words that comes to t others, at Q rates."""

    plain: Array  # (Q, b + 1): ā; ā_0 is 1 and ã_0 is 0
    tilted: Array  # (Q, b + 1): ã; ā_0 is 1 and ã_0 is 0

    def grown(self, state: Array) -> Array:
        """From e and e′ of t words (2, Q, t + 1) to those of t + b."""
        more = self.plain.shape[1] - 1
        t = state.shape[2] - 1
        result = np.empty((2, len(self.plain), t + more + 1))
        result[:, :, t + 1 :] = 0.0
        of_none, *of_some = self._likely(t)
        np.multiply(state, of_none, out=result[:, :, : t + 1])
        for i, likely in enumerate(of_some, start=1):
            part, here = state * likely, result[:, :, i : i + t + 1]
            here[1] += self.tilted[:, i, None] * part[0]
            part *= self.plain[:, i, None]
            here += part
        return result

    def owed(self, later: Array, state: Array) -> tuple[Array, Array, Array]:
        """From what is owed to e, e′ of t + b words to that of t, and to ā and ã."""
        t, shape = state.shape[2] - 1, (*later.shape[1:3], self.plain.shape[1])
        plain, tilted = np.zeros(shape), np.zeros(shape)
        of_none, *of_some = self._likely(t)
        result = later[..., : t + 1] * of_none
        for i, likely in enumerate(of_some, start=1):
            part = later[..., i : i + t + 1] * likely
            plain[..., i] = np.einsum("kqm,qm->kq", part[0], state[0])
            plain[..., i] += np.einsum("kqm,qm->kq", part[1], state[1])
            tilted[..., i] = np.einsum("kqm,qm->kq", part[1], state[0])
            result[0] += self.tilted[:, i, None] * part[1]
            part *= self.plain[:, i, None]
            result += part
        return result, plain, tilted

    def _likely(self, t: int) -> Iterator[Array]:
        """P(i of b are kept | m of t + b) at m = i, ..., i + t, for each i."""
        more = self.plain.shape[1] - 1
        for i, row in enumerate(shares_sampled(t + more, more)):
            yield row[i : i + t + 1]


@final
@dataclass(frozen=True, eq=False)
class SymmetricMeans:
    """Means over sets of one size of Π exp(−u sizes) Σ values, at Q rates u."""

    blocks: Sequence[Blocks]  # each of d words is in one block
    rates: Values  # (Q,): u

    def means(self) -> Array:
        """Of the sets of m = 0, ..., d words, (Q, d + 1)."""
        state = self._start
        for step in self._steps:
            state = step.grown(state)
        return np.asarray(state[1])

    def kept(self, weights: Array) -> Array:
        """Σ_qm w_qm (mean of those that keep word j) for w (K, Q, d + 1): (K, d)."""
        later = np.stack([np.zeros(weights.shape), weights])
        debts = []
        for steps, state in reversed(list(self._parts())):
            states = [state]
            for step in steps[:-1]:
                states.append(step.grown(states[-1]))
            for step in reversed(steps):
                later, *debt = step.owed(later, states.pop())
                debts.append(debt)
        result = np.zeros((weights.shape[0], weights.shape[2] - 1))
        for blocks, of_sets in zip(self.blocks, self._of_sets, strict=True):
            own = [debts.pop() for _ in blocks.words]
            plain, tilted = (
                np.stack(parts, axis=2) for parts in zip(*own, strict=True)
            )
            shares = blocks.shares.T
            owed = (plain @ shares + (tilted @ shares) * blocks.values) * of_sets
            result[:, blocks.words] = owed.sum(axis=1) @ blocks.kept
        return result

    def _parts(self) -> Iterator[tuple[list[_Step], Array]]:
        """Consecutive steps whose means can be held at once, and where they begin."""
        sizes = [step.plain.shape[1] - 1 for step in self._steps]
        n_bytes = 16 * len(self.rates) * (1 + np.cumsum([0, *sizes[:-1]]))
        part, state = np.cumsum(n_bytes) // _STORED, self._start
        cuts = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(sizes)]
        for start, end in pairwise(cuts):
            yield self._steps[start:end], state
            for step in self._steps[start:end] if end < len(self._steps) else ():
                state = step.grown(state)

    @property
    def _start(self) -> Array:
        """Of no word: the product is 1, and the sum 0."""
        state = np.zeros((2, len(self.rates), 1))
        state[0] = 1.0
        return state

    @cached_property
    def _of_sets(self) -> list[Array]:
        """The factors of sets of blocks, (Q, G, 2^b) of each."""
        return [
            np.exp(-self.rates[:, None, None] * blocks.sizes) for blocks in self.blocks
        ]

    @cached_property
    def _steps(self) -> list[_Step]:
        steps = []
        for blocks, of_sets in zip(self.blocks, self._of_sets, strict=True):
            plain = of_sets @ blocks.shares
            tilted = (of_sets * blocks.values) @ blocks.shares
            steps += [
                _Step(plain[:, g], tilted[:, g]) for g in range(len(blocks.words))
            ]
        return steps
