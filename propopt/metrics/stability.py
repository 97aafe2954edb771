"""Relative stability: changes of attributions over changes of input or output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from propopt._typing import Array
from propopt.checks import read_positive
from propopt.explainers.request import Request
from propopt.functions import Function
from propopt.metrics.base import (
    Better,
    OutputRobustnessMetric,
    RobustnessMetric,
    quotient,
)
from propopt.metrics.methods import MethodAtPoints
from propopt.metrics.sampling import Noisy, Statistic
from propopt.sampling.perturbations import Distribution


@dataclass(frozen=True, kw_only=True)
class Stability(Noisy):
    """The settings of relative stability.

    Parameters
    ----------
    scale, n_samples, distribution
        The perturbations.
    floor : float
        ε_min > 0.
    """

    distribution: Distribution = "uniform"
    floor: float = 1e-6

    def __post_init__(self) -> None:
        self._perturbations()
        read_positive(self.floor, "floor")

    def _relative_change(self, moved: Array, W: Array) -> Array:
        """‖(W − moved) / W‖₂ over the last axis; ε_min for a zero divisor."""
        divisor = np.where(W == 0, self.floor, W)
        return np.linalg.norm(quotient(W - moved, divisor), axis=-1)

    def _largest(
        self, method: MethodAtPoints, rng: np.random.Generator, ratio: Statistic
    ) -> Array:
        sampling = self._sampling(method.fixed, rng)
        return sampling.reduced(ratio, lambda ratios: ratios.max(axis=1))


@final
@dataclass(frozen=True, kw_only=True)
class RelativeInputStability(Stability, RobustnessMetric):
    """RIS: largest ratio of relative changes (Agarwal et al. 2022, arXiv 2203.06877).

    max_s ‖(w(x) − w(x')) / w(x)‖₂ / max(‖(x − x') / x‖₂, ε_min), with x' = x + ε_s and
    entrywise quotients. Where an entry of w(x) or x is zero, ε_min stands for it: 0/0
    counts as no change, and x/0 as a very large one. A single attribution near zero
    therefore decides the value; :class:`LocalLipschitz` has no such quotient.

    Parameters
    ----------
    scale : float
        δ > 0, the half-width of the cube, in the units of the features.
    n_samples : int
        S, the number of perturbations per point.
    distribution : {"uniform", "gaussian", "ball"}
        Uniform in the cube [−δ, δ]^D, N(0, δ² I), or uniform in the ball of radius δ.
    floor : float
        ε_min > 0, the least divisor.

    Examples
    --------
    Where attributions are proportional to the input, both change alike.

    >>> RelativeInputStability()(lambda X: 3 * X, [[1.0, 2.0]]).round(6)
    array([1.])
    """

    better: ClassVar[Better] = "lower"

    def _rows(self, method: MethodAtPoints, rng: np.random.Generator) -> Array:
        points, W = method.points, method.W

        def ratio(rows: slice, noise: Array) -> Array:
            x = points[rows, None]
            change = self._relative_change(method(x + noise), W[rows, None])
            there = np.nan_to_num(x)  # what is missing does not change
            step = self._relative_change(there + noise, there)
            return change / np.maximum(step, self.floor)

        return self._largest(method, rng, ratio)


@final
@dataclass(frozen=True, kw_only=True)
class RelativeOutputStability(Stability, OutputRobustnessMetric):
    """ROS: largest relative change over change of output (Agarwal et al. 2022).

    max_s ‖(w(x) − w(x')) / w(x)‖₂ / max(|f(x) − f(x')|, ε_min), with x' = x + ε_s. The
    paper's f is the vector of logits; here it is the function that is explained. Zero
    entries of w(x) are treated as in :class:`RelativeInputStability`. Not free of the
    units of f.

    Parameters
    ----------
    scale, n_samples, distribution, floor
        As for :class:`RelativeInputStability`.

    Examples
    --------
    For w = f'(x) = x and f = x²/2 near x = 1 the ratio is about 1.

    >>> import propopt as po
    >>> half_square = po.wrap(lambda X: (X**2).sum(axis=1) / 2)
    >>> metric = RelativeOutputStability(scale=1e-3)
    >>> metric(lambda X: X, half_square, [[1.0]]).round(2)
    array([1.])
    """

    better: ClassVar[Better] = "lower"

    def _rows(
        self, method: MethodAtPoints, function: Function, rng: np.random.Generator
    ) -> Array:
        points, W = method.points, method.W
        task = Request(function=function, points=points, labels=method.labels, rng=rng)
        outputs = task.value(points)

        def ratio(rows: slice, noise: Array) -> Array:
            moved = points[rows, None] + noise
            change = self._relative_change(method(moved), W[rows, None])
            step = np.abs(outputs[rows, None] - task.value(moved))
            return change / np.maximum(step, self.floor)

        return self._largest(method, rng, ratio)
