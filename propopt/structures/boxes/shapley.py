"""Shapley values of sums of boxes, exactly: two vectors for each box.

v(S) is the mean over M background rows b of f(x on S, b elsewhere). A box v Π_u 1[A_u]
of p sets depends only on which of its sets contain a row. Let m be the sets that do not
contain x, and Z_s[m] the number of background rows in all of m and in s sets in all.
With g(n, q) = (n−1)! q!/(n+q)!, and g(0, q) = −(1 + 1/2 + … + 1/q),

    A[m] = v/M Σ_s g(p−s, |m|) Z_s[m],   B[m] = v/M Σ_s g(p−s, |m|−1) Z_s[m],

    φ_u = A[m] − B[m ∪ u]   for every set u of the box.

For a row b in all sets of m, only x is in the p−s sets without b, and only b in m: it
gives g(p−s, |m|) to each of these p−s, and −g(|m|, p−s) to each of m (Lundberg et al.
2020). Both are the difference above, since g(n, q) + g(q, n) = g(n, q−1) for n ≥ 1.

Z is a sum over supersets: p 2^p additions for each s give all m. So a box of few sets
has tables, 2^p numbers for A and for B, and a row costs p + 1 look-ups, whatever the
number of background rows. Boxes of more sets, and boxes beyond the memory budget, use
temporary tables, or visit the background rows in all sets of m. Counts and weights are
integers below 2^53, so that their sums are exact: all methods give the same digits, and
a row has the same digits in any batch.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Indices, Points, Values
from propopt.base.errors import Refused
from propopt.base.kernels import kernel
from propopt.base.resources import BATCH_BUDGET, Budget
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.sums import (
    Game,
    ProductShapley,
    SumOfProducts,
    joint_paths,
)


MOST_SETS: Final = 62
"""Sets of one path: one bit each of a 64-bit word."""

TABLE_SETS: Final = 18
"""The most sets of a path with tables, of 2^p numbers."""

TABLE_BYTES: Final = 2**28
"""Bytes of tables that are retained, for all blocks of a background."""

_Words = NDArray[np.unsignedinteger[Any]]
_Bytes = NDArray[np.uint8]


def _gains() -> Array:
    """g(n, q) = (n−1)! q!/(n+q)! = 1/((n+q) C(n+q−1, q)), and −Σ_{i ≤ q} 1/i at 0."""
    gains = np.zeros((MOST_SETS + 2, MOST_SETS + 2))
    for q in range(MOST_SETS + 1):
        gains[0, q] = -math.fsum(1.0 / i for i in range(1, q + 1))
        for n in range(1, MOST_SETS + 1 - q):
            gains[n, q] = 1.0 / ((n + q) * math.comb(n + q - 1, q))
    return gains


_GAINS: Final = _gains()


# ---- Boxes ordered by length, with sets of one player joined


@final
@dataclass(frozen=True, eq=False)
class OrderedBoxes:
    """Boxes in the order of their lengths, with the player of each of their sets.

    Sets of one player in one box are joined to their intersection.
    """

    sets: Sets
    members: Indices | None  # (V, K): the sets of each joint set; None without players
    owner: Indices  # (V,): the player of each joint set
    paths: Indices  # (L, K): shorter ones first, padded with −1
    lengths: Indices  # (L,)
    values: Values  # (L,)

    @classmethod
    def of(cls, boxes: Boxes, players: Indices | None) -> Self:
        """All boxes that contain at least one set."""
        sets = boxes.sets
        paths = boxes.paths
        members = None
        owner = sets.column
        if players is not None:
            paths, members, owner = joint_paths(paths, players[sets.column])
        lengths = np.asarray((paths >= 0).sum(axis=1))
        order = np.argsort(lengths, kind="stable")
        order = order[lengths[order] > 0]
        ordered = paths[order], lengths[order], boxes.values[order]
        return cls(sets, members, owner, *ordered)

    def lacking(self, points: Points) -> _Bytes:
        """1 where a set does not contain a point, shape (V, N)."""
        outside = self._outside(points)
        if self.members is None:
            return outside
        # one more set, which contains everything, stands for the padding
        outside = np.concatenate([outside, np.zeros((1, len(points)), np.uint8)])
        joint = outside[self.members[:, 0]]
        for others in self.members.T[1:]:
            joint |= outside[others]
        return joint

    def _outside(self, points: Points) -> _Bytes:
        """The same for each single set, shape (U, N)."""
        sets = self.sets
        compiled = kernel("lacking")
        if compiled is None:
            return (~sets.contain(points)).view(np.uint8)
        outside = np.empty((len(sets), len(points)), np.uint8)
        ends = sets.low, sets.high, sets.missing.view(np.uint8)
        rest = np.ascontiguousarray(points.T), outside
        compiled(*outside.shape, sets.column, *ends, *rest)
        if len(self._coded) > 0:
            inside = sets.take(self._coded).contain(points)
            outside[self._coded] = ~inside
        return outside

    @cached_property
    def _coded(self) -> Indices:
        return np.flatnonzero(self.sets.coded)

    def holding(self, points: Points) -> _Bytes:
        """Which points each set contains, in words of 64 bits, (V, 8 W) bytes."""
        packed = np.zeros((len(self.owner), 8 * -(-len(points) // 64)), np.uint8)
        step = max(64, BATCH_BUDGET.rows(3 * max(len(self.owner), 1)) // 64 * 64)
        for start in range(0, len(points), step):
            inside = self.lacking(points[start : start + step]) ^ 1
            bits = np.packbits(inside, axis=1, bitorder="little")
            packed[:, start // 8 : start // 8 + bits.shape[1]] = bits
        return packed

    def shares(self, rows: Points, weights: Values | None) -> tuple[Array, Array]:
        """Two means over rows for each set u, shape (V,) each.

        Σ_{l with u} v_l Π_{w≠u} 1[row ∈ A_w], and the same with A_u.
        """
        inside = self.holding(rows).view(np.uint64)
        n_rows = len(rows)
        every = np.packbits(np.ones((1, n_rows), bool), bitorder="little")
        full = np.zeros(8 * inside.shape[1], np.uint8)
        full[: len(every)] = every

        def share(bits: NDArray[np.uint64]) -> Array:  # (l, W)
            if weights is None:
                return np.bitwise_count(bits).sum(axis=1) / n_rows
            packed = bits.view(np.uint8)
            indicators = np.unpackbits(packed, axis=1, count=n_rows, bitorder="little")
            return (indicators * weights).sum(axis=1)

        means = np.zeros((2, len(self.owner)))
        for batch in self.batches:
            row_bytes = 16 * (batch.p + 2) * inside.shape[1] + 16 * n_rows
            for chosen in _within(batch.start, batch.stop, row_bytes):
                paths = batch.members_of(chosen)[0]
                values = self.values[chosen]
                front = [
                    np.broadcast_to(full.view(np.uint64), (len(paths), inside.shape[1]))
                ]
                for column in paths.T:
                    front.append(front[-1] & inside[column])
                whole = values * share(front[-1])
                behind = front[0]
                for before, column in zip(front[-2::-1], paths.T[::-1], strict=True):
                    others = values * share(before & behind)
                    np.add.at(means[0], column, others)
                    np.add.at(means[1], column, whole)
                    behind = behind & inside[column]
        return means[0], means[1]

    @cached_property
    def batches(self) -> list[BoxBatch]:
        """Boxes in batches of equal length, shorter ones first."""
        lengths, starts = np.unique(self.lengths, return_index=True)
        ends = [*starts.tolist(), len(self.lengths)]
        batches = []
        for p, start, end in zip(lengths.tolist(), ends[:-1], ends[1:], strict=True):
            paths = np.ascontiguousarray(self.paths[start:end, :p])
            batches.append(BoxBatch(p, start, end, paths, self.owner[paths]))
        return batches

    @cached_property
    def in_order(self) -> tuple[Indices, Indices, Indices]:
        """The first set of each box, (L + 1,), all sets, and their players."""
        ends = np.cumsum(np.concatenate([[0], self.lengths]))
        nothing = np.zeros(0, np.intp)
        paths = np.concatenate(
            [nothing, *(batch.paths.ravel() for batch in self.batches)]
        )
        return ends.astype(np.intp), paths, self.owner[paths]


class BoxBatch(NamedTuple):
    """Consecutive boxes with the same number of sets."""

    p: int
    start: int  # the first box
    stop: int  # one beyond the last box
    paths: Indices  # (l, p): the sets of each box
    owner: Indices  # (l, p): the players of these sets

    def members_of(self, chosen: slice) -> tuple[Indices, Indices]:
        """Sets and players of a slice of boxes, by their indices among all boxes."""
        local = slice(chosen.start - self.start, chosen.stop - self.start)
        return self.paths[local], self.owner[local]


def _words(bits: _Bytes, paths: Indices) -> _Words:
    """Bits of sets (V, n) as one word for each path of equal length, (l, n)."""
    word = np.min_scalar_type((1 << paths.shape[1]) - 1)
    words = np.zeros((len(paths), bits.shape[1]), word)
    for position, column in enumerate(paths.T):
        words |= bits[column].astype(word) << word.type(position)
    return words


# ---- Boxes and one part of the background, prepared


_NOTHING: Final = np.zeros(0)

_MOST_EQUAL: Final = 2**16
"""Rows that compiled kernels count in 16 bits; more rows need explicit counts."""

_FEW_ROWS: Final = 24
"""The most rows for which many boxes are looked up in one array."""


@final
@dataclass(frozen=True, eq=False)
class BoxTables:
    """The tables of the first boxes, and the data that the remaining boxes need."""

    leaves: OrderedBoxes
    n_rows: int  # M
    counts: Values | None  # (M,): integers proportional to the weights
    holding: _Bytes  # (V, 8 W): the background rows in each set
    tables: Array  # A and B of each of the first boxes
    n_tabulated: int  # the number of boxes with tables

    @classmethod
    def of(
        cls, leaves: OrderedBoxes, rows: Points, weights: Values | None, most: int
    ) -> Self:
        """Prepare boxes and rows with at most ``most`` bytes of tables."""
        n_tabulated = n_with_tables(leaves.lengths, most)
        counts = None if len(rows) < _MOST_EQUAL else np.ones(len(rows))
        if weights is not None:
            counts = np.rint(weights * 2.0**52)
        tables = np.empty(int(_sizes(leaves.lengths[:n_tabulated]).sum()))
        result = cls(
            leaves, len(rows), counts, leaves.holding(rows), tables, n_tabulated
        )
        for batch in leaves.batches:
            chosen = slice(batch.start, min(batch.stop, n_tabulated))
            if chosen.start < chosen.stop:
                result.make(batch, chosen, result.tabulated(chosen))
        return result

    @cached_property
    def starts(self) -> Indices:
        """First number of the table of each box, and the end, (n_tabulated + 1,)."""
        sizes = _sizes(self.leaves.lengths[: self.n_tabulated])
        return np.cumsum([0, *sizes]).astype(np.intp)

    def tabulated(self, chosen: slice) -> Array:
        """The tables of consecutive boxes of one length, one after the other."""
        return self.tables[self.starts[chosen.start] : self.starts[chosen.stop]]

    @property
    def total(self) -> float:
        """The sum of the counts: M, unless rows have weights."""
        return float(self.n_rows if self.counts is None else self.counts.sum())

    def add_to(self, phi: Array, lacking: _Bytes) -> None:
        """Add Shapley values of rows to phi (P, N), given which sets lack each row."""
        compiled = kernel("look_up")
        if compiled is not None:  # all tables in one call
            n_boxes = self.n_tabulated
            n_points = phi.shape[1]
            scratch = np.empty(max(n_boxes, n_points), np.uint64), np.empty(n_points)
            boxes = *self.leaves.in_order, lacking, self.starts, self.tables
            compiled(n_boxes, n_points, *boxes, phi, *scratch)
        for batch in self.leaves.batches:
            tabulated = slice(batch.start, min(batch.stop, self.n_tabulated))
            if compiled is None and tabulated.start < tabulated.stop:
                tables = self.tabulated(tabulated)
                _look_up(phi, lacking, *batch.members_of(tabulated), tables)
            rest = slice(max(batch.start, self.n_tabulated), batch.stop)
            if rest.start >= rest.stop:
                continue
            if not self._prefers_tables(batch.p, phi.shape[1]):
                self._visit(phi, lacking, batch, rest)
                continue
            for block in _within(rest.start, rest.stop, 16 << batch.p):
                tables = np.empty((block.stop - block.start) * (2 << batch.p))
                self.make(batch, block, tables)
                _look_up(phi, lacking, *batch.members_of(block), tables)

    def _prefers_tables(self, p: int, n_points: int) -> bool:
        """Whether a temporary table of a box is cheaper than to visit the background.

        By measured costs in nanoseconds; both give the same digits.
        """
        if p > TABLE_SETS:
            return False
        if kernel("visit") is None:
            return (p + 2) ** 2 << p < 4 * n_points * self.n_rows
        return (16 << p) + 4 * self.n_rows < n_points * (40 + self.n_rows // 5)

    def _visit(self, phi: Array, lacking: _Bytes, batch: BoxBatch, rest: slice) -> None:
        """Add the values of boxes by visiting the background rows in all sets of m."""
        n_points = phi.shape[1]
        visit = kernel("visit")
        if visit is None:
            for rows in BATCH_BUDGET.blocks(n_points, _PAIR_BYTES * self.n_rows):
                n_pairs = (rows.stop - rows.start) * self.n_rows
                for block in _within(rest.start, rest.stop, _PAIR_BYTES * n_pairs):
                    self._visit_pairs(phi[:, rows], lacking[:, rows], batch, block)
            return
        words = self.holding.view(np.uint64)
        counts = self.counts
        paths, owner = batch.members_of(rest)
        scale = self.leaves.values[rest] / self.total
        visit(
            *(len(paths), batch.p, n_points, self.n_rows, words.shape[1]),
            *(counts is not None, words, paths, owner, lacking, scale),
            *(_NOTHING if counts is None else counts, _GAINS, phi),
            *(np.empty(384 * words.shape[1], np.uint64), np.empty(n_points, np.uint64)),
        )

    def _patterns(self, paths: Indices) -> _Words:
        """Which sets of each path contain each background row, shape (l, M)."""
        used, position = np.unique(paths, return_inverse=True)
        inside = np.unpackbits(
            self.holding[used], axis=1, count=self.n_rows, bitorder="little"
        )
        return _words(inside, position.reshape(paths.shape))

    def make(self, batch: BoxBatch, block: slice, tables: Array) -> None:
        """Fill in the tables A and B of boxes of a batch."""
        p = batch.p
        if (compiled := kernel("tables")) is not None:
            words = self.holding.view(np.uint64)
            counts = self.counts
            scale = self.leaves.values[block] / self.total
            n_cells = (16 if p < 16 else 24) << p
            compiled(
                *(block.stop - block.start, p, self.n_rows, words.shape[1]),
                *(counts is not None, words, batch.members_of(block)[0], scale),
                *(_NOTHING if counts is None else counts, _GAINS, tables),
                *(np.empty(64 * words.shape[1], np.uint64), np.empty(n_cells)),
            )
            return
        tables = tables.reshape(-1, 2, 1 << p)
        sizes = np.bitwise_count(np.arange(1 << p))
        row_bytes = 8 * max(4 << p, self.n_rows)
        for local in _CACHE_BUDGET.blocks(block.stop - block.start, row_bytes):
            chosen = slice(block.start + local.start, block.start + local.stop)
            words = self._patterns(batch.members_of(chosen)[0])
            first = np.arange(len(words))[:, None] << p
            index = (words + first).ravel()
            weights = None if self.counts is None else np.tile(self.counts, len(words))
            count = (
                np.bincount(index, weights, len(words) << p).reshape(len(words), -1).T
            )
            A, B = np.zeros((2, *count.shape))
            for s in range(p + 1):
                Z = np.where((sizes == s)[:, None], count, 0.0)
                for k in range(p):
                    pairs = Z.reshape(-1, 2, 1 << k, len(words))
                    pairs[:, 0] += pairs[:, 1]
                A += Z * _GAINS[p - s][sizes][:, None]
                B += Z * _GAINS[p - s][np.maximum(sizes, 1) - 1][:, None]
            scale = self.leaves.values[chosen] / self.total
            tables[local, 0] = (A * scale).T
            tables[local, 1] = (B * scale).T

    def _visit_pairs(
        self, phi: Array, lacking: _Bytes, batch: BoxBatch, chosen: slice
    ) -> None:
        """The same by NumPy, for few boxes and rows."""
        paths, owner = batch.members_of(chosen)
        p = batch.p
        n_points = phi.shape[1]
        patterns = self._patterns(paths)
        missing = _words(lacking, paths)
        bits = patterns.dtype.type(1) << np.arange(p).astype(patterns.dtype)
        row_lacks = np.bitwise_or.reduce(bits) ^ patterns  # the sets without each row
        box, point, row = np.nonzero((row_lacks[:, None] & missing[:, :, None]) == 0)
        new = np.ones(len(box), bool)
        new[1:] = (np.diff(box) != 0) | (np.diff(point) != 0)
        cell = np.cumsum(new) - 1
        n_cells = int(new.sum())
        lacks = row_lacks[box, row]
        index = (p - np.bitwise_count(lacks).astype(np.intp)) * n_cells + cell
        counts = None if self.counts is None else self.counts[row]
        Z = np.bincount(index, counts, (p + 1) * n_cells).reshape(p + 1, n_cells)
        hit, u = np.nonzero(lacks[:, None] & bits)
        without = np.bincount(
            index[hit] * p + u, None if counts is None else counts[hit], Z.size * p
        )
        with_u = Z[:, :, None] - without.reshape(p + 1, n_cells, p)
        box = box[new]
        point = point[new]
        m = missing[box, point]
        q = np.bitwise_count(m).astype(np.intp)
        before = q[:, None] - ((m[:, None] & bits) != 0)  # minus one for u in m
        A = np.zeros(n_cells)
        B = np.zeros((n_cells, p))
        for s in range(p + 1):
            A += Z[s] * _GAINS[p - s][q]
            B += with_u[s] * _GAINS[p - s][before]
        scale = (self.leaves.values[chosen] / self.total)[box]
        change = (A * scale)[:, None] - B * scale[:, None]
        phi_index = owner[box] * n_points + point[:, None]
        phi[...] = _added(phi.ravel(), phi_index, change).reshape(phi.shape)


def _within(start: int, stop: int, each: int) -> Iterator[slice]:
    """Consecutive slices from start to stop, of items of ``each`` bytes."""
    for part in BATCH_BUDGET.blocks(max(stop - start, 0), each):
        yield slice(start + part.start, start + part.stop)


_PAIR_BYTES: Final = 16
"""Bytes for a pair of a row and a background row, few of which are examined closely."""

POINTS_AT_ONCE: Final = Budget(2**28, 4096)
"""Points treated in one batch, which share temporary tables."""

_CACHE_BUDGET: Final = Budget(2**20)
"""Arrays that are added up repeatedly stay in the processor's cache."""


