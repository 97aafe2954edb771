"""Trees as nodes in preorder, with the players of their columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Indices, Mask, Points, Values
from propopt.base.errors import InvalidInput, Refused
from propopt.base.resources import SERIAL_BELOW, for_each_column
from propopt.structures.boxes.sets import Sets, Tree


_Whole: TypeAlias = NDArray[np.int32]

LeafSets: TypeAlias = tuple[Indices, Sets, Values]
"""Leaves, increasing (E,), the sets (E) that lead to them, one for each column
tested, and their values (L,); a point reaches a leaf if all its sets contain it."""

MOST_SETS: Final = 62
"""Sets of one path: one bit each of a 64-bit word."""

TABLE_SETS: Final = 16
"""The most sets of a path with tables, of 2^p numbers."""

_UNIT_NODES: Final = 2**15
_MOST_UNITS: Final = 64
"""Trees of at least this many nodes, or a 64th of all, are one unit of work."""

_STEPS_OF_THREADS: Final = 1e7
"""Operations from which threads are worth their start."""


@final
@dataclass(frozen=True, eq=False)
class TreeNodes:
    """The nodes of trees in preorder: a left child is the next node."""

    roots: Indices  # (T + 1,): the first node of each tree, and the end
    column: _Whole  # (n,): the column that a node tests; −1 at leaves
    right: _Whole  # (n,): the right child; unused at leaves
    codes: _Whole  # (n,): the row of ``members`` that goes left; −1 without codes
    number: Array  # (n,): the threshold; the value at leaves
    missing_left: NDArray[np.uint8]  # (n,): 1 if NaN goes left
    share: Array  # (n,): of the training rows at its parent; see Tree
    members: NDArray[np.uint8]  # (C, K + 1): 1 for codes that go left, 0 in the last
    levels: list[Indices]  # the nodes that test a column, by their depth
    n_codes: tuple[int | None, ...]  # (D,): of each column; None for numbers
    owner: _Whole  # (D,): the player of each column

    @classmethod
    def of(cls, trees: Sequence[Tree], n_codes: tuple[int | None, ...]) -> Self:
        """Order the nodes of trees; unreachable ones are dropped."""
        tree = Tree.concatenate_trees(trees)
        fronts = [np.array(tree.roots, np.intp)]
        below: list[tuple[Indices, Indices, Indices]] = []
        while len(fronts[-1]) > 0:
            nodes = fronts[-1][tree.feature[fronts[-1]] >= 0]
            below.append((nodes, tree.left[nodes], tree.right[nodes]))
            fronts.append(np.concatenate(below[-1][1:]))
        size = np.ones(len(tree.feature), np.intp)
        for nodes, left, right in below[::-1]:
            size[nodes] += size[left] + size[right]
        roots = np.cumsum([0, *size[fronts[0]]])
        position = np.full(len(size), -1)
        position[fronts[0]] = roots[:-1]
        for nodes, left, right in below:
            position[left] = position[nodes] + 1
            position[right] = position[left] + size[left]
        reached = np.concatenate(fronts)
        order = np.empty(len(reached), np.intp)
        order[position[reached]] = reached
        column = tree.feature[order]
        codes, members = _codes_left(tree, order, position, n_codes)
        return cls(
            roots,
            column.astype(np.int32),
            np.where(column < 0, 0, position[tree.right[order]]).astype(np.int32),
            codes,
            np.where(column < 0, tree.value[order], tree.threshold[order]),
            tree.missing_left[order].astype(np.uint8),
            tree.share[order],
            members,
            [position[nodes] for nodes, _, _ in below[:-1]],
            n_codes,
            np.arange(len(n_codes), dtype=np.int32),
        )

    def with_players(self, players: Indices | None) -> TreeNodes:
        """The same nodes, with the players of columns (D,)."""
        return (
            self if players is None else replace(self, owner=players.astype(np.int32))
        )

    def refuse_long_paths(self, players: str) -> None:
        """Refuse Shapley values for paths of more sets than a word has bits."""
        if (longest := int(self.lengths.max(initial=0))) > MOST_SETS:
            raise Refused(
                f"a path of the trees uses {longest} {players}; expected at most "
                f"{MOST_SETS} for Shapley values"
            )

    @property
    def n_players(self) -> int:
        """The number P of players."""
        return int(self.owner.max(initial=-1)) + 1

    @cached_property
    def leaves(self) -> Indices:
        """The leaves, in their order."""
        return np.flatnonzero(self.column < 0)

    @cached_property
    def columns(self) -> Indices:
        """The columns that are tested, increasing."""
        return np.unique(self.column[self.column >= 0]).astype(np.intp)

    @cached_property
    def lengths(self) -> Indices:
        """The number of players that lead to each leaf, (L,); 0 if its value is 0."""
        players, which = np.unique(self.owner[self.columns], return_inverse=True)
        of_column = np.zeros(len(self.owner), np.intp)
        of_column[self.columns] = which
        bits = np.packbits(np.eye(len(players), dtype=bool), axis=1)
        seen = np.zeros((len(self.column), bits.shape[1]), np.uint8)
        for nodes in self.levels:
            below = seen[nodes] | bits[of_column[self.column[nodes]]]
            seen[nodes + 1] = below
            seen[self.right[nodes]] = below
        lengths = np.bitwise_count(seen[self.leaves]).sum(axis=1)
        return np.where(self.number[self.leaves] == 0.0, 0, lengths).astype(np.intp)

    @cached_property
    def cells(self) -> tuple[_Whole, Indices, dict[int, Array]]:
        """The cells of columns that leaves do not divide: by cuts of numbers, or codes.

        The number of each node's cut, from 1 (n,), where the cells of each column begin
        (D + 1,), with two more than cuts, then NaN; and the cuts, or all codes but one.
        """
        cut = np.zeros(len(self.column), np.int32)
        counts = np.zeros(len(self.owner), np.intp)
        ends = {}
        for j in self.columns.tolist():
            testing = np.flatnonzero(self.column == j)
            cuts, position = np.unique(self.number[testing], return_inverse=True)
            cut[testing] = position + 1
            n_codes = self.n_codes[j]
            counts[j] = len(cuts) + 3 if n_codes is None else n_codes
            ends[j] = cuts if n_codes is None else np.arange(n_codes - 1.0)
        return cut, np.cumsum([0, *counts]), ends

    # ---- Sets of leaves

    def leaf_sets(self, unit: slice) -> LeafSets:
        """The sets that lead to each leaf of consecutive trees."""
        start, stop = self.roots[[unit.start, unit.stop]].tolist()
        is_leaf = self.column[start:stop] < 0
        inner = start + np.flatnonzero(~is_leaf)
        leaves = start + np.flatnonzero(is_leaf)
        parent, side = np.full((2, stop - start), -1)
        for i, children in enumerate((inner + 1, self.right[inner])):
            parent[children - start] = inner
            side[children - start] = np.arange(len(inner)) + i * len(inner)
        leaf = np.arange(len(leaves))
        nodes = leaves
        ways = [(leaf[:0], nodes[:0])]
        while len(leaf) > 0:
            below = parent[nodes - start] >= 0
            leaf = leaf[below]
            nodes = nodes[below]
            ways.append((leaf, side[nodes - start]))
            nodes = parent[nodes - start]
        leaf, side = map(np.concatenate, zip(*ways, strict=True))
        sides = self.sides(inner)
        order = np.lexsort([sides.column[side], leaf])
        leaf = leaf[order]
        sets = sides.take(side[order])
        starts = _starts(leaf, sets.column)
        return leaf[starts], sets.intersections(starts), self.number[leaves]

    def sides(self, inner: Indices) -> Sets:
        """The sets that go left at each inner node, then the sets that go right."""
        codes = self.codes[inner]
        coded = codes >= 0
        cuts = np.where(coded, np.inf, self.number[inner])
        everywhere = np.full(len(inner), np.inf)
        missing = self.missing_left[inner].astype(bool)
        left = self.members[:, :-1].astype(bool)
        counts = [n_codes or 0 for n_codes in self.n_codes]
        is_code = np.reshape(counts, -1)[self.column[self.codes >= 0]][:, None]
        right = ~left & (np.arange(left.shape[1]) < is_code)
        return Sets(
            np.tile(self.column[inner], 2).astype(np.intp),
            np.concatenate([-everywhere, np.where(coded, -np.inf, cuts)]),
            np.concatenate([cuts, everywhere]),
            np.concatenate([missing & ~coded, ~missing & ~coded]),
            np.concatenate([codes, np.where(coded, codes + len(left), -1)]),
            np.concatenate([left, right]),
        )

    def reached(self, points: Points) -> Mask:
        """Which nodes points (N, D) reach, (n, N)."""
        inner = np.flatnonzero(self.column >= 0)
        sides = self.sides(inner).contain(points)
        reached = np.ones((len(self.column), len(points)), bool)
        for level in self.levels:
            at = np.searchsorted(inner, level)
            reached[level + 1] = reached[level] & sides[at]
            reached[self.right[level]] = reached[level] & sides[at + len(inner)]
        return reached

    @cached_property
    def joint_sets(self) -> list[JointSets]:
        """The sets of the leaves of each unit, by players."""
        parts = []
        for unit in self.units:
            leaf, sets, values = self.leaf_sets(unit)
            owner = self.owner[sets.column].astype(np.intp)
            order = np.lexsort([owner, leaf])
            starts = _starts(leaf[order], owner[order])
            first = np.searchsorted(leaf[order][starts], np.arange(len(values) + 1))
            sets = sets.take(order)
            ends = np.append(starts, len(sets))
            parts.append(JointSets(sets, ends, owner[order][starts], first, values))
        return parts

    # ---- Units of work

    @cached_property
    def units(self) -> list[slice]:
        """Consecutive trees that are visited together, whatever visits them."""
        size = max(_UNIT_NODES, -(-len(self.column) // _MOST_UNITS))
        starts = np.unique(self.roots[:-1] // size, return_index=True)[1].tolist()
        return list(map(slice, starts, [*starts[1:], len(self.roots) - 1]))

    def leaves_of(self, unit: slice) -> slice:
        """The leaves of consecutive trees, by their numbers."""
        ends = self.roots[[unit.start, unit.stop]]
        return slice(*np.searchsorted(self.leaves, ends).tolist())

    def sums(
        self,
        visit: Callable[[slice, Array], None],
        shape: tuple[int, int],
        steps: float,
    ) -> Array:
        """What visits of all units add to zeros of a shape, in the order of units."""

        def visited(unit: int) -> Array:
            phi = np.zeros(shape)
            visit(self.units[unit], phi)
            return phi

        size = SERIAL_BELOW if steps >= _STEPS_OF_THREADS else 0
        parts = for_each_column(visited, len(self.units), size)
        return sum(parts[1:], parts[0])

    def arguments(
        self, trees: slice, rows: Sequence[Any], points: Array, order: int = 1
    ) -> tuple[tuple[Any, ...], NDArray[np.uint64]]:
        """Arguments of kernels, and scratch: trees, ranked rows and points (D, N).

        What a leaf gives is for each of its players, or of their pairs for order 2.
        """
        bound, ranks, counts, total = rows
        n_points = points.shape[1]
        n_rows = ranks.shape[1]
        depths = len(self.levels) + 1
        lengths = self.lengths[self.leaves_of(trees)]
        most = int(lengths[lengths <= TABLE_SETS].max(initial=0))
        sizes = self.n_players, n_rows, n_points, depths, most, len(counts) > 0
        words = depths * (32 + (3 * n_rows + n_points) // 2 + 1) + (18 << most) + 512
        n_changes = max(MOST_SETS, math.comb(int(lengths.max(initial=0)), order))
        words += 3 * n_rows + (n_changes + 4) * n_points + sizes[0] + 2**16
        return (
            *(trees.stop - trees.start, self.members.shape[1], *sizes),
            *(self.roots[trees.start : trees.stop + 1], *self.arrays, self.owner),
            *(bound, ranks, counts, points, total),
        ), np.empty(words, np.uint64)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The arrays of all nodes, in the order of the arguments of kernels."""
        ends = self.column, self.right, self.codes, self.number
        return *ends, self.missing_left, self.members


