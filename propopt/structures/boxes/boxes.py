"""Sums of boxes, what trees are, and their Shapley values.

Shapley values of sums of boxes, exactly: every order of the columns, every row. v(S) is
the mean over background rows b of f(x on S, b elsewhere). A box v Π 1[A_u] whose sets
hold x alone in p columns, b alone in q, and both in all others, gives

    v (p−1)! q!/(p+q)!  to each of the p columns,  −v p! (q−1)!/(p+q)!  to each of the q

(Lundberg et al. 2020, interventional feature perturbation). One with a set that holds
neither gives nothing. Background rows count by the sets of a box that hold them: few
kinds of them are different, however many rows there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, cast, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Points, Positions, Values
from propopt.base.errors import Refused
from propopt.base.resources import AT_ONCE
from propopt.structures.boxes.sets import Sets, Tree, leaf_sets
from propopt.structures.products.sums import (
    PlayerProducts,
    ProductShapley,
    SumOfProducts,
    padded_paths,
    ranks,
)


# ---- Functions that are sums of boxes: what trees and sums of trees are


DOUBLE_TOLERANCE: Final = 1e-9
"""How far sums in float64 may be from the model, over the range of f."""

SINGLE_TOLERANCE: Final = 2e-5
"""The same for models that sum in float32."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Boxes(SumOfProducts):
    """A sum over boxes, as sums of trees are, one set for each column.

    f(x) = base + Σ_l v_l Π_{u in path l} 1[x_j(u) ∈ A_u]
    """

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.values)} boxes of "
            f"{self.n_factors} sets in {self.n_columns} columns)"
        )

    @cached_property
    def sets(self) -> Sets:
        """The sets, each once where boxes are merged."""
        return Sets.concatenate(cast("Sequence[Sets]", self.factors))

    def value(self, points: Points) -> Values:
        """Values of f at points (N, D): sums over the boxes that each is in."""
        values = np.full(len(points), self.base)
        for rows in AT_ONCE.blocks(len(points), max(1, 8 * self.n_factors)):
            n_points = len(points[rows])
            # eight points in a byte; the last row is for no set
            packed = np.packbits(self.sets.contain(points[rows]), axis=1)
            every = np.full((1, packed.shape[1]), 255, np.uint8)
            packed = np.concatenate([packed, every])
            for some in AT_ONCE.blocks(len(self.values), 16 * n_points):
                held = np.bitwise_and.reduce(packed[self.paths[some]], axis=1)
                held = np.unpackbits(held, axis=1, count=n_points)
                values[rows] += self.values[some] @ held
        return values

    def merged(self) -> Boxes:
        """With each set once but those that hold everything, and no empty box."""
        sets, place = self.sets.unique()
        place = np.append(np.where(sets.full[place], -1, place), -1)
        kept = ~np.append(self.sets.empty, False)[self.paths].any(axis=1)
        paths = _packed(place[self.paths[kept]])
        return replace(self, values=self.values[kept], paths=paths, factors=(sets,))

    def collected(self) -> Boxes:
        """The same with boxes of the same sets as one, in whatever order they come."""
        place = ranks(self.paths.T) if self.paths.shape[1] > 0 else self.lengths
        order = np.lexsort([self.values, place])
        _, first, where = np.unique(
            place[order], return_index=True, return_inverse=True
        )
        values = np.bincount(where, self.values[order]).astype(np.float64)
        return replace(self, values=values, paths=self.paths[order[first]])

    def told_apart(self, by: Callable[[int, Sets], Sets]) -> Boxes:
        """The same with sets of a column as ``by`` has them; equal boxes are one."""
        ends = ("low", "high", "missing", "group")
        fields = {name: getattr(self.sets, name).copy() for name in ends}
        for j in np.unique(self.sets.column).tolist():
            own = np.flatnonzero(self.sets.column == j)
            alike = by(j, self.sets.take(own))
            for name in ends:
                fields[name][own] = getattr(alike, name)
        told = replace(self, factors=(replace(self.sets, **fields),))
        return told.merged().collected()


def _packed(paths: Positions) -> Positions:
    """Paths with their factors sorted in front, and −1 behind."""
    largest = np.iinfo(paths.dtype).max
    sorted_paths = np.sort(np.where(paths < 0, largest, paths), axis=1)
    packed = np.where(sorted_paths == largest, -1, sorted_paths)
    width = int((packed >= 0).sum(axis=1).max(initial=0))
    return packed[:, :width]


# ---- Shapley values of sums of boxes, exactly: every order of the columns, every row


