"""Eigenvectors of a graph's Laplacian whose similarities span many decades.

Eigenvalues come with an error of rounding at the largest. Those far below it are found
again, from the quadratic form in their own subspace: as a sum over edges,

    uᵀ P v = Σ_{i<j} −P_ij (u_i − u_j)(v_i − v_j),

it loses nothing to a heavy edge whose ends are alike. Levels follow each other until
the smallest eigenvalue is within reach of the largest of its own level.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from propopt._typing import Array
from propopt.linear.rounding import EPSILON


LEVEL = 1e-6
"""Eigenvalues this far below the largest have lost six digits, and are found again."""

COLUMNS = 2**24  # entries of a block of differences at once


def is_laplacian(P: Array) -> bool:
    """True if nothing off the diagonal is positive: the form is a sum of squares."""
    return not (np.triu(P, k=1) > 0.0).any()


def refine(P: Array, values: Array, vectors: Array, errors: Array) -> None:
    """Find small eigenvalues of a Laplacian P again, in place, level by level.

    Parameters
    ----------
    P : array (n, n)
        A Laplacian.
    values, errors : array (m,)
        Eigenvalues, ascending, and to what they are known.
    vectors : array (n, m)
        Eigenvectors, which add up to zero.
    """
    form = _Form(P)
    root = np.sqrt(len(P))
    norm = float(values[-1])
    last = len(values)
    while last > 0:
        small = int(np.searchsorted(values[:last], LEVEL * values[last - 1]))
        if small in (0, last):
            return
        U = vectors[:, :small]
        T = form(U)
        lower, turn = la.eigh(T)
        values[:small] = np.maximum(lower, 0.0)
        vectors[:, :small] = U @ turn
        vectors[:, :small] -= vectors[:, :small].mean(axis=0)
        residual = float(np.linalg.norm(T @ turn - turn * lower))
        # a heavy edge still sees the last digits of vectors that are alike at its ends
        rounding = EPSILON * root * (float(lower[-1]) + EPSILON * root * norm)
        errors[:small] = residual + rounding
        last = small


class _Form:
    """(U, V) ↦ Uᵀ P V by differences along the edges."""

    def __init__(self, P: Array) -> None:
        i, j = np.nonzero(np.triu(P, k=1))
        n_edges = len(i)
        rows = np.arange(2 * n_edges + 1, step=2)
        signs = np.tile([1.0, -1.0], n_edges)
        ends = np.column_stack([i, j]).ravel()
        self._differences = sp.csr_array((signs, ends, rows), shape=(n_edges, len(P)))
        self._weights = -P[i, j][:, None]

    def __call__(self, U: Array) -> Array:
        T = np.concatenate([U.T @ product for product in self._products(U)], axis=1)
        return np.asarray((T + T.T) / 2.0)

    def _products(self, U: Array) -> Iterator[Array]:
        """P U, some columns at a time."""
        step = max(1, COLUMNS // max(len(self._weights), 1))
        for first in range(0, U.shape[1], step):
            flow = self._differences @ U[:, first : first + step]
            flow *= self._weights
            yield self._differences.T @ flow
