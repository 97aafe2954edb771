"""Euclidean distances of points with few or with very many features."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from propopt._typing import Array, Points
from propopt.errors import InvalidInput
from propopt.graphs import median_distance


MANY_FEATURES = 64
"""From here on, products of matrices are faster than differences of all pairs."""

CANCELS = 1e-3
"""Below this part of ‖x‖² + ‖z‖², a squared distance is computed from differences."""

PAIRS = 2**22
"""Differences that are stored at once."""


def distances(X: Points, Z: Points) -> Array:
    """‖x − z‖ for all rows, shape (n, m), right to 12 figures or more; exact zeros."""
    if X.shape[1] < MANY_FEATURES:
        return np.asarray(cdist(X, Z))
    centre = Z.mean(axis=0)
    B = Z - centre
    A = B if X is Z else X - centre  # A Aᵀ costs half of A Bᵀ
    lengths = _squares(A)[:, None] + _squares(B)
    squares = lengths - 2.0 * (A @ B.T)
    rows, columns = np.nonzero(squares <= CANCELS * lengths)
    step = max(1, PAIRS // X.shape[1])
    for start in range(0, len(rows), step):
        r, c = rows[start : start + step], columns[start : start + step]
        squares[r, c] = _squares(X[r] - Z[c])
    return np.sqrt(squares, out=squares)


def typical_distance(points: Points) -> float:
    """The rule of :func:`propopt.gaussian_graph`: the median of those above zero."""
    if points.shape[1] < MANY_FEATURES:
        return median_distance(points)
    thinned = points[:: -(-len(points) // 2000)]
    found = distances(thinned, thinned)[np.triu_indices(len(thinned), k=1)]
    if not found.any():
        raise InvalidInput(
            "lengthscale: all points coincide, so none can be chosen from the data; "
            "give one"
        )
    return float(np.median(found[found > 0]))


def _squares(rows: Array) -> Array:
    return np.einsum("nd,nd->n", rows, rows)
