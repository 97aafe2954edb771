"""Eigenbases of similar features, and of kernel matrices.

Eigenbases of kernel matrices, that rotate a few columns without being formed. K = Q T
Qᵀ with T tridiagonal and Q a product of Householder reflectors, and T = S diag(κ) Sᵀ.
Columns are rotated by Qᵀ, then by Sᵀ: for fewer columns than points this
is cheaper than to form U = Q S, which takes 40 % of a whole eigendecomposition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final

import numpy as np
import scipy.linalg as la

from propopt.base.arrays import Array
from propopt.base.checks import read_array
from propopt.base.errors import InvalidInput
from propopt.base.resources import require_memory
from propopt.losses.linear_algebra import is_symmetric, reflected, tridiagonalised


# ---- Similar features: the eigenbasis in which the features of an explanation decouple


class FeatureBasis(ABC):
    """An orthogonal basis V of the features with the eigenvalues ς of smoothness.

    The smoothness of attributions W is Σ_nj ς_j (W V)²_nj. Subclasses store what they
    need to apply V, which may be much less than V itself.
    """

    @property
    @abstractmethod
    def eigenvalues(self) -> Array:
        """The ς_j ≥ 0, shape (D,); exactly zero where smoothness says nothing."""

    @abstractmethod
    def rotate(self, rows: Array) -> Array:
        """``rows @ V`` for rows (..., D)."""

    @abstractmethod
    def unrotate(self, rows: Array) -> Array:
        """``rows @ V.T`` for rows (..., D)."""

    @abstractmethod
    def unrotate_variances(self, variances: Array) -> Array:
        """diag(V diag(s) Vᵀ) for each row s of ``variances`` (..., D)."""

    @final
    @property
    def n_features(self) -> int:
        """D."""
        return len(self.eigenvalues)


def positive_eigenbasis(kernel_matrix: object, label: str) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a positive definite matrix."""
    matrix = read_array(kernel_matrix, label, ndim=2)
    if not is_symmetric(matrix):
        raise InvalidInput(
            f"{label}: expected a symmetric kernel matrix, got shape {matrix.shape}"
        )
    require_room(len(matrix))
    values, vectors = la.eigh(matrix)
    if values[0] <= len(values) * np.finfo(float).eps * abs(values[-1]):
        raise InvalidInput(
            f"{label}: expected a positive definite kernel matrix; its smallest "
            f"eigenvalue is {values[0]:.3g}. Add jitter: K + 1e-8 * np.eye(len(K))"
        )
    return values, vectors


def require_room(n_features: int) -> None:
    """Refuse a dense eigenbasis that does not fit into memory."""
    require_memory(
        32.0 * n_features**2,
        f"a dense eigenbasis of {n_features} features",
        "give a FeatureBasis that does not store its eigenvectors, such as "
        "GridFeatures or KroneckerFeatures for images",
    )


# ---- Eigenbases of kernel matrices, that rotate a few columns without being formed


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class KernelEigenbasis:
    """K = U diag(κ) Uᵀ, with U = Q S."""

    eigenvalues: Array  # (n,): κ ≥ 0, ascending
    reflectors: Array  # (n − 1, n − 1): of Q below its first row and column
    tau: Array  # (n − 1,): their factors τ, I − τ v vᵀ
    tridiagonal: Array  # (n, n): S

    @classmethod
    def of(cls, matrix: Array) -> KernelEigenbasis:
        """That of a positive semidefinite matrix, which is overwritten; O(n³)."""
        reflectors, diagonal, off_diagonal, tau = tridiagonalised(matrix)
        values, vectors = la.eigh_tridiagonal(diagonal, off_diagonal)
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
