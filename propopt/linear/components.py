"""Connected components: what is constant on each costs a robustness loss nothing.

Values W are taken apart as W = M + R, where M is constant on each component and R adds
up to zero there. Sums of squared differences see R alone, and ⟨M, R⟩ = 0: M can be
taken out before any arithmetic, and put back after it, so that a large mean leaves no
rounding where it has no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from propopt._typing import Array, Sparse


@final
@dataclass(frozen=True, eq=False)
class Components:
    """A partition of nodes.

    Parameters
    ----------
    labels : array of int (N,)
        The part, 0 to p − 1, that each node belongs to; no part is empty.
    """

    labels: NDArray[np.integer]

    @classmethod
    def of(cls, coupled: Sparse) -> Components:
        """The connected components of a sparse matrix (N, N), whatever its signs."""
        _, labels = connected_components(coupled, directed=False)
        return cls(labels)

    @classmethod
    def single(cls, n_nodes: int) -> Components:
        """All nodes in one part."""
        return cls(np.zeros(n_nodes, dtype=np.int8))

    @classmethod
    def joined(cls, partitions: Sequence[Components]) -> Components:
        """The finest partition of which all of these are refinements."""
        # nodes of the same part hang on the first of them
        n_nodes = len(partitions[0].labels)
        heads = [parts.heads for parts in partitions]
        tails = np.tile(np.arange(n_nodes), len(partitions))
        entries = (np.ones(len(tails)), (tails, np.concatenate(heads)))
        return cls.of(sp.csr_array(entries, shape=(n_nodes, n_nodes)))

    @cached_property
    def count(self) -> int:
        """p, the number of parts."""
        return int(self.labels.max(initial=-1)) + 1

    @cached_property
    def sizes(self) -> Array:
        """Nodes of each part, shape (p,)."""
        return np.bincount(self.labels, minlength=self.count).astype(np.float64)

    def split(self, W: Array) -> tuple[Array, Array]:
        """The means (p, D) of W (N, D), and the rest R (N, D); a constant leaves zero.

        One node of each part is taken from the others before they are averaged: means
        of rounding, not of offsets.
        """
        first = self.firsts(W)
        R = W - self.spread(first)
        shift = self._averages(R)
        R -= self.spread(shift)
        return first + shift, R

    def firsts(self, W: Array) -> Array:
        """The values (p, D) at the first node of each part."""
        return W[self._first]

    def centred(self, W: Array) -> Array:
        """R, which adds up to zero on each part."""
        return self.split(W)[1]

    def spread(self, means: Array) -> Array:
        """M (N, D): at each node the mean of its part."""
        return means if self.count == 1 else means[self.labels]

    def members(self) -> list[NDArray[np.intp]]:
        """The nodes of each part, in order."""
        order = np.argsort(self.labels, kind="stable")
        return np.split(order, np.cumsum(self.sizes[:-1]).astype(np.intp))

    def _averages(self, R: Array) -> Array:
        if self.count == 1:
            return R.mean(axis=0, keepdims=True)
        return np.asarray(self._indicator @ R) / self.sizes[:, None]

    @cached_property
    def heads(self) -> NDArray[np.intp]:
        """For each node the first node of its part."""
        return self._first[self.labels]

    @cached_property
    def _first(self) -> NDArray[np.intp]:
        """The first node of each part."""
        return np.unique(self.labels, return_index=True)[1]

    @cached_property
    def _indicator(self) -> Sparse:
        """One row per part (p, N), with ones at its nodes."""
        n_nodes = len(self.labels)
        entries = (np.ones(n_nodes), (self.labels, np.arange(n_nodes)))
        return sp.csr_array(entries, shape=(self.count, n_nodes))
