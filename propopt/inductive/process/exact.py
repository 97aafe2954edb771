"""All observations in one eigenbasis of their kernel matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np

from propopt._typing import Array, Attributions, Points
from propopt.inductive.kernels import PointKernel
from propopt.inductive.process.eigenbases import KernelEigenbasis
from propopt.inductive.process.means import Constants, Mean
from propopt.inductive.process.posterior import Posterior, Queries
from propopt.memory import require_memory


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ExactPosterior(Posterior):
    """All observations are inducing inputs: K = U diag(κ) Uᵀ in full.

    ``coordinates`` are Uᵀk(x), ``remainder`` is k(x, x).
    """

    kernel: PointKernel
    inducing: Points
    basis: KernelEigenbasis
    eigenvalues: Array
    targets: Array
    ones: Array

    @classmethod
    def of(cls, kernel: PointKernel, X: Points, rotated: Attributions) -> Self:
        """Condition on rotated gradients at all points of X: one eigenbasis, O(n³)."""
        require_memory(
            32.0 * len(X) ** 2,
            f"a Gaussian process of {len(X)} observations",
            "choose fewer inducing inputs, such as inducing=GreedyVariance(500)",
        )
        basis = KernelEigenbasis.of(kernel.matrix(X))
        return cls(
            kernel=kernel,
            inducing=X,
            basis=basis,
            eigenvalues=basis.eigenvalues,
            targets=basis.rotate(rotated),
            ones=basis.rotate(np.ones((len(X), 1)))[:, 0],
        )

    def queries(self, X: Points) -> Queries:
        cross = self.kernel.cross(X, self.inducing)
        return Queries(
            coordinates=self.basis.rotate(cross.T).T,
            remainder=self.kernel.diagonal(X),
        )

    def variance(self, queries: Queries, p: Array, lam: float) -> Array:
        # k/λ − κᵀA⁻¹κ: at an observed point this is the difference of numbers near
        # k/λ, so that a zero may come out as −ε k/λ: it is a zero
        explained = self.weigh(queries.coordinates**2, p, lam) * p
        return np.maximum(queries.remainder[:, None] - explained, 0.0) / lam

    def covariance(self, X: Points, queries: Queries, p: float, lam: float) -> Array:
        t = queries.coordinates
        explained = (t * (p / (p * self.eigenvalues + lam))) @ t.T
        return (self.kernel.matrix(X) - explained) / lam

    def constants(self, p: Array, lam: float) -> Constants:
        ones = self.weigh(self.ones[None] ** 2, p, lam)[0]
        targets = self.weigh_targets(self.ones[None], p, lam)[0]
        return Constants(ones=lam * p * ones, targets=lam * targets)

    def information_loss(self, _p: Array, _lam: float, _mean: Mean, /) -> float:
        return 0.0
