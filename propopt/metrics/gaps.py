"""Prediction gaps: what noise in the important, or the other, features does to f."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Attributions
from propopt.checks import read_count
from propopt.explainers.request import Request
from propopt.metrics.base import Better, FaithfulnessMetric
from propopt.metrics.reading import most_important, read_size
from propopt.metrics.sampling import Noisy


@dataclass(frozen=True, kw_only=True)
class PredictionGap(Noisy, FaithfulnessMetric):
    """Mean of |f(x) − f(x')| where x' has noise in some features only.

    Parameters
    ----------
    scale, n_samples, distribution
        The noise.
    k : int, optional
        How many features are important.
    """

    k: int | None = None

    def __post_init__(self) -> None:
        self._perturbations()
        if self.k is not None:
            read_count(self.k, "k")

    def _rows(self, task: Request, attributions: Attributions) -> Array:
        noisy = self._noisy(attributions, read_size(self.k, attributions.shape[1]))
        points, values = task.points, task.value(task.points)

        def gap(rows: slice, noise: Array) -> Array:
            moved = points[rows, None] + noise * noisy[rows, None]
            return np.abs(task.value(moved) - values[rows, None])

        sampling = self._sampling(task.fixed, task.rng)
        return sampling.reduced(gap, lambda gaps: gaps.mean(axis=1))

    @abstractmethod
    def _noisy(self, attributions: Attributions, size: int) -> NDArray[np.bool_]:
        """True where there is noise, (N, D)."""


@final
@dataclass(frozen=True, kw_only=True)
class PGI(PredictionGap):
    """Prediction gap on important features (Agarwal et al. 2022, OpenXAI).

    (1/S) Σ_s |f(x) − f(x + m∘ε_s)|, where m is 1 for the k features with the largest
    |w| and 0 for the others (arXiv 2206.11104). In the units of f. Of equal |w|, those
    that come first are taken.

    Parameters
    ----------
    scale : float
        δ > 0, the standard deviation of the noise, in the units of the features.
    n_samples : int
        S, the number of perturbations per point.
    distribution : {"gaussian", "uniform", "ball"}
        N(0, δ² I), uniform in the cube [−δ, δ]^D, or uniform in the ball of radius δ.
    k : int, optional
        How many features are important, at most D; by default a quarter of D, at
        least 1.

    Examples
    --------
    Only the first feature matters, and the second is said to be important.

    >>> import propopt as po
    >>> first = po.wrap(lambda X: X[:, 0])
    >>> PGI(k=1)([[0.0, 1.0]], first, [[1.0, 1.0]])
    array([0.])
    """

    better: ClassVar[Better] = "higher"

    def _noisy(self, attributions: Attributions, size: int) -> NDArray[np.bool_]:
        return most_important(attributions, size)


@final
@dataclass(frozen=True, kw_only=True)
class PGU(PredictionGap):
    """Prediction gap on unimportant features (Agarwal et al. 2022, OpenXAI).

    As :class:`PGI`, with noise in all features but the k most important.

    Parameters
    ----------
    scale, n_samples, distribution, k
        As for :class:`PGI`.

    Examples
    --------
    >>> import propopt as po
    >>> first = po.wrap(lambda X: X[:, 0])
    >>> PGU(k=1)([[1.0, 0.0]], first, [[1.0, 1.0]])
    array([0.])
    """

    better: ClassVar[Better] = "lower"

    def _noisy(self, attributions: Attributions, size: int) -> NDArray[np.bool_]:
        return ~most_important(attributions, size)
