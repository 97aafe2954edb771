"""Graphs whose similarities are stored."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import final

import numpy as np
import scipy.sparse as sp

from propopt._typing import Sparse
from propopt.graphs.base import Graph
from propopt.maps import LinearMap, OverPoints
from propopt.memory import require_memory


@final
class SimilarityGraph(Graph):
    """A graph whose similarities are stored.

    Parameters
    ----------
    similarities : sparse array (n, n)
        Symmetric, with zero diagonal. Negative entries are allowed only where the
        Laplacian stays positive semidefinite.
    kind : str
        How the graph was made.
    parameters : mapping
        The numbers that made it, such as a lengthscale chosen from the data.
    """

    def __init__(
        self,
        similarities: Sparse,
        kind: str = "precomputed",
        parameters: Mapping[str, float] | None = None,
    ) -> None:
        self._similarities = canonical(similarities)
        self.kind = kind
        self.parameters = dict(parameters or {})

    @property
    def similarities(self) -> Sparse:
        return self._similarities

    @property
    def n_nodes(self) -> int:
        return int(self._similarities.shape[0])

    @property
    def n_edges(self) -> int:
        return len(self.edges)

    @cached_property
    def differences(self) -> LinearMap:
        return OverPoints(self.root, self.components)


def canonical(similarities: Sparse) -> Sparse:
    """Rows without stored zeros, which are no edges, and without entries stored twice.

    Products of scipy store zeros where they store blocks.
    """
    matrix = sp.csr_array(similarities, dtype=np.float64)
    if not (matrix.has_canonical_format and matrix.data.all()):
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix


def require_all_pairs(n_nodes: int, what: str) -> None:
    """Refuse a graph of all pairs that does not fit into memory."""
    sparser = "use gaussian_graph(cutoff=...), knn_graph or threshold_graph instead"
    require_memory(24 * n_nodes**2, what, sparser)
