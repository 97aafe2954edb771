"""Similar features: the eigenbasis in which the features of an explanation decouple."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np
import scipy.linalg as la

from propopt._typing import Array
from propopt.checks import read_array
from propopt.errors import InvalidInput
from propopt.memory import require_memory


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


def positive_eigenbasis(kernel_matrix: object, what: str) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a positive definite matrix.

    Raises
    ------
    InvalidInput
        If it is not symmetric and positive definite to rounding.
    """
    matrix = read_array(kernel_matrix, what, ndim=2)
    if not _is_symmetric(matrix):
        raise InvalidInput(
            f"{what}: expected a symmetric kernel matrix, got shape {matrix.shape}"
        )
    require_room(len(matrix))
    values, vectors = la.eigh(matrix)
    if values[0] <= len(values) * np.finfo(float).eps * abs(values[-1]):
        raise InvalidInput(
            f"{what}: expected a positive definite kernel matrix; its smallest "
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


def _is_symmetric(matrix: Array) -> bool:
    square = matrix.shape[0] == matrix.shape[1]
    return square and bool(
        np.allclose(matrix, matrix.T, rtol=0.0, atol=1e-8 * np.abs(matrix).max())
    )