def _sizes(lengths: Indices) -> Array:
    """The count of numbers in the tables of each box; ∞ for too many sets."""
    few = np.minimum(lengths, TABLE_SETS)
    return np.where(lengths <= TABLE_SETS, 2.0 ** (few + 1), np.inf)


def _added(phi: Values, index: Indices, changes: Array) -> Values:
    """Phi plus changes at given indices, added one after the other."""
    indices = np.concatenate([np.arange(len(phi)), index.ravel()])
    total = np.bincount(indices, np.concatenate([phi, changes.ravel()]), len(phi))
    return total.astype(np.float64, copy=False)


def _look_up(
    phi: Array, lacking: _Bytes, paths: Indices, owner: Indices, tables: Array
) -> None:
    """Add A[m] − B[m ∪ u] of boxes of one length to phi (P, N)."""
    n_points = phi.shape[1]
    n_boxes, p = paths.shape
    bits = 1 << np.arange(p)
    size = 1 << p
    if (compiled := kernel("look_up")) is not None:
        start = np.arange(n_boxes + 1)
        boxes = start * p, paths, owner, lacking, start * (2 * size), tables
        scratch = np.empty(max(n_boxes, n_points), np.uint64), np.empty(n_points)
        compiled(n_boxes, n_points, *boxes, phi, *scratch)
        return
    if n_points <= _FEW_ROWS:
        for chosen in BATCH_BUDGET.blocks(n_boxes, 32 * p * n_points):
            m = _words(lacking, paths[chosen]).astype(np.intp)
            m += np.arange(chosen.start, chosen.stop)[:, None] * (2 * size)
            with_u = (m[:, None] | bits[:, None]) + size
            change = tables[m][:, None] - tables[with_u]
            index = owner[chosen, :, None] * n_points + np.arange(n_points)
            phi[...] = _added(phi.ravel(), index, change).reshape(phi.shape)
        return
    tables = tables.reshape(n_boxes, 2, size)
    for chosen in BATCH_BUDGET.blocks(n_boxes, 8 * n_points):
        words = _words(lacking, paths[chosen])
        for m, players, (A, B) in zip(
            words, owner[chosen], tables[chosen], strict=True
        ):
            phi[players] += A.take(m) - B.take(m | bits[:, None])


