"""The sets that a law tells apart, and the tables that hold their measures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Points, Positions, Truths
from propopt.structures.boxes import Sets
from propopt.structures.products import Measures
from propopt.structures.products.ranks import ranks


class Cells(Protocol):
    """U sets of one column, as a law knows them."""

    @property
    def keys(self) -> Iterable[NDArray[np.generic]]:
        """Equal for sets that no row tells apart, (U,) each."""

    @property
    def full(self) -> Truths:
        """Which hold everything, (U,)."""

    @property
    def empty(self) -> Truths:
        """Which have no probability in any row, (U,)."""

    def take(self, chosen: Positions) -> Self:
        """Those that are chosen."""

    @property
    def n_entries(self) -> int:
        """Those of their tables."""

    @property
    def entries(self) -> tuple[Positions, Positions, Positions]:
        """Of each set its start, its stop and missing, −1 for none, (U,) each."""

    def fill(self, x: Array, law: Array, contrast: Array) -> None:
        """Fill tables (entries, n) at values x (n,) of the column."""


@final
@dataclass(frozen=True, eq=False)
class KnownCells:
    """The sets of all columns that a law tells apart.

    Parameters
    ----------
    places : array (U,)
        The place of each set that was given among them; −1 if it holds everything.
    dropped : array (U,)
        Which sets that were given have no probability.
    parts : tuple of (int, Cells)
        The sets of each column.
    """

    places: Positions
    dropped: Truths
    parts: Sequence[tuple[int, Cells]]

    @classmethod
    def of(cls, sets: Sets, cells_of: Callable[[int, Sets], Cells]) -> KnownCells:
        """Each of the sets once, with what a law makes of those of a column."""
        parts: list[tuple[int, Cells]] = []
        places = np.full(len(sets), -1)
        dropped = np.zeros(len(sets), dtype=bool)
        n_known = 0
        for j in np.unique(sets.column).tolist():
            of_j = np.flatnonzero(sets.column == j)
            cells = cells_of(j, sets.take(of_j))
            dropped[of_j] = cells.empty
            told = np.flatnonzero(~cells.empty & ~cells.full)
            _, first, place = np.unique(
                ranks(key[told] for key in cells.keys),
                return_index=True,
                return_inverse=True,
            )
            places[of_j[told]] = place + n_known
            n_known += len(first)
            parts.append((j, cells.take(told[first])))
        return cls(places, dropped, tuple(parts))

    @cached_property
    def column(self) -> Positions:
        """Their columns, increasing, (V,)."""
        counts = [len(cells.full) for _, cells in self.parts]
        columns = np.array([j for j, _ in self.parts], dtype=np.intp)
        return np.repeat(columns, counts)

    @property
    def row_bytes(self) -> int:
        """The memory that the measures of one row take."""
        return 32 * self._n_entries

    @cached_property
    def _n_entries(self) -> int:
        return 1 + sum(cells.n_entries for _, cells in self.parts)

    def measures(self, points: Points) -> Measures:
        """Law and contrast of each set at each row (N, D)."""
        law, contrast = np.zeros((2, self._n_entries, len(points)))
        start = 1
        for j, cells in self.parts:
            own = slice(start, start + cells.n_entries)
            cells.fill(points[:, j], law[own], contrast[own])
            start = own.stop
        return Measures(law, contrast, *self._entries)

    @cached_property
    def _entries(self) -> tuple[Positions, Positions, Positions]:
        """The entries of each set in the tables of all columns; 0 for none."""
        starts = np.cumsum([1, *(cells.n_entries for _, cells in self.parts)])
        own = [
            np.stack([np.where(entry < 0, 0, entry + first) for entry in cells.entries])
            for (_, cells), first in zip(self.parts, starts, strict=False)
        ]
        start, stop, missing = np.concatenate([np.zeros((3, 0), np.intp), *own], axis=1)
        return start, stop, missing


class Law(Protocol):
    """Independent columns around each row, and a contrast in each column."""

    def knows(self, sets: Sets) -> KnownCells:
        """What the law makes of sets."""
