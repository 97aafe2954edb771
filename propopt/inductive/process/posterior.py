"""Inducing inputs in one eigenbasis, from which every weight is answered.

Rotated feature j has observations y_j = ĝ_j/p_j of variance 1/p_j, p_j = 1 + w_s ς_j,
and prior covariance K/λ with λ = 2 w_r. With K = U diag(κ) Uᵀ, all that is needed are
sums over i with the factor 1/(p_j κ_i + λ); K⁻¹ is never formed, so K may be singular.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from propopt._typing import Array, Points
from propopt.batches import Budget
from propopt.errors import InvalidInput
from propopt.inductive.kernels import PointKernel
from propopt.inductive.process.means import Constants, Mean


POSTERIOR_TABLES: Final = Budget(2**25)
"""Largest temporary table; its size changes results by rounding at most."""

CACHED_TABLES: Final = Budget(2**21)
"""Largest table of factors: made, used once and overwritten while it is in cache."""

_WORST_CONDITION = 1e13
"""Of A_j. Near it, means were right to 2e-7 and deviations to 1e-5."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Queries:
    """New points, in the coordinates of a :class:`Posterior`.

    Parameters
    ----------
    coordinates : array (m, r)
        Their covariances with the inducing inputs, in the eigenbasis.
    remainder : array (m,)
        What the prior variance is counted from.
    """

    coordinates: Array
    remainder: Array


class Posterior(ABC):
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
    def variance(self, queries: Queries, p: Array, lam: float) -> Array:
        """v(x), the variance of simple kriging, shape (m, len(p))."""

    @abstractmethod
    def covariance(self, X: Points, queries: Queries, p: float, lam: float) -> Array:
        """That of simple kriging between the queries, which are at X, shape (m, m)."""

    @abstractmethod
    def constants(self, p: Array, lam: float) -> Constants:
        """1ᵀA⁻¹1 and 1ᵀA⁻¹y for each rotated feature."""

    @abstractmethod
    def information_loss(self, p: Array, lam: float, mean: Mean, /) -> float:
        """Upper bound, in nats, of what is lost against using all observations."""

    @final
    def mean(self, queries: Queries, p: Array, lam: float) -> Array:
        """κᵀA⁻¹y = Σ_i t_i ĝ_ij / (p_j κ_i + λ), shape (m, D)."""
        return self.weigh_targets(queries.coordinates, p, lam)

    @final
    def slope(self, queries: Queries, p: Array, lam: float) -> Array:
        """Of a constant: u = 1 − 1ᵀA⁻¹κ, shape (m, len(p)).

        Equal to 1 − Σ_i t_i o_i p_j/(p_j κ_i + λ).
        """
        weighted = queries.coordinates * self.ones
        return 1.0 - self.weigh(weighted, p, lam) * p

    @final
    def weigh(self, rows: Array, p: Array, lam: float) -> Array:
        """Σ_i rows_mi / (p_j κ_i + λ), shape (m, len(p)).

        Features of equal p_j, of which images have many, are computed once.
        """
        different, place = np.unique(p, return_inverse=True)
        sums = np.empty((len(rows), len(different)))
        for columns in self._columns(len(different)):
            sums[:, columns] = rows @ (1.0 / self.spread(different[columns], lam))
        return sums[:, place]

    @final
    def weigh_targets(self, rows: Array, p: Array, lam: float) -> Array:
        """Σ_i rows_mi ĝ_ij / (p_j κ_i + λ), shape (m, D)."""
        sums = np.empty((len(rows), self.targets.shape[1]))
        for columns in self._columns(sums.shape[1]):
            sums[:, columns] = rows @ self._shrunk(columns, p, lam)
        return sums

    @final
    def weigh_squares(self, p: Array, lam: float) -> Array:
        """Σ_i ĝ_ij² / (p_j κ_i + λ), shape (D,)."""
        sums = np.empty(self.targets.shape[1])
        for columns in self._columns(len(sums)):
            shrunk = self._shrunk(columns, p, lam)
            sums[columns] = (self.targets[:, columns] * shrunk).sum(axis=0)
        return sums

    @final
    def spread(self, p: Array, lam: float) -> Array:
        """p_j κ_i + λ, shape (r, len(p))."""
        table = self.eigenvalues[:, None] * p
        table += lam
        return np.asarray(table)

    @final
    def _shrunk(self, columns: slice, p: Array, lam: float) -> Array:
        """ĝ_ij / (p_j κ_i + λ) for some of the features j."""
        table = self.spread(p[columns] if len(p) > 1 else p, lam)
        return np.asarray(self.targets[:, columns] / table)

    @final
    def _columns(self, count: int) -> Iterator[slice]:
        return CACHED_TABLES.blocks(count, 8 * len(self.eigenvalues))

    @final
    def require_condition(self, p: Array, lam: float) -> None:
        """Refuse weights for which A_j is singular to rounding in every feature.

        In a feature with more smoothing than another, a larger relative error is the
        same error beside the gradients.
        """
        mildest = float(p.min())
        largest = float(self.eigenvalues[-1]) * mildest + lam
        smallest = float(self.eigenvalues[0]) * mildest + lam
        if not (smallest > 0 and largest <= _WORST_CONDITION * smallest):
            raise InvalidInput(
                f"robustness: a weight of {lam / 2:.3g} is lost to rounding beside a "
                f"kernel with eigenvalues up to {self.eigenvalues[-1]:.3g}; raise the "
                "weight, or add jitter"
            )


def blocks(count: int, bytes_each: int) -> Iterator[slice]:
    """Consecutive slices of ``range(count)`` whose tables are as large as they may."""
    return POSTERIOR_TABLES.blocks(count, bytes_each)
