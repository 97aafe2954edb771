"""The constant of the prior, and normal distributions of attributions.

A constant has an improper flat prior and is integrated out (universal kriging). It
enters through s_j = 1ᵀA_j⁻¹1 and r_j = 1ᵀA_j⁻¹y_j, with A_j the covariance of the
observations y_j of rotated feature j.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, final

import numpy as np

from propopt.base.arrays import Array
from propopt.base.checks import read_option
from propopt.inductive.bases import FeatureBasis


# ---- The constant of the prior: none, one per feature, or a common one


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class NormalLaws:
    """Normal distributions N(m, diag(v) + d dᵀ/s) of points, in rotated features."""

    mean: Array  # (m, D): in the basis V of the features
    # (m, D) or (m, 1): v ≥ 0; one column if all features are equal
    variance: Array
    # (m, D) or (1, 1): d, derivative of the mean by the common constant
    direction: Array = field(default_factory=lambda: np.zeros((1, 1)))
    # (m, 1) or (1, 1): s > 0, precision of that constant
    precision: Array = field(default_factory=lambda: np.ones((1, 1)))

    def observe(self, precision: Array, weighted: Array) -> NormalLaws:
        """The distributions given observations y_j = w_j + N(0, 1/q_j) at every point.

        With D = 1 + q v: mean (m + v q y)/D, variance v/D, direction d/D, precision
        s + Σ_j q_j d_j²/D_j, then a step of the common constant.
        """
        shrink = 1.0 + precision * self.variance
        direction = self.direction / shrink
        information = (precision * self.direction * direction).sum(1, keepdims=True)
        surprise = weighted - precision * self.mean
        pull = (direction * surprise).sum(1, keepdims=True)
        total = self.precision + information
        mean = (self.mean + self.variance * weighted) / shrink
        return NormalLaws(
            mean=mean + direction * (pull / total),
            variance=self.variance / shrink,
            direction=direction,
            precision=total,
        )

    def deviations(self, basis: FeatureBasis) -> Array:
        """Standard deviations of attributions of the original features, (m, D)."""
        variance = basis.unrotate_variances(self._full(self.variance))
        shared = basis.unrotate(self._full(self.direction))
        return np.sqrt(variance + shared**2 / self.precision)

    def draw(
        self, basis: FeatureBasis, n_samples: int, rng: np.random.Generator
    ) -> Array:
        """Draw samples (n_samples, m, D), in the order point, sample, feature."""
        n_points, n_features = self.mean.shape
        normal = rng.standard_normal((n_points, n_samples, n_features + 1))
        independent = np.sqrt(self.variance)[:, None] * normal[..., 1:]
        shared = (self.direction / np.sqrt(self.precision))[:, None] * normal[..., :1]
        return basis.unrotate(self.mean[:, None] + independent + shared).swapaxes(0, 1)

    def _full(self, rows: Array) -> Array:
        return np.broadcast_to(rows, self.mean.shape)


MeanName: TypeAlias = Literal["none", "per_feature", "common"]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Constants:
    """Statistics of a constant from the observations, for each rotated feature."""

    ones: Array  # (D,) or (1,): s_j = 1ᵀA_j⁻¹1
    targets: Array  # (D,): r_j = 1ᵀA_j⁻¹y_j


class Mean:
    """A prior without a constant; base of the other treatments."""

    def predict(
        self, mean: Array, variance: Array, slope: Array, constants: Constants, /
    ) -> NormalLaws:
        """The distributions at m points, from simple kriging and the constant.

        mean κᵀA⁻¹y (m, D), variance v and slope u = 1 − 1ᵀA⁻¹κ (m, D) or (m, 1).
        """
        del slope, constants
        return NormalLaws(mean=mean, variance=variance)

    def gain(self, constants: Constants, /) -> float:
        """The decrease of Σ_j y_jᵀA_j⁻¹y_j by the optimal constants."""
        del constants
        return 0.0

    def log_volume(self, constants: Constants, proper: Array, /) -> float:
        """The log determinant due to integrating out the constants.

        ``proper`` (D,) are their prior precisions by smoothness; zero for a flat prior.
        """
        del constants, proper
        return 0.0

    def n_flat(self, proper: Array, /) -> int:
        """The number of constants with a flat prior."""
        del proper
        return 0


@final
@dataclass(frozen=True)
class MeanPerFeature(Mean):
    """One constant for each feature: mean m + b u, b = r/s, variance v + u²/s."""

    def predict(
        self, mean: Array, variance: Array, slope: Array, constants: Constants, /
    ) -> NormalLaws:
        return NormalLaws(
            mean=mean + slope * (constants.targets / constants.ones),
            variance=variance + slope**2 / constants.ones,
        )

    def gain(self, constants: Constants, /) -> float:
        return float((constants.targets**2 / constants.ones).sum())

    def log_volume(self, constants: Constants, proper: Array, /) -> float:
        ones = np.broadcast_to(constants.ones, proper.shape)
        return float(np.log(ones / np.where(proper > 0, proper, 1.0)).sum())

    def n_flat(self, proper: Array, /) -> int:
        return int((proper == 0).sum())


@final
@dataclass(frozen=True, eq=False)
class CommonMean(Mean):
    """One common constant for all features."""

    loadings: Array  # (D,): c = Vᵀ1: the constant in each rotated feature

    def predict(
        self, mean: Array, variance: Array, slope: Array, constants: Constants, /
    ) -> NormalLaws:
        ones, targets = self._pooled(constants)
        direction = slope * self.loadings
        return NormalLaws(
            mean=mean + direction * (targets / ones),
            variance=variance,
            direction=direction,
            precision=np.full((1, 1), ones),
        )

    def gain(self, constants: Constants, /) -> float:
        ones, targets = self._pooled(constants)
        return targets**2 / ones

    def log_volume(self, constants: Constants, proper: Array, /) -> float:
        ones, _ = self._pooled(constants)
        total = float((self.loadings**2 * proper).sum())
        return float(np.log(ones / total)) if total > 0 else float(np.log(ones))

    def n_flat(self, proper: Array, /) -> int:
        return int((self.loadings**2 * proper).sum() == 0)

    def _pooled(self, constants: Constants) -> tuple[float, float]:
        ones = self.loadings**2 * constants.ones
        return float(ones.sum()), float(self.loadings @ constants.targets)


def read_mean(mean: MeanName, basis: FeatureBasis) -> Mean:
    """The treatment of the constant with this name."""
    name = read_option(mean, MeanName, "mean")
    if name == "common":
        return CommonMean(_loadings(basis))
    return Mean() if name == "none" else MeanPerFeature()


def _loadings(basis: FeatureBasis) -> Array:
    """Vᵀ1, with exact zeros if smoothness ignores constants."""
    loadings = basis.rotate(np.ones((1, basis.n_features)))[0]
    roughness = float(loadings**2 @ basis.eigenvalues)  # 1ᵀP1, zero for every graph
    rounding = basis.n_features * np.finfo(float).eps * basis.eigenvalues.max()
    if roughness <= 10 * rounding * basis.n_features:
        return np.where(basis.eigenvalues > 0, 0.0, loadings)
    return loadings
