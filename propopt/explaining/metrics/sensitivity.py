"""How much explanations change near points."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array
from propopt.base.checks import known_word, read_positive
from propopt.base.words_of_others import knows_other_words
from propopt.explaining.explainers.baseline import Request
from propopt.explaining.metrics.metric import (
    AbsoluteOrRelative,
    Better,
    MethodAtPoints,
    OutputRobustnessMetric,
    RobustnessMetric,
    quotient,
)
from propopt.functions import Function
from propopt.laws.perturbations import Distribution, Perturbations


# ---- How far attributions move when the point moves: sensitivities and Lipschitz ratio


Statistic: TypeAlias = Callable[[slice, Array], Array]
"""From rows and their perturbations (n, s, D) to an array (n, s, ...) that is small."""


@dataclass(frozen=True, kw_only=True)
class Noisy(Perturbations):
    """Settings of metrics with noise, which codes and missing numbers do not get."""

    scale: float = 0.1
    n_samples: int = 100

    def _reduced(
        self, fixed: NDArray[np.bool_], rng: np.random.Generator, statistic: Statistic
    ) -> Array:
        """One number per row, (N,), of its statistic (n, S)."""
        pieces = sampled(self, fixed, rng, statistic)
        return np.concatenate([self._over(values) for _, values in pieces])

    def _over(self, values: Array) -> Array:
        """The number of each row: the largest, if nothing else is said."""
        return values.max(axis=1)


def sampled(
    perturbations: Perturbations,
    fixed: NDArray[np.bool_],
    rng: np.random.Generator,
    statistic: Statistic,
) -> Iterator[tuple[slice, Array]]:
    """The statistic (n, S, ...) of consecutive rows, perturbed where not ``fixed``."""
    blocks = perturbations.blocks(fixed.shape, rng, split=True)
    for rows, pieces in groupby(blocks, key=itemgetter(0)):
        values = []
        for _, noise in pieces:
            noise[np.broadcast_to(fixed[rows, None], noise.shape)] = 0
            values.append(statistic(rows, noise))
        yield rows, np.concatenate(values, axis=1)


@dataclass(frozen=True, kw_only=True)
class Nearby(Noisy, RobustnessMetric):
    """How far attributions at perturbed points x' are from those at x."""

    def _rows(self, method: MethodAtPoints, rng: np.random.Generator) -> Array:
        points, W = method.points, method.W  # which a method that draws is asked first

        def apart(rows: slice, noise: Array) -> Array:
            x = points[rows, None]
            return self._apart(method(x + noise), W[rows, None], x, noise)

        return self._reduced(method.fixed, rng, apart)

    @abstractmethod
    def _apart(self, moved: Array, W: Array, x: Array, noise: Array) -> Array:
        """Of w(x') and w(x), x' = x + noise, (n, s)."""


@dataclass(frozen=True, kw_only=True)
class _Sensitivity(Nearby):
    """A mean or maximum of ‖w(x) − w(x')‖ over perturbed points x'."""

    better: ClassVar[Better] = "lower"

    # uniform in the cube [−δ, δ]^D, N(0, δ² I), or uniform in the ball of radius δ
    distribution: Distribution = "uniform"
    units: AbsoluteOrRelative = "relative"  # whether to divide by ‖w(x)‖

    def __post_init__(self) -> None:
        super().__post_init__()
        known_word(self.units, AbsoluteOrRelative, "units")

    def _apart(self, moved: Array, W: Array, x: Array, noise: Array) -> Array:
        del x, noise
        return np.linalg.norm(moved - W, axis=-1)

    def _rows(self, method: MethodAtPoints, rng: np.random.Generator) -> Array:
        change = super()._rows(method, rng)
        if self.units == "absolute":
            return change
        return quotient(change, np.linalg.norm(method.W, axis=1))


@final
@knows_other_words
@dataclass(frozen=True, kw_only=True)
class MaxSensitivity(_Sensitivity):
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

    >>> from propopt.explaining.explainers import Gradient
    >>> from propopt.functions import Power
    >>> from propopt.explaining.metrics import BaselineMethod
    >>> square = BaselineMethod(explainer=Gradient(), function=Power(2))
    >>> values = MaxSensitivity(scale=0.1, units="absolute")(square, [[5.0]])
    >>> bool(0.19 < values[0] <= 0.2)
    True
    """


@final
@knows_other_words
@dataclass(frozen=True, kw_only=True)
class AvgSensitivity(_Sensitivity):
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

    def _over(self, values: Array) -> Array:
        return values.mean(axis=1)


@final
@knows_other_words
@dataclass(frozen=True, kw_only=True)
class LocalLipschitz(Nearby):
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

    def _apart(self, moved: Array, W: Array, x: Array, noise: Array) -> Array:
        change = np.linalg.norm(moved - W, axis=-1)
        step = np.linalg.norm(np.nan_to_num((x + noise) - x), axis=-1)
        return np.where(step == 0, np.nan, quotient(change, step))

    def _over(self, values: Array) -> Array:
        """Of each row the largest that is not NaN; NaN if there is none."""
        return np.asarray(np.fmax.reduce(values, axis=1))


# ---- Relative stability: changes of attributions over changes of input or output


@dataclass(frozen=True, kw_only=True)
class Relative(Noisy):
    """Quotients of relative changes, with a least divisor."""

    better: ClassVar[Better] = "lower"

    distribution: Distribution = "uniform"
    floor: float = 1e-6  # ε_min > 0

    def __post_init__(self) -> None:
        super().__post_init__()
        read_positive(self.floor, "floor")

    def _change(self, moved: Array, W: Array) -> Array:
        """‖(W − moved) / W‖₂ over the last axis; the floor for a zero divisor."""
        divisor = np.where(W == 0, self.floor, W)
        return np.linalg.norm(quotient(W - moved, divisor), axis=-1)


@final
@knows_other_words
@dataclass(frozen=True, kw_only=True)
class RelativeInputStability(Relative, Nearby):
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

    def _apart(self, moved: Array, W: Array, x: Array, noise: Array) -> Array:
        there = np.nan_to_num(x)  # what is missing does not change
        step = self._change(there + noise, there)
        return self._change(moved, W) / np.maximum(step, self.floor)


@final
@knows_other_words
@dataclass(frozen=True, kw_only=True)
class RelativeOutputStability(Relative, OutputRobustnessMetric):
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

    def _rows(
        self, method: MethodAtPoints, function: Function, rng: np.random.Generator
    ) -> Array:
        points, W = method.points, method.W
        task = Request(function=function, points=points, labels=method.labels, rng=rng)
        outputs = task.value(points)

        def ratio(rows: slice, noise: Array) -> Array:
            moved = points[rows, None] + noise
            change = self._change(method(moved), W[rows, None])
            step = np.abs(outputs[rows, None] - task.value(moved))
            return change / np.maximum(step, self.floor)

        return self._reduced(method.fixed, rng, ratio)
