"""Exact posteriors, and sparse ones by inducing inputs.

Rotated feature j has observations y_j = ĝ_j/p_j of variance 1/p_j, p_j = 1 + w_s ς_j,
and prior covariance K/λ with λ = 2 w_r. With K = U diag(κ) Uᵀ, it needs only
sums over i with the factor 1/(p_j κ_i + λ); K⁻¹ is never formed, so K may be singular.

Many observations, few inducing inputs: variational inference (Titsias 2009). The kernel
matrix K of N observations is replaced by Q = K_xz K_zz⁻¹ K_zx of rank at most M, and
the distribution of the inducing values is optimal for that. Q = ΦΦᵀ with
features Φ; the eigenbasis of ΦᵀΦ then serves all weights and all rotated features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, Self, TypeAlias, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Points
from propopt.base.errors import InvalidInput
from propopt.base.resources import BATCH_BUDGET, Budget, require_memory
from propopt.inductive.bases import KernelEigenbasis, eigenbasis
from propopt.inductive.inputs import PointKernel
from propopt.inductive.means import Constants


# ---- Posteriors in one eigenbasis for all weights


CACHED_TABLES: Final = Budget(2**21)
"""Largest table of factors, which stays in the cache."""

_WORST_CONDITION = 1e13
"""Largest condition of A_j; at it, means had errors of 2e-7, deviations of 1e-5."""


Queries: TypeAlias = tuple[Array, Array]
"""New points in the eigenbasis of a :class:`Posterior`: coordinates and remainders.

Coordinates (m, r) are their covariances with the inducing inputs, in the eigenbasis;
remainders (m,) are the prior variance that coordinates do not explain.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior(ABC):
    """A prior given gradients, in the eigenbasis of its inducing inputs."""

    kernel: PointKernel
    inducing: Points  # (M, D): the inducing inputs
    eigenvalues: Array  # (r,): κ ≥ 0
    targets: Array  # (r, D): the rotated gradients in the eigenbasis
    ones: Array  # (r,): the constant vector in the eigenbasis

    @abstractmethod
    def queries(self, X: Points) -> Queries:
        """The coordinates of new points (m, D)."""

    @abstractmethod
    def variance(self, queries: Queries, p: Array, lam: float) -> Array:
        """The variance v(x) of simple kriging, shape (m, len(p))."""

    @abstractmethod
    def constants(self, p: Array, lam: float) -> Constants:
        """The statistics 1ᵀA⁻¹1 and 1ᵀA⁻¹y for each rotated feature."""

    @final
    def slope(self, queries: Queries, p: Array, lam: float) -> Array:
        """Slope by a constant: u = 1 − 1ᵀA⁻¹κ = 1 − Σ_i t_i o_i p_j/(p_j κ_i + λ)."""
        weighted = queries[0] * self.ones
        return 1.0 - self.weigh(weighted, p, lam) * p

    @final
    def weigh(self, rows: Array, p: Array, lam: float) -> Array:
        """Σ_i rows_mi / (p_j κ_i + λ), (m, len(p)); computed once for equal p_j."""
        distinct, index = np.unique(p, return_inverse=True)
        sums = np.empty((len(rows), len(distinct)))
        for columns in self._columns(len(distinct)):
            sums[:, columns] = rows @ (1.0 / self.spread(distinct[columns], lam))
        return sums[:, index]

    @final
    def weigh_targets(self, rows: Array, p: Array, lam: float) -> Array:
        """Σ_i rows_mi ĝ_ij / (p_j κ_i + λ), (m, D), which is κᵀA⁻¹y for queries."""
        sums = np.empty((len(rows), self.targets.shape[1]))
        for columns in self._columns(sums.shape[1]):
            sums[:, columns] = rows @ self._shrunk(columns, p, lam)
        return sums

    @final
    def spread(self, p: Array, lam: float) -> Array:
        """The table p_j κ_i + λ, shape (r, len(p))."""
        table = self.eigenvalues[:, None] * p
        table += lam
        return table

    @final
    def _shrunk(self, columns: slice, p: Array, lam: float) -> Array:
        """ĝ_ij / (p_j κ_i + λ) for some of the features j."""
        table = self.spread(p[columns] if len(p) > 1 else p, lam)
        return self.targets[:, columns] / table

    @final
    def _columns(self, count: int) -> list[slice]:
        return CACHED_TABLES.blocks(count, 8 * len(self.eigenvalues))

    @final
    def require_condition(self, p: Array, lam: float) -> None:
        """Refuse weights for which all A_j are numerically singular."""
        mildest = float(p.min())
        largest = float(self.eigenvalues[-1]) * mildest + lam
        smallest = float(self.eigenvalues[0]) * mildest + lam
        if not (smallest > 0 and largest <= _WORST_CONDITION * smallest):
            raise InvalidInput(
                f"robustness: a weight of {lam / 2:.3g} is below the rounding of a "
                f"kernel with eigenvalues up to {self.eigenvalues[-1]:.3g}; raise the "
                "weight, or add jitter"
            )


