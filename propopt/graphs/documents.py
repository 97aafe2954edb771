"""Similar documents: a graph made of the words that they share."""

from __future__ import annotations

from functools import partial

import scipy.sparse as sp

from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.graphs.cosine import graph_of_directions
from propopt.graphs.stored import SimilarityGraph
from propopt.tables.names import named_by, read_table
from propopt.tables.text.coordinates import document_directions


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
    graph = graph_of_directions(document_directions(sp.csr_array(table)), most)
    graph.again = partial(document_graph, counts)
    return graph
