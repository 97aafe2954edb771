"""Similar documents: a graph made of the words that they share."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt._typing import Array, Sparse
from propopt.batches import Budget
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.graphs.stored import SimilarityGraph
from propopt.tables.names import named_by, read_table


_PRODUCTS: Final = Budget(2**26)
"""Bytes of similarities that are looked at at once."""


@named_by("points")
def document_graph(counts: object, n_neighbors: int = 8) -> SimilarityGraph:
    """Each document and those that share most of its words, by cosine similarity.

    S_nn' = ⟨u_n, u_n'⟩ for u_n ∝ (count of word j)·(log((N + 1)/(N_j + 1)) + 1), of
    length one, N_j being the number of the N documents with word j: a word that all of
    them have tells little. Documents that are alike but for few words have S near 1. An
    edge is where either is among the nearest of the other. Documents without a common
    word are no neighbours, so that some may have few neighbours, or none.

    Parameters
    ----------
    counts : array or DataFrame (N, D)
        How often each word comes in each document.
    n_neighbors : int
        The most that each document names.

    Raises
    ------
    InvalidInput
        If there is a count below zero.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> counts = np.array([[1, 2, 0, 0], [1, 1, 0, 0], [0, 0, 3, 1], [0, 0, 0, 0]])
    >>> po.graphs.document_graph(counts)
    <cosine graph: 4 nodes, 1 edges, n_neighbors=8>
    """
    table, _ = read_table(counts, "counts")
    most = read_count(n_neighbors, "n_neighbors")
    if (table < 0.0).any():
        raise InvalidInput("counts: expected how often words come, and one is below 0")
    near = _nearest(_directions(sp.csr_array(table)), most)
    graph = SimilarityGraph(near.maximum(near.T), "cosine", {"n_neighbors": most})
    graph.again = partial(document_graph, counts)
    return graph


def _directions(counts: Sparse) -> Sparse:
    """The rows u_n; zero where there is no word."""
    n_documents = counts.shape[0]
    having = np.bincount(counts.indices, minlength=counts.shape[1])
    idf = np.log((n_documents + 1.0) / (having + 1.0)) + 1.0
    weighed = counts * idf
    norms = np.sqrt(weighed.power(2).sum(axis=1))
    lengths: Array = np.where(norms > 0.0, norms, 1.0)
    return sp.csr_array(sp.diags_array(1.0 / lengths) @ weighed)


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
