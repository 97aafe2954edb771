"""What is known of attributions at new points: gaussian laws, and their updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.inductive.bases.base import FeatureBasis


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class NormalLaws:
    """Gaussian laws N(m, diag(v) + d dᵀ/s), one per point, in rotated features.

    Parameters
    ----------
    mean : array (m, D)
        In the basis V of the features.
    variance : array (m, D) or (m, 1)
        v ≥ 0; one column where all features have the same.
    direction : array (m, D) or (1, 1)
        d, how the mean moves with a constant that all features share; zero without one.
    precision : array (m, 1) or (1, 1)
        s > 0, how well that constant is known.
    """

    mean: Array
    variance: Array
    direction: Array
    precision: Array

    def observe(self, precision: Array, weighted: Array) -> NormalLaws:
        """The law once y_j = w_j + N(0, 1/q_j) is seen at every point.

        With D = 1 + q v: mean (m + v q y)/D, variance v/D, direction d/D, precision
        s + Σ_j q_j d_j²/D_j, then a step of the shared constant.

        Parameters
        ----------
        precision : array (D,) or (1,)
            q ≥ 0; zero says nothing.
        weighted : array (m, D) or (1, 1)
            q y, so that zero precision needs no y.
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
        """Standard deviation of every attribution, features as they were, (m, D)."""
        variance = basis.unrotate_variances(self._full(self.variance))
        shared = basis.unrotate(self._full(self.direction))
        return np.sqrt(variance + shared**2 / self.precision)

    def draw(
        self, basis: FeatureBasis, n_samples: int, rng: np.random.Generator
    ) -> Array:
        """Attributions from the law, shape (n_samples, m, D).

        The draws are one stream in the order point, sample, feature.
        """
        n_points, n_features = self.mean.shape
        normal = rng.standard_normal((n_points, n_samples, n_features + 1))
        own = np.sqrt(self.variance)[:, None] * normal[..., 1:]
        shared = (self.direction / np.sqrt(self.precision))[:, None] * normal[..., :1]
        rotated = self.mean[:, None] + own + shared
        return basis.unrotate(rotated).swapaxes(0, 1)

    def _full(self, rows: Array) -> Array:
        return np.broadcast_to(rows, self.mean.shape)
