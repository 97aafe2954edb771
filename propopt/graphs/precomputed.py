"""Graphs whose similarities are given as a matrix."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from propopt._typing import Sparse
from propopt.checks import read_array
from propopt.errors import InvalidInput
from propopt.graphs.stored import SimilarityGraph


def graph_from_matrix(S: object) -> SimilarityGraph:
    """The graph of a given similarity matrix S (n, n), dense or sparse.

    Raises
    ------
    InvalidInput
        If S is not square and symmetric with zero diagonal and finite entries, or has
        negative entries and a Laplacian that is not positive semidefinite: then
        the robustness loss would be unbounded below.
    """
    entries = S if sp.issparse(S) else read_array(S, "S", ndim=2)
    matrix = sp.csr_array(entries, dtype=np.float64, copy=True)
    _check_similarities(matrix)
    graph = SimilarityGraph(0.5 * matrix + 0.5 * matrix.T)
    if (graph.similarities.data < 0).any():
        _check_definite(graph)
    return graph


def _check_similarities(matrix: Sparse) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidInput(f"S: expected a square matrix, got shape {matrix.shape}")
    if matrix.shape[0] == 0:
        raise InvalidInput("S: the matrix is empty")
    if not np.isfinite(matrix.data).all():
        raise InvalidInput("S: some similarities are not finite")
    if matrix.diagonal().any():
        raise InvalidInput("S: expected a zero diagonal; set it with np.fill_diagonal")
    largest = np.abs(matrix.data).max(initial=0.0)
    uneven = abs(matrix - matrix.T)
    if uneven.nnz and uneven.data.max() > 1e-12 * largest:
        raise InvalidInput("S: expected a symmetric matrix; (S + S.T) / 2 is one")


def _check_definite(graph: SimilarityGraph) -> None:
    for _, block in graph.blocks():
        values = np.linalg.eigvalsh(block)
        if values[0] < -1e-10 * max(values[-1], 0.0) - np.finfo(float).tiny:
            raise InvalidInput(
                "S: has negative similarities and its Laplacian is not positive "
                f"semidefinite (smallest eigenvalue {values[0]:.6g}), so the "
                "robustness loss would be unbounded below; use KernelRobustness for a "
                "kernel's precision matrix"
            )
