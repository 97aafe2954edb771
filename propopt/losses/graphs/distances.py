"""Distances between rows, with missing numbers (NaN), at any scale and offset.

Distances are Euclidean, computed from differences, after dividing points by a power of
two, which is exact: squares neither overflow nor vanish. With missing numbers (NaN),
d(x, x')² = Σ_d δ_d,

    δ_d = (x_d − x'_d)²   if both have a number,
          1               if one of them has none,
          0               if neither has one:

in columns divided by their scale a mismatch counts like another category, as in
:meth:`propopt.functions.TableSchema.coordinates`. Such
distances are not metric: two numbers may be far apart, and both have distance 1 from
"missing". So they are computed for all pairs, without a tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.spatial.distance import pdist

from propopt.base.arrays import Array, Edges, Points
from propopt.base.checks import largest_entry
from propopt.base.errors import InvalidInput
from propopt.base.resources import BATCH_BUDGET


@final
@dataclass(frozen=True, eq=False)
class Unit:
    """Points divided by a power of two, so that squares do not overflow."""

    points: Points  # (n, D): between −1 and 1, NaN where a number is missing
    exponent: int  # of the power of two
    complete: bool  # whether no number is missing

    @classmethod
    def of(cls, points: Points) -> Unit:
        """Divide points so that the largest number is at most one."""
        complete = not np.isnan(points).any()
        # the distance of a missing number is one
        sizes = np.abs(points) if complete else np.fmax(np.abs(points), 1.0)
        _, exponent = np.frexp(sizes.max())
        return cls(np.ldexp(points, -exponent), int(exponent), complete)

    @property
    def mismatch(self) -> float:
        """The square of 1, the distance between a number and a missing one."""
        return float(np.ldexp(1.0, -2 * self.exponent))

    def restored(self, distances: Array) -> Array:
        """Distances in the original units."""
        return np.ldexp(distances, self.exponent)


def squared_differences(first: Points, second: Points, mismatch: float) -> Array:
    """Squared distances Σ_d δ_d of matching rows, (..., D) and (..., D) to (...)."""
    squares = (first - second) ** 2
    sums = squares.sum(axis=-1)
    if np.isnan(sums).any():
        odd = np.isnan(first) != np.isnan(second)
        squares = np.where(np.isnan(squares), odd * mismatch, squares)
        sums = squares.sum(axis=-1)
    return sums


def squares_between(rows: Points, others: Points, mismatch: float) -> Array:
    """Squared distances of all pairs, (n, D) and (m, D) to (n, m), by differences."""
    squares = np.empty((len(rows), len(others)))
    for block in BATCH_BUDGET.blocks(len(rows), 8 * others.size):
        squares[block] = squared_differences(rows[block, None], others, mismatch)
    return squares


def all_distances(points: Points) -> Array:
    """Distances of all pairs in the order (0, 1), (0, 2), ..., (1, 2), ..."""
    unit = Unit.of(points)
    if unit.complete:
        return unit.restored(pdist(unit.points))
    squares = [
        squares_between(row[None], unit.points[n + 1 :], unit.mismatch)[0]
        for n, row in enumerate(unit.points[:-1])
    ]
    return unit.restored(np.sqrt(np.concatenate([np.empty(0), *squares])))


def pair_distances(points: Points, pairs: Edges) -> Array:
    """Distances of the given pairs (E, 2) of points."""
    unit = Unit.of(points)
    first = unit.points[pairs[:, 0]]
    second = unit.points[pairs[:, 1]]
    if unit.complete:
        difference = first - second
        squares = np.einsum("ed,ed->e", difference, difference)
    else:
        squares = squared_differences(first, second, unit.mismatch)
    return unit.restored(np.sqrt(squares))


def distances_between(rows: Points, points: Points) -> Array:
    """Distances of all pairs of two tables with the same columns, (n, m).

    Distances of a row do not depend on the other rows, to the last bit.
    """
    unit = Unit.of(np.concatenate([rows, points]))
    scaled_rows = unit.points[: len(rows)]
    others = unit.points[len(rows) :]
    return unit.restored(np.sqrt(squares_between(scaled_rows, others, unit.mismatch)))


@final
@dataclass(frozen=True, eq=False)
class Distances:
    """Distances of any rows to fixed points, as by :func:`distances_between`."""

    points: Points  # (m, D)

    def of(self, rows: Points) -> Array:
        """Distances of rows (n, D) to all points, (n, m)."""
        unit, largest = self._unit
        if not largest_entry(rows) < largest:  # or a number is missing
            return distances_between(rows, self.points)
        scaled = np.ldexp(rows, -unit.exponent)
        return unit.restored(np.sqrt(squares_between(scaled, unit.points, 0.0)))

    @cached_property
    def _unit(self) -> tuple[Unit, float]:
        """The points in their unit, and the bound of rows with the same unit."""
        unit = Unit.of(self.points)
        has_unit = unit.complete and unit.points.any()
        return unit, float(np.ldexp(1.0, unit.exponent)) if has_unit else 0.0


def pairs_within(points: Points, radius: float) -> Edges:
    """Pairs of points within a distance of ``radius``, (E, 2)."""
    unit = Unit.of(points)
    with np.errstate(over="ignore"):
        reach = float(np.ldexp(radius, -unit.exponent)) * (1 + 1e-12)
    if unit.complete:
        result = KDTree(unit.points).query_pairs(reach, output_type="ndarray")
        pairs = result.astype(np.intp)
    else:
        pairs = pairs_of_incomplete(unit.points, min(reach, 1e100), unit.mismatch)
    return pairs[pair_distances(points, pairs) <= radius]


def pairs_of_incomplete(points: Points, radius: float, mismatch: float) -> Edges:
    """Pairs (n, n'), n < n', within ``radius``, and some just beyond."""
    factors = SquareFactors.of(points, mismatch)
    reach = radius**2 + factors.rounding
    pairs = [np.empty((0, 2), dtype=np.intp)]
    for rows, squares in factors.blocks():
        first, second = np.nonzero(squares <= reach)
        first += rows.start
        pairs.append(np.column_stack([first, second])[first < second])
    return np.concatenate(pairs)


def median_distance(points: Points) -> float:
    """The median distance between different points, of about 2,000 at most."""
    return typical(all_distances(points[:: -(-len(points) // 2000)]))


def typical(apart: Array) -> float:
    """The median of positive distances; raises an error without any."""
    if not apart.any():
        raise InvalidInput(
            "lengthscale: all points coincide, so their distances suggest no length "
            "scale; give a number"
        )
    return float(np.median(apart[apart > 0]))


def gaussian(apart: Array, lengthscale: float) -> Array:
    """Gaussian similarities exp(−d²/2Λ²) of distances d, without overflow."""
    with np.errstate(over="ignore"):
        return np.exp(-0.5 * (apart / lengthscale) ** 2)


# ---- Squared distances by products: fast, with rounding errors


@final
@dataclass(frozen=True, eq=False)
class SquareFactors:
    """Factors of squared distances, d² = left_n · right_n' + norms_n + norms_n'.

    Of complete points x these are ‖x‖² + ‖x'‖² − 2 x·x'. With missing numbers, with
    m = 1 for numbers and x = 0 for missing ones,

    Σ_d δ_d = x²·m' + m·x'² − 2 x·x' + a² (m·1 + m'·1 − 2 m·m').
    """

    left: NDArray[Any]  # (N, M)
    right: NDArray[Any]  # (N, M)
    norms: NDArray[Any]  # (N,)
    rounding: float  # a generous bound of the errors in double precision

    @classmethod
    def of(cls, points: Points, mismatch: float, dtype: Any = np.float64) -> Self:
        """The factors of points (N, D) between −1 and 1 or missing, a² = mismatch."""
        complete = not np.isnan(points).any()
        if complete:
            mean = points.mean(axis=0)
        else:
            n_numbers = (~np.isnan(points)).sum(axis=0)
            mean = np.nan_to_num(points).sum(axis=0) / np.maximum(n_numbers, 1.0)
        n_rows, n_columns = points.shape
        shape = n_rows, n_columns if complete else 3 * n_columns
        left = np.empty(shape, dtype)
        right = np.empty(shape, dtype)
        norms = np.empty(n_rows, dtype)
        largest = mismatch
        for rows in BATCH_BUDGET.blocks(n_rows, 64 * n_columns):
            # centred columns keep digits
            x = points[rows] - mean
            if complete:
                left[rows] = -2.0 * x
                right[rows] = x
                norms[rows] = np.einsum("nd,nd->n", x, x)
            else:
                m = (~np.isnan(x)).astype(np.float64)
                x = np.nan_to_num(x)
                left[rows] = np.hstack([x**2 - 2.0 * mismatch * m, m, -2.0 * x])
                right[rows] = np.hstack([m, x**2, x])
                norms[rows] = mismatch * m.sum(axis=1)
            largest = max(largest_entry(x) ** 2, largest)
        return cls(left, right, norms, 1e-12 * n_columns * largest)

    def between(self, rows: Any, others: Any = slice(None)) -> NDArray[Any]:
        """Squared distances (n, n') between two selections of rows."""
        squares = self.left[rows] @ self.right[others].T
        squares += self.norms[rows, None] + self.norms[others]
        return squares

    def blocks(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Yield blocks of rows with their squared distances to all points."""
        for rows in BATCH_BUDGET.blocks(len(self.norms), 8 * len(self.norms)):
            yield rows, self.between(rows)
