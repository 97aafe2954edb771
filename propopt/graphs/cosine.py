"""Similar directions: a graph of the angles between points."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt._typing import Array, Sparse
from propopt.batches import Budget
from propopt.checks import read_count
from propopt.graphs.stored import SimilarityGraph
from propopt.tables.directions import directions
from propopt.tables.names import named_by, read_table


_PRODUCTS: Final = Budget(2**26)
"""Bytes of similarities that are looked at at once."""


@named_by("points")
def cosine_graph(X: object, n_neighbors: int = 8) -> SimilarityGraph:
    """Each point and those whose directions are nearest: S_nn' = cos(x_n, x_n') > 0.

    An edge is where either is among the nearest of the other. A point at zero has none,
    nor have points at right angles or more.

    Parameters
    ----------
    X : array or DataFrame (N, M)
        The points, such as embeddings of documents or images.
    n_neighbors : int
        The most that each point names.

    Raises
    ------
    InvalidInput
        If a number is missing, which has no direction.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.array([[1.0, 0.0], [3.0, 3.0], [0.0, 2.0], [0.0, 0.0]])
    >>> po.graphs.cosine_graph(X).similarities.toarray().round(2)[:3, :3]
    array([[0.  , 0.71, 0.  ],
           [0.71, 0.  , 0.71],
           [0.  , 0.71, 0.  ]])
    """
    table, _ = read_table(X, "X")
    most = read_count(n_neighbors, "n_neighbors")
    graph = graph_of_directions(directions(sp.csr_array(table)), most)
    graph.again = partial(cosine_graph, X)
    return graph


def graph_of_directions(rows: Sparse, most: int) -> SimilarityGraph:
    """Of rows (N, M) of length one, or zero, at most so many neighbours of each."""
    near = _nearest(rows, most)
    return SimilarityGraph(near.maximum(near.T), "cosine", {"n_neighbors": most})


def _nearest(rows: Sparse, most: int) -> Sparse:
    """The largest similarities of each document, and 0 for the others."""
    n, each = rows.shape[0], []
    for some in _PRODUCTS.blocks(n, 16 * n):
        similar = sp.csr_array(rows[some] @ rows.T)
        for k, node in enumerate(range(some.start, some.start + similar.shape[0])):
            of_row = slice(similar.indptr[k], similar.indptr[k + 1])
            each.append(
                _largest(similar.indices[of_row], similar.data[of_row], node, most)
            )
    starts = np.cumsum([0, *(len(nodes) for nodes, _ in each)])
    nodes, values = (np.concatenate(parts) for parts in zip(*each, strict=True))
    return sp.csr_array((values, nodes, starts), shape=(n, n))


def _largest(
    nodes: NDArray[np.integer], values: Array, own: int, most: int
) -> tuple[NDArray[np.integer], Array]:
    """The nodes with the largest values above zero; of equal ones the first."""
    other = (nodes != own) & (values > 0.0)
    nodes, values = nodes[other], values[other]
    kept = np.sort(np.lexsort((nodes, -values))[:most])
    return nodes[kept], np.minimum(values[kept], 1.0)