MOST_SETS: Final = 62
"""Of one path: one bit each of a 64-bit word."""

_KEPT: Final = 2**28
"""Bytes of counts that are kept; of larger sums the rest is counted when asked."""

_Masks = NDArray[np.unsignedinteger]


@final
@dataclass(frozen=True, eq=False)
class BoxShapley:
    """Shapley values by counts of the background rows that sets of each leaf hold."""

    boxes: Boxes  # f
    background: Points  # shape (B, D)
    n_blocks: int = 1  # parts of the background, of as many rows each
    weights: Values | None = None  # (B,) of the rows of one block, which add up to 1
    players: Positions | None = None  # (D,) of the columns, where some are one

    @classmethod
    def of(
        cls,
        boxes: Boxes,
        background: Points,
        n_blocks: int = 1,
        weights: Values | None = None,
        players: Positions | None = None,
    ) -> BoxShapley:
        """Against background rows (B, D), or blocks of them that stand in turn."""
        assert weights is None or n_blocks == 1, "drawn rows count alike"
        n_sets = boxes.paths.shape[1]
        if n_sets > MOST_SETS:
            raise Refused(
                f"a path asks for {n_sets} columns, and Shapley values are counted "
                f"for at most {MOST_SETS}"
            )
        return cls(boxes, background, n_blocks, weights, players)

    @property
    def n_players(self) -> int:
        """D, or the number of players."""
        own = self.players
        return self.boxes.n_columns if own is None else int(own.max()) + 1

    def values(self, points: Points) -> Attributions:
        """Shapley values of points (N, D), exactly 0.0 where no box asks."""
        return self.of_blocks(points).mean(axis=1)

    def of_blocks(self, points: Points) -> Array:
        """Those against each block of the background by itself, (N, blocks, D)."""
        phi = np.zeros((len(points), self.n_blocks, self.n_players))
        for place, some in enumerate(self._blocks):
            kept = place < len(self._counted)
            leaves = self._counted[place] if kept else self._leaves(some)
            leaves.add_to(phi, points)
        return phi

    def alone(self, points: Points) -> Array:
        """Those against each background row by itself, shape (B, N, D)."""
        B, D = len(self.background), self.n_players
        phi = np.zeros((len(points), B * (D + 1)))
        for some in self._blocks:
            own = self.boxes, some, self.background
            leaves = _Leaves.of(*own, players=self.players)
            held, theirs = leaves.masks(points), leaves.masks(self.background)
            for sums, words in zip(phi, held.T, strict=True):
                leaves.add_alone(sums, words, theirs)
        return phi.reshape(len(points), B, D + 1)[:, :, :D].swapaxes(0, 1)

    @cached_property
    def _blocks(self) -> list[slice]:
        # whoever is asked: they fix the order of sums
        each = 16 * max(len(self.background), 1)
        return list(AT_ONCE.blocks(len(self.boxes.values), each))

    @cached_property
    def _counted(self) -> list[_Leaves]:
        """The first blocks of leaves, as many as are kept."""
        kept: list[_Leaves] = []
        size = 0
        for some in self._blocks:
            leaves = self._leaves(some)
            size += leaves.leaf.nbytes + leaves.pattern.nbytes + leaves.share.nbytes
            if size > _KEPT:
                break
            kept.append(leaves)
        return kept

    def _leaves(self, some: slice) -> _Leaves:
        """Some of the leaves, counted."""
        own = self.boxes, some, self.background, self.n_blocks, self.weights
        return _Leaves.of(*own, self.players)


