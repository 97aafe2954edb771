"""Sets of values of one column, and the trees made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Indices, Mask, Points
from propopt.structures.products.normals import Normals
from propopt.structures.products.sums import ranks


# ---- Sets of values of one column: intervals with or without missing, sets of codes


@final
@dataclass(frozen=True, eq=False)
class Sets:
    """U sets of one column each: intervals low < x ≤ high, maybe with NaN, or codes."""

    column: Indices  # shape (U,)
    low: Array  # (U,): ends of intervals, −∞ and ∞ where there are none
    high: Array  # shape (U,)
    missing: Mask  # (U,): whether NaN is in the set
    # (U,): the row of members with the codes; −1 for sets of numbers
    group: Indices
    # (C, K): the codes in each set; False beyond the last code of a column
    members: Mask

    @classmethod
    def of_numbers(
        cls,
        column: Sequence[int] | Indices,
        low: Sequence[float] | Array,
        high: Sequence[float] | Array,
        missing: Sequence[bool] | Mask,
    ) -> Sets:
        """Sets of numbers, low < x ≤ high, some of them with NaN."""
        return cls(
            np.asarray(column, np.intp),
            np.asarray(low, np.float64),
            np.asarray(high, np.float64),
            np.asarray(missing, bool),
            np.full(len(column), -1),
            np.zeros((0, 0), dtype=bool),
        )

    @classmethod
    def of_codes(cls, column: Sequence[int] | Indices, members: Mask) -> Sets:
        """Sets of codes of categories, one for each row of ``members`` (U, K)."""
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

    @cached_property
    def coded(self) -> Mask:
        """Which sets are sets of codes, shape (U,)."""
        return self.group >= 0

    @property
    def empty(self) -> Mask:
        """Which sets contain no value, shape (U,)."""
        empty = (self.low >= self.high) & ~self.missing
        empty[self.coded] = ~self.members[self.group[self.coded]].any(axis=1)
        return empty

    @property
    def full(self) -> Mask:
        """Which sets contain every number and NaN, shape (U,)."""
        whole = (self.low == -np.inf) & (self.high == np.inf) & self.missing
        return whole & ~self.coded

    def take(self, chosen: Indices | Mask) -> Sets:
        """The chosen sets, in that order; they share ``members``."""
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
        shapes = np.array([part.members.shape for part in parts])
        members = np.zeros((shapes[:, 0].sum(), shapes[:, 1].max()), bool)
        groups = []
        start = 0
        for part, (count, k) in zip(parts, shapes.tolist(), strict=True):
            members[start : start + count, :k] = part.members
            groups.append(np.where(part.coded, part.group + start, -1))
            start += count
        ends = map(attrgetter("column", "low", "high", "missing"), parts)
        column, low, high, missing = map(np.concatenate, zip(*ends, strict=True))
        return cls(column, low, high, missing, np.concatenate(groups), members)

    def intersections(self, starts: Indices) -> Sets:
        """The intersection of each run of consecutive sets of one column."""
        coded = self.coded[starts]
        members = self.members[:0]
        group = np.full(len(starts), -1)
        group[coded] = np.arange(coded.sum())
        if coded.any():
            runs = np.repeat(coded, np.diff(starts, append=len(self)))
            shifted = np.cumsum(runs)[starts[coded]] - 1
            of_runs = self.members[self.group[runs]]
            members = np.logical_and.reduceat(of_runs, shifted, axis=0)
        return Sets(
            self.column[starts],
            np.maximum.reduceat(self.low, starts),
            np.minimum.reduceat(self.high, starts),
            np.logical_and.reduceat(self.missing, starts),
            group,
            members,
        )

    def unique(self) -> tuple[Sets, Indices]:
        """Each different set once, by column and ends, and the new index of each."""
        members = self.members
        group = self.group
        if len(members) > 0:
            members, row = np.unique(members, axis=0, return_inverse=True)
            group = np.where(group >= 0, row.reshape(-1)[group], -1)
        # −0.0 is 0.0
        parts = (self.column, self.low + 0.0, self.high + 0.0, self.missing, group)
        _, first, index = np.unique(
            ranks(parts), return_index=True, return_inverse=True
        )
        distinct = self.take(first)
        return replace(distinct, group=group[first], members=members), index

    def contain(self, points: Points) -> Mask:
        """Whether each point's value is in each set, (U, N), for points (N, D)."""
        return self.contain_values(points.T[self.column])

    def contain_values(self, values: Array) -> Mask:
        """The same for values (U, N) of the column of each set, or (N,) of all sets."""
        inside = (self.low[:, None] < values) & (values <= self.high[:, None])
        absent = np.isnan(values)
        if absent.any():
            inside |= self.missing[:, None] & absent
        coded = np.flatnonzero(self.coded)
        if len(coded) > 0:
            codes = (values if values.ndim == 1 else values[coded]).astype(np.intp)
            inside[coded] = self.members[self.group[coded][:, None], codes]
        return inside

    def at(self, values: Array) -> Array:
        """Indicators of the sets, all of one column, at values of shape S, (U, S)."""
        inside = self.contain_values(values.ravel()).astype(np.float64)
        return inside.reshape(len(self), *values.shape)

    def under(self, normals: Normals) -> Array:
        """Probability of each set, of one column, under normals of shape S, (U, S)."""
        shape = (-1, *(1,) * len(normals.shape))
        return normals.shares(self.low.reshape(shape), self.high.reshape(shape))


