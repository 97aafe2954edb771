"""Sets of values of one column: intervals with or without missing, sets of codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from propopt._typing import Array, Points, Positions, Truths
from propopt.structures.products.normals import Normals
from propopt.structures.products.ranks import ranks


@final
@dataclass(frozen=True, eq=False)
class Sets:
    """U sets of values, each of one column of a table.

    Of a numeric column: the numbers with low < x ≤ high, and NaN where ``missing``. Of
    a categorical column: codes.

    Parameters
    ----------
    column : array (U,)
        The position of the column that each is of.
    low, high : array (U,)
        Ends of intervals, −∞ and ∞ where there are none.
    missing : array (U,)
        Whether NaN is in the set.
    group : array (U,)
        The row of ``members`` that holds the codes; −1 for sets of numbers.
    members : array (C, K)
        Which codes are in; False beyond the last code of a column.

    Examples
    --------
    >>> import numpy as np
    >>> sets = Sets.of_numbers(
    ...     column=[0, 0], low=[-np.inf, 0.5], high=[0.5, np.inf], missing=[True, False]
    ... )
    >>> sets.contain(np.array([[0.5], [0.7], [np.nan]]))
    array([[ True, False,  True],
           [False,  True, False]])
    """

    column: Positions
    low: Array
    high: Array
    missing: Truths
    group: Positions
    members: Truths

    @classmethod
    def of_numbers(
        cls,
        column: Sequence[int] | Positions,
        low: Sequence[float] | Array,
        high: Sequence[float] | Array,
        missing: Sequence[bool] | Truths,
    ) -> Sets:
        """Sets of numbers, some of them with NaN."""
        return cls(
            np.asarray(column, np.intp),
            np.asarray(low, np.float64),
            np.asarray(high, np.float64),
            np.asarray(missing, bool),
            np.full(len(column), -1),
            np.zeros((0, 0), dtype=bool),
        )

    @classmethod
    def of_codes(cls, column: Sequence[int] | Positions, members: Truths) -> Sets:
        """Sets of codes, one for each row of ``members``."""
        n = len(column)
        return cls(
            np.asarray(column, np.intp),
            np.full(n, -np.inf),
            np.full(n, np.inf),
            np.zeros(n, dtype=bool),
            np.arange(n),
            members,
        )

    def __len__(self) -> int:
        return len(self.column)

    @property
    def coded(self) -> Truths:
        """Which are sets of codes."""
        return self.group >= 0

    @property
    def empty(self) -> Truths:
        """Which hold nothing, shape (U,)."""
        empty = (self.low >= self.high) & ~self.missing
        empty[self.coded] = ~self.members[self.group[self.coded]].any(axis=1)
        return empty

    def take(self, chosen: Positions | Truths) -> Sets:
        """Those that are chosen, in that order; they share their members."""
        return Sets(
            self.column[chosen],
            self.low[chosen],
            self.high[chosen],
            self.missing[chosen],
            self.group[chosen],
            self.members,
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Sets]) -> Sets:
        """All sets of all parts, one part after the other."""
        width = max((part.members.shape[1] for part in parts), default=0)
        members = [_widened(part.members, width) for part in parts]
        starts = np.cumsum([0, *map(len, members)])
        groups = [
            np.where(part.coded, part.group + start, -1)
            for part, start in zip(parts, starts, strict=False)
        ]
        return cls(
            np.concatenate([part.column for part in parts]),
            np.concatenate([part.low for part in parts]),
            np.concatenate([part.high for part in parts]),
            np.concatenate([part.missing for part in parts]),
            np.concatenate(groups),
            np.concatenate(members),
        )

    def intersections(self, starts: Positions) -> Sets:
        """Of each run of consecutive sets of one column what they have in common.

        Parameters
        ----------
        starts : array (V,)
            Where each run begins, increasing from 0.
        """
        coded = self.coded[starts]
        group = np.full(len(starts), -1)
        group[coded] = np.arange(coded.sum())
        return Sets(
            self.column[starts],
            np.maximum.reduceat(self.low, starts),
            np.minimum.reduceat(self.high, starts),
            np.logical_and.reduceat(self.missing, starts),
            group,
            self._common_members(starts, coded),
        )

    def _common_members(self, starts: Positions, coded: Truths) -> Truths:
        if not coded.any():
            return self.members[:0]
        runs = np.repeat(coded, np.diff(starts, append=len(self)))
        shifted = np.cumsum(runs)[starts[coded]] - 1
        members = self.members[self.group[runs]]
        return np.logical_and.reduceat(members, shifted, axis=0)

    def unique(self) -> tuple[Sets, Positions]:
        """Each set once, in the order of columns and ends; and where each one is now.

        Returns
        -------
        Sets (V)
            The different ones.
        array (U,)
            The place of each among them.
        """
        members, group = _unique_members(self.members, self.group)
        # −0.0 is 0.0
        parts = (self.column, self.low + 0.0, self.high + 0.0, self.missing, group)
        _, first, place = np.unique(
            ranks(parts), return_index=True, return_inverse=True
        )
        kept = self.take(first)
        return replace(kept, group=group[first], members=members), place

    def contain(self, points: Points) -> Truths:
        """Whether each point's value is in each set, shape (U, N).

        Parameters
        ----------
        points : array (N, D)
            Numbers, NaN where they are missing, and codes.
        """
        inside = np.empty((len(self), len(points)), dtype=bool)
        for j in np.unique(self.column):
            of_j = self.column == j
            inside[of_j] = _contain(self.take(of_j), points[:, j])
        return inside

    def at(self, values: Array) -> Array:
        """1 where a set, all of one column, holds values of any shape S, (U, S)."""
        inside = _contain(self, values.ravel()).astype(np.float64)
        return inside.reshape(len(self), *values.shape)

    def under(self, normals: Normals) -> Array:
        """The probability of each set, all of one column, under normals, (U, S)."""
        shape = (-1, *(1,) * len(normals.shape))
        return normals.shares(self.low.reshape(shape), self.high.reshape(shape))


def _contain(sets: Sets, values: Array) -> Truths:
    """Whether each set, all of one column, holds each value of that column."""
    inside = (sets.low[:, None] < values) & (values <= sets.high[:, None])
    inside |= sets.missing[:, None] & np.isnan(values)
    if sets.coded.any():
        codes = values.astype(np.intp)
        inside[sets.coded] = sets.members[sets.group[sets.coded]][:, codes]
    return inside


def _widened(members: Truths, width: int) -> Truths:
    if members.shape[1] == width:
        return members
    return np.pad(members, ((0, 0), (0, width - members.shape[1])))


def _unique_members(members: Truths, group: Positions) -> tuple[Truths, Positions]:
    """Each row of members once, and the group of each set among them."""
    if len(members) == 0:
        return members, group
    unique, place = np.unique(members, axis=0, return_inverse=True)
    return unique, np.where(group >= 0, place.reshape(-1)[group], -1)