@final
@dataclass(frozen=True, eq=False)
class JointSets:
    """The sets of some leaves; those of one player in one leaf are one joint set."""

    sets: Sets
    starts: Indices  # (V + 1,): the first set of each joint set, and the end
    owner: Indices  # (V,): the player of each
    first: Indices  # (L + 1,): the first joint set of each leaf, and the end
    values: Values  # (L,): the values of leaves

    def words(self, p: int, leaves: Indices, points: Points) -> NDArray[np.uint64]:
        """Which of their p joint sets hold points, a word for each leaf, (l, N)."""
        words = np.zeros((len(leaves), len(points)), np.uint64)
        for k in range(p):
            inside = self._holding(self.first[leaves] + k, points)
            words |= inside.astype(np.uint64) << np.uint64(k)
        return words

    def _holding(self, chosen: Indices, points: Points) -> Mask:
        """Which points each of some joint sets contains, (v, N)."""
        counts = self.starts[chosen + 1] - self.starts[chosen]
        ends = np.cumsum(counts)
        shifts = np.repeat(self.starts[chosen] + counts - ends, counts)
        inside = self.sets.take(shifts + np.arange(len(shifts))).contain(points)
        return np.logical_and.reduceat(inside, ends - counts, axis=0)


def ends_of(counts: Indices) -> Indices:
    """Where each of consecutive parts begins, and the end."""
    return np.concatenate([[0], np.cumsum(counts)])


