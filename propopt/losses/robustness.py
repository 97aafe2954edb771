"""Robustness, smoothness and sparsity: losses of differences and of sizes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Literal, final

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Edges, Mask
from propopt.base.checks import read_array, read_only, refuse_overflow
from propopt.base.errors import InvalidInput
from propopt.base.resources import require_memory
from propopt.losses.algebra import PropertyLoss
from propopt.losses.graphs.points import Graph, SimilarityGraph, read_graph, symmetric
from propopt.losses.linear_algebra import (
    Components,
    centred,
    incidence,
    is_symmetric,
)
from propopt.losses.maps import (
    Absolute,
    GroupMax,
    Identity,
    LinearMap,
    OverEntries,
    OverFeatures,
    OverPoints,
    Penalty,
    Squared,
)
from propopt.tables.frames import Labels, differ, read_table
from propopt.tables.imported import read_attributions


@final
class PairwiseRobustness(PropertyLoss):
    """Robustness: squared differences between the attributions of similar rows.

    .. math::

        Σ_{n,n'} ‖w_n − w_n'‖² S_nn'

    over ordered pairs (Tadesse et al. 2024, Eq. 3), equal to 2 tr(Wᵀ L W) with the
    Laplacian L of the similarities S. An ``offset`` G, such as main effects, is
    subtracted first:

    .. math::

        Σ_{n,n'} ‖(w_n − g_n) − (w_n' − g_n')‖² S_nn'

    so that differences which follow from the values of single columns cost nothing.

    Parameters
    ----------
    graph : Graph
        The similarities S of the N rows.
    offset : array, DataFrame, Explanation or MainEffects (N, D), optional
        The offset G, such as :func:`propopt.explainers.main_effects`; by default zero.
    name : str
        The name of the loss in weights, results and CSV columns.

    Raises
    ------
    InvalidInput
        If ``offset`` is not a finite table with the rows of the graph.

    See Also
    --------
    propopt.graphs.knn_graph : A graph of nearest neighbours.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> W = np.array([[0.0], [1.0], [3.0]])
    >>> round(po.PairwiseRobustness(po.graphs.chain_graph(3)).value(W), 9)
    10.0
    >>> po.PairwiseRobustness(po.graphs.chain_graph(3), offset=W).value(W)
    0.0
    """

    share_label: ClassVar[str] = "differences removed"
    penalty: Penalty = Squared()
    n_points: int
    n_features: int | None
    labels: Labels
    offset: Attributions | None
    graph: Graph

    def __init__(
        self,
        graph: Graph,
        *,
        offset: object = None,
        name: str = "pairwise_robustness",
    ) -> None:
        self.graph = read_graph(graph)
        self.name = name
        self.n_points = graph.n_nodes
        self.labels = Labels(points=graph.names)
        if offset is not None:
            imported = read_attributions(
                offset, f"{name}: offset", self.labels, table_name="the graph"
            )
            names = imported.labels
            self.labels = Labels(graph.names or names.points, names.features)
            G = imported.values
            refuse_overflow(G, f"{name}: offset")
            self.check_shape(G.shape)
            self.offset = read_only(np.array(G))
            self.n_features = G.shape[1]

    @cached_property
    def map(self) -> LinearMap:
        return self.graph.differences

    @cached_property
    def target(self) -> Array | float:
        return 0.0 if self.offset is None else self.map(self.offset)

    @cached_property
    def has_target(self) -> bool:
        return self.offset is not None

    @cached_property
    def value_at_zero(self) -> float:
        return 0.0 if self.offset is None else self.map.energy(self.offset)

    def residual(self, W: Any) -> Any:
        return self.map(self._without_offset(W))

    def value_at(self, W: Attributions) -> float:
        return self.map.energy(self._without_offset(W))

    def gradient_at(self, W: Attributions) -> Attributions:
        slope = self.map.gradient(self._without_offset(W))
        slope *= 2.0
        return slope

    def _without_offset(self, W: Any) -> Any:
        """W − G; constants of components are subtracted first for accuracy."""
        if self.offset is None:
            return W
        if not isinstance(W, np.ndarray):
            return W - self.offset
        parts = self.graph.components
        return centred(W, parts) - centred(self.offset, parts)

    def arrays(self, shape: tuple[int, int]) -> Iterator[tuple[str, NDArray[Any]]]:
        del shape
        if isinstance(self.map, OverPoints):
            yield from self.graph.arrays("rows")
            if self.offset is not None:
                yield "offset", self.offset


@final
class KernelRobustness(PropertyLoss):
    """Robustness by the inverse of a kernel matrix K, as in Gaussian processes.

    The loss is 2 tr(Wᵀ Σ⁻¹ W) for the precision Σ⁻¹ of the kernel (Tadesse et al. 2024,
    Eq. 9). With one constant per feature marginalised out, Σ⁻¹ = K⁻¹ −
    K⁻¹11ᵀK⁻¹/(1ᵀK⁻¹1): a positive semidefinite matrix with zero row sums, that is, the
    Laplacian of weights −(Σ⁻¹)_nn' of which some are negative. (The paper also writes
    the similarities as −K⁻¹; their Laplacian is indefinite in general, so that form is
    not offered.)

    Parameters
    ----------
    kernel_matrix : array (N, N)
        The kernel matrix K, symmetric and positive definite.
    mean : {"per_feature", "none"}
        ``"none"`` uses K⁻¹ itself: attributions shrink to zero, not to a constant.
    name : str
        The name of the loss in weights, results and CSV columns.

    Raises
    ------
    InvalidInput
        If K is not positive definite to rounding.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> loss = po.losses.KernelRobustness(np.eye(2) + 1.0)
    >>> round(loss.value(np.array([[0.0], [1.0]])), 6)
    1.0
    """

    share_label: ClassVar[str] = "differences removed"
    penalty: Penalty = Squared()
    n_points: int

    def __init__(
        self,
        kernel_matrix: object,
        *,
        mean: Literal["per_feature", "none"] = "per_feature",
        name: str = "kernel_robustness",
    ) -> None:
        if mean not in ("per_feature", "none"):
            raise InvalidInput(
                f"mean: expected 'per_feature' or 'none', got {mean!r}; one mean of "
                "all features would join columns, and this loss is a map of each alone"
            )
        kernel = read_array(kernel_matrix, "kernel_matrix", ndim=2)
        if not is_symmetric(kernel):
            raise InvalidInput(
                f"kernel_matrix: expected a symmetric matrix, got shape {kernel.shape}"
            )
        self.kernel_matrix = kernel
        self.mean = mean
        self.name = name
        self.n_points = len(kernel)
        self._factor = _cholesky(kernel)

    @cached_property
    def map(self) -> LinearMap:
        # K = R Rᵀ. 2K⁻¹ = AᵀA for A = √2 R⁻¹; Σ⁻¹ = R⁻ᵀ(I − vvᵀ)R⁻¹ for v = R⁻¹1/‖R⁻¹1‖
        inverse = la.solve_triangular(
            self._factor, np.eye(len(self._factor)), lower=True
        )
        if self.mean == "none":
            return OverPoints(np.sqrt(2.0) * inverse)
        v = inverse.sum(axis=1)
        v /= np.linalg.norm(v)
        inverse = inverse - np.outer(v, v @ inverse)
        points = Components.single(len(v))
        return OverPoints(np.sqrt(2.0) * points.centred(inverse.T).T, points)


@final
class MaxDifferenceRobustness(PropertyLoss):
    """Robustness: the largest difference of attributions between neighbours.

    After Tadesse et al. 2024, Eq. 13.

    ``aggregate="max"`` is max_e ‖w_n − w_n'‖² over the edges e of a graph
    (weights are ignored); ``"sum"`` is Σ_n max_n' ‖w_n − w_n'‖² over the
    neighbours n' of each point. The paper states both.

    If it is minimised, ``explanation.details["edge_weights.<name>"]`` holds weights of
    the edges, nonzero only for the largest differences, with which pairwise robustness
    gives the same attributions.

    Parameters
    ----------
    graph : Graph
        The graph with the edges between compared points.
    aggregate : {"max", "sum"}
        The maximum over all edges, or the sum of maxima per point.
    name : str
        The name of the loss in weights, results and CSV columns.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> W = np.array([[0.0], [1.0], [3.0]])
    >>> po.losses.MaxDifferenceRobustness(po.graphs.chain_graph(3)).value(W)
    4.0
    >>> po.losses.MaxDifferenceRobustness(
    ...     po.graphs.chain_graph(3), aggregate="sum"
    ... ).value(W)
    9.0
    """

    share_label: ClassVar[str] = "differences removed"
    n_points: int

    def __init__(
        self,
        graph: Graph,
        aggregate: Literal["max", "sum"] = "max",
        *,
        name: str = "max_difference_robustness",
    ) -> None:
        if aggregate not in ("max", "sum"):
            raise InvalidInput(f"aggregate: expected 'max' or 'sum', got {aggregate!r}")
        if read_graph(graph).n_edges == 0:
            raise InvalidInput(
                "graph: expected at least one edge, got a graph without edges"
            )
        self.graph = graph
        self.aggregate = aggregate
        self.name = name
        self.n_points = graph.n_nodes
        self.labels: Labels = Labels(points=graph.names)

    @cached_property
    def map(self) -> LinearMap:
        rows = self.graph.incidence
        if self.aggregate == "sum":
            rows = incidence(_directed_edges(self.graph), self.graph.n_nodes)
        return OverPoints(rows, self.graph.components)

    @cached_property
    def penalty(self) -> Penalty:
        n_edges = self.graph.n_edges
        if self.aggregate == "max":
            return GroupMax(np.zeros(1, dtype=np.intp), n_edges)
        source = _directed_edges(self.graph)[:, 0]
        first_of_each_point = np.flatnonzero(np.diff(source, prepend=-1))
        return GroupMax(first_of_each_point, 2 * n_edges)


def _directed_edges(graph: Graph) -> Edges:
    """Every ordered pair (n, n') of neighbours, sorted by n."""
    both = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    return both[np.lexsort((both[:, 1], both[:, 0]))]


def _cholesky(kernel: Array) -> Array:
    try:
        return la.cholesky(kernel, lower=True)
    except la.LinAlgError:
        smallest = la.eigvalsh(kernel, subset_by_index=[0, 0])[0]
        nugget = max(1e-8, -2.0 * smallest)  # a threshold kernel is far from definite
        raise InvalidInput(
            "kernel_matrix: expected a positive definite matrix; its smallest "
            f"eigenvalue is {smallest:.3g}. Add a nugget: "
            f"K + {nugget:.2g} * np.eye(len(K))"
        ) from None


# ---- Robustness over shared features, such as words of two documents


@final
class SharedRobustness(PropertyLoss):
    """Robustness over the features that both of two similar rows have, such as words.

    .. math::

        Σ_{n,n'} S_nn' Σ_{j in both} (w_nj − w_n'j)²

    It generalises pairwise robustness to points with different features, such as
    the words of documents: a word is compared between documents that contain it, and a
    word in only one of two costs nothing. With all features present it is
    :class:`PairwiseRobustness`. Each feature has a separate graph on the points that
    have it: the loss is twice the quadratic form of the Laplacian of a sparse graph on
    the present entries (n, j), and ignores the others. Absent features get exactly 0 if
    the other losses are minimal at zero there, as gradient matching of a zero target.

    Parameters
    ----------
    graph : Graph
        The graph of similarities S ≥ 0 of the N points.
    present : array or DataFrame (N, D)
        Nonzero where a point has a feature, such as counts of words.
    name : str
        The name of the loss in weights, results and CSV columns.

    Raises
    ------
    InvalidInput
        If ``present`` does not have one row per point, or S has negative entries, which
        could make the loss unbounded below.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> W = np.array([[0.0, 5.0], [1.0, 0.0], [3.0, 2.0]])
    >>> counts = np.array([[1, 1], [2, 0], [1, 1]])
    >>> round(po.losses.SharedRobustness(po.graphs.chain_graph(3), counts).value(W), 9)
    10.0
    """

    share_label: ClassVar[str] = "differences removed"
    penalty: Penalty = Squared()
    n_points: int
    n_features: int
    labels: Labels

    def __init__(
        self, graph: Graph, present: object, *, name: str = "shared_robustness"
    ) -> None:
        counts, names = read_table(present, "present")
        if len(counts) != read_graph(graph).n_nodes:
            raise InvalidInput(
                f"present: expected a mask with a row for each of the {graph.n_nodes} "
                f"points of the graph, got {len(counts)}"
            )
        if differ(graph.names, names.points):
            raise InvalidInput(
                "present: its rows have other names, or another order, than the points "
                "of the graph"
            )
        self.graph = graph
        self.present: Mask = counts != 0.0
        self.name = name
        self.n_points, self.n_features = counts.shape
        self.labels = Labels(names.points or graph.names, names.features)
        if (graph.similarities.data < 0.0).any():
            raise InvalidInput(
                "graph: has negative similarities, so the loss over shared features "
                "could be unbounded below; give similarities >= 0"
            )

    @cached_property
    def entry_graph(self) -> SimilarityGraph:
        """The graph whose nodes are the P attributions of features that rows have."""
        ends, similarities = self._pairs
        matrix = symmetric(ends, similarities, len(self._entries))
        return SimilarityGraph(matrix, "shared")

    @cached_property
    def map(self) -> OverEntries:
        graph = self.entry_graph
        root = sp.csr_array(graph.root)
        return OverEntries(root, self._entries, self.present.shape, graph.components)

    @cached_property
    def _entries(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.present)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Pairs of compared entries, (E, 2), and their similarities."""
        edges = self.graph.edges
        has = sp.csr_array(self.present.astype(np.float64))
        first, second = (has[nodes] for nodes in edges.T)
        n_bytes = 100.0 * float(min(first.nnz, second.nnz))
        require_memory(n_bytes, "the pairs of shared features", "use fewer neighbours")
        edge, feature = sp.csr_array(first.multiply(second)).tocoo().coords
        starts = edges[edge] * self.n_features
        indices = starts + np.asarray(feature, np.intp)[:, None]
        return np.searchsorted(self._entries, indices), self.graph.strengths[edge]

    def arrays(self, shape: tuple[int, int]) -> Iterator[tuple[str, NDArray[Any]]]:
        del shape
        for key, array in self.entry_graph.arrays("entries"):
            yield key, self.map.entries[array] if key == "entries" else array


# ---- Simplicity: smoothness over features, and sparsity


@final
class Smoothness(PropertyLoss):
    """Smoothness: squared differences between the attributions of similar features.

    .. math::

        Σ_n Σ_{d,d'} (w_nd − w_nd')² S_dd'

    over ordered pairs (Tadesse et al. 2024, Eq. 4), equal to 2 tr(W L Wᵀ) with the
    Laplacian L of the similarities S.

    Parameters
    ----------
    graph : Graph
        The similarities S of the D features.
    name : str
        The name of the loss in weights, results and CSV columns.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> round(
    ...     po.Smoothness(po.graphs.chain_graph(3)).value(np.array([[0.0, 1.0, 3.0]])),
    ...     9,
    ... )
    10.0
    """

    share_label: ClassVar[str] = "feature differences removed"
    penalty: Penalty = Squared()
    n_features: int
    labels: Labels
    graph: Graph

    def __init__(self, graph: Graph, *, name: str = "smoothness") -> None:
        self.graph = read_graph(graph)
        self.name = name
        self.n_features = graph.n_nodes
        names = graph.names
        self.labels = Labels(features=None if names is None else tuple(map(str, names)))

    @cached_property
    def map(self) -> LinearMap:
        graph = self.graph
        return OverFeatures(graph.root, graph.components, graph.lattice)

    def arrays(self, shape: tuple[int, int]) -> Iterator[tuple[str, NDArray[Any]]]:
        del shape
        yield from self.graph.arrays("columns")


@final
class Sparsity(PropertyLoss):
    """Sparsity: the sum of absolute attributions, which makes many of them zero.

    .. math::

        Σ_n ‖w_n‖₁

    (Tadesse et al. 2024, Eq. 14).

    Parameters
    ----------
    name : str
        The name of the loss in weights, results and CSV columns.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> po.Sparsity().value(np.array([[1.0, -2.0]]))
    3.0
    """

    map = Identity()
    share_label: ClassVar[str] = "size removed"
    penalty: Penalty = Absolute()

    def __init__(self, *, name: str = "sparsity") -> None:
        self.name = name
