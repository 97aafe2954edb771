"""Log-densities of gaussian classes, up to what all classes share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from propopt._typing import Array, Points
from propopt.structures.networks import Network, Pullback


@dataclass(frozen=True)
class GaussianClasses(Network):
    """Classes with covariances of their own, z_k(x) = −½ ‖B_kᵀ(x − μ_k)‖² + c_k.

    Parameters
    ----------
    means : array (K, D)
        μ_k.
    whitenings : tuple of arrays (D, R_k)
        B_k, with B_k B_kᵀ the precision of class k.
    offsets : array (K,)
        c_k.
    """

    means: Array
    whitenings: tuple[Array, ...]
    offsets: Array

    @property
    def n_scores(self) -> int:
        """The number K of classes."""
        return len(self.offsets)

    @property
    def width(self) -> int:
        """Points as each class sees them, and one of these twice more."""
        return sum(B.shape[1] for B in self.whitenings) + 2 * self.means.shape[1]

    def scores(self, points: Points) -> Array:
        """Scores, shape (n, K)."""
        return self.linearized(points)[0]

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scores, and the map C ↦ −Σ_k C_nk B_k B_kᵀ (x_n − μ_k)."""
        whitened = [
            (points - mean) @ B
            for mean, B in zip(self.means, self.whitenings, strict=True)
        ]
        squares = np.stack([(white**2).sum(axis=1) for white in whitened], axis=1)

        def pullback(cotangents: Array) -> Array:
            pulled = np.zeros(points.shape)
            for k, (white, B) in enumerate(zip(whitened, self.whitenings, strict=True)):
                pulled -= (cotangents[:, [k]] * white) @ B.T
            return pulled

        return self.offsets - 0.5 * squares, pullback


@dataclass(frozen=True)
class IndependentGaussians(Network):
    """Classes of independent features, z_k(x) = −½ Σ_d P_kd (x_d − μ_kd)² + c_k.

    Parameters
    ----------
    means, precisions : array (K, D)
        μ and P.
    offsets : array (K,)
        c.
    """

    means: Array
    precisions: Array
    offsets: Array

    @property
    def n_scores(self) -> int:
        """The number K of classes."""
        return len(self.offsets)

    @property
    def width(self) -> int:
        """The scores, and one set of differences."""
        return self.n_scores + 2 * self.means.shape[1]

    def scores(self, points: Points) -> Array:
        """Scores, shape (n, K)."""
        squares = [
            ((points - mean) ** 2) @ precision
            for mean, precision in zip(self.means, self.precisions, strict=True)
        ]
        return self.offsets - 0.5 * np.stack(squares, axis=1)

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scores, and the map C ↦ C (P ∘ μ) − x ∘ (C P)."""
        weighted = self.precisions * self.means

        def pullback(cotangents: Array) -> Array:
            return cotangents @ weighted - points * (cotangents @ self.precisions)

        return self.scores(points), pullback
