"""Who is similar to whom: points and features, stored or known by their pattern."""

from propopt.losses.graphs.features import (
    correlation_graph,
    cosine_graph,
    document_graph,
    group_graph,
)
from propopt.losses.graphs.grids import (
    GridGaussianGraph,
    LatticeGraph,
    grid,
    grid_gaussian_graph,
)
from propopt.losses.graphs.points import (
    Graph,
    SimilarityGraph,
    chain_graph,
    complete_graph,
    gaussian_graph,
    graph_from_matrix,
    knn_graph,
    pixel_graph,
    share_across_patterns,
    threshold_graph,
)


__all__ = [
    "Graph",
    "GridGaussianGraph",
    "LatticeGraph",
    "SimilarityGraph",
    "chain_graph",
    "complete_graph",
    "correlation_graph",
    "cosine_graph",
    "document_graph",
    "gaussian_graph",
    "graph_from_matrix",
    "grid",
    "grid_gaussian_graph",
    "group_graph",
    "knn_graph",
    "pixel_graph",
    "share_across_patterns",
    "threshold_graph",
]
