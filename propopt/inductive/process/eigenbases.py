"""Eigenbases of kernel matrices, that rotate a few columns without being formed.

K = Q T Qᵀ with T tridiagonal and Q a product of Householder reflectors, and T = S
diag(κ) Sᵀ. Columns are rotated by Qᵀ, then by Sᵀ: for fewer columns than points this
is cheaper than to form U = Q S, which takes 40 % of a whole eigendecomposition.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final

import numpy as np
import scipy.linalg as la

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.linear.lapack import reflected, tridiagonalised


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class KernelEigenbasis:
    """K = U diag(κ) Uᵀ, with U = Q S.

    Parameters
    ----------
    eigenvalues : array (n,)
        κ ≥ 0, ascending.
    reflectors : array (n − 1, n − 1)
        Of Q below its first row and column, which are those of the identity, as
        LAPACK keeps them: reflector i in column i, below a diagonal of ones.
    tau : array (n − 1,)
        Their factors τ, I − τ v vᵀ.
    tridiagonal : array (n, n)
        S.
    """

    eigenvalues: Array
    reflectors: Array
    tau: Array
    tridiagonal: Array

    @classmethod
    def of(cls, matrix: Array) -> KernelEigenbasis:
        """That of a positive semidefinite matrix, which is overwritten; O(n³)."""
        reflectors, diagonal, beside, tau = tridiagonalised(matrix)
        values, vectors = la.eigh_tridiagonal(diagonal, beside)
        return cls(
            eigenvalues=nonnegative(values),
            reflectors=reflectors,
            tau=tau,
            tridiagonal=vectors,
        )

    @cached_property
    def vectors(self) -> Array:
        """U, eigenvectors in columns; formed once, O(n³)."""
        return self._reflected(self.tridiagonal, "N")

    def rotate(self, columns: Array) -> Array:
        """Uᵀ times columns (n, m)."""
        if 2 * columns.shape[1] >= len(self.eigenvalues):
            return self.vectors.T @ columns
        return self.tridiagonal.T @ self._reflected(columns, "T")

    def _reflected(self, columns: Array, transpose: Literal["N", "T"]) -> Array:
        """Q or Qᵀ times columns (n, m)."""
        turned = np.array(columns, order="F")
        if len(self.tau) == 0:
            return turned
        turned[1:] = reflected(self.reflectors, self.tau, turned[1:], transpose)
        return turned


def eigenbasis(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a positive semidefinite matrix."""
    values, vectors = la.eigh(matrix)
    return nonnegative(values), vectors


def nonnegative(eigenvalues: Array) -> Array:
    """Eigenvalues in ascending order; those negative by rounding are zeros."""
    if eigenvalues[0] < -1e-10 * max(eigenvalues[-1], 0.0):
        raise InvalidInput(
            "kernel: its matrix is not positive semidefinite (smallest eigenvalue "
            f"{eigenvalues[0]:.3g}, largest {eigenvalues[-1]:.3g})"
        )
    return np.maximum(eigenvalues, 0.0)
