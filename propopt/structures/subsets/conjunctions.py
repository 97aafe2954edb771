"""Trees on the presence of words, and any function of few words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from propopt.base.arrays import Array, Positions, Truths, Values
from propopt.base.errors import InvalidInput
from propopt.base.resources import AT_ONCE
from propopt.structures.subsets.sets import all_sets, shares_keeping


@final
@dataclass(frozen=True, eq=False, repr=False)
class Conjunctions:
    """f(z) = base + Σ_l v_l Π_{j in P_l} z_j Π_{j in A_l} (1 − z_j).

    A leaf with p words present and a words absent has, of the sets of m of d words,

    E_m = C(d − p − a, m − p) / C(d, m)
        = Π_{i<p} (m − i)/(d − i) · Π_{i<a} (d − m − i)/(d − p − i),

    and E_m[z_j ·] is the same, 0, or that of p + 1, where j is in P, in A, or in none.
    """

    base: float  # what is added to all
    values: Array  # (L,): v
    # (L, K): P and A, padded with −1; no word is twice in a row of both
    present: Positions
    absent: Positions  # shape (L, K')
    n_words: int  # d

    @classmethod
    def of(
        cls,
        values: list[float],
        present: list[list[int]],
        absent: list[list[int]],
        n_words: int,
        base: float = 0.0,
    ) -> Conjunctions:
        """The same of lists."""
        return cls(
            base, np.asarray(values, float), _padded(present), _padded(absent), n_words
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_words} words)"

    def value(self, bits: Truths, /) -> Values:
        z = np.asarray(bits, bool).T
        # eight sets of words in a byte; the last row is for no word
        packed = np.packbits(np.concatenate([z, ~z, np.ones((1, z.shape[1]), bool)]), 1)
        d, total = self.n_words, np.full(z.shape[1], self.base)
        paths = np.column_stack(
            [
                np.where(self.present >= 0, self.present, 2 * d),
                np.where(self.absent >= 0, self.absent + d, 2 * d),
            ]
        )
        row_bytes = (paths.shape[1] + 8) * packed.shape[1]
        for some in AT_ONCE.blocks(len(self.values), row_bytes):
            held = np.bitwise_and.reduce(packed[paths[some]], axis=1)
            total += self.values[some] @ np.unpackbits(held, 1, count=z.shape[1])
        return total

    def mean_by_size(self) -> Values:
        kinds, which = self._kinds
        levels = np.bincount(which, self.values, len(kinds))  # the sum of v of each
        return np.asarray(self.base + levels.astype(float) @ self._shares[0])

    def kept(self, weights: Array, /) -> Array:
        d = self.n_words
        _, which = self._kinds
        of_leaf, with_one = ((weights @ own.T)[:, which] for own in self._shares)
        total = self.base * (weights @ (np.arange(d + 1) / d)) + with_one @ self.values
        result = np.repeat(total[:, None], d, axis=1)
        for k, (own, more) in enumerate(zip(of_leaf, with_one, strict=True)):
            result[k] += _added(self.present, self.values * (own - more), d)
            result[k] -= _added(self.absent, self.values * more, d)
        return result

    @cached_property
    def _shares(self) -> Array:
        """E_m of the kinds of leaves, and with one more present, (2, kinds, d + 1)."""
        p, a = self._kinds[0].T
        shares = shares_keeping(self.n_words, p.max(initial=0) + 1, a.max(initial=0))
        return np.stack([shares[p, a], shares[p + 1, a]])

    @cached_property
    def _kinds(self) -> tuple[Positions, Positions]:
        """The different (p, a) of leaves, and which each leaf has."""
        sizes = np.column_stack(
            [(self.present >= 0).sum(axis=1), (self.absent >= 0).sum(axis=1)]
        )
        kinds, which = np.unique(sizes, axis=0, return_inverse=True)
        return kinds, which.ravel()


def _added(indices: Positions, values: Array, d: int) -> Array:
    """The sum of ``values`` (L,) over the rows of ``indices`` that each word is in."""
    inside = indices >= 0
    repeated = np.broadcast_to(values[:, None], indices.shape)
    return np.asarray(np.bincount(indices[inside], repeated[inside], d), float)


def _padded(rows: list[list[int]]) -> Positions:
    longest = max(map(len, rows), default=0)
    padded = np.full((len(rows), longest), -1, np.intp)
    for row, indices in zip(padded, rows, strict=True):
        row[: len(indices)] = indices
    return padded


# ---- Any function of few words, from its values at all sets of them


MOST_ENUMERATED: Final = 16
"""So many words have all their sets asked for."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Enumerated:
    """f by its values at all 2^d sets of words."""

    values: Values  # (2^d,): in the order of all_sets

    @classmethod
    def of(cls, function: Callable[[Truths], Any], n_words: int) -> Enumerated:
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

    def value(self, bits: Truths, /) -> Values:
        powers = 1 << np.arange(self.n_words)
        return np.asarray(self.values[np.asarray(bits, np.intp) @ powers])

    def mean_by_size(self) -> Values:
        sums = np.bincount(self._sizes, self.values, self.n_words + 1)
        return np.asarray(sums / self._how_many)

    def kept(self, weights: Array, /) -> Array:
        of_each = (np.asarray(weights) / self._how_many)[:, self._sizes] * self.values
        return np.asarray(of_each @ all_sets(self.n_words))

    @cached_property
    def _sizes(self) -> Positions:
        """How many words are in each set."""
        return all_sets(self.n_words).sum(axis=1)

    @cached_property
    def _how_many(self) -> Array:
        """How many sets there are of each size."""
        return np.bincount(self._sizes, minlength=self.n_words + 1).astype(np.float64)
