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

from propopt._typing import Array, Attributions, Points
from propopt.batches import Budget
from propopt.errors import InvalidInput
from propopt.inductive.eigenbases import Eigenbasis
from propopt.inductive.kernels import PointKernel
from propopt.inductive.means import Constants, Mean
from propopt.memory import require_memory


BLOCK_BYTES = 2**25
"""Largest temporary table; its size changes results by rounding at most."""

CACHE_BYTES = 2**21
"""Largest table of factors: made, used once and overwritten while it is in cache."""

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
        return self.weigh_targets(queries.coordinates, p, scale)

    @final
    def slope(self, queries: Queries, p: Array, scale: float) -> Array:
        """Of a constant: u = 1 − 1ᵀA⁻¹κ, shape (m, len(p)).

        Equal to 1 − Σ_i t_i o_i p_j/(p_j κ_i + λ).
        """
        weighted = queries.coordinates * self.ones
        return 1.0 - self.weigh(weighted, p, scale) * p

    @final
    def weigh(self, rows: Array, p: Array, scale: float) -> Array:
        """Σ_i rows_mi / (p_j κ_i + λ), shape (m, len(p)).

        Features of equal p_j, of which images have many, are computed once.
        """
        different, place = np.unique(p, return_inverse=True)
        found = np.empty((len(rows), len(different)))
        for columns in self._columns(len(different)):
            found[:, columns] = rows @ (1.0 / self.spread(different[columns], scale))
        return found[:, place]

    @final
    def weigh_targets(self, rows: Array, p: Array, scale: float) -> Array:
        """Σ_i rows_mi ĝ_ij / (p_j κ_i + λ), shape (m, D)."""
        found = np.empty((len(rows), self.targets.shape[1]))
        for columns in self._columns(found.shape[1]):
            found[:, columns] = rows @ self._shrunk(columns, p, scale)
        return found

    @final
    def weigh_squares(self, p: Array, scale: float) -> Array:
        """Σ_i ĝ_ij² / (p_j κ_i + λ), shape (D,)."""
        found = np.empty(self.targets.shape[1])
        for columns in self._columns(len(found)):
            shrunk = self._shrunk(columns, p, scale)
            found[columns] = (self.targets[:, columns] * shrunk).sum(axis=0)
        return found

    @final
    def spread(self, p: Array, scale: float) -> Array:
        """p_j κ_i + λ, shape (r, len(p))."""
        table = self.eigenvalues[:, None] * p
        table += scale
        return np.asarray(table)

    @final
    def _shrunk(self, columns: slice, p: Array, scale: float) -> Array:
        """ĝ_ij / (p_j κ_i + λ) for some of the features j."""
        table = self.spread(p[columns] if len(p) > 1 else p, scale)
        return np.asarray(self.targets[:, columns] / table)

    @final
    def _columns(self, count: int) -> Iterator[slice]:
        return blocks(count, 8 * len(self.eigenvalues), CACHE_BYTES)

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
    basis: Eigenbasis
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
        basis = Eigenbasis.of(kernel.matrix(X))
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
        targets = self.weigh_targets(self.ones[None], p, scale)[0]
        return Constants(ones=scale * p * ones, targets=scale * targets)

    def information_loss(self, _p: Array, _scale: float, _mean: Mean, /) -> float:
        return 0.0


def blocks(count: int, bytes_each: int, most: int | None = None) -> Iterator[slice]:
    """Consecutive slices of ``range(count)`` whose tables fit into a block.

    Parameters
    ----------
    count, bytes_each : int
        How many there are, and the size of each.
    most : int, optional
        A limit in bytes below ``BLOCK_BYTES``.
    """
    limit = BLOCK_BYTES if most is None else min(most, BLOCK_BYTES)
    return Budget(limit).blocks(count, bytes_each)
