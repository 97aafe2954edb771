"""Distances between rows of which some numbers are missing, and are NaN.

d(x, x')² = Σ_d δ_d,   δ_d = (x_d − x'_d)²   where both have a number,
                             a²              where one of them has none,
                             0               where neither has one.

With a = 1, in columns divided by their scale, a mismatch counts like another category.
No points of a plane have such distances: two numbers may be far apart, and both are at
the distance a from "missing". So they are taken pair by pair, and no tree finds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Edges, Points
from propopt.batches import Budget


TOGETHER: Final = Budget(2**25)
"""Differences, or squares of distances, that are taken at once."""


def squared_differences(first: Points, second: Points, mismatch: float) -> Array:
    """Σ_d δ_d of rows that stand beside each other, (..., D) and (..., D) to (...).

    Parameters
    ----------
    first, second : array (..., D)
        Rows; they are broadcast.
    mismatch : float
        a².
    """
    squares = (first - second) ** 2
    odd = np.isnan(first) != np.isnan(second)
    filled = np.where(np.isnan(squares), odd * mismatch, squares)
    return np.asarray(filled.sum(axis=-1))


def squares_between(rows: Points, others: Points, mismatch: float) -> Array:
    """Σ_d δ_d of all pairs, (n, D) and (m, D) to (n, m), from differences."""
    squares = np.empty((len(rows), len(others)))
    for block in TOGETHER.blocks(len(rows), 8 * others.size):
        squares[block] = squared_differences(rows[block, None], others, mismatch)
    return squares


def upper_squares(points: Points, mismatch: float) -> Array:
    """Σ_d δ_d of all pairs, (0, 1), (0, 2), ..., (1, 2), ..."""
    parts = [
        squares_between(points[n : n + 1], points[n + 1 :], mismatch)[0]
        for n in range(len(points) - 1)
    ]
    return np.concatenate([np.empty(0), *parts])


@final
@dataclass(frozen=True, eq=False)
class RoundedSquares:
    """Squares of distances from products of matrices: fast, and rounded.

    With m = 1 where there is a number, and x = 0 where there is none,

    Σ_d δ_d = x²·m' + m·x'² − 2 x·x' + a² (m·1 + m'·1 − 2 m·m').

    Parameters
    ----------
    points : array (N, D)
        Between −1 and 1, or missing.
    mismatch : float
        a².
    """

    points: Points
    mismatch: float

    @property
    def rounding(self) -> float:
        """What squares may be off by, generously."""
        largest = max(float(np.abs(self._filled).max()) ** 2, self.mismatch)
        return 1e-12 * self.points.shape[1] * largest

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Some rows after the other, with their squares to all points."""
        left, right = self._factors
        counts = self.mismatch * self._present.sum(axis=1)
        for rows in TOGETHER.blocks(len(self.points), 8 * len(self.points)):
            squares = left[rows] @ right.T
            squares += counts[rows, None] + counts
            yield rows, squares

    @cached_property
    def _present(self) -> Array:
        return (~np.isnan(self.points)).astype(np.float64)

    @cached_property
    def _filled(self) -> Points:
        """Numbers less the mean of their column, which keeps digits, and 0."""
        count = np.maximum(self._present.sum(axis=0), 1.0)
        mean = np.nan_to_num(self.points).sum(axis=0) / count
        return np.nan_to_num(self.points - mean)

    @property
    def _factors(self) -> tuple[Array, Array]:
        x, m = self._filled, self._present
        left = np.hstack([x**2 - 2.0 * self.mismatch * m, m, -2.0 * x])
        return left, np.hstack([m, x**2, x])


def nearest_of_incomplete(
    points: Points, count: int, mismatch: float
) -> NDArray[np.intp]:
    """The nearest others of each row, (N, count), in any order.

    From products; by differences where the nearest are so near that these are rounded.
    """
    rounded = RoundedSquares(points, mismatch)
    near = np.empty((len(points), count), dtype=np.intp)
    for rows, squares in rounded.blocks():
        own = np.arange(rows.start, rows.stop)
        squares[own - rows.start, own] = np.inf
        near[rows] = np.argpartition(squares, count - 1, axis=1)[:, :count]
        doubtful = squares.min(axis=1) <= 1e6 * rounded.rounding
        for n in own[doubtful]:
            exact = squares_between(points[n : n + 1], points, mismatch)[0]
            exact[n] = np.inf
            near[n] = np.argsort(exact, kind="stable")[:count]
    return near


def pairs_of_incomplete(points: Points, radius: float, mismatch: float) -> Edges:
    """Pairs (n, n'), n < n', at most ``radius`` apart, and some that are just beyond.

    Distances are rounded here; those that count are taken from differences.
    """
    rounded = RoundedSquares(points, mismatch)
    reach = radius**2 + rounded.rounding
    pairs = [np.empty((0, 2), dtype=np.intp)]
    for rows, squares in rounded.blocks():
        first, second = np.nonzero(squares <= reach)
        first += rows.start
        pairs.append(np.column_stack([first, second])[first < second])
    return np.concatenate(pairs)
