"""The nearest neighbours of points."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree
from sklearn.neighbors import NearestNeighbors

from propopt._typing import Points, Sparse


TREE_FEATURES = 15
"""Up to so many, a tree finds neighbours faster than all distances do."""


def nearest_neighbours(points: Points, count: int) -> Sparse:
    """Ones from each point to its neighbours, shape (n, n)."""
    n_points, n_features = points.shape
    if n_features > TREE_FEATURES:
        found = NearestNeighbors(n_neighbors=count).fit(points)
        return sp.csr_array(found.kneighbors_graph(mode="connectivity"))
    _, near = KDTree(points).query(points, count + 1, workers=-1)
    own = near == np.arange(n_points)[:, None]
    own[~own.any(axis=1), -1] = True  # lost among duplicates: the last one goes
    neighbours = near[~own].reshape(n_points, count)
    starts = np.arange(n_points + 1) * count
    return sp.csr_array(
        (np.ones(neighbours.size), neighbours.ravel(), starts),
        shape=(n_points, n_points),
    )
