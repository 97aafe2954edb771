"""Similar features: graphs made of the columns of a table, or of their groups."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from propopt._typing import Array, Points
from propopt.errors import InvalidInput
from propopt.graphs.stored import SimilarityGraph
from propopt.linear.components import Components
from propopt.memory import require_memory
from propopt.tables.names import named_by, read_points


@named_by("features")
def correlation_graph(X: object) -> SimilarityGraph:
    """Features with similarity |correlation of their columns|.

    A constant column has no correlation: its similarities are zero. Where numbers are
    missing, the correlation of two columns is that over the rows that have both; with
    fewer than three such rows it is zero.
    """
    points, _ = read_points(X, "X")
    n_bytes = 40.0 * points.shape[1] ** 2
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


def group_graph(labels: ArrayLike) -> SimilarityGraph:
    """Nodes that carry the same label, with similarity one."""
    names = np.asarray(labels)
    if names.ndim != 1 or len(names) == 0:
        raise InvalidInput(f"labels: expected one label per node, got {names.shape}")
    require_memory(40.0 * len(names) ** 2, "every pair of nodes", "use fewer nodes")
    _, codes = np.unique(names, return_inverse=True)
    same = (codes[:, None] == codes[None, :]).astype(float)
    np.fill_diagonal(same, 0.0)
    return SimilarityGraph(sp.csr_array(same), "group")
