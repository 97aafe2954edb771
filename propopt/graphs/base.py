"""Similarity graphs of points or of features.

A graph holds symmetric similarities S ≥ 0 with zero diagonal. Losses sum over *ordered*
pairs, so that each edge counts twice: Σ_{n,n'} ‖w_n − w_n'‖² S_nn' = 2 tr(Wᵀ L W) with
the Laplacian L = diag(S·1) − S. That convention lives here, in
:attr:`Graph.root`, and nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt._typing import Array, Edges, Sparse
from propopt.errors import InvalidInput
from propopt.linear.components import Components
from propopt.maps import LinearMap


class Graph(ABC):
    """Similarities of nodes, points or features; see the module for the convention."""

    kind: str
    parameters: Mapping[str, float]
    names: tuple[Hashable, ...] | None = None
    """Those of the rows, or columns, of the DataFrame that it was made of."""
    again: Callable[[int], Graph] | None = None
    """The same graph with another number of neighbours, where it is one of those."""

    @property
    @abstractmethod
    def n_nodes(self) -> int:
        """Number of nodes."""

    @property
    @abstractmethod
    def n_edges(self) -> int:
        """Number of unordered pairs with non-zero similarity."""

    @property
    @abstractmethod
    def similarities(self) -> Sparse:
        """S, symmetric with zero diagonal, shape (n, n)."""

    @property
    @abstractmethod
    def differences(self) -> LinearMap:
        """B over points with ‖B W‖² = Σ_{n,n'} ‖w_n − w_n'‖² S_nn' = 2 tr(Wᵀ L W)."""

    @cached_property
    def edges(self) -> Edges:
        """Node pairs (n, n') with n < n' and non-zero similarity, shape (E, 2)."""
        upper = sp.triu(self.similarities, k=1).tocoo()
        return np.column_stack(upper.coords).astype(np.intp)

    @cached_property
    def laplacian(self) -> Sparse:
        """L = diag(S·1) − S, shape (n, n)."""
        degrees = self.similarities.sum(axis=1)
        return sp.csr_array(sp.diags_array(degrees) - self.similarities)

    @property
    def total(self) -> float:
        """ΣS, over ordered pairs: n times the mean degree."""
        return float(self.similarities.sum())

    @cached_property
    def incidence(self) -> Sparse:
        """B (E, n): row e of ``B @ W`` is w_n − w_n' for edge e = (n, n')."""
        n_edges = len(self.edges)
        signs = np.tile([1.0, -1.0], n_edges)
        rows = np.arange(n_edges + 1) * 2
        shape = (n_edges, self.n_nodes)
        return sp.csr_array((signs, self.edges.ravel(), rows), shape=shape)

    @cached_property
    def root(self) -> Sparse | Array:
        """The matrix of :attr:`differences`, with one row per edge.

        Where similarities are negative, rows come from the eigenvectors instead.
        """
        weights = sp.triu(self.similarities, k=1).tocoo().data
        if (weights < 0).any():
            return self._spectral_root()
        return sp.csr_array(sp.diags_array(np.sqrt(2.0 * weights)) @ self.incidence)

    def _spectral_root(self) -> Array:
        """Σ_k √(2λ_k) u_kᵀ, whose rows add up to zero on each component."""
        rows = np.zeros((self.n_nodes, self.n_nodes))
        for nodes, block in self.blocks():
            values, vectors = np.linalg.eigh(2.0 * block)
            rows[np.ix_(nodes, nodes)] = np.sqrt(np.maximum(values, 0.0)) * vectors
        return self.components.centred(rows).T

    def blocks(self) -> Iterator[tuple[NDArray[np.intp], Array]]:
        """For each component its nodes, and the Laplacian there, dense."""
        for part in range(self.n_components):
            nodes = np.flatnonzero(self.components.labels == part)
            yield nodes, self.laplacian[nodes][:, nodes].toarray()

    @cached_property
    def components(self) -> Components:
        """The connected components."""
        return Components.of(self.similarities)

    @property
    def n_components(self) -> int:
        """Number of connected components."""
        return self.components.count

    def __repr__(self) -> str:
        numbers = "".join(f", {k}={v:.6g}" for k, v in self.parameters.items())
        return (
            f"<{self.kind} graph: {self.n_nodes} nodes, {self.n_edges} edges{numbers}>"
        )


def read_graph(graph: object) -> Graph:
    """``graph``, if it is one.

    Raises
    ------
    InvalidInput
        If it is something else, such as a matrix of similarities.
    """
    if isinstance(graph, Graph):
        return graph
    raise InvalidInput(
        f"graph: expected a graph, such as po.knn_graph(X, 8), got "
        f"{type(graph).__name__}; po.graph_from_matrix(S) makes one of similarities"
    )
