"""Who is similar to whom: points and features, stored or known by their pattern."""

from propopt.graphs.base import Graph
from propopt.graphs.cosine import cosine_graph
from propopt.graphs.documents import document_graph
from propopt.graphs.features import correlation_graph, group_graph
from propopt.graphs.grid_points import grid
from propopt.graphs.grids import GridGaussianGraph, LatticeGraph, grid_gaussian_graph
from propopt.graphs.missing_patterns import share_across_patterns, within_patterns
from propopt.graphs.patterns import chain_graph, complete_graph, pixel_graph
from propopt.graphs.points import gaussian_graph, knn_graph, threshold_graph
from propopt.graphs.precomputed import graph_from_matrix
from propopt.graphs.stored import SimilarityGraph


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
    "within_patterns",
]
