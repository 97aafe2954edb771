"""Sums of functions of few words each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array, Truths, Values
from propopt.structures.subsets.blocks import Blocks
from propopt.structures.subsets.shares import shares_drawn


@final
@dataclass(frozen=True, eq=False, repr=False)
class PlainSum:
    """f(z) = base + Σ_B g_B(z_B), over blocks B of words.

    With h_i = P(i of the b words of B are kept | m of all) and ḡ_i the mean of g over
    the sets of i of them,

    E_m g = Σ_i h_i ḡ_i,   E_m[z_j g] = Σ_i h_i (m − i)/(d − b) ḡ_i of words outside.

    Parameters
    ----------
    base : float
        What is added to all.
    blocks : tuple of Blocks
        g, in their ``values``.
    n_words : int
        d.

    Examples
    --------
    >>> words = Blocks.of_words(np.array([2.0, -1.0]), np.zeros(2), np.arange(2))
    >>> f = PlainSum(0.5, (words,), 3)
    >>> f.value(np.array([[1, 0, 0], [1, 1, 1]]))
    array([2.5, 1.5])
    """

    base: float
    blocks: tuple[Blocks, ...]
    n_words: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_words} words)"

    def value(self, bits: Truths, /) -> Values:
        """Values at bits (n, d), (n,)."""
        z = np.asarray(bits, bool)
        found = np.full(len(z), self.base)
        for blocks in self.blocks:
            found += blocks.read(blocks.values, z)
        return found

    def mean_by_size(self) -> Values:
        """E_m f for m = 0, ..., d words kept, (d + 1,)."""
        found = np.full(self.n_words + 1, self.base)
        for blocks in self.blocks:
            means = (blocks.values @ blocks.shares).sum(axis=0)
            found += means @ shares_drawn(self.n_words, blocks.n_words)
        return found

    def kept(self, weights: Array, /) -> Array:
        """Σ_m w_m E_m[z_j f] for weights (K, d + 1) of sizes m = 0, ..., d: (K, d)."""
        d = self.n_words
        base = self.base * (weights @ (np.arange(d + 1) / d))
        found = np.repeat(base[:, None], d, axis=1)
        for blocks in self.blocks:
            _add_kept(found, blocks, weights, d)
        return found


def _add_kept(found: Array, blocks: Blocks, weights: Array, d: int) -> None:
    """Adds Σ_m w_m E_m[z_j g] of each block to all words (K, d)."""
    b, sizes = blocks.n_words, np.arange(d + 1.0)
    likely = shares_drawn(d, b)
    others = np.maximum(sizes - np.arange(b + 1)[:, None], 0.0) / max(d - b, 1)
    means = blocks.values @ blocks.shares
    outside = (weights @ (likely * others).T) @ means.T
    of_sets = (weights @ likely.T) @ blocks.shares.T
    inside = (of_sets[:, None] * blocks.values) @ blocks.kept
    found += outside.sum(axis=1, keepdims=True)
    found[:, blocks.words] += inside - outside[:, :, None]
