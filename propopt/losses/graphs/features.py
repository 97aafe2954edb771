"""Graphs of similar features, directions and documents."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from propopt.base.arrays import Array, Points, Sparse, quotient
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput
from propopt.base.resources import BATCH_BUDGET, require_memory
from propopt.base.suggestions import suggests_arguments
from propopt.losses.graphs.points import PAIR_BYTES, SimilarityGraph
from propopt.losses.linear_algebra import Components
from propopt.tables.documents import document_directions
from propopt.tables.frames import directions, named_by, read_points, read_table


# ---- Graphs of similar features: from the columns of a table, or from groups


@suggests_arguments
@named_by("features")
def correlation_graph(X: object) -> SimilarityGraph:
    """Graph of features with similarity |correlation of their columns|.

    Similarities of a constant column are zero. With missing numbers, the correlation of
    two columns uses the rows that have both; with fewer than three it is zero.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]])
    >>> po.graphs.correlation_graph(X).strengths.round(6).tolist()
    [1.0]
    """
    points, _ = read_points(X, "X")
    n_bytes = PAIR_BYTES * points.shape[1] ** 2
    require_memory(n_bytes, "every pair of features", "use fewer features")
    complete = not np.isnan(points).any()
    correlation = _correlations(points) if complete else _pairwise(points)
    np.fill_diagonal(correlation, 0.0)
    return SimilarityGraph(sp.csr_array(correlation), "correlation")


def _correlations(points: Points) -> Array:
    """Absolute correlations of columns, (D, D)."""
    centred = Components.single(len(points)).centred(points)
    largest = np.abs(centred).max(axis=0)
    # a spread of rounding size counts as zero
    rounding = 4.0 * np.finfo(float).eps * np.abs(points).max(axis=0)
    constant = largest <= rounding
    unit = centred / np.where(constant, 1.0, largest)
    unit[:, constant] = 0.0
    unit /= np.where(constant, 1.0, np.linalg.norm(unit, axis=0))
    return np.minimum(np.abs(unit.T @ unit), 1.0)


_FEWEST_ROWS = 3
"""The smallest number of common rows; two always correlate perfectly."""


def _pairwise(points: Points) -> Array:
    """Absolute correlations of columns over their common rows, (D, D)."""
    largest = np.nanmax(np.abs(points), axis=0, initial=0.0)
    table = pd.DataFrame(quotient(points, largest, points))
    correlation = table.corr(min_periods=_FEWEST_ROWS).abs().to_numpy(copy=True)
    # a spread of rounding size counts as zero
    constant = (table.max() - table.min()).to_numpy() <= 16.0 * np.finfo(float).eps
    correlation[constant | constant[:, None]] = 0.0
    return np.minimum(np.nan_to_num(correlation), 1.0)


@suggests_arguments
def group_graph(labels: ArrayLike) -> SimilarityGraph:
    """Graph that joins nodes with the same label, with similarity one.

    Examples
    --------
    >>> import propopt as po
    >>> po.graphs.group_graph(["a", "b", "a"]).edges.tolist()
    [[0, 2]]
    """
    names = np.asarray(labels)
    if names.ndim != 1 or len(names) == 0:
        raise InvalidInput(f"labels: expected one label per node, got {names.shape}")
    require_memory(
        PAIR_BYTES * len(names) ** 2, "every pair of nodes", "use fewer nodes"
    )
    _, codes = np.unique(names, return_inverse=True)
    same = (codes[:, None] == codes[None, :]).astype(float)
    np.fill_diagonal(same, 0.0)
    return SimilarityGraph(sp.csr_array(same), "group")


# ---- Graphs of similar directions, by the angles between points


@suggests_arguments
@named_by("points")
def cosine_graph(X: object, n_neighbors: int = 8) -> SimilarityGraph:
    """Graph of points with similar directions, S_nn' = cos(x_n, x_n') > 0.

    Two points are joined if either is among the nearest of the other. A point at zero
    has no edge, nor do points at right angles or more.

    Parameters
    ----------
    X : array or DataFrame (N, M)
        The points, such as embeddings of documents or images.
    n_neighbors : int
        The largest number of nearest points per point.

    Returns
    -------
    SimilarityGraph
        It has N nodes and similarities between 0 and 1.

    Raises
    ------
    InvalidInput
        If a number is missing.

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
    """Cosine graph of rows (N, M) of length one, or zero, with ``most`` neighbours."""
    nearest = _nearest(rows, most)
    return SimilarityGraph(nearest.maximum(nearest.T), "cosine", {"n_neighbors": most})


def _nearest(rows: Sparse, most: int) -> Sparse:
    """The largest similarities of each row, zero for the others."""
    n = rows.shape[0]
    neighbours = []
    for rows_of_block in BATCH_BUDGET.blocks(n, 16 * n):
        similar = sp.csr_array(rows[rows_of_block] @ rows.T)
        for k, node in enumerate(
            range(rows_of_block.start, rows_of_block.start + similar.shape[0])
        ):
            of_row = slice(similar.indptr[k], similar.indptr[k + 1])
            neighbours.append(
                _largest(similar.indices[of_row], similar.data[of_row], node, most)
            )
    starts = np.cumsum([0, *(len(nodes) for nodes, _ in neighbours)])
    nodes, values = (np.concatenate(parts) for parts in zip(*neighbours, strict=True))
    return sp.csr_array((values, nodes, starts), shape=(n, n))


def _largest(
    nodes: NDArray[np.integer], values: Array, node: int, most: int
) -> tuple[NDArray[np.integer], Array]:
    """The nodes with the largest positive values; the first of equal ones."""
    other = (nodes != node) & (values > 0.0)
    nodes = nodes[other]
    values = values[other]
    largest = np.sort(np.lexsort((nodes, -values))[:most])
    return nodes[largest], np.minimum(values[largest], 1.0)


# ---- Graphs of similar documents, by their shared words


@suggests_arguments
@named_by("points")
def document_graph(counts: object, n_neighbors: int = 8) -> SimilarityGraph:
    """Graph of documents with similar words, by cosine similarity.

    S_nn' = ⟨u_n, u_n'⟩ for u_n ∝ (count of word j)·(log((N + 1)/(N_j + 1)) + 1), of
    length one, N_j being the number of the N documents with word j: words of
    all documents count little. Documents that differ in few words have S close to 1.
    Two documents are joined if either is among the nearest of the other. Documents
    without common words are not joined, so some may have few neighbours or none.

    Parameters
    ----------
    counts : array or DataFrame (N, D)
        The count of each word in each document.
    n_neighbors : int
        The largest number of nearest documents per document.

    Returns
    -------
    SimilarityGraph
        It has N nodes, one per document, and similarities between 0 and 1.

    Raises
    ------
    InvalidInput
        If a count is negative.

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
        raise InvalidInput("counts: expected counts of words >= 0, and one is negative")
    graph = graph_of_directions(document_directions(sp.csr_array(table)), most)
    graph.again = partial(document_graph, counts)
    return graph
