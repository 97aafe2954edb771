"""Sums over the patches that have none of some features, for all rows and sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, final

import numpy as np
import scipy.sparse as sp

from propopt._typing import Array, Sparse, Truths
from propopt.interactions.features import Places
from propopt.interactions.subsets import subsets_of


SPARSE_COST: Final = 8.0
"""Seconds of an entry of a sparse product, in those of an entry of a dense one."""


class SumsWithout(Protocol):
    """Σ_b 1{T ∩ F_b = ∅} a_b of q sets T of one size, whatever a_b is."""

    def over(self, present: Truths, summed: Array) -> Array:
        """The sums, (q, L).

        Parameters
        ----------
        present : array of bool (M, b)
            Whether a feature is in a patch.
        summed : array (b, L)
            a.
        """


def sums_without(sets: Places, share: float) -> SumsWithout:
    """The cheaper of the two ways to the same sums, up to rounding.

    Parameters
    ----------
    sets : array of int (q, t)
        Sets of features.
    share : float
        Of the features in a patch, m/M: patches with all of t are about share^t.
    """
    sparse = SparseSums.of(sets)
    entries = sum(len(own) * share ** own.shape[1] for own in (*sparse.smaller, sets))
    return sparse if SPARSE_COST * entries < len(sets) else DenseSums(sets)


@final
@dataclass(frozen=True, eq=False)
class DenseSums:
    """A product with the mask (q, b) of patches that have none of T."""

    sets: Places

    def over(self, present: Truths, summed: Array) -> Array:
        absent = np.ones((len(self.sets), len(summed)), dtype=bool)
        for places in self.sets.T:
            absent &= ~present[places]
        return absent.astype(np.float64) @ summed


@final
@dataclass(frozen=True, eq=False)
class SparseSums:
    """Sums over the patches that have all of a set, which are few where m ≪ M.

    With S_u = Σ_b 1{u ⊆ F_b} a_b, the sum without two features is S − S_j − S_k + S_jk,
    and without any number Σ_{u ⊆ T} (−1)^|u| S_u.

    Parameters
    ----------
    sets : array of int (q, t)
        T.
    smaller : list of array of int (n_s, s)
        Proper subsets u, each once, by their sizes.
    signs : sparse array (q, Σ n_s)
        (−1)^|u| where u is in T.
    """

    sets: Places
    smaller: tuple[Places, ...]
    signs: Sparse

    @classmethod
    def of(cls, sets: Places) -> SparseSums:
        """With the subsets of these sets."""
        n_sets, order = sets.shape
        smaller, signs = [], []
        for size in range(order):
            own, places = subsets_of(sets, size)
            where = (np.tile(np.arange(n_sets), len(places)), places.reshape(-1))
            sign = np.full(places.size, (-1.0) ** size)
            smaller.append(own)
            signs.append(sp.coo_array((sign, where), (n_sets, len(own))))
        side_by_side = sp.hstack([*signs, sp.coo_array((n_sets, 0))], format="csr")
        return cls(sets, tuple(smaller), side_by_side)

    def over(self, present: Truths, summed: Array) -> Array:
        found = _with_all(self.sets, present) @ summed
        found *= (-1.0) ** self.sets.shape[1]
        if self.smaller:
            parts = [_with_all(own, present) @ summed for own in self.smaller]
            found += self.signs @ np.concatenate(parts)
        return np.asarray(found)


def _with_all(sets: Places, present: Truths) -> Sparse:
    """1{u ⊆ F_b}, (q, b)."""
    n_patches = present.shape[1]
    having = np.ones((len(sets), n_patches), dtype=bool)
    for places in sets.T:
        having &= present[places]
    starts = np.concatenate([[0], np.cumsum(having.sum(axis=1))])
    columns = np.flatnonzero(having) % n_patches
    return sp.csr_array((np.ones(len(columns)), columns, starts), having.shape)
