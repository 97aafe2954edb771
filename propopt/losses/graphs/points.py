"""Graphs of similar points, by distances and neighbours.

A graph holds symmetric similarities S ≥ 0 with zero diagonal. Losses sum over *ordered*
pairs, so that each edge counts twice: Σ_{n,n'} ‖w_n − w_n'‖² S_nn' = 2 tr(Wᵀ L W) with
the Laplacian L = diag(S·1) − S. Only
:attr:`Graph.root` depends on this convention.

If one of two rows lacks a number, one has a slope and the other an effect in that
column, which are not comparable: a graph with many edges between rows with different
missing columns makes them similar.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, Final, Literal, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import squareform

from propopt.base.arrays import Array, Edges, Points, Sparse
from propopt.base.checks import (
    largest_entry,
    read_array,
    read_count,
    read_nonnegative,
    read_positive,
)
from propopt.base.errors import InvalidInput
from propopt.base.resources import require_memory
from propopt.base.suggestions import suggests_arguments
from propopt.losses.graphs.distances import (
    all_distances,
    gaussian,
    median_distance,
    pair_distances,
    pairs_within,
)
from propopt.losses.graphs.nearest import GOAL, nearest_rows
from propopt.losses.linear_algebra import Components, incidence
from propopt.losses.maps import LinearMap, OverPoints
from propopt.losses.operators import LatticeLaplacian
from propopt.tables.frames import named_by, read_points


# ---- Similarity graphs of points or of features


_MOST_WRITTEN: Final = 1_000_000


class Graph(ABC):
    """Base class of graphs: similarities S of points or of features.

    S is symmetric with zero diagonal. Losses sum over ordered pairs, so that each edge
    counts twice.
    """

    kind: str
    parameters: Mapping[str, float]
    names: tuple[Hashable, ...] | None = None
    """Names of the rows, or columns, of the original DataFrame."""
    again: Callable[[int], Graph] | None = None
    """Makes the graph with another number of neighbours, if it has exact neighbours."""
    lattice: LatticeLaplacian | None = None
    """The operator 2L of a lattice, diagonalised by transforms."""

    @property
    @abstractmethod
    def n_nodes(self) -> int:
        """The number of nodes of the graph."""

    @property
    @abstractmethod
    def n_edges(self) -> int:
        """The number of unordered pairs with non-zero similarity."""

    @property
    def recall_in_words(self) -> str:
        """The recall of an approximate search of neighbours; empty if it was exact."""
        if "recall" not in self.parameters:
            return ""
        share = self.parameters["recall"]
        error = self.parameters["recall_error"]
        return f"{share:.1%} ±{error:.1%} of the nearest"

    @cached_property
    def similarities(self) -> Sparse:
        """The matrix S, symmetric with zero diagonal, shape (n, n)."""
        raise NotImplementedError

    @property
    @abstractmethod
    def differences(self) -> LinearMap:
        """The linear map B of W with ‖B W‖² = Σ_{n,n'} ‖w_n − w_n'‖² S_nn'."""

    @cached_property
    def edges(self) -> Edges:
        """Node pairs (n, n') with n < n' and non-zero similarity, shape (E, 2)."""
        upper = sp.triu(self.similarities, k=1).tocoo()
        return np.column_stack(upper.coords).astype(np.intp)

    @property
    def strengths(self) -> Array:
        """The similarity of each edge, shape (E,)."""
        return sp.triu(self.similarities, k=1).tocoo().data

    @cached_property
    def laplacian(self) -> Sparse:
        """The Laplacian L = diag(S·1) − S, shape (n, n)."""
        degrees = self.similarities.sum(axis=1)
        return sp.csr_array(sp.diags_array(degrees) - self.similarities)

    @property
    def total(self) -> float:
        """The sum of S over ordered pairs, n times the mean degree."""
        return float(self.similarities.sum())

    def arrays(self, ends: str) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield pairs (key, array) to save: the edges and the similarities.

        ``ends`` is the key of the edges. Graphs with more than a million edges, at 24
        bytes each, yield nothing.
        """
        if self.n_edges <= _MOST_WRITTEN:
            yield ends, self.edges.astype(np.int64)
            yield "similarities", np.asarray(self.strengths, np.float64)

    @cached_property
    def incidence(self) -> Sparse:
        """The incidence matrix B (E, n): row e of B W is w_n − w_n' for e = (n, n')."""
        return incidence(self.edges, self.n_nodes)

    @cached_property
    def root(self) -> Sparse | Array:
        """The matrix B, one row per edge, with ‖B W‖² = Σ_{n,n'} ‖w_n − w_n'‖² S_nn'.

        With negative similarities, rows come from the eigenvectors instead.
        """
        S = self.strengths
        if (S < 0).any():
            return self._spectral_root()
        rows = incidence(self.edges, self.n_nodes)
        rows.data *= np.repeat(np.sqrt(2.0 * S), 2)
        return rows

    def _spectral_root(self) -> Array:
        """The rows √(2λ_k) u_kᵀ, which sum to zero on each component."""
        rows = np.zeros((self.n_nodes, self.n_nodes))
        for nodes, block in self.blocks():
            values, vectors = np.linalg.eigh(2.0 * block)
            rows[np.ix_(nodes, nodes)] = np.sqrt(np.maximum(values, 0.0)) * vectors
        return self.components.centred(rows).T

    def blocks(self) -> Iterator[tuple[NDArray[np.intp], Array]]:
        """Yield the nodes and the dense Laplacian of each component."""
        for nodes in self.components.members():
            yield nodes, self.laplacian[nodes][:, nodes].toarray()

    @cached_property
    def components(self) -> Components:
        """The connected components of the graph."""
        return Components.of(self.similarities)

    @property
    def n_components(self) -> int:
        """The number of connected components."""
        return self.components.count

    def __repr__(self) -> str:
        numbers = "".join(f", {k}={v:.6g}" for k, v in self.parameters.items())
        return (
            f"<{self.kind} graph: {self.n_nodes} nodes, {self.n_edges} edges{numbers}>"
        )


def read_graph(graph: object) -> Graph:
    """Check that an argument is a graph, and return it."""
    if isinstance(graph, Graph):
        return graph
    raise InvalidInput(
        f"graph: expected a graph, such as po.graphs.knn_graph(X, 8), got "
        f"{type(graph).__name__}; po.graphs.graph_from_matrix(S) makes one from "
        "similarities"
    )


# ---- Graphs with stored similarities


@final
class SimilarityGraph(Graph):
    """A graph with a stored sparse matrix of similarities.

    Parameters
    ----------
    similarities : sparse array (n, n)
        Symmetric, with zero diagonal. Negative entries are allowed only if the
        Laplacian is positive semidefinite.
    kind : str
        The kind of graph, such as ``"knn"``.
    parameters : mapping
        Numbers such as a lengthscale chosen from the data.
    """

    similarities: Sparse
    parameters: Mapping[str, float]

    def __init__(
        self,
        similarities: Sparse,
        kind: str = "precomputed",
        parameters: Mapping[str, float] | None = None,
    ) -> None:
        self.similarities = canonical(similarities)
        self.kind = kind
        self.parameters = dict(parameters or {})

    @property
    def n_nodes(self) -> int:
        return int(self.similarities.shape[0])

    @property
    def n_edges(self) -> int:
        return len(self.edges)

    @cached_property
    def differences(self) -> LinearMap:
        return OverPoints(self.root, self.components, self.lattice)


def canonical(similarities: Sparse) -> Sparse:
    """The matrix without stored zeros and without duplicate entries."""
    matrix = sp.csr_array(similarities, dtype=np.float64)
    if not (matrix.has_canonical_format and matrix.data.all()):
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix


PAIR_BYTES: Final = 40
"""Bytes for each pair while building a graph or a kernel of all pairs."""


def require_all_pairs(n_nodes: int, label: str) -> None:
    """Raise an error if a graph of all pairs does not fit into memory."""
    sparser = (
        "use knn_graph, threshold_graph or gaussian_graph(X, lengthscale, cutoff=...), "
        "with a short lengthscale, instead"
    )
    require_memory(PAIR_BYTES * n_nodes**2, label, sparser)


# ---- Graphs from a matrix of similarities


@suggests_arguments
def graph_from_matrix(S: object) -> SimilarityGraph:
    """Make a graph from a similarity matrix S (n, n), dense or sparse.

    The diagonal of S has no effect, since a node does not differ from itself: S may be
    a kernel of points or features.

    Raises
    ------
    InvalidInput
        If S is not square and symmetric with finite entries, or has
        negative entries and a Laplacian that is not positive semidefinite: then
        the robustness loss would be unbounded below.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> po.graphs.graph_from_matrix(np.array([[2.0, 1.0], [1.0, 2.0]]))
    <precomputed graph: 2 nodes, 1 edges>
    """
    entries = S if sp.issparse(S) else read_array(S, "S", ndim=2)
    matrix = sp.csr_array(entries, dtype=np.float64, copy=True)
    _check_similarities(matrix)
    matrix = matrix - sp.diags_array(matrix.diagonal())
    graph = SimilarityGraph(0.5 * matrix + 0.5 * matrix.T)
    if (graph.similarities.data < 0).any():
        _check_definite(graph)
    return graph


def _check_similarities(matrix: Sparse) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidInput(f"S: expected a square matrix, got shape {matrix.shape}")
    if matrix.shape[0] == 0:
        raise InvalidInput("S: the matrix is empty")
    if not np.isfinite(matrix.data).all():
        raise InvalidInput("S: some similarities are not finite")
    largest = largest_entry(matrix.data)
    uneven = abs(matrix - matrix.T)
    if uneven.nnz and uneven.data.max() > 1e-12 * largest:
        raise InvalidInput("S: expected a symmetric matrix; (S + S.T) / 2 is one")


def _check_definite(graph: SimilarityGraph) -> None:
    for _, block in graph.blocks():
        values = np.linalg.eigvalsh(block)
        if values[0] < -1e-10 * max(values[-1], 0.0) - np.finfo(float).tiny:
            raise InvalidInput(
                "S: has negative similarities and its Laplacian is not positive "
                f"semidefinite (smallest eigenvalue {values[0]:.6g}), so the "
                "robustness loss would be unbounded below; use KernelRobustness for a "
                "kernel's precision matrix"
            )


# ---- Graphs by the number of nodes: complete ones, chains and boxes


@suggests_arguments
def complete_graph(n_nodes: int) -> SimilarityGraph:
    """Graph that joins every pair of nodes, with similarity one.

    Examples
    --------
    >>> import propopt as po
    >>> po.graphs.complete_graph(3)
    <complete graph: 3 nodes, 3 edges>
    """
    n = read_count(n_nodes, "n_nodes")
    require_all_pairs(n, "a complete graph")
    return SimilarityGraph(sp.csr_array(np.ones((n, n)) - np.eye(n)), "complete")


@suggests_arguments
def chain_graph(n_nodes: int) -> SimilarityGraph:
    """Graph of consecutive nodes, as in a time series, with similarity one.

    Examples
    --------
    >>> import propopt as po
    >>> po.graphs.chain_graph(3)
    <chain graph: 3 nodes, 2 edges>
    """
    n = read_count(n_nodes, "n_nodes")
    require_memory(80.0 * n, f"a chain of {n} nodes", "use fewer")
    return SimilarityGraph(_path(n), "chain")


@suggests_arguments
def pixel_graph(height: int, width: int) -> SimilarityGraph:
    """Graph of the pixels of an image, each joined to up to four neighbours.

    Parameters
    ----------
    height, width : int
        Numbers of rows and columns of pixels, in row-major order.

    Returns
    -------
    SimilarityGraph
        All similarities of neighbours are 1.

    Examples
    --------
    >>> import propopt as po
    >>> po.graphs.pixel_graph(2, 2)
    <pixel graph: 4 nodes, 4 edges, height=2, width=2>
    """
    rows = read_count(height, "height")
    columns = read_count(width, "width")
    require_memory(176.0 * rows * columns, f"{rows} × {columns} pixels", "use fewer")
    parameters = {"height": rows, "width": columns}
    lattice = LatticeLaplacian((rows, columns))
    graph = SimilarityGraph(box_neighbours(lattice), "pixel", parameters)
    graph.lattice = lattice
    return graph


def box_neighbours(lattice: LatticeLaplacian) -> Sparse:
    """The similarities of a lattice, between neighbours along each axis."""
    coupled = dict(lattice.axes)
    total = sp.csr_array((1, 1))
    for axis, n in enumerate(lattice.box):
        total = sp.kronsum(coupled.get(axis, 0.0) * _path(n), total)
    return canonical(total)


def _path(n_nodes: int) -> Sparse:
    ones = np.ones(n_nodes - 1)
    return sp.diags_array([ones, ones], offsets=[-1, 1], shape=(n_nodes, n_nodes))


# ---- Edges between rows with different missing columns


@suggests_arguments
def share_across_patterns(graph: Graph, X: object) -> float:
    """The share of edges that join rows whose values are missing in different columns.

    Parameters
    ----------
    graph : Graph
        A graph of the rows of X.
    X : array or DataFrame (n, D)
        Numbers, some missing, such as
        :meth:`propopt.functions.TableSchema.coordinates`.

    Returns
    -------
    float
        The share between 0 and 1; 0 without edges.

    Raises
    ------
    InvalidInput
        If X does not have the rows of the graph.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [0.0, np.nan]])
    >>> po.graphs.share_across_patterns(po.graphs.complete_graph(3), X)
    0.6666666666666666
    """
    if graph.n_edges == 0:
        return 0.0
    return float(_crosses(graph, X).mean())


def within_patterns(graph: Graph, X: object) -> SimilarityGraph:
    """The graph without edges between rows (n, D) with different missing columns."""
    inside_edges = ~_crosses(graph, X)
    matrix = symmetric(
        graph.edges[inside_edges], graph.strengths[inside_edges], graph.n_nodes
    )
    inside = SimilarityGraph(matrix, graph.kind, graph.parameters)
    inside.names = graph.names
    return inside


def _crosses(graph: Graph, X: object) -> NDArray[np.bool_]:
    """Whether each edge joins rows with different missing columns, (E,)."""
    points, _ = read_points(X, "X")
    if len(points) != graph.n_nodes:
        raise InvalidInput(
            f"X: expected the {graph.n_nodes} rows of the graph, got {len(points)}"
        )
    absent = np.isnan(points)
    first, second = graph.edges.T
    return (absent[first] != absent[second]).any(axis=1)


# ---- Graphs by distances between the rows of a table


@suggests_arguments
@named_by("points")
def gaussian_graph(
    X: object,
    lengthscale: float | None = None,
    *,
    cutoff: float | None = None,
    same_pattern: bool = False,
) -> SimilarityGraph:
    """Graph of all points with Gaussian similarities exp(−‖x − x'‖²/2Λ²).

    After Tadesse et al. 2024, appendix A.

    Parameters
    ----------
    X : array or DataFrame (n, D)
        The points; numbers may be missing.
    lengthscale : float, optional
        Λ > 0; by default the median distance between different points, which is
        reported in ``graph.parameters``.
    cutoff : float, optional
        Similarities below ``cutoff`` are dropped, for a sparse graph.
    same_pattern : bool
        Whether to drop edges between rows with different missing columns.

    Returns
    -------
    SimilarityGraph
        It has n nodes and similarities between 0 and 1.

    Raises
    ------
    InvalidInput
        If ``lengthscale`` is not positive, ``cutoff`` is not between 0 and 1, or all
        points coincide and no lengthscale is given.
    Refused
        If the graph of all pairs does not fit into memory.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> po.graphs.gaussian_graph(np.array([[0.0], [1.0], [3.0]]))
    <gaussian graph: 3 nodes, 3 edges, lengthscale=2>
    """
    points, _ = read_points(X, "X")
    graph = _gaussian(points, lengthscale, cutoff)
    return within_patterns(graph, points) if same_pattern else graph


def _gaussian(
    points: Points, lengthscale: float | None, cutoff: float | None
) -> SimilarityGraph:
    if cutoff is None:
        require_all_pairs(len(points), "a complete gaussian graph")
    if lengthscale is None:
        lengthscale = median_distance(points)
    scale = read_positive(lengthscale, "lengthscale")
    if cutoff is None:
        dense = squareform(gaussian(all_distances(points), scale))
        return SimilarityGraph(sp.csr_array(dense), "gaussian", {"lengthscale": scale})
    cut = read_positive(cutoff, "cutoff")
    if cut >= 1:
        raise InvalidInput(f"cutoff: expected a number < 1, got {cut}")
    pairs = pairs_within(points, scale * np.sqrt(-2.0 * np.log(cut)))
    parameters = {"lengthscale": scale, "cutoff": cut}
    similar = gaussian(pair_distances(points, pairs), scale)
    selected = similar >= cut
    graph = symmetric(pairs[selected], similar[selected], len(points))
    return SimilarityGraph(graph, "gaussian", parameters)


@suggests_arguments
@named_by("points")
def threshold_graph(
    X: object, threshold: float, *, same_pattern: bool = False
) -> SimilarityGraph:
    """Graph of points with ‖x − x'‖² ≤ threshold, with similarity one.

    Parameters
    ----------
    X : array or DataFrame (n, D)
        The points; numbers may be missing.
    threshold : float
        The largest squared distance, ≥ 0.
    same_pattern : bool
        As for :func:`gaussian_graph`.

    Returns
    -------
    SimilarityGraph
        It has n nodes; all its similarities are 1.

    Raises
    ------
    InvalidInput
        If ``threshold`` is negative.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> po.graphs.threshold_graph(np.array([[0.0], [1.0], [3.0]]), 1.5)
    <threshold graph: 3 nodes, 1 edges, threshold=1.5>
    """
    points, _ = read_points(X, "X")
    limit = read_nonnegative(threshold, "threshold")
    pairs = pairs_within(points, np.sqrt(limit))
    matrix = symmetric(pairs, np.ones(len(pairs)), len(points))
    graph = SimilarityGraph(matrix, "threshold", {"threshold": limit})
    return within_patterns(graph, points) if same_pattern else graph


@suggests_arguments
@named_by("points")
def knn_graph(
    X: object,
    n_neighbors: int,
    *,
    weights: Literal["uniform", "gaussian"] = "uniform",
    lengthscale: float | None = None,
    same_pattern: bool = False,
    recall: float = GOAL,
) -> SimilarityGraph:
    """Make a graph that joins each point to its nearest neighbours.

    An edge needs one point to be among the nearest of the other. Among points at
    equal distances, as in tables of whole numbers, the order of the rows decides.

    With more than 20,000 points in more than 5 columns, neighbours are searched by
    random projections. The share that is found is measured at 500 points, and
    ``parameters`` of the graph have it.

    Parameters
    ----------
    X : array or DataFrame (n, D)
        The points, perhaps with missing values. Distances are Euclidean without
        scaling: for a table give :meth:`~propopt.functions.TableSchema.coordinates`,
        which divides by standard deviations and encodes categories, as
        :func:`propopt.explain` does.
    n_neighbors : int
        The number of neighbours of each point, less than n.
    weights : {"uniform", "gaussian"}
        Similarities of 1, or exp(−‖x − x'‖²/2Λ²).
    lengthscale : float, optional
        The scale Λ of Gaussian weights; by default the median distance of the edges.
    same_pattern : bool
        Whether to join only rows with the same missing columns, as in
        :func:`gaussian_graph`; rows may then have fewer neighbours.
    recall : float
        The share of the true neighbours at which the search ends, between 0 and 1. A
        share of 1 gives exact neighbours, which takes time in proportion to n².

    Returns
    -------
    Graph
        An undirected graph with n nodes. If the search was approximate, its
        ``parameters`` have the measured ``recall`` and ``recall_error``, half of the
        95 % interval.

    See Also
    --------
    Nearest : The rule for nearest rows, for ``graph`` of :func:`propopt.explain`.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> po.graphs.knn_graph(X, n_neighbors=1).edges.tolist()
    [[0, 1], [1, 2]]
    """
    points, _ = read_points(X, "X")
    count = read_count(n_neighbors, "n_neighbors")
    if count >= len(points):
        raise InvalidInput(
            f"n_neighbors: expected fewer than the {len(points)} points, got {count}"
        )
    if weights not in ("uniform", "gaussian"):
        raise InvalidInput(
            f"weights: expected 'uniform' or 'gaussian', got {weights!r}"
        )
    nearest = nearest_rows(points, count, _read_recall(recall))
    parameters = {"n_neighbors": count, **nearest.parameters}
    directed = nearest.matrix
    graph = SimilarityGraph(directed.maximum(directed.T), "knn", parameters)
    if weights == "gaussian":
        distances = pair_distances(points, graph.edges)
        if lengthscale is None:
            lengthscale = float(np.median(distances))
        scale = read_positive(lengthscale, "lengthscale")
        graph = SimilarityGraph(
            symmetric(graph.edges, gaussian(distances, scale), len(points)),
            "knn",
            parameters | {"lengthscale": scale},
        )
    graph = within_patterns(graph, points) if same_pattern else graph
    if nearest.recall is None:  # large graphs do not retain their points
        graph.again = partial(
            knn_graph,
            points,
            weights=weights,
            lengthscale=lengthscale,
            same_pattern=same_pattern,
            recall=recall,
        )
    return graph


def _read_recall(recall: object) -> float:
    """Check that a recall is a number above 0 and up to 1, and return it."""
    if isinstance(recall, int | float) and 0.0 < recall <= 1.0:
        return float(recall)
    raise InvalidInput(f"recall: expected a share between 0 and 1, got {recall!r}")


def symmetric(pairs: Edges, similarities: Array, n_nodes: int) -> Sparse:
    """The matrix of similarities of pairs (n, n'), n < n'."""
    upper = sp.coo_array((similarities, tuple(pairs.T)), shape=(n_nodes, n_nodes))
    return sp.csr_array(upper + upper.T)
