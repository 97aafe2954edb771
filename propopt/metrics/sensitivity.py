"""How far attributions move when the point moves: sensitivities and Lipschitz ratio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from propopt._typing import Array
from propopt.metrics.base import Better, RobustnessMetric, quotient
from propopt.metrics.methods import MethodAtPoints
from propopt.metrics.reading import AbsoluteOrRelative, read_units
from propopt.metrics.sampling import Noisy
from propopt.sampling.perturbations import Distribution


@dataclass(frozen=True, kw_only=True)
class Sensitivity(Noisy, RobustnessMetric):
    """A mean or maximum of ‖w(x) − w(x')‖ over perturbed points x'.

    Parameters
    ----------
    scale : float
        δ > 0, the half-width of the cube, in the units of the features.
    n_samples : int
        S, the number of perturbations per point.
    distribution : {"uniform", "gaussian", "ball"}
        Uniform in the cube [−δ, δ]^D, N(0, δ² I), or uniform in the ball of radius δ.
    units : {"relative", "absolute"}
        Whether to divide by ‖w(x)‖.
    """

    better: ClassVar[Better] = "lower"

    distribution: Distribution = "uniform"
    units: AbsoluteOrRelative = "relative"

    def __post_init__(self) -> None:
        self._perturbations()
        read_units(self.units)

    def _distance(
        self,
        method: MethodAtPoints,
        rng: np.random.Generator,
        reduce: Callable[[Array], Array],
    ) -> Array:
        """``reduce`` of ‖w(x) − w(x')‖ over x', in the units asked for."""
        points, W = method.points, method.W

        def distance(rows: slice, noise: Array) -> Array:
            moved = method(points[rows, None] + noise)
            return np.linalg.norm(moved - W[rows, None], axis=-1)

        sampling = self._sampling(method.fixed, rng)
        change = sampling.reduced(distance, reduce)
        if self.units == "absolute":
            return change
        return quotient(change, np.linalg.norm(W, axis=1))


@final
@dataclass(frozen=True, kw_only=True)
class MaxSensitivity(Sensitivity):
    """Largest change of the attributions nearby (Yeh et al. 2019, max-sensitivity).

    max_s ‖w(x) − w(x + ε_s)‖₂, by default divided by ‖w(x)‖₂, ε_s uniform in the cube
    [−δ, δ]^D. A lower bound of the maximum over the cube, which grows with the number
    of samples. In relative units, undefined where w(x) = 0.

    Parameters
    ----------
    scale, n_samples, distribution, units
        As for :class:`AvgSensitivity`.

    Examples
    --------
    The gradient of a linear function does not change; that of x² changes by 2ε.

    >>> from propopt.explainers import Gradient
    >>> from propopt.functions import Power
    >>> from propopt.metrics import BaselineMethod
    >>> square = BaselineMethod(explainer=Gradient(), function=Power(2))
    >>> values = MaxSensitivity(scale=0.1, units="absolute")(square, [[5.0]])
    >>> bool(0.19 < values[0] <= 0.2)
    True
    """

    def _rows(self, method: MethodAtPoints, rng: np.random.Generator) -> Array:
        return self._distance(method, rng, lambda d: d.max(axis=1))


@final
@dataclass(frozen=True, kw_only=True)
class AvgSensitivity(Sensitivity):
    """Mean change of the attributions nearby (Yeh et al. 2019; Bhatt et al. 2020).

    (1/S) Σ_s ‖w(x) − w(x + ε_s)‖₂, by default divided by ‖w(x)‖₂. In relative units,
    undefined where w(x) = 0.

    Parameters
    ----------
    scale : float
        δ > 0, the half-width of the cube, in the units of the features.
    n_samples : int
        S, the number of perturbations per point.
    distribution : {"uniform", "gaussian", "ball"}
        Uniform in the cube [−δ, δ]^D, N(0, δ² I), or uniform in the ball of radius δ.
    units : {"relative", "absolute"}
        Whether to divide by ‖w(x)‖.

    Examples
    --------
    >>> import numpy as np
    >>> constant = lambda X: np.ones_like(X)
    >>> AvgSensitivity()(constant, [[1.0, 2.0]])
    array([0.])
    """

    def _rows(self, method: MethodAtPoints, rng: np.random.Generator) -> Array:
        return self._distance(method, rng, lambda d: d.mean(axis=1))


@final
@dataclass(frozen=True, kw_only=True)
class LocalLipschitz(Noisy, RobustnessMetric):
    """Largest ratio of changes nearby (Alvarez-Melis and Jaakkola, arXiv 1806.08049).

    max_s ‖w(x) − w(x')‖₂ / ‖x − x'‖₂ with x' = x + ε_s, a lower bound of the local
    Lipschitz constant of the method. A perturbation that rounding makes zero is left
    out; undefined only if all of them are.

    Parameters
    ----------
    scale : float
        δ > 0, the standard deviation of the noise, in the units of the features.
    n_samples : int
        S, the number of perturbations per point.
    distribution : {"gaussian", "uniform", "ball"}
        N(0, δ² I), uniform in the cube [−δ, δ]^D, or uniform in the ball of radius δ.

    Examples
    --------
    >>> LocalLipschitz()(lambda X: 3 * X, [[1.0, 2.0]]).round(6)
    array([3.])
    """

    better: ClassVar[Better] = "lower"

    def _rows(self, method: MethodAtPoints, rng: np.random.Generator) -> Array:
        points, W = method.points, method.W

        def ratio(rows: slice, noise: Array) -> Array:
            moved = points[rows, None] + noise
            change = np.linalg.norm(method(moved) - W[rows, None], axis=-1)
            step = np.linalg.norm(np.nan_to_num(moved - points[rows, None]), axis=-1)
            return np.where(step == 0, np.nan, quotient(change, step))

        sampling = self._sampling(method.fixed, rng)
        return sampling.reduced(ratio, largest_defined)


def largest_defined(samples: Array) -> Array:
    """The largest number in each row that is not NaN; NaN if there is none."""
    largest: Array = np.fmax.reduce(samples, axis=1)
    return largest
