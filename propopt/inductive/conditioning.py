"""Inducing inputs in one eigenbasis, from which every weight is answered.

Rotated feature j has observations y_j = ĝ_j/p_j of variance 1/p_j, p_j = 1 + w_s ς_j,
and prior covariance K/λ with λ = 2 w_r. With K = U diag(κ) Uᵀ, all that is needed are
sums over i with the factor 1/(p_j κ_i + λ); K⁻¹ is never formed, so K may be singular.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.linalg as la

from propopt._typing import Array, Attributions, Points
from propopt.errors import InvalidInput
from propopt.inductive.kernels import PointKernel
from propopt.inductive.means import Constants, Mean
from propopt.memory import require_memory


BLOCK_BYTES = 2**25
"""Largest temporary table; its size changes results by rounding at most."""

WORST_CONDITION = 1e13
"""Of A_j. Near it, means were found right to 2e-7 and deviations to 1e-5."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Queries:
    """New points, in the coordinates of a :class:`Conditioned` prior.

    Parameters
    ----------
    coordinates : array (m, r)
        Their covariances with the inducing inputs, in the eigenbasis.
    remainder : array (m,)
        What the prior variance is counted from.
    """

    coordinates: Array
    remainder: Array


class Conditioned(ABC):
    """A prior that has seen gradients at its inducing inputs.

    Attributes
    ----------
    kernel : PointKernel
        Of the points.
    inducing : array (M, D)
        The inducing inputs.
    eigenvalues : array (r,)
        κ ≥ 0.
    targets : array (r, D)
        The rotated gradients in the eigenbasis.
    ones : array (r,)
        The constant vector in the eigenbasis.
    """

    kernel: PointKernel
    inducing: Points
    eigenvalues: Array
    targets: Array
    ones: Array

    @abstractmethod
    def queries(self, X: Points) -> Queries:
        """The coordinates of new points (m, D)."""

    @abstractmethod
    def variance(self, queries: Queries, p: Array, scale: float) -> Array:
        """v(x), the variance of simple kriging, shape (m, len(p))."""

    @abstractmethod
    def covariance(self, X: Points, queries: Queries, p: float, scale: float) -> Array:
        """That of simple kriging between the queries, which are at X, shape (m, m)."""

    @abstractmethod
    def constants(self, p: Array, scale: float) -> Constants:
        """1ᵀA⁻¹1 and 1ᵀA⁻¹y for each rotated feature."""

    @abstractmethod
    def information_loss(self, p: Array, scale: float, mean: Mean, /) -> float:
        """Upper bound, in nats, of what is lost against using all observations."""

    @final
    def mean(self, queries: Queries, p: Array, scale: float) -> Array:
        """κᵀA⁻¹y = Σ_i t_i ĝ_ij / (p_j κ_i + λ), shape (m, D)."""
        t = queries.coordinates
        found = np.empty((len(t), self.targets.shape[1]))
        for columns in blocks(found.shape[1], 8 * len(self.eigenvalues)):
            factor = self.factor(p[columns] if len(p) > 1 else p, scale)
            found[:, columns] = t @ (self.targets[:, columns] * factor)
        return found

    @final
    def slope(self, queries: Queries, p: Array, scale: float) -> Array:
        """Of a constant: u = 1 − 1ᵀA⁻¹κ, shape (m, len(p)).

        Equal to 1 − Σ_i t_i o_i p_j/(p_j κ_i + λ).
        """
        weighted = queries.coordinates * self.ones
        return 1.0 - self.weigh(weighted, p, scale) * p

    @final
    def weigh(self, rows: Array, p: Array, scale: float) -> Array:
        """Σ_i rows_mi / (p_j κ_i + λ), shape (m, len(p))."""
        found = np.empty((len(rows), len(p)))
        for columns in blocks(len(p), 8 * len(self.eigenvalues)):
            found[:, columns] = rows @ self.factor(p[columns], scale)
        return found

    @final
    def products(self, left: Array, p: Array, scale: float) -> Array:
        """Σ_i left_ij ĝ_ij / (p_j κ_i + λ) for left (r, D) or (r, 1), shape (D,)."""
        found = np.empty(self.targets.shape[1])
        for columns in blocks(len(found), 8 * len(self.eigenvalues)):
            factor = self.factor(p[columns] if len(p) > 1 else p, scale)
            given = left[:, columns] if left.shape[1] > 1 else left
            found[columns] = (given * self.targets[:, columns] * factor).sum(axis=0)
        return found

    @final
    def factor(self, p: Array, scale: float) -> Array:
        """1/(p_j κ_i + λ), shape (r, len(p))."""
        return np.asarray(1.0 / (self.eigenvalues[:, None] * p + scale))

    @final
    def require_condition(self, p: Array, scale: float) -> None:
        """Refuse weights for which A_j is singular to rounding in every feature.

        In a feature with more smoothing than another, a larger relative error is the
        same error beside the gradients.
        """
        mildest = float(p.min())
        largest = float(self.eigenvalues[-1]) * mildest + scale
        smallest = float(self.eigenvalues[0]) * mildest + scale
        if not (smallest > 0 and largest <= WORST_CONDITION * smallest):
            raise InvalidInput(
                f"robustness: a weight of {scale / 2:.3g} is lost to rounding beside a "
                f"kernel with eigenvalues up to {self.eigenvalues[-1]:.3g}; raise the "
                "weight, or add jitter"
            )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Exact(Conditioned):
    """All observations are inducing inputs: K = U diag(κ) Uᵀ in full.

    ``coordinates`` are Uᵀk(x), ``remainder`` is k(x, x).
    """

    kernel: PointKernel
    inducing: Points
    vectors: Array
    eigenvalues: Array
    targets: Array
    ones: Array

    @classmethod
    def of(cls, kernel: PointKernel, X: Points, rotated: Attributions) -> Exact:
        """Condition on rotated gradients at all points of X: one eigenbasis, O(n³)."""
        require_memory(
            32.0 * len(X) ** 2,
            f"a Gaussian process of {len(X)} observations",
            "choose fewer inducing inputs, such as inducing=GreedyVariance(500)",
        )
        values, vectors = eigenbasis(kernel.matrix(X))
        return cls(
            kernel=kernel,
            inducing=X,
            vectors=vectors,
            eigenvalues=values,
            targets=vectors.T @ rotated,
            ones=vectors.sum(axis=0),
        )

    def queries(self, X: Points) -> Queries:
        cross = self.kernel.cross(X, self.inducing)
        return Queries(
            coordinates=cross @ self.vectors, remainder=self.kernel.diagonal(X)
        )

    def variance(self, queries: Queries, p: Array, scale: float) -> Array:
        # k/λ − κᵀA⁻¹κ: at an observed point this is the difference of numbers near
        # k/λ, so that a zero may come out as −ε k/λ: it is a zero
        explained = self.weigh(queries.coordinates**2, p, scale) * p
        return np.maximum(queries.remainder[:, None] - explained, 0.0) / scale

    def covariance(self, X: Points, queries: Queries, p: float, scale: float) -> Array:
        t = queries.coordinates
        explained = (t * (p / (p * self.eigenvalues + scale))) @ t.T
        return (self.kernel.matrix(X) - explained) / scale

    def constants(self, p: Array, scale: float) -> Constants:
        ones = self.weigh(self.ones[None] ** 2, p, scale)[0]
        targets = self.products(self.ones[:, None], p, scale)
        return Constants(ones=scale * p * ones, targets=scale * targets)

    def information_loss(self, _p: Array, _scale: float, _mean: Mean, /) -> float:
        return 0.0


def eigenbasis(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a positive semidefinite matrix.

    Eigenvalues that are negative by rounding are zeros.
    """
    values, vectors = la.eigh(matrix)
    if values[0] < -1e-10 * max(values[-1], 0.0):
        raise InvalidInput(
            "kernel: its matrix is not positive semidefinite (smallest eigenvalue "
            f"{values[0]:.3g}, largest {values[-1]:.3g})"
        )
    return np.maximum(values, 0.0), vectors


def blocks(count: int, bytes_each: int) -> Iterator[slice]:
    """Consecutive slices of ``range(count)`` whose tables fit into a block."""
    step = max(1, BLOCK_BYTES // bytes_each)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))
