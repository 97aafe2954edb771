"""Functions of few words each: what their sum is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from propopt._typing import Array, Positions, Truths
from propopt.structures.subsets.sets import all_sets


@final
@dataclass(frozen=True, eq=False, repr=False)
class Blocks:
    """G blocks of b words each, with two numbers for each set of words of a block.

    Set s of the 2^b keeps word k of the block where bit k of s is 1; of no word kept
    both numbers are 0.

    Parameters
    ----------
    words : array (G, b)
        Which words each block has; no word is in two.
    values : array (G, 2^b)
        What each set adds to the value.
    sizes : array (G, 2^b)
        What each set adds to the norm's power, ≥ 0.
    """

    words: Positions
    values: Array
    sizes: Array

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

    def states(self, bits: Truths) -> Positions:
        """Which set of each block the bits (n, d) keep, (n, G)."""
        weights = 1 << np.arange(self.n_words)
        return np.asarray(bits[:, self.words] @ weights, np.intp)

    def read(self, table: Array, bits: Truths) -> Array:
        """Σ over blocks of a table (G, 2^b) at bits (n, d), (n,)."""
        states = self.states(bits)
        return np.asarray(table[np.arange(len(table)), states].sum(axis=1))