def _starts(*parts: Indices) -> Indices:
    """The first position of each run of equal entries in all parts."""
    new = np.ones(len(parts[0]), bool)
    new[1:] = np.any([np.diff(part) != 0 for part in parts], axis=0)
    return np.flatnonzero(new)


def _codes_left(
    tree: Tree, order: Indices, position: Indices, n_codes: Sequence[int | None]
) -> tuple[_Whole, NDArray[np.uint8]]:
    """The row of each node of a coded column, and the codes that go left there."""
    column = tree.feature[order]
    counts = np.array([-1 if count is None else count for count in [*n_codes, None]])
    coded = np.flatnonzero(counts[column] >= 0)
    rows = np.full(len(column), -1, np.int32)
    rows[coded] = np.arange(len(coded))
    width = int(counts.max()) + 1
    is_code = np.arange(width) < counts[column[coded]][:, None]
    members = (np.arange(width) <= tree.threshold[order[coded]][:, None]) & is_code
    nodes = np.fromiter(tree.left_codes, np.intp, len(tree.left_codes))
    lengths = np.fromiter(map(len, tree.left_codes.values()), np.intp, len(nodes))
    is_inner = (position[nodes] >= 0) & (tree.feature[nodes] >= 0)
    row = np.where(is_inner, rows[position[nodes]], -1)
    numeric = is_inner & (row < 0)
    if numeric.any():
        j = tree.feature[nodes[numeric]][0]
        raise InvalidInput(f"left_codes: column {j} is numeric, without codes")
    members[row[row >= 0]] = False
    code = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    used = (np.repeat(row, lengths) >= 0) & (code < width)
    listed = np.concatenate([np.zeros(0, bool), *tree.left_codes.values()])
    members[np.repeat(row, lengths)[used], code[used]] = listed[used]
    members &= is_code
    return rows, np.ascontiguousarray(members, np.uint8)
