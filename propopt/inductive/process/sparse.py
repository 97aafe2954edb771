"""Many observations, few inducing inputs: variational inference (Titsias 2009).

The kernel matrix K of N observations is replaced by Q = K_xz K_zz⁻¹ K_zx of rank at
most M, and the law of the inducing values is the best one for that. Q = ΦΦᵀ with
features Φ; the eigenbasis of ΦᵀΦ then serves all weights and all rotated features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np

from propopt._typing import Array, Attributions, Points
from propopt.errors import InvalidInput
from propopt.inductive.kernels import PointKernel
from propopt.inductive.process.eigenbases import eigenbasis
from propopt.inductive.process.means import Constants, Mean
from propopt.inductive.process.posterior import Posterior, Queries, blocks
from propopt.memory import require_memory


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SparsePosterior(Posterior):
    """Observations at N points, seen through M inducing inputs.

    ``coordinates`` are φ(x), ``remainder`` is k(x, x) − ‖φ(x)‖² ≥ 0, the part of the
    prior variance that no inducing input knows of. Jitter belongs to that part: Q is
    made of the kernel without it.

    Parameters
    ----------
    kernel, inducing, eigenvalues, targets, ones
        As for :class:`Posterior`, with κ of ΦᵀΦ, targets Φᵀĝ and ones Φᵀ1.
    projection : array (M, r)
        φ(x) = k(x, Z) projection.
    n_points : int
        N.
    sums, squares : array (D,)
        1ᵀĝ_j and ‖ĝ_j‖².
    residual : float
        tr(K − Q) ≥ 0.
    """

    kernel: PointKernel
    inducing: Points
    projection: Array
    eigenvalues: Array
    targets: Array
    ones: Array
    n_points: int
    sums: Array
    squares: Array
    residual: float

    @classmethod
    def of(
        cls, kernel: PointKernel, X: Points, rotated: Attributions, Z: Points
    ) -> Self:
        """Condition on rotated gradients at X through Z: one pass over X, O(N M²)."""
        require_memory(
            40.0 * len(Z) ** 2, f"{len(Z)} inducing inputs", "choose fewer of them"
        )
        root = inverse_root(kernel.cross(Z, Z))
        sums = _Sums.of(kernel, X, rotated, Z, root)
        values, vectors = eigenbasis(sums.gram)
        return cls(
            kernel=kernel,
            inducing=Z,
            projection=root @ vectors,
            eigenvalues=values,
            targets=vectors.T @ sums.targets,
            ones=vectors.T @ sums.ones,
            n_points=len(X),
            sums=rotated.sum(axis=0),
            squares=np.einsum("nd,nd->d", rotated, rotated),
            residual=float(sums.residual),
        )

    def queries(self, X: Points) -> Queries:
        Phi = self.kernel.cross(X, self.inducing) @ self.projection
        return Queries(coordinates=Phi, remainder=_remainder(self.kernel, X, Phi))

    def variance(self, queries: Queries, p: Array, lam: float) -> Array:
        # (k − ‖φ‖²)/λ + φᵀ(p ΦᵀΦ + λ)⁻¹φ: two terms, neither negative
        explained = self.weigh(queries.coordinates**2, p, lam)
        return queries.remainder[:, None] / lam + explained

    def covariance(self, X: Points, queries: Queries, p: float, lam: float) -> Array:
        t = queries.coordinates
        change = 1.0 / (p * self.eigenvalues + lam) - 1.0 / lam
        return self.kernel.matrix(X) / lam + (t * change) @ t.T

    def constants(self, p: Array, lam: float) -> Constants:
        # A⁻¹ = p I − p² Φ(p ΦᵀΦ + λ)⁻¹Φᵀ
        within = self.weigh(self.ones[None] ** 2, p, lam)[0]
        return Constants(
            ones=p * (self.n_points - p * within),
            targets=self.sums - p * self.weigh_targets(self.ones[None], p, lam)[0],
        )

    def information_loss(self, p: Array, lam: float, mean: Mean, /) -> float:
        """An upper bound of KL(sparse ‖ exact posterior), in nats, over all features.

        The log evidence of y_j is at least that of N(0, Q/λ + I/p) less t p/2, with
        t = tr(K − Q)/λ (Titsias 2009, Eq. 9), and at most
        −½ log det(Q/λ + I/p) − ½ yᵀ(Q/λ + (t + 1/p) I)⁻¹y, up to the same constant
        (Titsias 2014), because K − Q ≼ tr(K − Q) I. The divergence is the distance of
        the evidence to its lower bound, hence at most t p/2 plus the difference of the
        two quadratic forms.
        """
        trace = self.residual / lam
        noisier = p / (1.0 + trace * p)
        change = self._quadratic(p, p, lam, mean)
        change -= self._quadratic(noisier, p, lam, mean)
        spent = trace * float(np.broadcast_to(p, self.sums.shape).sum())
        return 0.5 * (spent + max(change, 0.0))

    def _quadratic(self, noise: Array, p: Array, lam: float, mean: Mean) -> float:
        """Σ_j y_jᵀ(Q/λ + I/q_j)⁻¹y_j at the best constants, q the noise precisions."""
        within = self.weigh_squares(noise, lam)
        squares = noise * (self.squares - noise * within) / p**2
        targets = self.sums - noise * self.weigh_targets(self.ones[None], noise, lam)[0]
        constants = Constants(
            ones=self.constants(noise, lam).ones, targets=noise * targets / p
        )
        return float(squares.sum()) - mean.gain(constants)


@final
@dataclass(kw_only=True, eq=False)
class _Sums:
    """Sums over observations: ΦᵀΦ, Φᵀĝ, Φᵀ1 and tr(K − Q)."""

    gram: Array
    targets: Array
    ones: Array
    residual: float = 0.0

    @classmethod
    def of(
        cls,
        kernel: PointKernel,
        X: Points,
        rotated: Attributions,
        Z: Points,
        root: Array,
    ) -> Self:
        """With Φ = k(X, Z) root, of which only some rows are in memory at a time."""
        rank, n_features = root.shape[1], rotated.shape[1]
        sums = cls(
            gram=np.zeros((rank, rank)),
            targets=np.zeros((rank, n_features)),
            ones=np.zeros(rank),
        )
        for rows in blocks(len(X), 8 * (len(Z) + rank)):
            Phi = kernel.cross(X[rows], Z) @ root
            sums._add(Phi, rotated[rows], _remainder(kernel, X[rows], Phi))
        return sums

    def _add(self, Phi: Array, rotated: Array, remainder: Array) -> None:
        self.gram += Phi.T @ Phi
        self.targets += Phi.T @ rotated
        self.ones += Phi.sum(axis=0)
        self.residual += remainder.sum()


def inverse_root(matrix: Array) -> Array:
    """R with R Rᵀ = K⁻¹ on the directions that K knows beyond rounding, (M, r).

    Leaving out the others is to use fewer inducing inputs, and the bounds still hold.
    """
    values, vectors = eigenbasis(matrix)
    kept = values > len(values) * np.finfo(float).eps * values[-1]
    if not kept.any():
        raise InvalidInput("kernel: it is zero at all inducing inputs")
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def _remainder(kernel: PointKernel, X: Points, Phi: Array) -> Array:
    # k − ‖φ‖² is never negative but by rounding
    explained = np.einsum("nr,nr->n", Phi, Phi)
    return np.maximum(kernel.diagonal(X) - explained, 0.0)