@final
@dataclass(frozen=True, eq=False)
class _Leaves:
    """Some leaves, and which sets of their paths hold which background rows."""

    sets: Sets
    paths: Positions
    values: Array
    n_columns: int  # or players
    # (l, K), (K, l): the bit of each set, and the player of each bit; None for columns
    bits: Positions | None
    player: Positions | None
    # (M,): of each pattern that is different for one leaf the leaf,
    leaf: NDArray[np.uint32]
    pattern: _Masks  # the sets as bits,
    share: NDArray[np.float64]  # and the share of the background,
    block: NDArray[np.intp]  # or of the block of it
    n_blocks: int

    @classmethod
    def of(
        cls,
        boxes: Boxes,
        some: slice,
        background: Points,
        n_blocks: int = 1,
        weights: Values | None = None,
        players: Positions | None = None,
    ) -> _Leaves:
        paths = boxes.paths[some]
        n_columns, bits, player = boxes.n_columns, None, None
        if players is not None:
            n_columns = int(players.max()) + 1
            bits, player = _of_players(paths, players[boxes.sets.column], n_columns)
        used, place = np.unique(paths, return_inverse=True)
        n_padding = int(used.size > 0 and used[0] < 0)
        own = cls(
            sets=boxes.sets.take(used[n_padding:]),
            paths=place.reshape(paths.shape) - n_padding,  # -1 where there is none
            values=boxes.values[some],
            n_columns=n_columns,
            bits=bits,
            player=player,
            leaf=np.zeros(0, np.uint32),
            pattern=np.zeros(0, _word(paths.shape[1])),
            share=np.zeros(0),
            block=np.zeros(0, np.intp),
            n_blocks=n_blocks,
        )
        each = len(background) // n_blocks
        masks = own.masks(background).reshape(len(paths), n_blocks, each)
        order = None if weights is None else np.argsort(masks, axis=2, kind="stable")
        if order is None:
            held = np.sort(masks, axis=2)
        else:
            held = np.take_along_axis(masks, order, axis=2)
        new = np.ones(held.shape, bool)
        new[:, :, 1:] = held[:, :, 1:] != held[:, :, :-1]
        first = np.flatnonzero(new)
        if weights is None:
            shares = np.diff(first, append=held.size) / each
        else:
            shares = np.add.reduceat(weights[order].ravel(), first)
        place = first // max(each, 1)
        return replace(
            own,
            leaf=(place // n_blocks).astype(np.uint32),
            pattern=held.ravel()[first],
            share=shares,
            block=place % n_blocks if n_blocks > 1 else own.block,
        )

    def masks(self, points: Points) -> _Masks:
        """Which sets of each path hold each point, one bit each, shape (l, N).

        Sets of one player share a bit: all of them hold the point.
        """
        inside = self.sets.contain(points)
        if self.bits is not None:
            outside = np.concatenate([~inside, np.zeros((1, len(points)), bool)])
            words = np.repeat(self._full[:, None], len(points), axis=1)
            for place, bit in enumerate(self.bits.T.astype(words.dtype)):
                lacking = outside[self.paths[:, place]].astype(words.dtype)
                words &= ~(lacking << bit[:, None])
            return words
        inside = np.concatenate([inside, np.zeros((1, len(points)), bool)])
        word = _word(self.paths.shape[1])
        words = np.zeros((len(self.paths), len(points)), word)
        for place in range(self.paths.shape[1]):
            words |= inside[self.paths[:, place]].astype(word) << word.type(place)
        return words

    def add_to(self, phi: Array, points: Points) -> None:
        """Add what these leaves give to Shapley values of points, (N, blocks, D)."""
        each = max(1, len(self.sets) + 8 * len(self.paths))
        for rows in AT_ONCE.blocks(len(points), each):
            held = self.masks(points[rows])
            for own, words in zip(phi[rows], held.T, strict=True):
                own += self._of_row(words)

    def _of_row(self, held: _Masks) -> Array:
        """Those of one point, (blocks, D); ``held`` (l,) are the sets that hold it."""
        x = held[self.leaf]
        both = np.flatnonzero((x | self.pattern) == self._full[self.leaf])
        x, pattern = x[both], self.pattern[both]  # others give nothing
        only_x, only_b = x & ~pattern, pattern & ~x
        p, q = np.bitwise_count(only_x), np.bitwise_count(only_b)
        leaf = self.leaf[both]
        size = self.values[leaf] * self.share[both]
        gains, losses = size * _GAINS[p, q], size * _GAINS[q, p]
        width = self.n_columns + 1  # the last one takes what stands in no column
        phi = np.zeros(self.n_blocks * width)
        start = width * self.block[both] if self.n_blocks > 1 else 0
        for place, column in enumerate(self._columns):
            bit = x.dtype.type(1) << x.dtype.type(place)
            change = np.where(only_x & bit, gains, 0.0)
            change -= np.where(only_b & bit, losses, 0.0)
            phi += np.bincount(column[leaf] + start, change, len(phi))
        return phi.reshape(self.n_blocks, width)[:, :-1]

    def add_alone(self, phi: Array, held: _Masks, theirs: _Masks) -> None:
        """Add those of one point against each row, to phi (B (D + 1),)."""
        pairs = (held[:, None] | theirs) == self._full[:, None]
        leaf, row = np.nonzero(pairs)
        x, b = held[leaf], theirs[leaf, row]
        only_x, only_b = x & ~b, b & ~x
        p, q = np.bitwise_count(only_x), np.bitwise_count(only_b)
        gains = self.values[leaf] * _GAINS[p, q]
        losses = self.values[leaf] * _GAINS[q, p]
        start = row * (self.n_columns + 1)
        for place, column in enumerate(self._columns):
            bit = x.dtype.type(1) << x.dtype.type(place)
            change = np.where(only_x & bit, gains, 0.0)
            change -= np.where(only_b & bit, losses, 0.0)
            phi += np.bincount(start + column[leaf], change, len(phi))

    @cached_property
    def _full(self) -> _Masks:
        """All sets of each path, (l,)."""
        word = _word(self.paths.shape[1])
        place = np.arange(self.paths.shape[1]) if self.bits is None else self.bits
        bits = word.type(1) << place.astype(word)
        each = np.where(self.paths >= 0, bits, word.type(0))
        return np.asarray(np.bitwise_or.reduce(each, axis=1))

    @cached_property
    def _columns(self) -> Positions:
        """The column of each bit of each path (K, l), D where there is none."""
        if self.player is not None:
            return self.player
        if len(self.sets) == 0:
            return np.full(self.paths.T.shape, self.n_columns)
        paths = self.paths.T
        return np.where(paths >= 0, self.sets.column[paths], self.n_columns)


def _of_players(
    paths: Positions, player: Positions, n_players: int
) -> tuple[Positions, Positions]:
    """The bit of each set of each path (l, K), and the player of each bit (K, l).

    ``player`` are those of all sets; the bit of a player is that of its first set.
    """
    owner = np.append(player, -1)[paths]
    bits, used = np.zeros(paths.shape, np.intp), np.zeros(len(paths), np.intp)
    owners = np.full(paths.T.shape, n_players)
    for place in range(paths.shape[1]):
        bits[:, place] = used
        for before in range(place):
            same = owner[:, before] == owner[:, place]
            bits[same, place] = bits[same, before]
        new = (owner[:, place] >= 0) & (bits[:, place] == used)
        owners[used[new], np.flatnonzero(new)] = owner[new, place]
        used = used + new
    return bits, owners


def _word(n_sets: int) -> np.dtype[Any]:
    """The smallest dtype with a bit for each set."""
    return np.min_scalar_type((1 << max(n_sets, 1)) - 1)


def _gains() -> Array:
    """(p−1)! q!/(p+q)! = 1/((p+q) C(p+q−1, q)) for p ≥ 1."""
    gains = np.zeros((MOST_SETS + 1, MOST_SETS + 1))
    for p in range(1, MOST_SETS + 1):
        for q in range(MOST_SETS + 1 - p):
            gains[p, q] = 1.0 / ((p + q) * math.comb(p + q - 1, q))
    return gains


_GAINS: Final = _gains()


@final
@dataclass(frozen=True, eq=False)
class TreeSum:
    """f(x) = base + Σ trees, of D columns of a table."""

    trees: tuple[Tree, ...]  # by the columns of the table
    base: float  # what is added to them
    # (D,): how many codes the columns of the table have; None for numbers
    n_codes: tuple[int | None, ...]
    # how far the sum may be from the model, over the range of f
    tolerance: float = DOUBLE_TOLERANCE

    def boxes(self) -> Boxes:
        """The sum of boxes that it is."""
        leaf, sets, values = leaf_sets(self.trees, self.n_codes)
        paths = padded_paths(leaf, np.arange(len(sets)), len(values))
        whole = (self.base, values, paths, (sets,), len(self.n_codes), self.tolerance)
        return Boxes(*whole).merged()

    def scaled(self, weight: float) -> TreeSum:
        """``weight`` · f."""
        trees = tuple(replace(t, value=weight * t.value) for t in self.trees)
        return replace(self, trees=trees, base=weight * self.base)

    @classmethod
    def sum_of(cls, parts: Sequence[TreeSum]) -> TreeSum:
        """The sum of several, at least one, of the same columns."""
        return cls(
            tuple(tree for part in parts for tree in part.trees),
            sum(part.base for part in parts),
            parts[0].n_codes,
            max(part.tolerance for part in parts),
        )


def shapley_against(
    read: SumOfProducts,
    background: Points,
    n_blocks: int = 1,
    weights: Values | None = None,
    players: Positions | None = None,
) -> BoxShapley | ProductShapley:
    """Shapley values against background rows (B, D): of boxes they are found faster.

    With weights of the rows (B,), and the players of the columns (D,).
    """
    if isinstance(read, Boxes):
        return BoxShapley.of(read, background, n_blocks, weights, players)
    if players is not None:
        read = PlayerProducts.of_players(read, players)
    return ProductShapley(read, background, n_blocks, weights)
