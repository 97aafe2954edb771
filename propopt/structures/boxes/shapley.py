"""Shapley values of sums of trees, exactly, whatever the number of background rows.

v(S) is the mean over M background rows b of f(x on S, b elsewhere). A box v Π_u 1[A_u]
of p sets depends only on which of its sets contain a row. Let m be the sets that do not
contain x, and Z_s[m] the number of background rows in all of m and in s sets in all.
With g(n, q) = (n−1)! q!/(n+q)!, and g(0, q) = −(1 + 1/2 + … + 1/q),

    A[m] = v/M Σ_s g(p−s, |m|) Z_s[m],   B[m] = v/M Σ_s g(p−s, |m|−1) Z_s[m],

    φ_u = A[m] − B[m ∪ u]   for every set u of the box.

For a row b in all sets of m, only x is in the p−s sets without b, and only b in m: it
gives g(p−s, |m|) to each of these p−s, and −g(|m|, p−s) to each of m (Lundberg et al.
2020). Both are the difference above, since g(n, q) + g(q, n) = g(n, q−1) for n ≥ 1.

The sets of a leaf, one for each player with columns on its path, are found by visiting
the nodes of a tree in order. Z is a sum over supersets: p 2^p additions for each s give
all m. Where A and B of all leaves fit into memory, these tables are retained, and a row
costs p + 1 look-ups a leaf. Deep trees are streamed: each leaf has a table while it is
visited, for all rows of a call, or its background rows in all sets of m are counted,
whichever takes fewer operations. Counts and weights are integers below 2^53, so that
their sums are exact. Leaves are added in their order within a unit of work, and units
in theirs: a row has the same digits in any batch, with any number of threads.

Interaction values of pairs (Grabisch and Roubens 1999) are

    I_uv = Σ_{S ∌ u, v} |S|! (P−|S|−2)!/(P−1)! (v(S∪u∪v) − v(S∪u) − v(S∪v) + v(S)).

There u has one coalition fewer to join, so the gains of a leaf are those of values with
n − 1 in place of n, which is where g(−1, q) = Σ_{i < q} (1 + 1/2 + … + 1/i) comes from:

    A[m], B[m], C[m] = v/M Σ_s g(p−s−1, |m|−t) Z_s[m]   for t = 0, 1, 2,

    I_uv = A[m] − B[m ∪ u] − B[m ∪ v] + C[m ∪ u ∪ v]   for all pairs of sets of a leaf.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain, combinations, product
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Indices, Points, Values
from propopt.base.kernels import kernel
from propopt.base.resources import BATCH_BUDGET, Budget
from propopt.base.terminal import counting
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.nodes import (
    MOST_SETS,
    TABLE_SETS,
    JointSets,
    TreeNodes,
    ends_of,
)
from propopt.structures.products.sums import Game, ProductShapley, SumOfProducts


TABLE_BYTES: Final = 2**28
"""Bytes of tables that are retained, for all blocks of a background."""

_FEW_SETS: Final = 12
"""The most sets of a path with temporary tables of NumPy."""

_MOST_ROWS: Final = 60_000
"""Background rows of one count in 16 bits; more are counted in parts."""


def _gains() -> Array:
    """g(n, q) at n + 1 and q, with g(n, q) − g(n, q+1) = g(n+1, q) for all n ≥ −1.

    (n−1)! q!/(n+q)! = 1/((n+q) C(n+q−1, q)), −Σ_{i ≤ q} 1/i at 0, −Σ_{i < q} g(0, i) at
    −1.
    """
    gains = np.zeros((MOST_SETS + 2, MOST_SETS + 2))
    for q in range(MOST_SETS + 1):
        gains[1, q] = -math.fsum(1.0 / i for i in range(1, q + 1))
        gains[0, q] = -math.fsum(gains[1, :q])
        for n in range(1, MOST_SETS + 1 - q):
            gains[n + 1, q] = 1.0 / ((n + q) * math.comb(n + q - 1, q))
    return gains


_GAINS: Final = _gains()


# ---- Background rows, and what leaves give against them


@final
@dataclass(frozen=True, eq=False)
class BackgroundRows:
    """Some background rows of trees, as ranks in each column for kernels."""

    nodes: TreeNodes
    points: Points  # (M, D)
    counts: Values | None  # (M,): integers proportional to weights
    total: float  # the sum of counts of all rows, also of other parts
    # (L + 1,): where the retained table of each leaf begins; None if none are retained
    places: Indices | None = None
    order: int = 1  # what is added up: values of players, 1; of pairs of players, 2

    @classmethod
    def parts(
        cls,
        nodes: TreeNodes,
        rows: Points,
        weights: Values | None,
        places: Indices | None = None,
        order: int = 1,
    ) -> list[BackgroundRows]:
        """The rows in parts that are small enough to be counted."""
        counts = None if weights is None else np.rint(weights * 2.0**52)
        total = float(len(rows) if counts is None else counts.sum())
        parts = []
        for start in range(0, len(rows), _MOST_ROWS):
            some = slice(start, start + _MOST_ROWS)
            of_part = None if counts is None else counts[some]
            parts.append(cls(nodes, rows[some], of_part, total, places, order))
        return parts

    @cached_property
    def ranked(self) -> tuple[NDArray[Any], ...]:
        """Bounds of nodes (n,), ranks (D, M) below which rows go left, and counts.

        NaN has the rank −1 mod 2^16. Where it goes left, ranks and bounds are one more.
        """
        nodes = self.nodes
        cut, first, ends = nodes.cells
        points = np.ascontiguousarray(self.points.T)
        order = np.argsort(points, axis=1)  # NaN is last
        ordered = np.take_along_axis(points, order, axis=1)
        ranks = np.empty(points.shape, np.uint16)
        every = np.broadcast_to(
            np.arange(points.shape[1], dtype=np.uint16), ranks.shape
        )
        np.put_along_axis(ranks, order, every, axis=1)
        ranks[np.isnan(points)] = 65_535
        below = np.zeros(first[-1] + 1, np.uint16)  # ranks of each cut, at last of none
        for j, cuts in ends.items():
            if nodes.n_codes[j] is None:
                start = first[j] + 1
                below[start : start + len(cuts)] = ordered[j].searchsorted(
                    cuts, "right"
                )
                continue
            last = nodes.members.shape[1] - 1
            is_code = (points[j] >= 0.0) & (points[j] < last)
            ranks[j] = np.where(is_code, points[j], last)
        # leaves have the column −1
        at = np.where(nodes.codes < 0, first[nodes.column] + cut, first[-1])
        bound = below[at] + nodes.missing_left
        return bound, ranks, _NOTHING if self.counts is None else self.counts

    @cached_property
    def tables(self) -> Array | None:
        """The tables of all leaves; None if leaves are streamed."""
        if self.places is None:
            return None
        tables = np.empty(int(self.places[-1]))
        empty = np.zeros((0, self.points.shape[1]))
        make = partial(self._visit, _MAKE, tables, empty)
        shape = math.comb(self.nodes.n_players, self.order), 0
        self.nodes.sums(make, shape, 1e3 * len(tables))
        return tables

    def add_to(self, points: Points, unit: slice, phi: Array) -> None:
        """Add what trees give at points (N, D) to phi (P, N), or (P (P−1)/2, N)."""
        tables = self.tables
        task = _STREAM if tables is None else _LOOK_UP
        self._visit(task, _NOTHING if tables is None else tables, points, unit, phi)

    def _visit(
        self, task: int, tables: Array, points: Points, unit: slice, phi: Array
    ) -> None:
        """Make tables, or add the values of points by tables or without."""
        nodes = self.nodes
        first = nodes.leaves_of(unit).start
        places = _NOWHERE if self.places is None else self.places[first:]
        compiled = kernel("shapley")
        if compiled is not None:
            rows = NO_ROWS if task == _LOOK_UP else self.ranked
            columns = np.ascontiguousarray(points.T)
            ranked = *rows, self.total
            given, scratch = nodes.arguments(unit, ranked, columns, self.order)
            numbers = self.order, task, self._gains
            compiled(*given, *numbers, places, tables, phi, scratch)
            return
        sets = nodes.joint_sets[nodes.units.index(unit)]
        lengths = nodes.lengths[nodes.leaves_of(unit)]
        row_bytes = 16 * (len(points) + len(self.points))
        for block in BATCH_BUDGET.blocks(len(lengths), row_bytes):
            of_block = lengths[block]
            n_terms = np.cumsum([0, *(len(_terms(p, self.order)) for p in of_block)])
            change = np.zeros((n_terms[-1], len(points)))
            owner = np.zeros(n_terms[-1], np.intp)
            for p in np.unique(of_block[of_block >= self.order]).tolist():
                leaves = block.start + np.flatnonzero(of_block == p)
                held = sets.words(p, leaves, points)
                m = np.uint64((1 << p) - 1) ^ held
                if task == _STREAM and p > _FEW_SETS:
                    changes = self._by_hits(p, sets, leaves, m)
                else:
                    size = self.order + 1 << p
                    at = np.zeros((0, 0), np.intp)
                    if len(places) > 0:
                        at = places[leaves][:, None] + np.arange(size)
                    made = tables[at]
                    if task != _LOOK_UP:
                        made = self._numpy_tables(p, sets, leaves)
                    if task == _MAKE:
                        tables[at] = made
                    changes = self._from_tables(p, made, m)
                terms = _terms(p, self.order)
                rows_of = n_terms[leaves - block.start][:, None] + np.arange(len(terms))
                change[rows_of] = changes
                players = sets.owner[sets.first[leaves][:, None, None] + terms]
                owner[rows_of] = _positions(players)
            np.add.at(phi, owner, change)

    @property
    def _gains(self) -> Array:
        """g(n + 1 − order, q), (n, q)."""
        return _GAINS[2 - self.order :]

    def _numpy_tables(self, p: int, sets: JointSets, leaves: Indices) -> Array:
        """Tables of leaves of p sets, (l, (order + 1) 2^p)."""
        tables = np.empty((len(leaves), self.order + 1, 1 << p))
        sizes = np.bitwise_count(np.arange(1 << p)).astype(np.intp)
        row_bytes = 8 * max(4 << p, len(self.points))
        for some in _CACHE_BUDGET.blocks(len(leaves), row_bytes):
            words = sets.words(p, leaves[some], self.points).astype(np.intp)
            index = (words + (np.arange(len(words))[:, None] << p)).ravel()
            weights = None if self.counts is None else np.tile(self.counts, len(words))
            count = np.bincount(index, weights, len(words) << p)
            count = count.reshape(len(words), -1).T
            sums = np.zeros((self.order + 1, *count.shape))
            for s in range(p + 1):
                Z = np.where((sizes == s)[:, None], count, 0.0)
                for k in range(p):
                    pairs = Z.reshape(-1, 2, 1 << k, len(words))
                    pairs[:, 0] += pairs[:, 1]
                for t, of_t in enumerate(sums):
                    of_t += Z * self._gains[p - s][np.maximum(sizes - t, 0)][:, None]
            scale = sets.values[leaves[some]] / self.total
            tables[some] = (sums * scale).transpose(2, 0, 1)
        return tables.reshape(len(leaves), -1)

    def _from_tables(self, p: int, tables: Array, m: NDArray[np.uint64]) -> Array:
        """What leaves give at m (l, N) by their tables, (l, terms, N)."""
        tables = tables.reshape(len(m), -1, 1 << p)

        def table_at(t: int, sets: NDArray[np.uint64]) -> Array:
            index = (m[:, None] | sets[:, None]).astype(np.intp)
            flat = np.take_along_axis(tables[:, t], index.reshape(len(m), -1), axis=1)
            return flat.reshape(index.shape)

        return self._differences(p, table_at)

    def _by_hits(
        self, p: int, sets: JointSets, leaves: Indices, m: NDArray[np.uint64]
    ) -> Array:
        """The same for many sets, by background rows in all of m."""
        seen = sets.words(p, leaves, self.points)
        counts = np.ones(len(self.points)) if self.counts is None else self.counts
        scale = sets.values[leaves] / self.total
        n_terms = len(_terms(p, self.order))
        changes = np.empty((len(leaves), n_terms, m.shape[1]))

        def sums_at(leaf: int, n: int, t: int, more: NDArray[np.uint64]) -> Array:
            words = m[leaf, n] | more
            hits = (seen[leaf] & m[leaf, n]) == m[leaf, n]
            held = seen[leaf, hits, None]
            inside = ((held & words) == words) * counts[hits, None]
            Z = np.zeros((p + 1, len(words)))
            np.add.at(Z, np.bitwise_count(held[:, 0]), inside)
            q = np.bitwise_count(words).astype(np.intp) - t
            gains = self._gains[p - np.arange(p + 1)[:, None], np.maximum(q, 0)]
            return np.cumsum(Z * gains, axis=0)[-1] * scale[leaf]

        for leaf, n in np.ndindex(m.shape):
            changes[leaf, :, n] = self._differences(p, partial(sums_at, leaf, n))
        return changes

    def _differences(
        self, p: int, at: Callable[[int, NDArray[np.uint64]], Array]
    ) -> Array:
        """A[m] − B[m ∪ u] of p sets; A[m] − B[m ∪ u] − B[m ∪ v] + C[m ∪ u ∪ v]."""
        bits = np.uint64(1) << _terms(p, self.order).T.astype(np.uint64)
        change = at(0, np.zeros(1, np.uint64)) - sum(at(1, of_one) for of_one in bits)
        return change if self.order == 1 else change + at(2, bits[0] | bits[1])


@cache
def _terms(p: int, order: int) -> Indices:
    """Subsets of p sets of one size, by their last, then the one before, (T, order)."""
    terms = sorted(combinations(range(p), order), key=lambda term: term[::-1])
    return np.array(terms, np.intp).reshape(-1, order)


def _positions(players: Indices) -> Indices:
    """The positions of players (…, 1), or of pairs (…, 2) with i < j, j (j−1)/2 + i."""
    last = players[..., -1]
    return last if players.shape[-1] == 1 else last * (last - 1) // 2 + players[..., 0]


_MAKE: Final = 0
_LOOK_UP: Final = 1
_STREAM: Final = 2
"""The tasks of the kernel."""

_NOTHING: Final = np.zeros(0)
_NOWHERE: Final = np.zeros(0, np.intp)
NO_ROWS: Final = np.zeros(0, np.uint16), np.zeros((0, 0), np.uint16), _NOTHING


POINTS_AT_ONCE: Final = Budget(2**28, 4096)
"""Points treated in one batch, which stays in the processor's cache."""

