"""Similar features, directions and documents, as graphs."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from propopt.base.arrays import Array, Points, Sparse
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput
from propopt.base.resources import BATCH_BUDGET, require_memory
from propopt.base.suggestions import suggests_arguments
from propopt.losses.graphs.points import PAIR_BYTES, SimilarityGraph
from propopt.losses.linear_algebra import Components
from propopt.tables.documents import document_directions
from propopt.tables.frames import directions, named_by, read_points, read_table


# ---- Similar features: graphs made of the columns of a table, or of their groups


@suggests_arguments
@named_by("features")
def correlation_graph(X: object) -> SimilarityGraph:
    """Features with similarity |correlation of their columns|.

    A constant column has no correlation: its similarities are zero. Where numbers are
    missing, the correlation of two columns is that over the rows that have both; with
    fewer than three such rows it is zero.
    """
    points, _ = read_points(X, "X")
    n_bytes = PAIR_BYTES * points.shape[1] ** 2
    require_memory(n_bytes, "every pair of features", "use fewer features")
    complete = not np.isnan(points).any()
    correlation = _correlations(points) if complete else _pairwise(points)
    np.fill_diagonal(correlation, 0.0)
    return SimilarityGraph(sp.csr_array(correlation), "correlation")


def _correlations(points: Points) -> Array:
    """|Correlations| of columns, (D, D)."""
    centred = Components.single(len(points)).centred(points)
    largest = np.abs(centred).max(axis=0)
    # what the last digits of a column add up to is no spread
    rounding = 4.0 * np.finfo(float).eps * np.abs(points).max(axis=0)
    constant = largest <= rounding
    unit = centred / np.where(constant, 1.0, largest)
    unit[:, constant] = 0.0
    unit /= np.where(constant, 1.0, np.linalg.norm(unit, axis=0))
    return np.asarray(np.minimum(np.abs(unit.T @ unit), 1.0))


_FEWEST_ROWS = 3
"""Of two rows any two columns correlate perfectly."""


def _pairwise(points: Points) -> Array:
    """|Correlations| of columns over the rows in which both have a number, (D, D)."""
    there = (~np.isnan(points)).astype(np.float64)
    z, constant = _standard(points)
    n = there.T @ there
    count = np.maximum(n, 1.0)
    # sums of z_d, and of z_d², over the rows that column d' has too
    sums, squares = z.T @ there, (z**2).T @ there
    product = z.T @ z - sums * sums.T / count
    spread = squares - sums**2 / count
    size = np.sqrt(np.maximum(spread * spread.T, 0.0))
    told = (n >= _FEWEST_ROWS) & (np.minimum(spread, spread.T) > _NO_SPREAD * count)
    told &= ~(constant | constant[:, None])
    correlation = np.zeros_like(product)
    np.divide(np.abs(product), size, out=correlation, where=told)
    return np.asarray(np.minimum(correlation, 1.0))


_NO_SPREAD = 1e-14
"""Of squares of numbers between −1 and 1: what rounding leaves."""


def _standard(points: Points) -> tuple[Points, NDArray[np.bool_]]:
    """Columns less their means, at most 1 in size, 0 where missing; constant ones."""
    there = ~np.isnan(points)
    filled = np.where(there, points, 0.0)
    means = filled.sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    centred = np.where(there, points - means, 0.0)
    largest = np.abs(centred).max(axis=0)
    constant = largest <= 16.0 * np.finfo(float).eps * np.abs(filled).max(axis=0)
    return centred / np.where(constant, 1.0, largest), constant


@suggests_arguments
def group_graph(labels: ArrayLike) -> SimilarityGraph:
    """Nodes that carry the same label, with similarity one."""
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


# ---- Similar directions: a graph of the angles between points


@suggests_arguments
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
    for some in BATCH_BUDGET.blocks(n, 16 * n):
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


# ---- Similar documents: a graph made of the words that they share


@suggests_arguments
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