# ---- All observations


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ExactPosterior(Posterior):
    """The posterior given all observations: coordinates Uᵀk(x), remainder k(x, x)."""

    basis: KernelEigenbasis

    @classmethod
    def of(cls, kernel: PointKernel, X: Points, rotated: Attributions) -> Self:
        """Condition on rotated gradients at all points X, in O(n³)."""
        require_memory(
            32.0 * len(X) ** 2,
            f"a Gaussian process of {len(X)} observations",
            "use inducing inputs, such as inducing=GreedyVariance(500)",
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
        covariances = self.kernel.cross(X, self.inducing)
        return self.basis.rotate(covariances.T).T, self.kernel.diagonal(X)

    def variance(self, queries: Queries, p: Array, lam: float) -> Array:
        # k/λ − κᵀA⁻¹κ is zero at observed points, up to rounding of k/λ
        coordinates, remainder = queries
        explained = self.weigh(coordinates**2, p, lam) * p
        return np.maximum(remainder[:, None] - explained, 0.0) / lam

    def constants(self, p: Array, lam: float) -> Constants:
        ones = self.weigh(self.ones[None] ** 2, p, lam)[0]
        targets = self.weigh_targets(self.ones[None], p, lam)[0]
        return Constants(ones=lam * p * ones, targets=lam * targets)


# ---- Few inducing inputs: variational inference (Titsias 2009)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SparsePosterior(Posterior):
    """The posterior of N observations by M inducing inputs.

    ``coordinates`` are φ(x), ``remainder`` is k(x, x) − ‖φ(x)‖² ≥ 0, the prior variance
    that inducing inputs do not explain. It includes jitter, as Q is made of the kernel
    without it. κ are eigenvalues of ΦᵀΦ, targets are Φᵀĝ and ones Φᵀ1.
    """

    projection: Array  # (M, r): φ(x) = k(x, Z) projection
    n_points: int  # N
    sums: Array  # (D,): 1ᵀĝ_j

    @classmethod
    def of(
        cls, kernel: PointKernel, X: Points, rotated: Attributions, Z: Points
    ) -> Self:
        """Condition on rotated gradients at X by inducing inputs Z, in O(N M²)."""
        require_memory(
            40.0 * len(Z) ** 2, f"{len(Z)} inducing inputs", "choose fewer of them"
        )
        root = inverse_root(kernel.cross(Z, Z))
        rank = root.shape[1]
        n_features = rotated.shape[1]
        gram = np.zeros((rank, rank))
        targets = np.zeros((rank, n_features))
        ones = np.zeros(rank)
        for rows in BATCH_BUDGET.blocks(len(X), 8 * (len(Z) + rank)):
            Phi = kernel.cross(X[rows], Z) @ root
            gram += Phi.T @ Phi
            targets += Phi.T @ rotated[rows]
            ones += Phi.sum(axis=0)
        values, vectors = eigenbasis(gram)
        return cls(
            kernel=kernel,
            inducing=Z,
            projection=root @ vectors,
            eigenvalues=values,
            targets=vectors.T @ targets,
            ones=vectors.T @ ones,
            n_points=len(X),
            sums=rotated.sum(axis=0),
        )

    def queries(self, X: Points) -> Queries:
        Phi = self.kernel.cross(X, self.inducing) @ self.projection
        # k − ‖φ‖² is negative only by rounding
        rest = self.kernel.diagonal(X) - np.einsum("nr,nr->n", Phi, Phi)
        return Phi, np.maximum(rest, 0.0)

    def variance(self, queries: Queries, p: Array, lam: float) -> Array:
        # (k − ‖φ‖²)/λ + φᵀ(p ΦᵀΦ + λ)⁻¹φ: two terms, neither negative
        coordinates, remainder = queries
        return remainder[:, None] / lam + self.weigh(coordinates**2, p, lam)

    def constants(self, p: Array, lam: float) -> Constants:
        # A⁻¹ = p I − p² Φ(p ΦᵀΦ + λ)⁻¹Φᵀ
        within = self.weigh(self.ones[None] ** 2, p, lam)[0]
        return Constants(
            ones=p * (self.n_points - p * within),
            targets=self.sums - p * self.weigh_targets(self.ones[None], p, lam)[0],
        )


def inverse_root(matrix: Array) -> Array:
    """R (M, r) with R Rᵀ = K⁻¹ in directions with eigenvalues above rounding."""
    values, vectors = eigenbasis(matrix)
    positive = values > len(values) * np.finfo(float).eps * values[-1]
    if not positive.any():
        raise InvalidInput("kernel: it is zero at all inducing inputs")
    return vectors[:, positive] / np.sqrt(values[positive])
