"""Which numbers are missing in which rows, and the edges between rows that differ.

In such a column one of both rows has a slope and the other an effect, which are numbers
of different kinds: a graph that has many of these edges makes them alike.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.errors import InvalidInput
from propopt.graphs.base import Graph
from propopt.graphs.stored import SimilarityGraph
from propopt.tables.names import read_points


def share_across_patterns(graph: Graph, X: object) -> float:
    """The share of edges between rows in which other columns are missing.

    Parameters
    ----------
    graph : Graph
        Of the rows of X.
    X : array or DataFrame (n, D)
        Numbers, of which some are missing; coordinates of
        :meth:`propopt.TableSchema.coordinates` will do.

    Returns
    -------
    float
        Between 0 and 1; 0 where there are no edges.

    Raises
    ------
    InvalidInput
        If the rows are not those of the graph.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [0.0, np.nan]])
    >>> po.graphs.share_across_patterns(po.complete_graph(3), X)
    0.6666666666666666
    """
    if graph.n_edges == 0:
        return 0.0
    return float(_crosses(graph, X).mean())


def within_patterns(graph: Graph, X: object) -> SimilarityGraph:
    """The graph without its edges between rows in which other columns are missing.

    Parameters
    ----------
    graph : Graph
        Of the rows of X.
    X : array or DataFrame (n, D)
        As for :func:`share_across_patterns`.

    Raises
    ------
    InvalidInput
        If the rows are not those of the graph.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.array([[0.0, 1.0], [0.1, 1.0], [0.0, np.nan]])
    >>> po.graphs.within_patterns(po.complete_graph(3), X)
    <complete graph: 3 nodes, 1 edges>
    """
    first, second = graph.edges[~_crosses(graph, X)].T
    kept = graph.similarities[first, second]
    shape = graph.n_nodes, graph.n_nodes
    upper = sp.coo_array((np.asarray(kept), (first, second)), shape=shape)
    inside = SimilarityGraph(
        sp.csr_array(upper + upper.T), graph.kind, graph.parameters
    )
    inside.names = graph.names
    return inside


def _crosses(graph: Graph, X: object) -> NDArray[np.bool_]:
    """Which edges join rows of different patterns, (E,)."""
    points, _ = read_points(X, "X")
    if len(points) != graph.n_nodes:
        raise InvalidInput(
            f"X: expected the {graph.n_nodes} rows of the graph, got {len(points)}"
        )
    absent = np.isnan(points)
    first, second = graph.edges.T
    return np.asarray((absent[first] != absent[second]).any(axis=1))
