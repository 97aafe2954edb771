"""Graphs that a number of nodes tells: complete ones, chains and boxes of nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from propopt._typing import Sparse
from propopt.checks import read_count
from propopt.graphs.stored import SimilarityGraph, canonical, require_all_pairs
from propopt.memory import require_memory


def complete_graph(n_nodes: int) -> SimilarityGraph:
    """Every pair of nodes with similarity one."""
    n = read_count(n_nodes, "n_nodes")
    require_all_pairs(n, "a complete graph")
    return SimilarityGraph(sp.csr_array(np.ones((n, n)) - np.eye(n)), "complete")


def chain_graph(n_nodes: int) -> SimilarityGraph:
    """Neighbouring columns, as in a time series, with similarity one."""
    n = read_count(n_nodes, "n_nodes")
    require_memory(80.0 * n, f"a chain of {n} nodes", "use fewer")
    return SimilarityGraph(_path(n), "chain")


def pixel_graph(height: int, width: int) -> SimilarityGraph:
    """Pixels of an image in row-major order, each with its up to four neighbours."""
    rows, columns = read_count(height, "height"), read_count(width, "width")
    require_memory(176.0 * rows * columns, f"{rows} × {columns} pixels", "use fewer")
    parameters = {"height": rows, "width": columns}
    return SimilarityGraph(box_neighbours((rows, columns)), "pixel", parameters)


def box_neighbours(box: Sequence[int]) -> Sparse:
    """Ones between points of a box, in row-major order, one step along one axis."""
    total = sp.csr_array((1, 1))
    for n in box:
        total = sp.kronsum(_path(n), total)
    return canonical(total)


def _path(n_nodes: int) -> Sparse:
    ones = np.ones(n_nodes - 1)
    return sp.diags_array([ones, ones], offsets=[-1, 1], shape=(n_nodes, n_nodes))
