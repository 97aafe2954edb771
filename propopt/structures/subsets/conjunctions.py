"""Products of words, as sums of boxes are; and any function of few words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Self, final

import numpy as np

from propopt.base.arrays import Array, Indices, Mask, Points, Values
from propopt.base.errors import InvalidInput
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.sets import Sets
from propopt.structures.subsets.sets import Blocks, all_sets, shares_keeping


@final
@dataclass(frozen=True, eq=False, repr=False)
class Conjunctions(Boxes):
    """f(z) = base + Σ_l v_l Π_{j in P_l} z_j Π_{j in A_l} (1 − z_j).

    A sum of boxes whose columns are words: factor 2 j + 1 is z_j, and 2 j is 1 − z_j.
    A product with p words present and a absent has, of the sets of m of d words,

    E_m = C(d − p − a, m − p) / C(d, m)
        = Π_{i<p} (m − i)/(d − i) · Π_{i<a} (d − m − i)/(d − p − i),

    and E_m[z_j ·] is the same, 0, or that of p + 1, where j is in P, in A, or in none.
    """

    @classmethod
    def of_factors(
        cls, base: float, values: Array, paths: Indices, n_words: int
    ) -> Conjunctions:
        """Products of factors (L, K), padded with −1; no word is twice in a row."""
        words = np.repeat(np.arange(n_words), 2)
        is_kept = np.tile(np.array([[True, False], [False, True]]), (n_words, 1))
        return cls(base, values, paths, (Sets.of_codes(words, is_kept),), n_words)

    @classmethod
    def of(
        cls,
        values: list[float],
        present: list[list[int]],
        absent: list[list[int]],
        n_words: int,
        base: float = 0.0,
    ) -> Conjunctions:
        """The same of lists of words."""
        rows = [
            [*(2 * j + 1 for j in kept), *(2 * j for j in deleted)]
            for kept, deleted in zip(present, absent, strict=True)
        ]
        paths = np.full((len(rows), max(map(len, rows), default=0)), -1, np.intp)
        for path, row in zip(paths, rows, strict=True):
            path[: len(row)] = row
        return cls.of_factors(base, np.asarray(values, float), paths, n_words)

    @classmethod
    def of_blocks(
        cls, base: float, blocks: Sequence[Blocks], n_words: int
    ) -> Conjunctions:
        """What sets of words of each block add: a product for each set."""
        width = max((own.n_words for own in blocks), default=0)
        values, paths = [np.zeros(0)], [np.zeros((0, width), np.intp)]
        for own in blocks:
            block, state = np.nonzero(own.values)
            rows = np.full((len(block), width), -1, np.intp)
            rows[:, : own.n_words] = 2 * own.words[block] + own.kept[state]
            values.append(own.values[block, state])
            paths.append(rows)
        return cls.of_factors(
            base, np.concatenate(values), np.concatenate(paths), n_words
        )

    @property
    def n_words(self) -> int:
        """The number of words, d."""
        return self.n_columns

    def holding(self, points: Points | Mask) -> Mask:
        """Which factors hold sets of words, (2 d, n), by bits (n, d)."""
        z = np.asarray(points, bool).T
        return np.stack([~z, z], axis=1).reshape(2 * len(z), z.shape[1])

    def deduplicate(self) -> Self:
        """A sum of several: the factors of all are those of the first."""
        paths = np.where(self.paths >= 0, self.paths % (2 * self.n_words), -1)
        return replace(self, paths=paths, factors=self.factors[:1])

    def mean_by_size(self) -> Values:
        kinds, which = self._kinds
        levels = np.bincount(which, self.values, len(kinds))  # the sum of v of each
        return np.asarray(self.base + levels.astype(float) @ self._shares[0])

    def first_moments(self, weights: Array, /) -> Array:
        d, (_, which) = self.n_words, self._kinds
        of_leaf, with_one = ((weights @ own.T)[:, which] for own in self._shares)
        total = self.base * (weights @ (np.arange(d + 1) / d)) + with_one @ self.values
        result = np.repeat(total[:, None], d, axis=1)
        leaf, place = np.nonzero(self.paths >= 0)
        word, kept = np.divmod(self.paths[leaf, place], 2)
        for k, (own, more) in enumerate(zip(of_leaf, with_one, strict=True)):
            change = self.values[leaf] * (np.where(kept, own[leaf], 0.0) - more[leaf])
            result[k] += np.bincount(word, change, d)
        return result

    @cached_property
    def _shares(self) -> Array:
        """E_m of the kinds, and with one more word present, (2, kinds, d + 1)."""
        p, a = self._kinds[0].T
        shares = shares_keeping(self.n_words, p.max(initial=0) + 1, a.max(initial=0))
        return np.stack([shares[p, a], shares[p + 1, a]])

    @cached_property
    def _kinds(self) -> tuple[Indices, Indices]:
        """The different (p, a) of products, and which each product has."""
        present = ((self.paths >= 0) & (self.paths % 2 == 1)).sum(axis=1)
        sizes = np.column_stack([present, self.lengths - present])
        kinds, which = np.unique(sizes, axis=0, return_inverse=True)
        return kinds, which.ravel()


# ---- Any function of few words, from its values at all sets of them


MOST_ENUMERATED: Final = 16
"""So many words have all their sets asked for."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Enumerated:
    """f by its values at all 2^d sets of words."""

    values: Values  # (2^d,): in the order of all_sets

    @classmethod
    def of(cls, function: Callable[[Mask], Any], n_words: int) -> Enumerated:
        """A function that is asked for all sets, in one call."""
        if n_words > MOST_ENUMERATED:
            raise InvalidInput(
                f"{n_words} words have 2^{n_words} sets; all are asked for up to "
                f"{MOST_ENUMERATED} words"
            )
        return cls(np.asarray(function(all_sets(n_words)), np.float64))

    def __post_init__(self) -> None:
        if self.values.shape != (2**self.n_words,):
            raise InvalidInput(
                f"values: expected one for each of 2^d sets, got {self.values.shape}"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_words} words)"

    @property
    def n_words(self) -> int:
        return max(0, self.values.size.bit_length() - 1)

    def value(self, bits: Mask, /) -> Values:
        powers = 1 << np.arange(self.n_words)
        return np.asarray(self.values[np.asarray(bits, np.intp) @ powers])

    def mean_by_size(self) -> Values:
        return np.asarray(self.values @ self._shares)

    def first_moments(self, weights: Array, /) -> Array:
        of_each = (np.asarray(weights) @ self._shares.T) * self.values
        return np.asarray(of_each @ all_sets(self.n_words))

    @cached_property
    def _shares(self) -> Array:
        """One over how many sets have the size of each, (2^d, d + 1)."""
        return Blocks.shares_of(self.n_words)
