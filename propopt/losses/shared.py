"""Robustness over what points share: words that stand in both of two documents."""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt._typing import Sparse, Truths
from propopt.errors import InvalidInput
from propopt.graphs.base import Graph, read_graph
from propopt.graphs.stored import SimilarityGraph
from propopt.losses.base import PropertyLoss
from propopt.maps import OverEntries
from propopt.memory import require_memory
from propopt.penalties import Penalty, Squared
from propopt.tables.names import Labels, differ, read_table


@final
class SharedRobustness(PropertyLoss):
    """Σ_{n,n'} S_nn' Σ_j (w_nj − w_n'j)² over the features j that both points have.

    What pairwise robustness is where points have features of their own, such as
    documents their words: a word is compared between the documents that it stands in,
    and a word that only one of two has costs nothing. With all features present it is
    :class:`PairwiseRobustness`. Each feature has a graph of its own, on the points
    that have it: the loss is twice the quadratic form of the Laplacian of a sparse
    graph on the entries (n, j) that are present, and does not see the others. Under
    losses that are least at zero there, as gradient matching of a target that is zero,
    features that a point does not have get exactly 0.

    Parameters
    ----------
    graph : Graph
        Similarities S ≥ 0 of the N points.
    present : array or DataFrame (N, D)
        Which features a point has: all that is not zero, such as counts of words.
    name : str
        What the loss is called in weights, results and CSV columns.

    Raises
    ------
    InvalidInput
        If ``present`` has not one row for each point, or S has negative entries: then
        the loss could be unbounded below, whatever S does for all features.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> W = np.array([[0.0, 5.0], [1.0, 0.0], [3.0, 2.0]])
    >>> counts = np.array([[1, 1], [2, 0], [1, 1]])
    >>> round(po.SharedRobustness(po.chain_graph(3), counts).value(W), 9)
    10.0
    """

    def __init__(
        self, graph: Graph, present: object, *, name: str = "shared_robustness"
    ) -> None:
        counts, names = read_table(present, "present")
        if len(counts) != read_graph(graph).n_nodes:
            raise InvalidInput(
                f"present: expected a row for each of the {graph.n_nodes} points of "
                f"the graph, got {len(counts)}"
            )
        if differ(graph.names, names.points):
            raise InvalidInput(
                "present: its rows have other names, or another order, than the points "
                "of the graph"
            )
        self.graph = graph
        self.present: Truths = counts != 0.0
        self.name = name
        self._labels = Labels(names.points or graph.names, names.features)
        _refuse_negative(graph)

    @cached_property
    def entry_graph(self) -> SimilarityGraph:
        """The graph of the P entries that are present, row by row."""
        ends, similarities = self._pairs
        size = len(self._entries)
        upper = sp.coo_array((similarities, tuple(ends.T)), shape=(size, size))
        return SimilarityGraph(sp.csr_array(upper + upper.T), "shared")

    @cached_property
    def map(self) -> OverEntries:
        graph = self.entry_graph
        root = sp.csr_array(graph.root)
        return OverEntries(root, self._entries, self.present.shape, graph.components)

    @property
    def penalty(self) -> Penalty:
        return Squared()

    @property
    def n_points(self) -> int:
        return int(self.present.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.present.shape[1])

    @property
    def labels(self) -> Labels:
        return self._labels

    @cached_property
    def _entries(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.present)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Pairs of entries that are compared, (E, 2), and their similarities."""
        upper = sp.triu(self.graph.similarities, k=1).tocoo()
        has = sp.csr_array(self.present.astype(np.float64))
        first, second = (has[nodes] for nodes in upper.coords)
        n_bytes = 100.0 * float(min(first.nnz, second.nnz))
        require_memory(n_bytes, "the pairs of shared features", "use fewer neighbours")
        both = sp.csr_array(first.multiply(second)).tocoo()
        edge, feature = both.coords
        starts = np.column_stack(upper.coords).astype(np.intp)[edge] * self.n_features
        places = starts + np.asarray(feature, np.intp)[:, None]
        return np.searchsorted(self._entries, places), upper.data[edge]


def _refuse_negative(graph: Graph) -> None:
    similarities: Sparse = graph.similarities
    if (similarities.data < 0.0).any():
        raise InvalidInput(
            "graph: has negative similarities, and over features that points share the "
            "loss could be unbounded below; give similarities >= 0"
        )
