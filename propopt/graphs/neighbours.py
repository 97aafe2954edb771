"""Who is near whom, whatever the scale of the points and however far they are off.

Distances are taken from differences, and points divided by a power of two first, which
changes no digit: squares neither overflow nor vanish. They are euclidean; where numbers
are missing they are those of :mod:`propopt.graphs.incomplete`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist, pdist
from sklearn.neighbors import NearestNeighbors

from propopt._typing import Array, Edges, Points, Sparse
from propopt.errors import InvalidInput
from propopt.graphs.incomplete import (
    nearest_of_incomplete,
    pairs_of_incomplete,
    squared_differences,
    squares_between,
    upper_squares,
)
from propopt.linear.components import Components


_TREE_FEATURES = 15
"""Up to so many, a tree finds neighbours faster than all distances do."""

_ROUNDING = 1e-6
"""Squares below so much of the largest are taken again: to 1e-9 products are right."""


def all_distances(points: Points) -> Array:
    """Distances of all pairs, (0, 1), (0, 2), ..., (1, 2), ..."""
    unit = Unit.of(points)
    if unit.complete:
        return unit.restored(pdist(unit.points))
    return unit.restored(np.sqrt(upper_squares(unit.points, unit.mismatch)))


def pair_distances(points: Points, pairs: Edges) -> Array:
    """Distances of some pairs (E, 2)."""
    unit = Unit.of(points)
    first, second = unit.points[pairs[:, 0]], unit.points[pairs[:, 1]]
    if unit.complete:
        difference = first - second
        squares = np.einsum("ed,ed->e", difference, difference)
    else:
        squares = squared_differences(first, second, unit.mismatch)
    return unit.restored(np.sqrt(squares))


def distances_between(rows: Points, points: Points) -> Array:
    """Distances of all pairs of two tables with the same columns, (n, m).

    Those of a row are the same, to the last bit, whichever rows stand beside it.
    """
    unit = Unit.of(np.concatenate([rows, points]))
    near, others = unit.points[: len(rows)], unit.points[len(rows) :]
    return unit.restored(np.sqrt(squares_between(near, others, unit.mismatch)))


def pairs_within(points: Points, radius: float) -> Edges:
    """Pairs at most ``radius`` apart."""
    unit = Unit.of(points)
    with np.errstate(over="ignore"):
        reach = float(np.ldexp(radius, -unit.exponent)) * (1 + 1e-12)
    if unit.complete:
        found = KDTree(unit.points).query_pairs(reach, output_type="ndarray")
        pairs = found.astype(np.intp)
    else:
        pairs = pairs_of_incomplete(unit.points, min(reach, 1e100), unit.mismatch)
    return pairs[pair_distances(points, pairs) <= radius]


def median_distance(points: Points) -> float:
    """The median distance between different points, on at most 2,000 of them.

    More points are thinned evenly, so that the answer does not depend on chance.
    """
    step = -(-len(points) // 2000)
    apart = all_distances(points[::step])
    apart = apart[apart > 0]
    if len(apart) == 0:
        raise InvalidInput(
            "lengthscale: all points coincide, so none can be chosen from the data; "
            "give one"
        )
    return float(np.median(apart))


def gaussian(apart: Array, lengthscale: float) -> Array:
    """exp(−d²/2Λ²) of distances d: zero where d/Λ is beyond all numbers."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(-0.5 * (apart / lengthscale) ** 2))


def nearest_neighbours(points: Points, count: int) -> Sparse:
    """Ones from each point to its neighbours, shape (n, n)."""
    unit = Unit.of(points)
    if not unit.complete:
        neighbours = nearest_of_incomplete(unit.points, count, unit.mismatch)
    elif points.shape[1] <= _TREE_FEATURES:
        neighbours = _by_tree(unit.points, count)
    else:
        neighbours = _by_products(unit.points, count)
    n_points = len(points)
    starts = np.arange(n_points + 1) * count
    return sp.csr_array(
        (np.ones(neighbours.size), neighbours.ravel(), starts),
        shape=(n_points, n_points),
    )


def _by_tree(points: Points, count: int) -> NDArray[np.intp]:
    _, near = KDTree(points).query(points, count + 1, workers=-1)
    own = near == np.arange(len(points))[:, None]
    own[~own.any(axis=1), -1] = True  # lost among duplicates: the last one goes
    return np.asarray(near[~own].reshape(len(points), count))


def _by_products(points: Points, count: int) -> NDArray[np.intp]:
    """From ‖x‖² − 2⟨x, x'⟩ + ‖x'‖²; by differences where that leaves rounding."""
    centred = Components.single(len(points)).centred(points)
    apart, near = NearestNeighbors(n_neighbors=count).fit(centred).kneighbors()
    rounding = _ROUNDING * points.shape[1] * float(np.abs(centred).max()) ** 2
    for doubtful in np.flatnonzero(apart[:, 0] ** 2 <= rounding):
        exact = cdist(points[[doubtful]], points)[0]
        exact[doubtful] = np.inf
        near[doubtful] = np.argsort(exact, kind="stable")[:count]
    return np.asarray(near)


@final
@dataclass(frozen=True, eq=False)
class Unit:
    """Points divided by a power of two.

    Parameters
    ----------
    points : array (n, D)
        Between −1 and 1, NaN where a number is missing.
    exponent : int
        Of the power of two.
    complete : bool
        Whether no number is missing.
    """

    points: Points
    exponent: int
    complete: bool

    @classmethod
    def of(cls, points: Points) -> Unit:
        """Divided by as much as makes the largest number at most one."""
        complete = not np.isnan(points).any()
        largest = np.abs(points).max() if complete else _largest(points)
        _, exponent = np.frexp(largest)
        return cls(np.ldexp(points, -exponent), int(exponent), complete)

    @property
    def mismatch(self) -> float:
        """The square of 1, the distance between a number and a missing one."""
        return float(np.ldexp(1.0, -2 * self.exponent))

    def restored(self, distances: Array) -> Array:
        """Distances of the points as they were."""
        return np.asarray(np.ldexp(distances, self.exponent))


def _largest(points: Points) -> float:
    """The largest number, or 1, which is the distance of a missing one."""
    return float(np.fmax(np.abs(points), 1.0).max())
