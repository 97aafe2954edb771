"""Nearest neighbours of the rows of a table: exact ones, or by random projections.

**Exact**: by a k-d tree in few columns, else by matrix products, which compute all N²
distances. With missing numbers, distances are not metric, and products are used too.

**Approximate**, for more than :data:`EXACT_ROWS` rows in more than
:data:`EXACT_COLUMNS` columns: a forest of random projections (Dasgupta and Freund,
"Random projection trees and low dimensional manifolds", 2008). Each tree halves the
table at the median along the difference of two random rows, again and again, down to
leaves of some 500 rows. All distances within a leaf are computed, in N · leaf · D
operations, and each row retains its nearest rows over all trees.

**Recall** is the share of the true nearest rows that are found. It is measured at some
rows, whose true neighbours are computed: at half of them after each tree, until it
reaches its goal, and at the end at the other half, which had no part in stopping.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from propopt.base.arrays import Array, Indices, Points, Sparse
from propopt.base.checks import largest_entry
from propopt.base.resources import (
    BATCH_BUDGET,
    for_each_column,
    with_thread_fallback,
)
from propopt.losses.graphs.distances import (
    SquareFactors,
    Unit,
    squared_differences,
    squares_between,
)
from propopt.losses.linear_algebra import Components


class Recall(NamedTuple):
    """The share of the true nearest rows that a search finds."""

    share: float
    error: float  # half of its 95 % interval

    @classmethod
    def of(cls, shares: Array) -> Recall:
        """The mean of the shares (m,) of sampled rows, with its error.

        Two rows with all and two with none are added for the error, so that it is not
        zero if all sampled rows agree (Agresti and Coull, "Approximate is better than
        'exact' for interval estimation of binomial proportions", 1998).
        """
        padded = np.concatenate([shares, [0.0, 0.0, 1.0, 1.0]])
        error = 1.96 * padded.std(ddof=1) / math.sqrt(len(padded))
        return cls(float(shares.mean()), float(error))


@final
@dataclass(frozen=True, eq=False)
class NearestRows:
    """The nearest other rows of each row, in no particular order."""

    indices: NDArray[np.integer[Any]]  # (N, k)
    recall: Recall | None = None  # None: all of the true ones

    @property
    def parameters(self) -> dict[str, float]:
        """The recall of an approximate search, for the parameters of a graph."""
        if self.recall is None:
            return {}
        return {"recall": self.recall.share, "recall_error": self.recall.error}

    @property
    def matrix(self) -> Sparse:
        """A sparse matrix (N, N) with ones at the nearest rows of each row."""
        n_rows, count = self.indices.shape
        starts = np.arange(n_rows + 1) * count
        ones = np.ones(self.indices.size)
        return sp.csr_array(
            (ones, self.indices.ravel(), starts), shape=(n_rows, n_rows)
        )


EXACT_ROWS: Final = 20_000
"""Up to this many rows, neighbours are exact."""

EXACT_COLUMNS: Final = 5
"""Up to this many columns, a k-d tree is as fast as a forest."""

GOAL: Final = 0.99
"""The recall at which no more trees are added."""

_TREE_FEATURES = 15
"""Up to this many features, a tree is faster than all distances."""

_TREE_POINTS = 500
"""Up to this many points a tree is used, as scikit-learn takes 0.1 s to import."""

_ROUNDING = 1e-6
"""Squares below this share of the largest are recomputed exactly."""


def nearest_rows(points: Points, count: int, goal: float = GOAL) -> NearestRows:
    """The ``count`` nearest other rows of each row of points (N, D).

    A ``goal`` of 1 requests exact ones at any size.
    """
    unit = Unit.of(points)
    is_few = len(points) <= EXACT_ROWS
    if unit.complete and points.shape[1] <= EXACT_COLUMNS:
        is_few = True
    if not is_few and goal < 1.0:
        return ProjectionForest(unit, count).search(goal)
    if not unit.complete:
        return NearestRows(nearest_of_incomplete(unit.points, count, unit.mismatch))
    if points.shape[1] <= _TREE_FEATURES or len(points) <= _TREE_POINTS:
        return NearestRows(_by_tree(unit.points, count))
    return NearestRows(_by_products(unit.points, count))


# ---- Exact neighbours


def nearest_of_incomplete(points: Points, count: int, mismatch: float) -> Indices:
    """The nearest other rows of each row, (N, count), exact despite rounding."""
    factors = SquareFactors.of(points, mismatch)
    nearest = np.empty((len(points), count), dtype=np.intp)
    for rows, squares in factors.blocks():
        indices = np.arange(rows.start, rows.stop)
        squares[indices - rows.start, indices] = np.inf
        nearest[rows] = np.argpartition(squares, count - 1, axis=1)[:, :count]
        inexact = squares.min(axis=1) <= 1e6 * factors.rounding
        for n in indices[inexact]:
            exact = squares_between(points[n : n + 1], points, mismatch)[0]
            exact[n] = np.inf
            nearest[n] = np.argsort(exact, kind="stable")[:count]
    return nearest


def _by_tree(points: Points, count: int) -> Indices:
    query = partial(KDTree(points).query, points, count + 1)
    _, nearest = with_thread_fallback(partial(query, workers=-1), query)
    is_self = nearest == np.arange(len(points))[:, None]
    is_self[~is_self.any(axis=1), -1] = True  # for many duplicates: drop the last
    return nearest[~is_self].reshape(len(points), count)


def _by_products(points: Points, count: int) -> Indices:
    """Neighbours by matrix products, or by differences if rounding matters."""
    from sklearn.neighbors import NearestNeighbors  # which brings all linear models

    centred = Components.single(len(points)).centred(points)
    distances, nearest = NearestNeighbors(n_neighbors=count).fit(centred).kneighbors()
    rounding = _ROUNDING * points.shape[1] * largest_entry(centred) ** 2
    for doubtful in np.flatnonzero(distances[:, 0] ** 2 <= rounding):
        exact = cdist(points[[doubtful]], points)[0]
        exact[doubtful] = np.inf
        nearest[doubtful] = np.argsort(exact, kind="stable")[:count]
    return nearest


# ---- Approximate neighbours, by a forest of random projections


_LEAF: Final = 512
_FIRST_LEAF: Final = 64
"""Rows of the leaves of the first tree, which gives later trees a bound for each row:
only nearer rows are then looked at."""

_SPARE: Final = 2
"""Candidates beyond the requested ones, as products have single precision."""

_MOST_TREES: Final = 48
_MEASURED: Final = 500
"""Rows at which recall is measured: for stopping, and again for reporting."""

_BEFORE: Final = 3
"""Trees before the true neighbours of these rows are computed."""


@final
class ProjectionForest:
    """The nearest rows found so far, improved tree by tree."""

    def __init__(self, unit: Unit, count: int) -> None:
        self._points = unit.points
        self._mismatch = unit.mismatch
        self._count = count
        n_stored = count + _SPARE
        n_rows = len(unit.points)
        factors = SquareFactors.of(unit.points, unit.mismatch, np.float32)
        self._n_factors = factors.right.shape[1]
        squared_norms = factors.norms[:, None]
        ones = np.ones((n_rows, 1), np.float32)
        # products of these are squared distances
        self._left = np.hstack([factors.left, squared_norms, ones])
        self._right = np.hstack([factors.right, ones, squared_norms])
        # the columns that are points, with zeros for missing numbers
        n_columns = unit.points.shape[1]
        self._x = self._right[:, self._n_factors - n_columns : self._n_factors]
        self._rng = np.random.default_rng(0)
        self._squares = np.full((n_rows, n_stored), np.inf, np.float32)
        self._nearest = np.full((n_rows, n_stored), -1, np.int32)
        # of each row, its leaf in this tree and its place there
        self._leaf = np.empty(n_rows, np.int32)
        self._position = np.empty(n_rows, np.int32)

    def search(self, goal: float) -> NearestRows:
        """Add trees until recall reaches ``goal``, and measure it at other rows."""
        n_rows = len(self._points)
        sample = self._rng.choice(n_rows, 2 * _MEASURED, replace=False)
        limits = np.empty(0)
        for n_trees in range(1, _MOST_TREES + 1):
            self.add_tree(_FIRST_LEAF if n_trees == 1 else _LEAF)
            if n_trees < _BEFORE:
                continue
            if not len(limits):
                limits = self.true_limits(sample)
            shares = self._recalls(sample[:_MEASURED], limits[:_MEASURED])
            if shares.mean() >= goal:
                break
        reported = self._recalls(sample[_MEASURED:], limits[_MEASURED:])
        indices = np.empty((n_rows, self._count), np.int32)
        for rows in BATCH_BUDGET.blocks(n_rows, 8 * self._points[:1].size * 10):
            order = np.argsort(self._exact(rows), axis=1, kind="stable")
            order = order[:, : self._count]
            indices[rows] = np.take_along_axis(self._nearest[rows], order, axis=1)
        return NearestRows(indices, Recall.of(reported))

    # ---- a tree

    def add_tree(self, most: int) -> None:
        """Compare all pairs of rows within the leaves of a new tree."""
        leaves = self._leaves(max(most, 4 * self._nearest.shape[1]))
        for number, rows in enumerate(leaves):
            self._leaf[rows] = number
            self._position[rows] = np.arange(len(rows))
        # threads write to different rows, as leaves are disjoint
        for_each_column(
            lambda k: self._compare(leaves[k], k), len(leaves), len(self._points)
        )

    def _leaves(self, leaf: int) -> list[NDArray[np.int32]]:
        """Parts of the rows: each is halved at its median until it has few rows."""
        x = self._x
        n_rows, width = x.shape
        depth = max(0, math.ceil(math.log2(n_rows / leaf)))
        parts = [np.arange(n_rows, dtype=np.int32)]
        for level in range(depth):
            if level % width == 0:
                directions = self._directions(min(width, depth - level))
            along = x @ directions[:, level % width]
            halves = []
            for part in parts:
                middle = len(part) // 2
                order = np.argpartition(along[part], middle)
                halves += [part[order[:middle]], part[order[middle:]]]
            parts = halves
        return parts

    def _directions(self, count: int) -> NDArray[np.float32]:
        """Orthonormal directions (D, count) of differences of random rows."""
        x = self._x
        first, second = self._rng.integers(0, len(x), (2, count))
        return np.linalg.qr((x[first] - x[second]).T)[0]

    def _compare(self, rows: NDArray[np.int32], number: int) -> None:
        """Offer the rows of a leaf to each other."""
        squares = self._left[rows] @ self._right[rows].T
        np.fill_diagonal(squares, np.inf)
        stored = self._nearest[rows]
        if stored[0, 0] < 0:  # the first tree
            self._retain(rows, squares, np.broadcast_to(rows, squares.shape))
            return
        row, column = np.nonzero(self._leaf[stored] == number)
        squares[row, self._position[stored[row, column]]] = np.inf
        nearer = squares < self._squares[rows].max(axis=1, keepdims=True)
        row, column = np.divmod(np.flatnonzero(nearer), len(rows))
        if not len(row):
            return
        counts = np.bincount(row, minlength=len(rows))
        improved = np.flatnonzero(counts)
        # a table with a row for each improved row, and a column for each offer
        counts = counts[improved]
        starts = np.cumsum(counts) - counts
        position = np.arange(len(row)) - np.repeat(starts, counts)
        line = np.repeat(np.arange(len(improved)), counts)
        offered = np.full((len(improved), counts.max()), np.inf, np.float32)
        others = np.full(offered.shape, -1, np.int32)
        offered[line, position] = squares[row, column]
        others[line, position] = rows[column]
        better = rows[improved]
        self._retain(
            better,
            np.concatenate([self._squares[better], offered], axis=1),
            np.concatenate([self._nearest[better], others], axis=1),
        )

    def _retain(
        self,
        rows: NDArray[np.int32],
        squares: NDArray[np.float32],
        nearest: NDArray[np.int32],
    ) -> None:
        """Retain the nearest of the candidates (n, m) of rows (n,)."""
        n_stored = self._nearest.shape[1]
        order = np.argpartition(squares, n_stored - 1, axis=1)[:, :n_stored]
        self._squares[rows] = np.take_along_axis(squares, order, axis=1)
        self._nearest[rows] = np.take_along_axis(nearest, order, axis=1)

    # ---- its recall

    def _exact(self, rows: Any) -> Array:
        """Squared distances of rows to their candidates, (n, k), by differences."""
        others = self._points[self._nearest[rows]]
        return squared_differences(self._points[rows][:, None], others, self._mismatch)

    def true_limits(self, rows: Indices) -> Array:
        """The squared distances of rows to the last of their true nearest rows."""
        squared_norms = self._left[:, -2]
        sizes = [
            np.sqrt(np.einsum("nd,nd->n", x, x))
            for x in (
                self._left[:, : self._n_factors],
                self._right[:, : self._n_factors],
            )
        ]
        reach = np.sort(self._exact(rows), axis=1)[:, self._count - 1]
        limits = np.empty(len(rows))

        def measure(block: slice) -> None:
            products = self._left[rows[block]] @ self._right.T
            for k, squares in zip(range(len(rows))[block], products, strict=True):
                row = rows[k]
                squares[row] = np.inf
                # products in single precision err by less than this
                error = sizes[0][row] * sizes[1]
                error += squared_norms[row] + squared_norms
                error *= 1e-5
                others = self._points[squares <= reach[k] + error]
                exact = squared_differences(self._points[row], others, self._mismatch)
                limits[k] = np.partition(exact, self._count - 1)[self._count - 1]

        blocks = list(BATCH_BUDGET.blocks(len(rows), 4 * len(self._points)))
        for_each_column(lambda k: measure(blocks[k]), len(blocks), len(self._points))
        return limits

    def _recalls(self, rows: Indices, limits: Array) -> Array:
        """The share of the true nearest rows that are found, for each row."""
        within = self._exact(rows) <= (1.0 + 1e-9) * limits[:, None]
        return np.minimum(within.sum(axis=1), self._count) / self._count
