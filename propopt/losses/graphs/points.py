"""Graphs of similar points, by distances and neighbours.

A graph holds symmetric similarities S ≥ 0 with zero diagonal. Losses sum over *ordered*
pairs, so that each edge counts twice: Σ_{n,n'} ‖w_n − w_n'‖² S_nn' = 2 tr(Wᵀ L W) with
the Laplacian L = diag(S·1) − S. Only
:attr:`Graph.root` depends on this convention.

Distances are Euclidean, computed from differences, after dividing points by a power of
two, which is exact: squares neither overflow nor vanish. With missing numbers (NaN),
d(x, x')² = Σ_d δ_d,

    δ_d = (x_d − x'_d)²   if both have a number,
          1               if one of them has none,
          0               if neither has one:

in columns divided by their scale a mismatch counts like another category, as in
:meth:`propopt.functions.TableSchema.coordinates`. Such
distances are not metric: two numbers may be far apart, and both have distance 1 from
"missing". So they are computed for all pairs, without a tree.

If one of two rows lacks a number, one has a slope and the other an effect in that
column, which are not comparable: a graph with many edges between rows with different
missing columns makes them similar.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Literal, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist, pdist, squareform

from propopt.base.arrays import Array, Edges, Points, Sparse
from propopt.base.checks import read_array, read_count, read_nonnegative, read_positive
from propopt.base.errors import InvalidInput
from propopt.base.resources import BATCH_BUDGET, require_memory, with_thread_fallback
from propopt.base.suggestions import suggests_arguments
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
    """Makes the graph with another number of neighbours, for neighbour graphs."""
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
        return np.asarray(sp.triu(self.similarities, k=1).tocoo().data)

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
        return sp.csr_array(sp.diags_array(np.sqrt(2.0 * S)) @ self.incidence)

    def _spectral_root(self) -> Array:
        """The rows √(2λ_k) u_kᵀ, which sum to zero on each component."""
        rows = np.zeros((self.n_nodes, self.n_nodes))
        for nodes, block in self.blocks():
            values, vectors = np.linalg.eigh(2.0 * block)
            rows[np.ix_(nodes, nodes)] = np.sqrt(np.maximum(values, 0.0)) * vectors
        return self.components.centred(rows).T

    def blocks(self) -> Iterator[tuple[NDArray[np.intp], Array]]:
        """Yield the nodes and the dense Laplacian of each component."""
        for part in range(self.n_components):
            nodes = np.flatnonzero(self.components.labels == part)
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
@suggests_arguments
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
    sparser = "use gaussian_graph(cutoff=...), knn_graph or threshold_graph instead"
    require_memory(PAIR_BYTES * n_nodes**2, label, sparser)


# ---- Graphs from a matrix of similarities


@suggests_arguments
def graph_from_matrix(S: object) -> SimilarityGraph:
    """Make a graph from a similarity matrix S (n, n), dense or sparse.

    Raises
    ------
    InvalidInput
        If S is not square and symmetric with zero diagonal and finite entries, or has
        negative entries and a Laplacian that is not positive semidefinite: then
        the robustness loss would be unbounded below.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> po.graphs.graph_from_matrix(np.array([[0.0, 1.0], [1.0, 0.0]]))
    <precomputed graph: 2 nodes, 1 edges>
    """
    entries = S if sp.issparse(S) else read_array(S, "S", ndim=2)
    matrix = sp.csr_array(entries, dtype=np.float64, copy=True)
    _check_similarities(matrix)
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
    if matrix.diagonal().any():
        raise InvalidInput("S: expected a zero diagonal; set it with np.fill_diagonal")
    largest = np.abs(matrix.data).max(initial=0.0)
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
    rows, columns = read_count(height, "height"), read_count(width, "width")
    require_memory(176.0 * rows * columns, f"{rows} × {columns} pixels", "use fewer")
    parameters = {"height": rows, "width": columns}
    lattice = LatticeLaplacian((rows, columns))
    graph = SimilarityGraph(box_neighbours(lattice), "pixel", parameters)
    graph.lattice = lattice
    return graph


def box_neighbours(lattice: LatticeLaplacian) -> Sparse:
    """The similarities of a lattice, between neighbours along each axis."""
    coupled = {axis: rest for axis, *rest in lattice.axes}
    total = sp.csr_array((1, 1))
    for axis, n in enumerate(lattice.box):
        weight, closed = coupled.get(axis, (0.0, False))
        line = weight * _path(n).tolil()
        if closed:
            line[0, n - 1] = line[n - 1, 0] = weight
        total = sp.kronsum(line, total)
    return canonical(total)


def _path(n_nodes: int) -> Sparse:
    ones = np.ones(n_nodes - 1)
    return sp.diags_array([ones, ones], offsets=[-1, 1], shape=(n_nodes, n_nodes))


# ---- Distances between rows with missing numbers (NaN)


def squared_differences(first: Points, second: Points, mismatch: float) -> Array:
    """Squared distances Σ_d δ_d of matching rows, (..., D) and (..., D) to (...)."""
    squares = (first - second) ** 2
    sums = np.asarray(squares.sum(axis=-1))
    if np.isnan(sums).any():
        odd = np.isnan(first) != np.isnan(second)
        squares = np.where(np.isnan(squares), odd * mismatch, squares)
        sums = np.asarray(squares.sum(axis=-1))
    return sums


def squares_between(rows: Points, others: Points, mismatch: float) -> Array:
    """Squared distances of all pairs, (n, D) and (m, D) to (n, m), by differences."""
    squares = np.empty((len(rows), len(others)))
    for block in BATCH_BUDGET.blocks(len(rows), 8 * others.size):
        squares[block] = squared_differences(rows[block, None], others, mismatch)
    return squares


def rounded_squares(
    points: Points, mismatch: float
) -> tuple[float, Iterator[tuple[slice, Array]]]:
    """Squared distances by matrix products: fast, with rounding errors.

    With m = 1 for numbers and x = 0 for missing ones,

    Σ_d δ_d = x²·m' + m·x'² − 2 x·x' + a² (m·1 + m'·1 − 2 m·m').

    Returns a generous error bound, and blocks of rows with their squared distances to
    all points (N, D), which are between −1 and 1 or missing.
    """
    m = (~np.isnan(points)).astype(np.float64)
    # centred columns keep digits
    mean = np.nan_to_num(points).sum(axis=0) / np.maximum(m.sum(axis=0), 1.0)
    x = np.nan_to_num(points - mean)
    left = np.hstack([x**2 - 2.0 * mismatch * m, m, -2.0 * x])
    right, counts = np.hstack([m, x**2, x]), mismatch * m.sum(axis=1)
    largest = max(float(np.abs(x).max()) ** 2, mismatch)

    def blocks() -> Iterator[tuple[slice, Array]]:
        for rows in BATCH_BUDGET.blocks(len(points), 8 * len(points)):
            squares = left[rows] @ right.T
            squares += counts[rows, None] + counts
            yield rows, squares

    return 1e-12 * points.shape[1] * largest, blocks()


def nearest_of_incomplete(
    points: Points, count: int, mismatch: float
) -> NDArray[np.intp]:
    """The nearest other rows of each row, (N, count), exact despite rounding."""
    rounding, blocks = rounded_squares(points, mismatch)
    nearest = np.empty((len(points), count), dtype=np.intp)
    for rows, squares in blocks:
        indices = np.arange(rows.start, rows.stop)
        squares[indices - rows.start, indices] = np.inf
        nearest[rows] = np.argpartition(squares, count - 1, axis=1)[:, :count]
        inexact = squares.min(axis=1) <= 1e6 * rounding
        for n in indices[inexact]:
            exact = squares_between(points[n : n + 1], points, mismatch)[0]
            exact[n] = np.inf
            nearest[n] = np.argsort(exact, kind="stable")[:count]
    return nearest


def pairs_of_incomplete(points: Points, radius: float, mismatch: float) -> Edges:
    """Pairs (n, n'), n < n', within ``radius``, and some just beyond."""
    rounding, blocks = rounded_squares(points, mismatch)
    reach = radius**2 + rounding
    pairs = [np.empty((0, 2), dtype=np.intp)]
    for rows, squares in blocks:
        first, second = np.nonzero(squares <= reach)
        first += rows.start
        pairs.append(np.column_stack([first, second])[first < second])
    return np.concatenate(pairs)


# ---- Nearest neighbours, for points of any scale and offset


_TREE_FEATURES = 15
"""Up to this many features, a tree is faster than all distances."""

_TREE_POINTS = 500
"""Up to this many points a tree is used, as scikit-learn takes 0.1 s to import."""

_ROUNDING = 1e-6
"""Squares below this share of the largest are recomputed exactly."""


def all_distances(points: Points) -> Array:
    """Distances of all pairs in the order (0, 1), (0, 2), ..., (1, 2), ..."""
    unit = Unit.of(points)
    if unit.complete:
        return unit.restored(pdist(unit.points))
    squares = [
        squares_between(row[None], unit.points[n + 1 :], unit.mismatch)[0]
        for n, row in enumerate(unit.points[:-1])
    ]
    return unit.restored(np.sqrt(np.concatenate([np.empty(0), *squares])))


def pair_distances(points: Points, pairs: Edges) -> Array:
    """Distances of the given pairs (E, 2) of points."""
    unit = Unit.of(points)
    first, second = unit.points[pairs[:, 0]], unit.points[pairs[:, 1]]
    if unit.complete:
        difference = first - second
        squares = np.einsum("ed,ed->e", difference, difference)
    else:
        squares = squared_differences(first, second, unit.mismatch)
    return unit.restored(np.sqrt(squares))


def distances_between(rows: Points, points: Points) -> Array:
    """Distances of all pairs of two tables with the same columns, (n, m).

    Distances of a row do not depend on the other rows, to the last bit.
    """
    unit = Unit.of(np.concatenate([rows, points]))
    scaled_rows, others = unit.points[: len(rows)], unit.points[len(rows) :]
    return unit.restored(np.sqrt(squares_between(scaled_rows, others, unit.mismatch)))


@final
@dataclass(frozen=True, eq=False)
class Distances:
    """Distances of any rows to fixed points, as by :func:`distances_between`."""

    points: Points  # (m, D)

    def of(self, rows: Points) -> Array:
        """Distances of rows (n, D) to all points, (n, m)."""
        unit, largest = self._unit
        if not np.abs(rows).max() < largest:  # or a number is missing
            return distances_between(rows, self.points)
        scaled = np.ldexp(rows, -unit.exponent)
        return unit.restored(np.sqrt(squares_between(scaled, unit.points, 0.0)))

    @cached_property
    def _unit(self) -> tuple[Unit, float]:
        """The points in their unit, and the bound of rows with the same unit."""
        unit = Unit.of(self.points)
        has_unit = unit.complete and bool(unit.points.any())
        return unit, float(np.ldexp(1.0, unit.exponent)) if has_unit else 0.0


def pairs_within(points: Points, radius: float) -> Edges:
    """Pairs of points within a distance of ``radius``, (E, 2)."""
    unit = Unit.of(points)
    with np.errstate(over="ignore"):
        reach = float(np.ldexp(radius, -unit.exponent)) * (1 + 1e-12)
    if unit.complete:
        result = KDTree(unit.points).query_pairs(reach, output_type="ndarray")
        pairs = result.astype(np.intp)
    else:
        pairs = pairs_of_incomplete(unit.points, min(reach, 1e100), unit.mismatch)
    return pairs[pair_distances(points, pairs) <= radius]


def median_distance(points: Points) -> float:
    """The median distance between different points, of about 2,000 at most."""
    return typical(all_distances(points[:: -(-len(points) // 2000)]))


def typical(apart: Array) -> float:
    """The median of positive distances; raises an error without any."""
    if not apart.any():
        raise InvalidInput(
            "lengthscale: all points coincide, so their distances suggest no length "
            "scale; give a number"
        )
    return float(np.median(apart[apart > 0]))


def gaussian(apart: Array, lengthscale: float) -> Array:
    """Gaussian similarities exp(−d²/2Λ²) of distances d, without overflow."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(-0.5 * (apart / lengthscale) ** 2))


def nearest_neighbours(points: Points, count: int) -> Sparse:
    """A sparse matrix (n, n) with ones at the nearest neighbours of each point."""
    unit = Unit.of(points)
    if not unit.complete:
        neighbours = nearest_of_incomplete(unit.points, count, unit.mismatch)
    elif points.shape[1] <= _TREE_FEATURES or len(points) <= _TREE_POINTS:
        neighbours = _by_tree(unit.points, count)
    else:
        neighbours = _by_products(unit.points, count)
    n_points = len(points)
    starts = np.arange(n_points + 1) * count
    return sp.csr_array(
        (np.ones(neighbours.size), neighbours.ravel(), starts),
        shape=(n_points, n_points),
    )


def _by_tree(points: Points, count: int) -> NDArray[np.intp]:
    query = partial(KDTree(points).query, points, count + 1)
    _, nearest = with_thread_fallback(partial(query, workers=-1), query)
    is_self = nearest == np.arange(len(points))[:, None]
    is_self[~is_self.any(axis=1), -1] = True  # for many duplicates: drop the last
    return np.asarray(nearest[~is_self].reshape(len(points), count))


def _by_products(points: Points, count: int) -> NDArray[np.intp]:
    """Neighbours by matrix products, or by differences if rounding matters."""
    from sklearn.neighbors import NearestNeighbors  # which brings all linear models

    centred = Components.single(len(points)).centred(points)
    distances, nearest = NearestNeighbors(n_neighbors=count).fit(centred).kneighbors()
    rounding = _ROUNDING * points.shape[1] * float(np.abs(centred).max()) ** 2
    for doubtful in np.flatnonzero(distances[:, 0] ** 2 <= rounding):
        exact = cdist(points[[doubtful]], points)[0]
        exact[doubtful] = np.inf
        nearest[doubtful] = np.argsort(exact, kind="stable")[:count]
    return np.asarray(nearest)


@final
@dataclass(frozen=True, eq=False)
class Unit:
    """Points divided by a power of two, so that squares do not overflow."""

    points: Points  # (n, D): between −1 and 1, NaN where a number is missing
    exponent: int  # of the power of two
    complete: bool  # whether no number is missing

    @classmethod
    def of(cls, points: Points) -> Unit:
        """Divide points so that the largest number is at most one."""
        complete = not np.isnan(points).any()
        # the distance of a missing number is one
        sizes = np.abs(points) if complete else np.fmax(np.abs(points), 1.0)
        largest = sizes.max()
        _, exponent = np.frexp(largest)
        return cls(np.ldexp(points, -exponent), int(exponent), complete)

    @property
    def mismatch(self) -> float:
        """The square of 1, the distance between a number and a missing one."""
        return float(np.ldexp(1.0, -2 * self.exponent))

    def restored(self, distances: Array) -> Array:
        """Distances in the original units."""
        return np.asarray(np.ldexp(distances, self.exponent))


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
    return np.asarray((absent[first] != absent[second]).any(axis=1))


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
) -> SimilarityGraph:
    """Make a graph that joins each point to its nearest neighbours.

    An edge needs one point to be among the nearest of the other. Among points at
    equal distances, as in tables of whole numbers, the order of the rows decides.

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

    Returns
    -------
    Graph
        An undirected graph with n nodes.

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
    nearest = nearest_neighbours(points, count)
    graph = SimilarityGraph(nearest.maximum(nearest.T), "knn", {"n_neighbors": count})
    if weights == "gaussian":
        distances = pair_distances(points, graph.edges)
        if lengthscale is None:
            lengthscale = float(np.median(distances))
        scale = read_positive(lengthscale, "lengthscale")
        graph = SimilarityGraph(
            symmetric(graph.edges, gaussian(distances, scale), len(points)),
            "knn",
            {"n_neighbors": count, "lengthscale": scale},
        )
    graph = within_patterns(graph, points) if same_pattern else graph
    graph.again = partial(
        knn_graph,
        points,
        weights=weights,
        lengthscale=lengthscale,
        same_pattern=same_pattern,
    )
    return graph


def symmetric(pairs: Edges, similarities: Array, n_nodes: int) -> Sparse:
    """The matrix of similarities of pairs (n, n'), n < n'."""
    upper = sp.coo_array((similarities, tuple(pairs.T)), shape=(n_nodes, n_nodes))
    return sp.csr_array(upper + upper.T)
