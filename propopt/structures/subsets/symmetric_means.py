"""Means of products over all sets of one size, and what each word adds to them.

Of factors a_k, one for each word that is kept, let e_m be the mean of their product
over the sets of m of t words. A block of b more words, whose sets of i words have the
mean factor ā_i, makes of them

e_m ← Σ_i P(i of the b are kept | m of t + b) ā_i e_(m − i),

of one word (1 − m/t) e_m + (m/t) a e_(m − 1): elementary symmetric means. Nothing is
negative, so that relative errors grow by roundings only. Beside e stands e′, the mean
of the product times the sum of values, whose block has the mean tilt ã_i of factors
times values. The chain rule, from the end, tells what a weighted sum of e′ owes to each
ā_i and ã_i: for all words at the cost of a few more such passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, final

import numpy as np

from propopt._typing import Array, Values
from propopt.structures.subsets.blocks import Blocks
from propopt.structures.subsets.shares import shares_drawn


_STORED: Final = 2**25
"""Bytes of e and e′ that are held at once; with more, they are computed twice."""


@final
@dataclass(frozen=True, eq=False)
class _Step:
    """A block of b words that comes to t others, at Q rates.

    Parameters
    ----------
    plain, tilted : array (Q, b + 1)
        ā and ã; ā_0 is 1 and ã_0 is 0.
    """

    plain: Array
    tilted: Array

    def grown(self, state: Array) -> Array:
        """From e and e′ of t words (2, Q, t + 1) to those of t + b."""
        more = self.plain.shape[1] - 1
        t = state.shape[2] - 1
        found = np.empty((2, len(self.plain), t + more + 1))
        found[:, :, t + 1 :] = 0.0
        of_none, *of_some = self._likely(t)
        np.multiply(state, of_none, out=found[:, :, : t + 1])
        for i, likely in enumerate(of_some, start=1):
            part, here = state * likely, found[:, :, i : i + t + 1]
            here[1] += self.tilted[:, i, None] * part[0]
            part *= self.plain[:, i, None]
            here += part
        return found

    def owed(self, later: Array, state: Array) -> tuple[Array, Array, Array]:
        """From what is owed to e and e′ of t + b words (2, K, Q, t + b + 1), to t.

        Also to ā and ã, both (K, Q, b + 1), of which those of no word are not counted.
        """
        t, shape = state.shape[2] - 1, (*later.shape[1:3], self.plain.shape[1])
        plain, tilted = np.zeros(shape), np.zeros(shape)
        of_none, *of_some = self._likely(t)
        found = later[..., : t + 1] * of_none
        for i, likely in enumerate(of_some, start=1):
            part = later[..., i : i + t + 1] * likely
            plain[..., i] = np.einsum("kqm,qm->kq", part[0], state[0])
            plain[..., i] += np.einsum("kqm,qm->kq", part[1], state[1])
            tilted[..., i] = np.einsum("kqm,qm->kq", part[1], state[0])
            found[0] += self.tilted[:, i, None] * part[1]
            part *= self.plain[:, i, None]
            found += part
        return found, plain, tilted

    def _likely(self, t: int) -> Iterator[Array]:
        """P(i of b are kept | m of t + b) at m = i, ..., i + t, for each i."""
        more = self.plain.shape[1] - 1
        for i, row in enumerate(shares_drawn(t + more, more)):
            yield row[i : i + t + 1]


@final
@dataclass(frozen=True, eq=False)
class SymmetricMeans:
    """Means over sets of one size of Π exp(−u sizes) Σ values, at Q rates u.

    Parameters
    ----------
    blocks : sequence of Blocks
        Each of d words is in one block.
    rates : array (Q,)
        u.
    """

    blocks: Sequence[Blocks]
    rates: Values

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
        return self._of_words(debts[::-1], weights)

    def _of_words(self, debts: list[list[Array]], weights: Array) -> Array:
        """From what is owed to the steps to what is owed to words (K, d)."""
        found = np.zeros((weights.shape[0], weights.shape[2] - 1))
        start = 0
        for blocks, of_sets in zip(self.blocks, self._of_sets, strict=True):
            own = debts[start : start + len(blocks.words)]
            start += len(own)
            plain, tilted = (
                np.stack(parts, axis=2) for parts in zip(*own, strict=True)
            )
            shares = blocks.shares.T
            owed = (plain @ shares + (tilted @ shares) * blocks.values) * of_sets
            found[:, blocks.words] = owed.sum(axis=1) @ blocks.kept
        return found

    def _parts(self) -> Iterator[tuple[list[_Step], Array]]:
        """Consecutive steps whose means can be held at once, and where they begin."""
        state = self._start
        for start, end in pairwise(self._cuts):
            yield self._steps[start:end], state
            for step in self._steps[start:end] if end < len(self._steps) else ():
                state = step.grown(state)

    @cached_property
    def _cuts(self) -> list[int]:
        """Where parts begin, and the end."""
        sizes = [step.plain.shape[1] - 1 for step in self._steps]
        n_bytes = 16 * len(self.rates) * (1 + np.cumsum([0, *sizes[:-1]]))
        part = np.cumsum(n_bytes) // _STORED
        return [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(sizes)]

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
