"""Similarity graphs of points or of features.

A graph holds symmetric similarities S ≥ 0 with zero diagonal. Losses sum over *ordered*
pairs, so that each edge counts twice: Σ_{n,n'} ‖w_n − w_n'‖² S_nn' = 2 tr(Wᵀ L W) with
the Laplacian L = diag(S·1) − S. That convention lives here, in
:attr:`Graph.root`, and nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import squareform

from propopt._typing import Array, Edges, Points, Sparse
from propopt.checks import read_count, read_nonnegative, read_positive
from propopt.errors import InvalidInput
from propopt.graphs.neighbours import (
    all_distances,
    distances,
    median_distance,
    nearest_neighbours,
    pairs_within,
)
from propopt.linear.components import Components
from propopt.maps import LinearMap, OverPoints
from propopt.memory import require_memory
from propopt.tables.names import named_by, read_table


class Graph(ABC):
    """Similarities of nodes, points or features; see the module for the convention."""

    kind: str
    parameters: Mapping[str, float]
    names: tuple[Hashable, ...] | None = None
    """Those of the rows, or columns, of the DataFrame that it was made of."""

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
        """K over points with ‖K W‖² = Σ_{n,n'} ‖w_n − w_n'‖² S_nn' = 2 tr(Wᵀ L W)."""

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


@named_by("points")
def gaussian_graph(
    X: object, lengthscale: float | None = None, *, cutoff: float | None = None
) -> SimilarityGraph:
    """Gaussian similarities s = exp(−‖x − x'‖²/2Λ²) (Tadesse et al. 2024, appendix A).

    Parameters
    ----------
    X : array or DataFrame (n, D)
        The points.
    lengthscale : float, optional
        Λ > 0; by default the median distance between different points, which is
        reported in ``graph.parameters``.
    cutoff : float, optional
        Similarities below ``cutoff`` are dropped, so that the graph is sparse.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> po.gaussian_graph(np.array([[0.0], [1.0], [3.0]]))
    <gaussian graph: 3 nodes, 3 edges, lengthscale=2>
    """
    points, _ = read_table(X, "X")
    if lengthscale is None:
        lengthscale = median_distance(points)
    scale = read_positive(lengthscale, "lengthscale")
    if cutoff is None:
        require_memory(24 * len(points) ** 2, "a complete gaussian graph", _SPARSER)
        dense = squareform(gaussian(all_distances(points), scale))
        return SimilarityGraph(sp.csr_array(dense), "gaussian", {"lengthscale": scale})
    cut = read_positive(cutoff, "cutoff")
    if cut >= 1:
        raise InvalidInput(f"cutoff: expected a number < 1, got {cut}")
    pairs = pairs_within(points, scale * np.sqrt(-2.0 * np.log(cut)))
    parameters = {"lengthscale": scale, "cutoff": cut}
    similar = gaussian(distances(points, pairs), scale)
    kept = similar >= cut
    graph = _symmetric(pairs[kept], similar[kept], len(points))
    return SimilarityGraph(graph, "gaussian", parameters)


@named_by("points")
def threshold_graph(X: object, threshold: float) -> SimilarityGraph:
    """Similarity one where ‖x − x'‖² ≤ threshold, else zero (appendix A)."""
    points, _ = read_table(X, "X")
    limit = read_nonnegative(threshold, "threshold")
    pairs = pairs_within(points, np.sqrt(limit))
    graph = _symmetric(pairs, np.ones(len(pairs)), len(points))
    return SimilarityGraph(graph, "threshold", {"threshold": limit})


@named_by("points")
def knn_graph(
    X: object,
    n_neighbors: int,
    *,
    weights: Literal["uniform", "gaussian"] = "uniform",
    lengthscale: float | None = None,
) -> SimilarityGraph:
    """Each point and its nearest neighbours; an edge where either names the other.

    Of several points at the same distance, as tables of whole numbers have them, those
    that are taken depend on the order of the rows.

    Parameters
    ----------
    X : array or DataFrame (n, D)
        The points.
    n_neighbors : int
        Neighbours of each point, fewer than n.
    weights : {"uniform", "gaussian"}
        Similarity one, or exp(−‖x − x'‖²/2Λ²).
    lengthscale : float, optional
        Λ for gaussian weights; by default the median distance along the edges.
    """
    points, _ = read_table(X, "X")
    count = read_count(n_neighbors, "n_neighbors")
    if count >= len(points):
        raise InvalidInput(
            f"n_neighbors: expected fewer than the {len(points)} points, got {count}"
        )
    near = nearest_neighbours(points, count)
    union = sp.csr_array(near.maximum(near.T))
    if weights == "uniform":
        return SimilarityGraph(union, "knn", {"n_neighbors": count})
    if weights != "gaussian":
        raise InvalidInput(
            f"weights: expected 'uniform' or 'gaussian', got {weights!r}"
        )
    return _gaussian_on(union, points, lengthscale, count)


def complete_graph(n_nodes: int) -> SimilarityGraph:
    """Every pair of nodes with similarity one."""
    n = read_count(n_nodes, "n_nodes")
    require_memory(24 * n**2, "a complete graph", _SPARSER)
    return SimilarityGraph(sp.csr_array(np.ones((n, n)) - np.eye(n)), "complete")


def chain_graph(n_nodes: int) -> SimilarityGraph:
    """Neighbouring columns, as in a time series, with similarity one."""
    n = read_count(n_nodes, "n_nodes")
    require_memory(80.0 * n, f"a chain of {n} nodes", "use fewer")
    return SimilarityGraph(_path(n), "chain")


def pixel_graph(height: int, width: int) -> SimilarityGraph:
    """Pixels of an image in row-major order, each with its up to four neighbours."""
    rows, columns = read_count(height, "height"), read_count(width, "width")
    require_memory(176.0 * rows * columns, f"{rows} × {columns} pixels", "use fewer")
    parameters = {"height": rows, "width": columns}
    return SimilarityGraph(box_neighbours((rows, columns)), "pixel", parameters)


@named_by("features")
def correlation_graph(X: object) -> SimilarityGraph:
    """Features with similarity |correlation of their columns|.

    A constant column has no correlation: its similarities are zero.
    """
    points, _ = read_table(X, "X")
    n_bytes = 40.0 * points.shape[1] ** 2
    require_memory(n_bytes, "every pair of features", "use fewer features")
    centred = Components.single(len(points)).centred(points)
    largest = np.abs(centred).max(axis=0)
    # what the last digits of a column add up to is no spread
    rounding = 4.0 * np.finfo(float).eps * np.abs(points).max(axis=0)
    constant = largest <= rounding
    unit = centred / np.where(constant, 1.0, largest)
    unit[:, constant] = 0.0
    unit /= np.where(constant, 1.0, np.linalg.norm(unit, axis=0))
    correlation = np.minimum(np.abs(unit.T @ unit), 1.0)
    np.fill_diagonal(correlation, 0.0)
    return SimilarityGraph(sp.csr_array(correlation), "correlation")


def group_graph(labels: ArrayLike) -> SimilarityGraph:
    """Nodes that carry the same label, with similarity one."""
    names = np.asarray(labels)
    if names.ndim != 1 or len(names) == 0:
        raise InvalidInput(f"labels: expected one label per node, got {names.shape}")
    require_memory(40.0 * len(names) ** 2, "every pair of nodes", "use fewer nodes")
    _, codes = np.unique(names, return_inverse=True)
    same = (codes[:, None] == codes[None, :]).astype(float)
    np.fill_diagonal(same, 0.0)
    return SimilarityGraph(sp.csr_array(same), "group")


def gaussian(apart: Array, lengthscale: float) -> Array:
    """exp(−d²/2Λ²) of distances d: zero where d/Λ is beyond all numbers."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(-0.5 * (apart / lengthscale) ** 2))


_SPARSER = "use gaussian_graph(cutoff=...), knn_graph or threshold_graph instead"


def box_neighbours(box: Sequence[int]) -> Sparse:
    """Ones between points of a box, in row-major order, one step along one axis."""
    total = sp.csr_array((1, 1))
    for n in box:
        total = sp.kronsum(_path(n), total)
    return canonical(total)


def _path(n_nodes: int) -> Sparse:
    ones = np.ones(n_nodes - 1)
    return sp.diags_array([ones, ones], offsets=[-1, 1], shape=(n_nodes, n_nodes))


def _symmetric(pairs: Edges, similarities: Array, n_nodes: int) -> Sparse:
    upper = sp.coo_array((similarities, tuple(pairs.T)), shape=(n_nodes, n_nodes))
    return sp.csr_array(upper + upper.T)


def _gaussian_on(
    union: Sparse, points: Points, lengthscale: float | None, count: int
) -> SimilarityGraph:
    pairs = SimilarityGraph(union).edges
    apart = distances(points, pairs)
    if lengthscale is None:
        lengthscale = float(np.median(apart))
    scale = read_positive(lengthscale, "lengthscale")
    graph = _symmetric(pairs, gaussian(apart, scale), len(points))
    parameters = {"n_neighbors": count, "lengthscale": scale}
    return SimilarityGraph(graph, "knn", parameters)
