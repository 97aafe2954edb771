"""Sums over words that are divided by the norm of what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from propopt._typing import Array, Truths, Values
from propopt.checks import sealed
from propopt.structures.subsets.blocks import Blocks
from propopt.structures.subsets.exponentials import ExponentialSum
from propopt.structures.subsets.symmetric_means import SymmetricMeans


_AT_ONCE: Final = 2**16
"""Numbers of one array: more do not stay near the processor."""

_RANK: Final = 1e-15
"""Directions of weights that have less of them are left out."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class NormalisedSum:
    """f(z) = base + Σ_B v_B(z_B) / (Σ_B r_B(z_B))^s, and the base where r is 0.

    Blocks B are words, but for words that share a feature. With TF-IDF c_j of word j
    and coefficients λ, it has v = λ_j c_j, and r = c_j² with s = 1/2 of the L2 norm,
    r = c_j with s = 1 of the L1 norm. All means are exact but for the roundings and for
    the relative error below 2e-14 of :class:`~propopt.structures.subsets.exponentials.
    ExponentialSum`: of f they are off by at most 2e-14 of the largest Σ |v_B| / (Σ r)^s
    over sets. Q nodes, 66 where words differ by 10^4 in r, need Q d² steps for each row
    of weights, and hold some MiB whatever d is: of 100 words 10 ms, of 1,000 words 1 s,
    of 5,000 words 16 s. Documents, and rows of weights, count each by itself.

    Parameters
    ----------
    base : float
        What is added to all.
    blocks : tuple of Blocks
        v and r, in their ``values`` and ``sizes``; each word is in one block.
    power : float
        s.

    Examples
    --------
    The words have TF-IDF 3 and 4, and only the first counts:

    >>> words = Blocks.of_words(
    ...     np.array([3.0, 0.0]), np.array([9.0, 16.0]), np.arange(2)
    ... )
    >>> f = NormalisedSum(0.0, (words,), 0.5)
    >>> f.value(np.array([[1, 1], [1, 0], [0, 0]]))
    array([0.6, 1. , 0. ])
    >>> f.mean_by_size()
    array([0. , 0.5, 0.6])
    """

    base: float
    blocks: tuple[Blocks, ...]
    power: float

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_words} words)"

    @cached_property
    def n_words(self) -> int:
        """The number of words, d."""
        return sum(blocks.words.size for blocks in self.blocks)

    @property
    def n_steps(self) -> float:
        """Q d²: each is some 10 ns."""
        return float(len(self._powers.rates)) * self.n_words**2

    def value(self, bits: Truths, /) -> Values:
        """Values at bits (n, d), (n,)."""
        z = np.asarray(bits, bool)
        values, sizes = np.zeros(len(z)), np.zeros(len(z))
        for blocks in self.blocks:
            values += blocks.read(blocks.values, z)
            sizes += blocks.read(blocks.sizes, z)
        known = sizes > 0.0
        norms = np.where(known, sizes, 1.0) ** self.power
        return np.asarray(self.base + np.where(known, values / norms, 0.0))

    def mean_by_size(self) -> Values:
        """E_m f for m = 0, ..., d words kept, (d + 1,)."""
        return self._means

    @cached_property
    def _means(self) -> Values:
        found = np.full(self.n_words + 1, self.base)
        for nodes in self._nodes(1):
            means = SymmetricMeans(self._scaled, self._powers.rates[nodes]).means()
            found += self._powers.weights[nodes] @ means
        return sealed(found)

    def kept(self, weights: Array, /) -> Array:
        """Σ_m w_m E_m[z_j f] for weights (K, d + 1) of sizes m = 0, ..., d: (K, d)."""
        base = self.base * (weights @ (np.arange(self.n_words + 1) / self.n_words))
        largest = np.abs(weights).max(axis=1, initial=0.0)
        scale = np.where(largest > 0.0, largest, 1.0)[:, None]
        mix, few = _few(weights / scale)
        return base[:, None] + scale * (mix @ self._kept(few))

    def _kept(self, weights: Array) -> Array:
        found = np.zeros((len(weights), self.n_words))
        for nodes in self._nodes(len(weights)):
            means = SymmetricMeans(self._scaled, self._powers.rates[nodes])
            found += means.kept(weights[:, None] * self._powers.weights[nodes][:, None])
        return found

    def _nodes(self, n_rows: int) -> Iterator[slice]:
        """Consecutive nodes that are taken at once."""
        size = max(1, _AT_ONCE // (n_rows * (self.n_words + 1)))
        n_nodes = len(self._powers.rates)
        for start in range(0, n_nodes, size):
            yield slice(start, min(start + size, n_nodes))

    @cached_property
    def _total(self) -> float:
        """The largest size that a set can have; 1 where it is 0."""
        return sum(float(b.sizes.max(axis=1).sum()) for b in self.blocks) or 1.0

    @cached_property
    def _scaled(self) -> tuple[Blocks, ...]:
        """The blocks, with sizes that add up to at most 1."""
        scale = self._total
        return tuple(
            Blocks(b.words, b.values / scale**self.power, b.sizes / scale)
            for b in self.blocks
        )

    @cached_property
    def _powers(self) -> ExponentialSum:
        positive = [b.sizes[b.sizes > 0.0].min(initial=np.inf) for b in self._scaled]
        return ExponentialSum.of(self.power, min(1.0, *positive))


def _few(weights: Array) -> tuple[Array, Array]:
    """Weights (K, M) as a product of (K, R) and (R, M), as few rows as they need."""
    left, sizes, right = np.linalg.svd(weights, full_matrices=False)
    used = sizes > _RANK * sizes.max(initial=0.0)
    return left[:, used] * sizes[used], right[used]
