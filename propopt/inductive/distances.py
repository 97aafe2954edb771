"""Distances of points, right where they are small, and fast where features are many."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.spatial.distance import cdist

from propopt._typing import Array, Points
from propopt.batches import Budget
from propopt.errors import InvalidInput
from propopt.graphs.neighbours import median_distance


_MANY_FEATURES = 64
"""From here on, products of matrices are faster than differences of all pairs."""

_CANCELS = 1e-3
"""Below this part of ‖x‖² + ‖z‖², a squared distance is computed from differences."""

_DIFFERENCES: Final = Budget(2**25)
"""Differences that are stored at once."""

_CENTRED: Final = Budget(2**23)
"""Centred features that are stored at once."""


def cross_distances(X: Points, Z: Points) -> Array:
    """‖x − z‖ for all rows, shape (n, m), right to 12 figures or more; exact zeros."""
    if X.shape[1] < _MANY_FEATURES:
        return np.asarray(cdist(X, Z))
    lengths, products = _lengths_and_products(X, Z)
    squares = lengths - 2.0 * products
    close = squares <= _CANCELS * lengths
    rows, columns = np.nonzero(np.triu(close, k=1) if X is Z else close)
    for block in _DIFFERENCES.blocks(len(rows), 8 * X.shape[1]):
        r, c = rows[block], columns[block]
        squares[r, c] = _squares(X[r] - Z[c])
    if X is Z:
        squares[columns, rows] = squares[rows, columns]
        np.fill_diagonal(squares, 0.0)
    return np.sqrt(squares, out=squares)


def _lengths_and_products(X: Points, Z: Points) -> tuple[Array, Array]:
    """‖a‖² + ‖b‖² and aᵀb of centred rows a and b, some features at a time."""
    lengths, products = np.zeros((2, len(X), len(Z)))
    for features in _CENTRED.blocks(X.shape[1], 8 * len(Z)):
        centre = Z[:, features].mean(axis=0)
        B = Z[:, features] - centre
        A = B if X is Z else X[:, features] - centre  # A Aᵀ costs half of A Bᵀ
        products += A @ B.T
        lengths += np.add.outer(_squares(A), _squares(B))
    return lengths, products


def typical_distance(points: Points) -> float:
    """The rule of :func:`propopt.gaussian_graph`: the median of those above zero."""
    if len(points) == 1:
        raise InvalidInput("lengthscale: 1 sample has no distance to others; give one")
    if points.shape[1] < _MANY_FEATURES:
        return median_distance(points)
    thinned = points[:: -(-len(points) // 2000)]
    apart = cross_distances(thinned, thinned)[np.triu_indices(len(thinned), k=1)]
    if not apart.any():
        raise InvalidInput(
            "lengthscale: all points coincide, so none can be chosen from the data; "
            "give one"
        )
    return float(np.median(apart[apart > 0]))


def _squares(rows: Array) -> Array:
    return np.einsum("nd,nd->n", rows, rows)
