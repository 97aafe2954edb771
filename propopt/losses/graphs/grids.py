"""Graphs on regular grids, without stored edges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Points, Sparse
from propopt.base.checks import (
    read_array,
    read_count,
    read_nonnegative,
    read_positive,
)
from propopt.base.errors import InvalidInput
from propopt.base.resources import require_memory
from propopt.base.suggestions import suggests_arguments
from propopt.losses.graphs.distances import gaussian, median_distance
from propopt.losses.graphs.points import PAIR_BYTES, Graph, box_neighbours
from propopt.losses.linear_algebra import Components
from propopt.losses.maps import ImplicitOverPoints, LinearMap, OverPoints
from propopt.losses.operators import LatticeLaplacian, ProductKernelLaplacian
from propopt.tables.frames import named_by, read_table


# ---- Graphs of points on grids, with the Laplacian as an operator


@final
class LatticeGraph(Graph):
    """Graph of a grid of points, each joined to its neighbours along the axes.

    Points are in row-major order. Squared losses are solved by cosine transforms, in
    time N log N.

    Parameters
    ----------
    box : sequence of int
        Number of points along each axis.
    weights : sequence of float, optional
        Similarity ≥ 0 of neighbours along each axis; 1 by default. An axis of weight 0
        has no edges.

    Examples
    --------
    >>> import propopt as po
    >>> po.graphs.LatticeGraph((100, 100, 100))
    <lattice graph: 1000000 nodes, 2970000 edges>
    >>> po.graphs.LatticeGraph((7, 24), weights=(0.5, 1))
    <lattice graph: 168 nodes, 305 edges>
    """

    kind = "lattice"
    lattice: LatticeLaplacian

    def __init__(
        self, box: Sequence[int], weights: Sequence[float] | None = None
    ) -> None:
        if len(box) == 0:
            raise InvalidInput("box: expected the number of points along each axis")
        self.box: tuple[int, ...] = tuple(read_count(n, "box") for n in box)
        one = [1.0] * len(box)
        strengths = (
            one
            if weights is None
            else [read_nonnegative(w, "weights") for w in weights]
        )
        if len(strengths) != len(box):
            raise InvalidInput(
                f"weights: expected one for each of {len(box)} axes, got "
                f"{len(strengths)}"
            )
        self.lattice = LatticeLaplacian(self.box, tuple(strengths))
        self.parameters: dict[str, float] = {}

    @property
    def n_nodes(self) -> int:
        return math.prod(self.box)

    @property
    def n_edges(self) -> int:
        return sum(count for _, count in self._edges_by_axis)

    @property
    def total(self) -> float:
        return 2.0 * sum(weight * count for weight, count in self._edges_by_axis)

    @property
    def _edges_by_axis(self) -> list[tuple[float, int]]:
        """Similarities along axes with their numbers of edges."""
        return [
            (weight, self.n_nodes // self.box[axis] * (self.box[axis] - 1))
            for axis, weight in self.lattice.axes
        ]

    @cached_property
    def components(self) -> Components:
        coupled = {axis for axis, _ in self.lattice.axes}
        parts = _parts_of_grid(
            np.zeros(n, np.intp) if axis in coupled else np.arange(n)
            for axis, n in enumerate(self.box)
        )
        return parts if parts.labels[-1] else Components.single(self.n_nodes)

    @cached_property
    def similarities(self) -> Sparse:
        n_bytes = 176.0 * self.n_nodes
        require_memory(n_bytes, "the lattice as a matrix", "use solver='krylov'")
        return box_neighbours(self.lattice)

    @cached_property
    def differences(self) -> LinearMap:
        return ImplicitOverPoints(self.lattice, self._explicit, self.components)

    def _explicit(self) -> OverPoints:
        require_memory(100.0 * self.n_edges, "the list of edges", "use solver='krylov'")
        return OverPoints(self.root, self.components, self.lattice)


@final
class GridGaussianGraph(Graph):
    """Graph of all points of a product grid with Gaussian similarities.

    exp(−‖x − x'‖²/2Λ²) is a product over the axes, so that products with the Laplacian
    cost O(N Σ n_d), while a stored graph takes N² numbers. Points are in row-major
    order. A factor below 10^(−308/D) counts as zero, so that products of D factors do
    not underflow, and edges and components follow from the axes.

    Parameters
    ----------
    axes : sequence of arrays (n_d,)
        Coordinates along each axis.
    lengthscale : float
        The lengthscale Λ > 0.

    """

    kind = "grid gaussian"

    def __init__(self, axes: Sequence[object], lengthscale: float) -> None:
        if len(axes) == 0:
            raise InvalidInput("axes: expected the coordinates along each axis")
        self.axes: list[Array] = [read_array(axis, "axes", ndim=1) for axis in axes]
        self.lengthscale: float = read_positive(lengthscale, "lengthscale")
        self.parameters: dict[str, float] = {"lengthscale": self.lengthscale}

    @property
    def n_nodes(self) -> int:
        return math.prod(len(axis) for axis in self.axes)

    @property
    def n_edges(self) -> int:
        similar = [int(np.count_nonzero(k)) for k in self._laplacian.kernels]
        return (math.prod(similar) - self.n_nodes) // 2

    @property
    def total(self) -> float:
        return float(self._laplacian.degrees.sum())

    @cached_property
    def components(self) -> Components:
        return _parts_of_grid(map(_parts, self.axes, self._laplacian.kernels))

    @cached_property
    def similarities(self) -> Sparse:
        require_memory(PAIR_BYTES * self.n_nodes**2, "a complete graph", _IMPLICIT)
        kernel: Array = np.ones((1, 1), dtype=np.float64)
        for factor in self._laplacian.kernels:
            kernel = np.asarray(np.kron(kernel, factor), dtype=np.float64)
        np.fill_diagonal(kernel, 0.0)
        return sp.csr_array(kernel)

    @cached_property
    def differences(self) -> LinearMap:
        return ImplicitOverPoints(self._laplacian, self._explicit, self.components)

    @cached_property
    def _laplacian(self) -> ProductKernelLaplacian:
        smallest = np.finfo(float).tiny ** (1.0 / len(self.axes))
        apart = (np.subtract.outer(axis, axis) for axis in self.axes)
        factors = (gaussian(distances, self.lengthscale) for distances in apart)
        kernels = (np.where(k >= smallest, k, 0.0) for k in factors)
        return ProductKernelLaplacian(tuple(kernels))

    def _explicit(self) -> OverPoints:
        return OverPoints(self.root, self.components)


@suggests_arguments
@named_by("points")
def grid_gaussian_graph(
    X: object, lengthscale: float | None = None
) -> GridGaussianGraph:
    """Make the complete Gaussian graph of a product grid, without storing it.

    Parameters
    ----------
    X : array or DataFrame (n, D)
        All points of a product grid, the last coordinate fastest, as from
        :func:`propopt.graphs.grid`.
    lengthscale : float, optional
        Λ > 0; by default the median distance between different points.

    Returns
    -------
    GridGaussianGraph
        It has n nodes, and stores only the coordinates along each axis.

    Raises
    ------
    InvalidInput
        If the points are not such a grid; ``gaussian_graph`` takes any points.

    Examples
    --------
    >>> import propopt as po
    >>> X = po.graphs.grid(-5, 5, per_dimension=100, dimensions=2)
    >>> po.graphs.grid_gaussian_graph(X, lengthscale=0.5)
    <grid gaussian graph: 10000 nodes, 49995000 edges, lengthscale=0.5>
    """
    points, _ = read_table(X, "X")
    axes = [np.unique(column) for column in points.T]
    expected = np.prod([len(axis) for axis in axes])
    if expected != len(points) or not np.array_equal(_product(axes), points):
        raise InvalidInput(
            "X: expected all points of a product grid, last coordinate fastest; use "
            "gaussian_graph for other points"
        )
    scale = median_distance(points) if lengthscale is None else lengthscale
    return GridGaussianGraph(axes, scale)


def _parts_of_grid(parts: Iterable[NDArray[np.intp]]) -> Components:
    """The parts of a grid, products of the parts of its axes."""
    labels = np.zeros(1, dtype=np.intp)
    for along in parts:
        labels = np.add.outer(labels * (along.max() + 1), along).ravel()
    return Components(labels)


def _parts(axis: Array, kernel: Array) -> NDArray[np.intp]:
    """Parts of an axis, split between consecutive points without similarity."""
    order = np.argsort(axis)
    apart = kernel[order[1:], order[:-1]] == 0.0
    parts = np.zeros(len(axis), dtype=np.intp)
    parts[order[1:]] = np.cumsum(apart)
    return parts


def _product(axes: list[Array]) -> Array:
    """All points of a grid in row-major order, (N, D)."""
    columns = np.meshgrid(*axes, indexing="ij")
    return np.column_stack([column.ravel() for column in columns])


_IMPLICIT = "use a solver that needs no list of edges: 'spectral' or 'krylov'"


# ---- Regular grids of points


@suggests_arguments
def grid(
    low: float,
    high: float,
    per_dimension: int,
    dimensions: int,
    first: int | None = None,
) -> Points:
    """Make the points of a product grid on [low, high]^D, last coordinate fastest.

    Parameters
    ----------
    low, high : float
        The end points of every axis; both belong to the grid.
    per_dimension : int
        Points on every axis, at least 2.
    dimensions : int
        The number D of axes.
    first : int, optional
        The number of rows from the start to build; all by default.

    Returns
    -------
    array (``per_dimension`` ** D or ``first``, D)
        The points.

    Raises
    ------
    InvalidInput
        If the interval is empty or not finite, a number is too small, or ``first``
        exceeds the size of the grid.
    Refused
        If the points do not fit into memory.

    Examples
    --------
    >>> from propopt.losses.graphs import grid
    >>> grid(-1, 1, per_dimension=2, dimensions=2)
    array([[-1., -1.],
           [-1.,  1.],
           [ 1., -1.],
           [ 1.,  1.]])
    >>> grid(-5, 5, per_dimension=5, dimensions=3, first=100).shape
    (100, 3)
    """
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InvalidInput(f"grid: expected finite low < high, got {low!r}, {high!r}")
    if not np.isfinite(float(high) - float(low)):
        raise InvalidInput("grid: low and high are too far apart")
    count = grid_size(per_dimension, dimensions, first)
    n_bytes = 8.0 * (count * (3 * dimensions + 1) + per_dimension)
    require_memory(n_bytes, f"a grid of {count} points", "give fewer, or `first`")
    indices = np.unravel_index(np.arange(count), (per_dimension,) * dimensions)
    return np.linspace(low, high, per_dimension)[np.stack(indices, axis=1)]


def grid_size(per_dimension: int, dimensions: int, first: int | None = None) -> int:
    """The number of points of :func:`grid`, without building the grid."""
    if read_count(per_dimension, "per_dimension") < 2:
        raise InvalidInput(
            "per_dimension: expected at least 2 points, the ends of an axis"
        )
    axes = read_count(dimensions, "dimensions")
    most = int(np.iinfo(np.intp).max)
    if axes * np.log2(per_dimension) > 64 or per_dimension**axes > most:
        raise InvalidInput(
            f"grid: {per_dimension}^{axes} points are too many; expected at most {most}"
        )
    total: int = per_dimension**axes
    count = total if first is None else read_count(first, "first")
    if count > total:
        raise InvalidInput(f"first: expected at most the {total} points, got {count}")
    return count
