"""Similar features: graphs made of the columns of a table, or of their groups."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from propopt.errors import InvalidInput
from propopt.graphs.stored import SimilarityGraph
from propopt.linear.components import Components
from propopt.memory import require_memory
from propopt.tables.names import named_by, read_table


@named_by("features")
def correlation_graph(X: object) -> SimilarityGraph:
    """Features with similarity |correlation of their columns|.

    A constant column has no correlation: its similarities are zero.
    """
    points, _ = read_table(X, "X")
    n_bytes = 40.0 * points.shape[1] ** 2
    require_memory(n_bytes, "every pair of features", "use fewer features")
    centred = Components.single(len(points)).centred(points)
    largest = np.abs(centred).max(axis=0)
    # what the last digits of a column add up to is no spread
    rounding = 4.0 * np.finfo(float).eps * np.abs(points).max(axis=0)
    constant = largest <= rounding
    unit = centred / np.where(constant, 1.0, largest)
    unit[:, constant] = 0.0
    unit /= np.where(constant, 1.0, np.linalg.norm(unit, axis=0))
    correlation = np.minimum(np.abs(unit.T @ unit), 1.0)
    np.fill_diagonal(correlation, 0.0)
    return SimilarityGraph(sp.csr_array(correlation), "correlation")


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