# ---- Shapley values of sums of boxes against a background


@final
@dataclass(frozen=True, eq=False)
class BoxShapley:
    """Shapley values of a sum of boxes against background rows, exactly."""

    boxes: Boxes  # f
    game: Game
    leaves: OrderedBoxes

    @classmethod
    def of(cls, boxes: Boxes, game: Game) -> Self:
        """Prepare a game; paths of more than 62 sets are refused."""
        leaves = OrderedBoxes.of(boxes, game.players)
        if (longest := int(leaves.lengths.max(initial=0))) > MOST_SETS:
            players = "columns" if game.players is None else "groups"
            raise Refused(
                f"a path of the trees uses {longest} {players}; expected at most "
                f"{MOST_SETS} for Shapley values"
            )
        return cls(boxes, game, leaves)

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in vars(self).items() if name != "parts"}

    def values(self, points: Points) -> Attributions:
        """Shapley values of points (N, D), exactly 0.0 for columns without a set."""
        return self.of_blocks(points).mean(axis=1)

    def of_blocks(self, points: Points) -> Array:
        """Shapley values against each background block separately, (N, blocks, P)."""
        game = self.game
        leaves = self.leaves
        phi = np.empty((len(points), game.n_blocks, game.n_players))
        row_bytes = len(leaves.owner) + 8 * game.n_players
        for rows in POINTS_AT_ONCE.blocks(len(points), row_bytes):
            lacking = leaves.lacking(points[rows])
            for block, part in enumerate(self.parts):
                block_phi = np.zeros((game.n_players, lacking.shape[1]))
                part.add_to(block_phi, lacking)
                phi[rows, block] = block_phi.T
        return phi

    @cached_property
    def parts(self) -> list[BoxTables]:
        """Tables of each background block; the last three sets of tables are cached."""
        digest = self.game.digest
        for boxes, cached_digest, parts in RECENT:
            if boxes() is self.boxes and cached_digest == digest:
                return parts
        game = self.game
        most = TABLE_BYTES // self.game.n_blocks
        parts = [
            BoxTables.of(self.leaves, rows, game.weights, most) for rows in game.blocks
        ]
        RECENT.insert(0, (weakref.ref(self.boxes), digest, parts))
        RECENT[:] = [entry for entry in RECENT[:_N_CACHED] if entry[0]() is not None]
        return parts


RECENT: Final[list[tuple[weakref.ref[Boxes], str, list[BoxTables]]]] = []
_N_CACHED: Final = 3


def shapley_against(
    structure: SumOfProducts, game: Game
) -> BoxShapley | ProductShapley:
    """Exact Shapley values against background rows, by the fastest method."""
    if isinstance(structure, Boxes):
        return BoxShapley.of(structure, game)
    return ProductShapley.of(structure, game)


# ---- Costs by operation counts, equal on every machine and for any kernels


def n_with_tables(lengths: Indices, most: int = TABLE_BYTES) -> int:
    """Number of boxes with tables within a budget of bytes, by increasing lengths."""
    sizes = 8.0 * np.cumsum(_sizes(np.sort(lengths)))
    return int(np.searchsorted(sizes, most, side="right"))


def box_steps(boxes: Boxes) -> tuple[int, int, int]:
    """Operations for each background row once, for each row, and for each pair."""
    lengths = np.sort(boxes.lengths)
    n_tabulated = n_with_tables(lengths)
    whole = int(lengths.sum())
    return whole, whole + n_tabulated, len(lengths) - n_tabulated
