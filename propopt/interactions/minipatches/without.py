"""Sums over the patches that have none of some features, for all rows and sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt._typing import Sparse, Truths
from propopt.interactions.features import Places
from propopt.interactions.subsets import subsets_of


_Float = TypeVar("_Float", bound=np.floating[Any])

SPARSE_COST: Final = 8.0
"""Seconds of an entry of a sparse product, in those of an entry of a dense one."""


class PatchesWithout(Protocol):
    """Which of b patches have none of the features T, of q sets T of one size."""

    def sums(self, summed: NDArray[_Float]) -> NDArray[_Float]:
        """Σ_b 1{T ∩ F_b = ∅} a_b, (q, L), in the precision of a.

        Parameters
        ----------
        summed : array (b, L)
            a, whatever it is.
        """


def patches_without(
    sets: Places, present: Truths, groups: Sequence[slice]
) -> list[PatchesWithout]:
    """Of each group of patches, in the form whose products are cheaper.

    Parameters
    ----------
    sets : array of int (q, t)
        T.
    present : array of bool (M, B)
        Whether a feature is in a patch.
    groups : sequence of slice
        Of the patches.
    """
    subsets = Subsets.of(sets)
    share = float(present.mean())  # patches with all of t features are about share^t
    entries = sum(len(own) * share ** own.shape[1] for own in (*subsets.proper, sets))
    if SPARSE_COST * entries < len(sets):
        return [SparseWithout.of(subsets, present[:, own]) for own in groups]
    return [DenseWithout.of(sets, present[:, own]) for own in groups]


@final
@dataclass(frozen=True, eq=False)
class DenseWithout:
    """1{T ∩ F_b = ∅}, (q, b)."""

    absent: Truths

    @classmethod
    def of(cls, sets: Places, present: Truths) -> DenseWithout:
        """Of q sets and b patches."""
        absent = np.ones((len(sets), present.shape[1]), dtype=bool)
        for places in sets.T:
            absent &= ~present[places]
        return cls(absent)

    def sums(self, summed: NDArray[_Float]) -> NDArray[_Float]:
        return self.absent.astype(summed.dtype) @ summed


@final
@dataclass(frozen=True, eq=False)
class SparseWithout:
    """The patches that have all of u, for all u ⊆ T: few of them where m ≪ M.

    With S_u = Σ_b 1{u ⊆ F_b} a_b, the sum without two features is S − S_j − S_k + S_jk,
    and without any number Σ_{u ⊆ T} (−1)^|u| S_u.

    Parameters
    ----------
    subsets : Subsets
        Of the sets T.
    proper : tuple of sparse array (n_s, b)
        1{u ⊆ F_b} of the proper subsets, by their sizes.
    whole : sparse array (q, b)
        1{T ⊆ F_b}.
    """

    subsets: Subsets
    proper: tuple[Sparse, ...]
    whole: Sparse

    @classmethod
    def of(cls, subsets: Subsets, present: Truths) -> SparseWithout:
        """Of q sets and b patches."""
        proper = tuple(_with_all(own, present) for own in subsets.proper)
        return cls(subsets, proper, _with_all(subsets.sets, present))

    def sums(self, summed: NDArray[_Float]) -> NDArray[_Float]:
        found: NDArray[_Float] = self.whole @ summed
        found *= (-1) ** self.subsets.sets.shape[1]
        if self.proper:
            smaller = np.concatenate([own @ summed for own in self.proper])
            found += self.subsets.signs @ smaller
        return found


@final
@dataclass(frozen=True, eq=False)
class Subsets:
    """The subsets of q sets of one size, each once.

    Parameters
    ----------
    sets : array of int (q, t)
        T.
    proper : tuple of array of int (n_s, s)
        Smaller subsets u, by their sizes s = 0, ..., t − 1.
    signs : sparse array (q, Σ n_s)
        (−1)^|u| where u is in T.
    """

    sets: Places
    proper: tuple[Places, ...]
    signs: Sparse

    @classmethod
    def of(cls, sets: Places) -> Subsets:
        """Of these sets."""
        n_sets, order = sets.shape
        proper, signs = [], [sp.coo_array((n_sets, 0), dtype=np.int8)]
        for size in range(order):
            own, places = subsets_of(sets, size)
            where = (np.tile(np.arange(n_sets), len(places)), places.reshape(-1))
            sign = np.full(places.size, (-1) ** size, dtype=np.int8)
            proper.append(own)
            signs.append(sp.coo_array((sign, where), (n_sets, len(own))))
        return cls(sets, tuple(proper), sp.hstack(signs, format="csr"))


def _with_all(sets: Places, present: Truths) -> Sparse:
    """1{u ⊆ F_b}, (q, b)."""
    having = np.ones((len(sets), present.shape[1]), dtype=bool)
    for places in sets.T:
        having &= present[places]
    starts = np.concatenate([[0], np.cumsum(having.sum(axis=1))])
    columns = np.flatnonzero(having) % having.shape[1]
    ones = np.ones(len(columns), dtype=np.int8)  # products have the other precision
    return sp.csr_array((ones, columns, starts), having.shape)
