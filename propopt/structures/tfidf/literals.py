"""Products of literals, a few of very many: rows of entries, not a padded table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Positions, Truths
from propopt.structures.products.paths import padded_paths
from propopt.structures.subsets import Conjunctions
from propopt.structures.tfidf.cubes import CubeTable


@final
@dataclass(frozen=True, eq=False)
class Literals:
    """Σ_r v_r Π_e of row r: literals, or sets that are sums of cubes.

    Place 2 j + 1 is word j where it is kept, 2 j where it is deleted; places from 2 d
    on are sets.

    Parameters
    ----------
    values : array (R,)
        v.
    row, place : array (E,)
        The row and the place of each entry, increasing.
    n_places : int
        2 d, and how many sets there are.
    """

    values: Array
    row: Positions
    place: Positions
    n_places: int

    @classmethod
    def of(
        cls, values: Array, row: Positions, place: Positions, n_places: int
    ) -> Literals:
        """The same of entries in any order, some of which may be there twice."""
        keys = np.sort(row * n_places + place)
        keys = keys[np.diff(keys, prepend=-1) > 0]
        return cls(values, keys // n_places, keys % n_places, n_places)

    @cached_property
    def lengths(self) -> Positions:
        """How many entries each row has, (R,)."""
        return np.bincount(self.row, minlength=len(self.values))

    @cached_property
    def starts(self) -> Positions:
        """Where each row begins, (R,)."""
        return np.cumsum(self.lengths) - self.lengths

    def taken(self, rows: Truths) -> Literals:
        """Those rows alone."""
        kept = rows[self.row]
        number = np.cumsum(rows) - 1
        place, row = self.place[kept], number[self.row[kept]]
        return Literals(self.values[rows], row, place, self.n_places)

    def consistent(self) -> Literals:
        """Without rows in which a word is both kept and deleted, which are 0."""
        same = (np.diff(self.place // 2) == 0) & (np.diff(self.row) == 0)
        fine = np.ones(len(self.values), bool)
        fine[self.row[1:][same]] = False
        return self.taken(fine)

    def merged(self) -> Literals:
        """With each product once.

        Equal rows have equal sums of random numbers of 64 bits; that rows of equal sums
        are equal is then seen.
        """
        for seed in count():
            _, first, where = np.unique(
                self._sums(seed), return_index=True, return_inverse=True
            )
            if self._equal(first[where]):
                break
        chosen = np.zeros(len(self.values), bool)
        chosen[first] = True
        total = np.bincount(where, self.values, len(first))[np.argsort(first)]
        kept = self.taken(chosen)
        whole = Literals(
            np.asarray(total, np.float64), kept.row, kept.place, self.n_places
        )
        return whole.taken(total != 0.0)

    def _sums(self, seed: int) -> NDArray[np.uint64]:
        rng = np.random.default_rng(seed)
        numbers = rng.integers(0, 2**64, self.n_places, np.uint64, endpoint=False)
        added = np.concatenate([np.zeros(1, np.uint64), numbers[self.place].cumsum()])
        return added[self.starts + self.lengths] - added[self.starts]  # modulo 2^64

    def _equal(self, other: Positions) -> bool:
        """Whether each row is that at ``other``."""
        if (self.lengths != self.lengths[other]).any():
            return False
        inside = np.arange(len(self.place)) - self.starts[self.row]
        beside = self.starts[other[self.row]] + inside
        return bool((self.place == self.place[beside]).all())

    def n_products(self, table: CubeTable) -> float:
        """How many products there are when sums of cubes are multiplied out."""
        sizes = np.log(np.maximum(table.size[self.place], 1).astype(np.float64))
        logs = np.bincount(self.row, sizes, len(self.values))
        return float(np.exp(np.minimum(logs, 700.0)).sum())

    def multiplied_out(self, table: CubeTable) -> Literals:
        """With one cube of each set in each row, of words alone."""
        paths = padded_paths(self.row, self.place, len(self.values))
        values, literals = table.multiplied_out(self.values, paths)
        row, column = np.nonzero(literals >= 0)
        return Literals.of(values, row, literals[row, column], self.n_places)

    def conjunctions(self, base: float, n_words: int) -> Conjunctions:
        """``base`` + the sum, of words alone."""
        constant = float(self.values[self.lengths == 0].sum())
        own = self.taken(self.lengths > 0)
        kept, word = own.place % 2 == 1, own.place // 2
        n = len(own.values)
        present = padded_paths(own.row[kept], word[kept], n)
        absent = padded_paths(own.row[~kept], word[~kept], n)
        return Conjunctions(base + constant, own.values, present, absent, n_words)
