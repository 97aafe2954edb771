"""Similar features: the eigenbasis in which the features of an explanation decouple."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

from propopt._typing import Array


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
