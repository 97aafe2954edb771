"""Similar points: graphs made of distances between the rows of a table.

‖x − x'‖² is a sum over columns. Where a number is missing in one of both rows, the
column adds 1, as another category does in :meth:`propopt.TableSchema.coordinates`;
where it is missing in both it adds 0.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import squareform

from propopt._typing import Array, Edges, Points, Sparse
from propopt.checks import read_count, read_nonnegative, read_positive
from propopt.errors import InvalidInput
from propopt.graphs.missing_patterns import within_patterns
from propopt.graphs.neighbours import (
    all_distances,
    gaussian,
    median_distance,
    nearest_neighbours,
    pair_distances,
    pairs_within,
)
from propopt.graphs.stored import SimilarityGraph, require_all_pairs
from propopt.tables.names import named_by, read_points


@named_by("points")
def gaussian_graph(
    X: object,
    lengthscale: float | None = None,
    *,
    cutoff: float | None = None,
    same_pattern: bool = False,
) -> SimilarityGraph:
    """Gaussian similarities s = exp(−‖x − x'‖²/2Λ²) (Tadesse et al. 2024, appendix A).

    Parameters
    ----------
    X : array or DataFrame (n, D)
        The points; numbers may be missing.
    lengthscale : float, optional
        Λ > 0; by default the median distance between different points, which is
        reported in ``graph.parameters``.
    cutoff : float, optional
        Similarities below ``cutoff`` are dropped, so that the graph is sparse.
    same_pattern : bool
        Whether edges are dropped between rows in which other columns are missing, as
        :func:`within_patterns` does.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> po.gaussian_graph(np.array([[0.0], [1.0], [3.0]]))
    <gaussian graph: 3 nodes, 3 edges, lengthscale=2>
    """
    points, _ = read_points(X, "X")
    graph = _gaussian(points, lengthscale, cutoff)
    return within_patterns(graph, points) if same_pattern else graph


def _gaussian(
    points: Points, lengthscale: float | None, cutoff: float | None
) -> SimilarityGraph:
    if lengthscale is None:
        lengthscale = median_distance(points)
    scale = read_positive(lengthscale, "lengthscale")
    if cutoff is None:
        require_all_pairs(len(points), "a complete gaussian graph")
        dense = squareform(gaussian(all_distances(points), scale))
        return SimilarityGraph(sp.csr_array(dense), "gaussian", {"lengthscale": scale})
    cut = read_positive(cutoff, "cutoff")
    if cut >= 1:
        raise InvalidInput(f"cutoff: expected a number < 1, got {cut}")
    pairs = pairs_within(points, scale * np.sqrt(-2.0 * np.log(cut)))
    parameters = {"lengthscale": scale, "cutoff": cut}
    similar = gaussian(pair_distances(points, pairs), scale)
    kept = similar >= cut
    graph = _symmetric(pairs[kept], similar[kept], len(points))
    return SimilarityGraph(graph, "gaussian", parameters)


@named_by("points")
def threshold_graph(
    X: object, threshold: float, *, same_pattern: bool = False
) -> SimilarityGraph:
    """Similarity one where ‖x − x'‖² ≤ threshold, else zero (appendix A).

    Parameters
    ----------
    X : array or DataFrame (n, D)
        The points; numbers may be missing.
    threshold : float
        At least 0.
    same_pattern : bool
        As for :func:`gaussian_graph`.
    """
    points, _ = read_points(X, "X")
    limit = read_nonnegative(threshold, "threshold")
    pairs = pairs_within(points, np.sqrt(limit))
    matrix = _symmetric(pairs, np.ones(len(pairs)), len(points))
    graph = SimilarityGraph(matrix, "threshold", {"threshold": limit})
    return within_patterns(graph, points) if same_pattern else graph


@named_by("points")
def knn_graph(
    X: object,
    n_neighbors: int,
    *,
    weights: Literal["uniform", "gaussian"] = "uniform",
    lengthscale: float | None = None,
    same_pattern: bool = False,
) -> SimilarityGraph:
    """Each point and its nearest neighbours; an edge where either names the other.

    Of several points at the same distance, as tables of whole numbers have them, those
    that are taken depend on the order of the rows.

    Parameters
    ----------
    X : array or DataFrame (n, D)
        The points; numbers may be missing.
    n_neighbors : int
        Neighbours of each point, fewer than n.
    weights : {"uniform", "gaussian"}
        Similarity one, or exp(−‖x − x'‖²/2Λ²).
    lengthscale : float, optional
        Λ for gaussian weights; by default the median distance along the edges.
    same_pattern : bool
        As for :func:`gaussian_graph`; a row may then keep fewer neighbours.
    """
    points, _ = read_points(X, "X")
    count = read_count(n_neighbors, "n_neighbors")
    if count >= len(points):
        raise InvalidInput(
            f"n_neighbors: expected fewer than the {len(points)} points, got {count}"
        )
    graph = _nearest(points, count, weights, lengthscale)
    graph = within_patterns(graph, points) if same_pattern else graph
    graph.again = partial(
        knn_graph,
        points,
        weights=weights,
        lengthscale=lengthscale,
        same_pattern=same_pattern,
    )
    return graph


def _nearest(
    points: Points, count: int, weights: str, lengthscale: float | None
) -> SimilarityGraph:
    if weights not in ("uniform", "gaussian"):
        raise InvalidInput(
            f"weights: expected 'uniform' or 'gaussian', got {weights!r}"
        )
    near = nearest_neighbours(points, count)
    union = sp.csr_array(near.maximum(near.T))
    if weights == "uniform":
        return SimilarityGraph(union, "knn", {"n_neighbors": count})
    return _gaussian_on(union, points, lengthscale, count)


def _symmetric(pairs: Edges, similarities: Array, n_nodes: int) -> Sparse:
    upper = sp.coo_array((similarities, tuple(pairs.T)), shape=(n_nodes, n_nodes))
    return sp.csr_array(upper + upper.T)


def _gaussian_on(
    union: Sparse, points: Points, lengthscale: float | None, count: int
) -> SimilarityGraph:
    pairs = SimilarityGraph(union).edges
    apart = pair_distances(points, pairs)
    if lengthscale is None:
        lengthscale = float(np.median(apart))
    scale = read_positive(lengthscale, "lengthscale")
    graph = _symmetric(pairs, gaussian(apart, scale), len(points))
    parameters = {"n_neighbors": count, "lengthscale": scale}
    return SimilarityGraph(graph, "knn", parameters)