_STREAMED: Final = Budget(2**28)
"""The same where a batch makes the tables of all leaves, which cost more."""

_CACHE_BUDGET: Final = Budget(2**20)
"""Arrays that are added up repeatedly stay in the processor's cache."""


# ---- Shapley values of sums of trees against a background


@final
@dataclass(frozen=True, eq=False)
class BoxShapley:
    """Shapley values of a sum of trees against background rows, exactly.

    Of players, or for order 2 of the P (P−1)/2 pairs i < j of players.
    """

    boxes: Boxes  # f
    game: Game
    nodes: TreeNodes
    order: int = 1

    @classmethod
    def of(cls, boxes: Boxes, game: Game, order: int = 1) -> Self:
        """Prepare a game; paths of more than 62 sets are refused."""
        assert boxes.trees is not None, "see shapley_against"
        nodes = boxes.trees.nodes.with_players(game.players)
        nodes.refuse_long_paths("columns" if game.players is None else "groups")
        return cls(boxes, game, nodes, order)

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in vars(self).items() if name != "parts"}

    def values(self, points: Points) -> Array:
        """Shapley values (N, P), or interactions (N, P, P) of pairs, of points (N, D).

        Exactly 0.0 for columns without a set, pairs without a common leaf, and on the
        diagonal of pairs.
        """
        terms = self.of_blocks(points).mean(axis=1)
        if self.order == 1:
            return terms
        later, earlier = np.tril_indices(n_players := self.game.n_players, -1)
        pairs = np.zeros((len(points), n_players, n_players))
        pairs[:, later, earlier] = pairs[:, earlier, later] = terms
        return pairs

    @property
    def is_streamed(self) -> bool:
        """Whether each call makes the tables of all leaves, and discards them."""
        return self.parts[0][0].tables is None

    @property
    def n_terms(self) -> int:
        """The number of players, or of their pairs."""
        return math.comb(self.game.n_players, self.order)

    def _batches(self, n_points: int) -> list[slice]:
        of_leaf = math.comb(int(self.nodes.lengths.max(initial=0)), self.order)
        row_bytes = 8 * (self.n_terms * len(self.nodes.units) + of_leaf + MOST_SETS)
        budget = _STREAMED if self.is_streamed else POINTS_AT_ONCE
        return budget.blocks(n_points, row_bytes)

    def of_blocks(self, points: Points, progress: bool | None = False) -> Array:
        """Shapley values against each background block separately, (N, blocks, P)."""
        phi = np.empty((len(points), self.game.n_blocks, self.n_terms))
        steps = list(product(self._batches(len(points)), enumerate(self.parts)))
        total = len(steps) * len(self.nodes.units)
        # a bar takes as long as a small model
        quiet = nullcontext() if progress is False else None
        with quiet or counting("explain", 0, total, progress) as advance:
            for rows, (block, parts) in steps:
                phi[rows, block] = self._against(parts, points[rows], advance).T
        return phi

    def _against(
        self,
        parts: list[BackgroundRows],
        points: Points,
        advance: Callable[[int], None] | None,
    ) -> Array:
        """The values of points against the parts of one block, (terms, N)."""

        def visit(unit: slice, phi: Array) -> None:
            for part in parts:
                part.add_to(points, unit, phi)
            if advance is not None:
                advance(1)

        steps = float((self.nodes.lengths**self.order).sum()) * len(points)
        compiled = kernel("shapley") is not None
        shape = self.n_terms, len(points)
        return self.nodes.sums(visit, shape, steps if compiled else 0.0)

    @cached_property
    def parts(self) -> list[list[BackgroundRows]]:
        """The parts of each background block; the last three games are cached."""
        digest = f"{self.order} {self.game.digest}"
        for boxes, cached_digest, parts in RECENT:
            if boxes() is self.boxes and cached_digest == digest:
                return parts
        blocks = self.game.blocks
        lengths = self.nodes.lengths
        few = np.minimum(lengths, TABLE_SETS)
        places = ends_of(self.order + 1 << few)
        n_parts = len(blocks) * -(-len(blocks[0]) // _MOST_ROWS)
        fits = few.sum() == lengths.sum() and 8 * places[-1] * n_parts <= TABLE_BYTES
        given = self.game.weights, places if fits else None, self.order
        parts = [BackgroundRows.parts(self.nodes, rows, *given) for rows in blocks]
        for part in chain.from_iterable(parts):
            _ = part.ranked, part.tables  # once, before there are threads
        RECENT.insert(0, (weakref.ref(self.boxes), digest, parts))
        RECENT[:] = [entry for entry in RECENT[:_N_CACHED] if entry[0]() is not None]
        return parts


RECENT: Final[list[tuple[weakref.ref[Boxes], str, list[list[BackgroundRows]]]]] = []
_N_CACHED: Final = 3


def shapley_against(
    structure: SumOfProducts, game: Game
) -> BoxShapley | ProductShapley:
    """Exact Shapley values against background rows, by the fastest method."""
    if isinstance(structure, Boxes) and structure.trees is not None:
        return BoxShapley.of(structure, game)
    return ProductShapley.of(structure, game)


# ---- Costs by operation counts, equal on every machine and for any kernels


def tree_steps(nodes: TreeNodes) -> tuple[int, int, int]:
    """Additions for the tables p 2^p, and operations for each row and each pair."""
    lengths = nodes.lengths[nodes.lengths > 0]
    few = lengths[lengths <= TABLE_SETS]
    return int((few << few).sum()), int((lengths + 1).sum()), len(lengths) - len(few)