# ---- Thresholds of transformed columns, as thresholds of the original numbers


ColumnMap: TypeAlias = Callable[[Array], Array]
"""A transformation of the numbers (n,) of a column, nondecreasing in float64.

It is finite, infinite or constant at every number, as scalers are.
"""


def largest_at_most(
    column: ColumnMap, thresholds: Array, between: tuple[Array, Array] | None = None
) -> Array:
    """The largest float64 x with g(x) ≤ t, for each threshold t; −∞ if there is none.

    So x ≤ the result exactly if g(x) ≤ t, whatever the rounding of g: the numbers of
    float64 are bisected in their order, ``between`` two ends.
    """
    everywhere = np.full(len(thresholds), np.inf)
    low, high = map(_rank, between or (-everywhere, everywhere))
    # g(−∞) need not exist: the lower end stands for "none", the upper may be g(∞)
    while (low < high).any():
        middle = (low | high) - ((low ^ high) >> 1)  # (low + high) / 2, rounded up
        with np.errstate(over="ignore", invalid="ignore"):
            under = column(_number(middle)) <= thresholds
        low = np.where(under, middle, low)
        high = np.where(under, high, middle - 1)
    return _number(low)


_SIGN = np.int64(np.iinfo(np.int64).min)


def _rank(numbers: Array) -> NDArray[np.int64]:
    """The rank of each number in the order of float64, from its bits; 0 for 0.0."""
    bits = numbers.view(np.int64)
    return np.where(bits >= 0, bits, _SIGN - bits)


def _number(ranks: NDArray[np.int64]) -> Array:
    """The numbers that have these ranks."""
    return np.where(ranks >= 0, ranks, _SIGN - ranks).view(np.float64)


# ---- Trees as arrays of nodes, and the sets of values that lead to their leaves


@final
@dataclass(frozen=True, eq=False)
class Tree:
    """A binary tree, or several in one array of nodes; node 0 is the root of the first.

    Node i sends x left if x_k ≤ threshold, k = ``feature[i]``, or, where it has
    ``left_codes``, if the code x_k is among them; NaN goes left where
    ``missing_left``; all other values go right.
    """

    # (n,): the column of the model that each node tests; −1 at leaves
    feature: Indices
    threshold: Array
    missing_left: Mask  # (n,): whether NaN goes left
    left: Indices  # (n,): the children; unused at leaves
    right: Indices  # shape (n,)
    value: Array  # (n,): the output of a leaf; unused elsewhere
    # (n,): the part of the training rows at its parent that reaches each node; NaN if
    # no numbers of rows are stored, and unused at roots
    share: Array
    # (K,): which codes go left; codes that are not in the array go right
    left_codes: Mapping[int, Mask] = field(default_factory=dict)
    roots: tuple[int, ...] = (0,)

    @classmethod
    def concatenate_trees(cls, trees: Sequence[Tree]) -> Tree:
        """Several trees, at least one, in one array of nodes."""
        if len(trees) == 1:
            return trees[0]
        sizes = np.array([len(tree.feature) for tree in trees])
        starts = np.cumsum(sizes) - sizes
        moved = np.repeat(starts, sizes)
        names = (
            *("feature", "threshold", "missing_left", "left", "right", "value"),
            "share",
        )
        arrays = zip(*map(attrgetter(*names), trees), strict=True)
        fields = dict(zip(names, map(np.concatenate, arrays), strict=True))
        fields["left"] += moved
        fields["right"] += moved
        left_codes: dict[int, Mask] = {}
        roots: list[int] = []
        for tree, start in zip(trees, starts.tolist(), strict=True):
            roots += [start + root for root in tree.roots]
            nodes = [start + node for node in tree.left_codes]
            left_codes |= zip(nodes, tree.left_codes.values(), strict=True)
        return cls(**fields, left_codes=left_codes, roots=tuple(roots))

    @classmethod
    def of(
        cls,
        feature: Sequence[int] | Indices,
        threshold: Sequence[float] | Array,
        left: Sequence[int] | Indices,
        right: Sequence[int] | Indices,
        value: Sequence[float] | Array,
        missing_left: Sequence[bool] | Mask | None = None,
        left_codes: Mapping[int, Mask] | None = None,
        share: Sequence[float] | Array | None = None,
    ) -> Tree:
        """A tree from sequences; without ``missing_left`` NaN goes right."""
        nowhere = np.zeros(len(feature), dtype=bool)
        unknown = np.full(len(feature), np.nan)
        return cls(
            np.asarray(feature, np.intp),
            np.asarray(threshold, np.float64),
            nowhere if missing_left is None else np.asarray(missing_left, bool),
            np.asarray(left, np.intp),
            np.asarray(right, np.intp),
            np.asarray(value, np.float64),
            unknown if share is None else np.asarray(share, np.float64),
            {} if left_codes is None else left_codes,
        )


def node_shares(cover: Array, left: Indices, right: Indices) -> Array:
    """The share of each node, by the weights (n,) of the training rows that reach it.

    Children (n,) are −1 at leaves. Below a node without rows shares are zero.
    """
    inner = left >= 0
    rows = cover[left[inner]] + cover[right[inner]]
    rows[rows == 0.0] = 1.0
    share = np.ones(len(cover))
    for children in (left[inner], right[inner]):
        share[children] = cover[children] / rows
    return share
