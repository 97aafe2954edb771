"""Conjunctions of words as sums of boxes, and functions of few words by enumeration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Self, final

import numpy as np

from propopt.base.arrays import Array, Indices, Mask, Values
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.sums import stacked_paths
from propopt.structures.subsets.sets import Blocks, all_sets, shares_keeping


@final
@dataclass(frozen=True, eq=False, repr=False)
class Conjunctions(Boxes):
    """A weighted sum of conjunctions of words that are present or absent.

    f(z) = base + Σ_l v_l Π_{j in P_l} z_j Π_{j in A_l} (1 − z_j) is a sum of boxes with
    words as columns: factor 2 j + 1 is z_j, and 2 j is 1 − z_j.
    The mean of a product with p words present and a absent, over the sets of m of d
    words, is

    E_m = C(d − p − a, m − p) / C(d, m)
        = Π_{i<p} (m − i)/(d − i) · Π_{i<a} (d − m − i)/(d − p − i),

    and E_m[z_j ·] is the same, 0, or that of p + 1, for j in P, in A, or in neither.
    """

    @classmethod
    def of_factors(
        cls, base: float, values: Array, paths: Indices, n_words: int
    ) -> Conjunctions:
        """Products of factors (L, K), padded with −1, without a word twice in a row."""
        words = np.repeat(np.arange(n_words), 2)
        is_present = np.tile(np.array([[True, False], [False, True]]), (n_words, 1))
        return cls(base, values, paths, (Sets.of_codes(words, is_present),), n_words)

    @classmethod
    def of_blocks(
        cls, base: float, blocks: Sequence[Blocks], n_words: int
    ) -> Conjunctions:
        """The sum of the values of sets of words of each block, a product for each."""
        values = []
        paths = []
        for group in blocks:
            block, state = np.nonzero(group.values)
            values.append(group.values[block, state])
            paths.append(2 * group.words[block] + group.retained[state])
        return cls.of_factors(
            base, np.concatenate(values), stacked_paths(paths), n_words
        )

    @property
    def n_words(self) -> int:
        """The number d of words."""
        return self.n_columns

    def deduplicate(self) -> Self:
        """A sum of several functions, with the factors of the first one."""
        paths = np.where(self.paths >= 0, self.paths % (2 * self.n_words), -1)
        return replace(self, paths=paths, factors=self.factors[:1])

    def mean_by_size(self) -> Values:
        kinds, which = self._kinds
        levels = np.bincount(which, self.values, len(kinds))  # the sum of v of each
        return self.base + levels.astype(float) @ self._shares[0]

    def first_moments(self, weights: Array, /) -> Array:
        d = self.n_words
        _, which = self._kinds
        of_leaf, with_one = ((weights @ share.T)[:, which] for share in self._shares)
        total = self.base * (weights @ (np.arange(d + 1) / d)) + with_one @ self.values
        result = np.repeat(total[:, None], d, axis=1)
        leaf, position = np.nonzero(self.paths >= 0)
        word, is_present = np.divmod(self.paths[leaf, position], 2)
        for k, (share, more) in enumerate(zip(of_leaf, with_one, strict=True)):
            present = np.where(is_present, share[leaf], 0.0)
            change = self.values[leaf] * (present - more[leaf])
            result[k] += np.bincount(word, change, d)
        return result

    @cached_property
    def _shares(self) -> Array:
        """E_m of each kind of products, also with one more word, (2, kinds, d + 1)."""
        p, a = self._kinds[0].T
        shares = shares_keeping(self.n_words, p.max(initial=0) + 1, a.max(initial=0))
        return np.stack([shares[p, a], shares[p + 1, a]])

    @cached_property
    def _kinds(self) -> tuple[Indices, Indices]:
        """Different pairs (p, a) of products, and the index of each product's pair."""
        present = ((self.paths >= 0) & (self.paths % 2 == 1)).sum(axis=1)
        sizes = np.column_stack([present, self.lengths - present])
        kinds, which = np.unique(sizes, axis=0, return_inverse=True)
        return kinds, which.ravel()


# ---- Any function of few words, by its values at all sets of them


MOST_ENUMERATED: Final = 16
"""The most words for which all sets are evaluated."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Enumerated:
    """A function of words by its values at all 2^d sets."""

    values: Values  # (2^d,): in the order of all_sets

    @classmethod
    def of(cls, function: Callable[[Mask], Any], n_words: int) -> Enumerated:
        """Evaluate a function at all sets of words, in one call."""
        return cls(np.asarray(function(all_sets(n_words)), np.float64))

    @cached_property
    def n_words(self) -> int:
        """The number d of words."""
        return max(0, self.values.size.bit_length() - 1)

    def value(self, bits: Mask, /) -> Values:
        return self.values[np.asarray(bits, np.intp) @ (1 << np.arange(self.n_words))]

    def mean_by_size(self) -> Values:
        return self.values @ self._shares

    def first_moments(self, weights: Array, /) -> Array:
        of_each = (np.asarray(weights) @ self._shares.T) * self.values
        return of_each @ all_sets(self.n_words)

    @cached_property
    def _shares(self) -> Array:
        """One over the number of sets of equal size, in its column, (2^d, d + 1)."""
        return Blocks.shares_of(self.n_words)
