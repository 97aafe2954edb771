"""Who is near whom, whatever the scale of the points and however far they are off.

Distances are taken from differences, and points divided by a power of two first, which
changes no digit: squares neither overflow nor vanish.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist, pdist
from sklearn.neighbors import NearestNeighbors

from propopt._typing import Array, Edges, Points, Sparse
from propopt.errors import InvalidInput
from propopt.linear.components import Components


_TREE_FEATURES = 15
"""Up to so many, a tree finds neighbours faster than all distances do."""

_ROUNDING = 1e-6
"""Squares below so much of the largest are taken again: to 1e-9 products are right."""


def all_distances(points: Points) -> Array:
    """Distances of all pairs, (0, 1), (0, 2), ..., (1, 2), ..."""
    unit, exponent = _scaled(points)
    return np.asarray(np.ldexp(pdist(unit), exponent))


def pair_distances(points: Points, pairs: Edges) -> Array:
    """Distances of some pairs (E, 2)."""
    unit, exponent = _scaled(points)
    difference = unit[pairs[:, 0]] - unit[pairs[:, 1]]
    squares = np.einsum("ed,ed->e", difference, difference)
    return np.asarray(np.ldexp(np.sqrt(squares), exponent))


def pairs_within(points: Points, radius: float) -> Edges:
    """Pairs at most ``radius`` apart."""
    unit, exponent = _scaled(points)
    with np.errstate(over="ignore"):
        reach = float(np.ldexp(radius, -exponent)) * (1 + 1e-12)
    pairs = KDTree(unit).query_pairs(reach, output_type="ndarray").astype(np.intp)
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
    unit, _ = _scaled(points)
    near = _by_tree if points.shape[1] <= _TREE_FEATURES else _by_products
    neighbours = near(unit, count)
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


def _scaled(points: Points) -> tuple[Points, int]:
    """Points between −1 and 1, and the power of two by which they were divided."""
    _, exponent = np.frexp(np.abs(points).max())
    return np.ldexp(points, -exponent), int(exponent)
