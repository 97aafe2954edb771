"""Five metrics of the literature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Attributions
from propopt.base.checks import read_array, read_count, read_option
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.explaining.explainers.baseline import Request
from propopt.explaining.explainers.shapley_values import (
    checked_background,
    same_columns,
)
from propopt.explaining.metrics.metric import (
    BACKGROUND_OF_TEXTS,
    AbsoluteOrRelative,
    Better,
    ExplanationMethod,
    FaithfulnessMetric,
    MethodAtPoints,
    Metric,
    Noisy,
    RandomSeed,
    TableLike,
    attributions_of,
    mean_point,
    metric_rng,
    quotient,
    read_present,
    read_size,
    read_task,
    refuse_documents,
    sampled,
    warn_undefined,
)
from propopt.functions import Function
from propopt.laws.perturbations import Distribution, Perturbations
from propopt.tables.frames import aligned_vector
from propopt.tables.imported import AttributionsLike, read_attributions


# ---- Infidelity: whether Iᵀw foretells what the function does when x moves by I


Rescaling: TypeAlias = Literal["none", "best"]


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True)
class Infidelity(Noisy, FaithfulnessMetric):
    """Error of predicting changes of f linearly by attributions (Yeh et al. 2019).

    (1/S) Σ_s (I_sᵀw − (f(x) − f(x − I_s)))² with I_s ~ N(0, δ² I): zero for the
    gradient of a linear function, and in the units of f². It asks for attributions in
    the units of gradients; others, off by a factor, are judged by
    ``rescaling="best"``: the infidelity of β·w with the β that suits it best,

    β = Σ_s (I_sᵀw) Δ_s / Σ_s (I_sᵀw)²,  Δ_s = f(x) − f(x − I_s),

    which does not depend on the scale of w. Where Iᵀw = 0 throughout, every β is as
    good as another, and β = 0 is reported. Always defined.

    Parameters
    ----------
    scale : float
        δ > 0, the standard deviation of I, in the units of the features.
    n_samples : int
        S, the number of perturbations per point.
    distribution : {"gaussian", "uniform", "ball"}
        N(0, δ² I), uniform in the cube [−δ, δ]^D, or uniform in the ball of radius δ.
    rescaling : {"none", "best"}
        Whether to judge w or β·w. :meth:`parts` gives both.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> line = po.wrap(lambda X: X @ [1.0, 2.0])
    >>> parts = Infidelity().parts([[2.0, 4.0]], line, [[0.0, 0.0]])
    >>> print(parts.round(6))
             raw  scale_free  factor
    0  0.039168         0.0     0.5
    """

    better: ClassVar[Better] = "lower"

    rescaling: Rescaling = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        read_option(self.rescaling, Rescaling, "rescaling")

    def parts(
        self,
        explanation: AttributionsLike,
        function: Function,
        X: TableLike,
        *,
        rng: RandomSeed = None,
    ) -> pd.DataFrame:
        """Infidelity of w (``raw``), of β·w (``scale_free``), and β (``factor``).

        Parameters
        ----------
        explanation : array, DataFrame or Explanation (N, D)
            The attributions w. Named rows and columns are put in the order of X.
        function : Function
            The function f, as :func:`propopt.wrap` returns it.
        X : array or DataFrame (N, D)
            The points.
        rng : int or numpy.random.Generator, optional
            A seed, or a generator, which is then advanced; by default seed 0.

        Returns
        -------
        DataFrame (N, 3)
            A row for each point. ``raw`` and ``scale_free`` are in units of f², and
            ``factor`` in units of gradients divided by those of w.

        Raises
        ------
        InvalidInput
            If attributions have another shape or other names than X, or are not finite.
        """
        task = read_task(function, X, rng)
        attributions = attributions_of(explanation, task.points, task.labels)
        return self._parts(task, attributions)

    def _rows(self, task: Request, attributions: Attributions) -> Array:
        parts = self._parts(task, attributions)
        kind = "raw" if self.rescaling == "none" else "scale_free"
        return parts[kind].to_numpy()

    def _parts(self, task: Request, attributions: Attributions) -> pd.DataFrame:
        points, values = task.points, task.value(task.points)

        def forecasts(rows: slice, noise: Array) -> Array:
            """Pairs (I_sᵀw, Δ_s), (n, s, 2)."""
            forecast = (noise @ attributions[rows, :, None])[..., 0]
            change = values[rows, None] - task.value(points[rows, None] - noise)
            return np.stack([forecast, change], axis=-1)

        pieces = sampled(self, task.fixed, task.rng, forecasts)
        errors = [_errors(pairs) for _, pairs in pieces]
        columns, rows = ["raw", "scale_free", "factor"], task.labels.points
        return pd.DataFrame(np.concatenate(errors, axis=1).T, rows, columns)


def _errors(pairs: Array) -> Array:
    """Raw error, scale-free error and β of each row, (3, n)."""
    forecast, change = pairs[..., 0], pairs[..., 1]
    size = np.abs(forecast).max(axis=1, keepdims=True)
    size[size == 0] = 1
    unit = forecast / size  # so that no square over- or underflows
    squares = (unit**2).sum(axis=1)
    squares[squares == 0] = 1
    factor = (unit * change).sum(axis=1) / squares
    raw = ((forecast - change) ** 2).mean(axis=1)
    scale_free = ((factor[:, None] * unit - change) ** 2).mean(axis=1)
    return np.stack([raw, scale_free, factor / size[:, 0]])


# ---- Completeness: whether the attributions add up to what they should explain


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class CompletenessGap(FaithfulnessMetric):
    """How far the attributions are from adding up (Sundararajan et al. 2017, axiom).

    |Σ_i w_i − (f(x) − f₀)| with f₀ the mean of f over the background, by default in the
    units of f, or divided by |f(x) − f₀|. A number, where others test for equality. It
    asks for attributions in units of output. In relative units, undefined where
    f(x) = f₀.

    Parameters
    ----------
    data : array or DataFrame (B, D), optional
        The points that stand for "feature unknown": the background or the baseline of
        the method; by default the mean of X.
    units : {"absolute", "relative"}
        Whether to divide by |f(x) − f₀|.

    Examples
    --------
    >>> import propopt as po
    >>> line = po.wrap(lambda X: X @ [1.0, 2.0])
    >>> CompletenessGap(data=[[0.0, 0.0]])([[3.0, 4.0]], line, [[3.0, 2.5]])
    array([1.])
    """

    better: ClassVar[Better] = "lower"

    data: Array | pd.DataFrame | None = None
    units: AbsoluteOrRelative = "absolute"

    def __post_init__(self) -> None:
        read_option(self.units, AbsoluteOrRelative, "units")
        if self.data is not None:
            object.__setattr__(self, "data", checked_background(self.data))

    def _texts_refusal(self) -> str | None:
        return None if self.data is None else BACKGROUND_OF_TEXTS

    def _rows(self, task: Request, attributions: Attributions) -> Array:
        background = self.data
        rows = (
            mean_point(task)[None]
            if background is None
            else same_columns(background, task)
        )
        change = task.value(task.points) - task.value(rows).mean()
        gap: Array = np.abs(attributions.sum(axis=1) - change)
        return gap if self.units == "absolute" else quotient(gap, np.abs(change))


# ---- Sparseness: the Gini index of each row


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True)
class Sparseness(Metric):
    """Gini index of the absolute attributions (Chalasani et al. 2020; Hurley 2009).

    Σ_i (2i − D − 1) |w|_(i) / (D Σ_i |w_i|), with |w|_(1) ≤ ... ≤ |w|_(D). Between 0,
    for equal attributions, and 1 − 1/D, for a single one. Does not depend on the scale
    of the attributions. Undefined (0/0) for a row of zeros.

    Examples
    --------
    >>> Sparseness()([[0.0, 0.0, 0.0, -2.0], [1.0, 1.0, 1.0, 1.0]])
    array([0.75, 0.  ])
    """

    better: ClassVar[Better] = "higher"

    def __call__(
        self, explanation: AttributionsLike, *, present: TableLike | None = None
    ) -> Array:
        """One number per point, shape (N,); present (N, D)."""
        attributions = read_attributions(explanation, "attributions").values
        here = read_present(present, explanation, attributions)
        if here is None:
            return warn_undefined(_gini(attributions), self.name)
        rows = np.full(len(here), np.nan)
        for n in np.flatnonzero(here.any(axis=1)):
            rows[n] = _gini(attributions[[n]][:, here[n]])[0]
        return warn_undefined(rows, self.name)


def _gini(attributions: Attributions) -> Array:
    """The index of each row, (N,); NaN for a row of zeros."""
    sizes = np.abs(attributions)
    # relative to the largest, no sum can overflow
    sizes = quotient(sizes, sizes.max(axis=1, keepdims=True))
    shares = np.sort(sizes / sizes.sum(axis=1, keepdims=True), axis=1)
    n_features = attributions.shape[1]
    ranks = 2 * np.arange(1, n_features + 1) - n_features - 1
    return np.asarray(shares @ ranks / n_features)


# ---- Faithfulness correlation: whether attributions foretell effects of removal


_NEGLIGIBLE = 1e-12
"""Relative to the largest term, a spread below this is rounding."""


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True, eq=False)
class FaithfulnessCorrelation(FaithfulnessMetric):
    """Correlation of attributions and effects of removal (Bhatt et al. 2020).

    Pearson's correlation over random subsets S of the features, all of one size k, of
    Σ_{i∈S} w_i and f(x) − f(x with x_i = b_i for i ∈ S) (arXiv 2005.00631). Between −1
    and 1; asks for attributions in units of output, such as Shapley values or w·(x−b),
    and does not depend on their scale. Undefined (0/0) where either side is the same
    for all subsets, to rounding.

    Parameters
    ----------
    k : int, optional
        The size of the subsets, 1 ≤ k < D; by default a quarter of D, at least 1.
    n_samples : int
        The number of subsets per point, at least 2.
    baseline : array or Series (D,), optional
        b, which stands for "feature unknown"; by default the mean of X.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> line = po.wrap(lambda X: X @ [1.0, 2.0, 3.0])
    >>> metric = FaithfulnessCorrelation(baseline=np.zeros(3))
    >>> metric([[1.0, 2.0, 3.0]], line, [[1.0, 1.0, 1.0]]).round(6)
    array([1.])
    """

    better: ClassVar[Better] = "higher"

    k: int | None = None
    n_samples: int = 100
    baseline: ArrayLike | pd.Series[Any] | None = None

    def __post_init__(self) -> None:
        if self.k is not None:
            read_count(self.k, "k")
        if read_count(self.n_samples, "n_samples") < 2:
            raise InvalidInput("n_samples: expected at least 2, got 1")
        if self.baseline is not None:
            object.__setattr__(self, "baseline", _checked_baseline(self.baseline))

    def _texts_refusal(self) -> str | None:
        return None if self.baseline is None else BACKGROUND_OF_TEXTS

    def _rows(self, task: Request, attributions: Attributions) -> Array:
        values = task.value(task.points)
        sizes = np.stack([np.abs(attributions).max(axis=1), np.abs(values)], axis=1)
        size, baseline = read_size(self.k, task.points.shape[1]), self._baseline(task)

        def pairs(rows: slice, keys: Array) -> Array:
            """Σ_{i∈S} w_i and the effect of removing S, (n, s, 2)."""
            removed = smallest(keys, size)
            sums = (removed @ attributions[rows, :, None])[..., 0]
            points = np.where(removed, baseline, task.points[rows, None])
            return np.stack([sums, values[rows, None] - task.value(points)], axis=-1)

        # The k smallest of D independent uniform keys are a random subset of size k.
        keys = Perturbations(
            scale=1.0, n_samples=self.n_samples, distribution="uniform"
        )
        every = np.zeros(task.points.shape, dtype=bool)
        pieces = sampled(keys, every, task.rng, pairs)
        return np.concatenate(
            [_correlation(pairs, sizes[rows]) for rows, pairs in pieces]
        )

    def _baseline(self, task: Request) -> Array:
        if self.baseline is None:
            return mean_point(task)
        features = task.labels.features
        baseline = aligned_vector(self.baseline, features, "baseline", "X")
        if len(baseline) != task.points.shape[1]:
            raise InvalidInput(
                f"baseline: expected {task.points.shape[1]} features as in X, got "
                f"{len(baseline)}"
            )
        return baseline


def _checked_baseline(baseline: ArrayLike | pd.Series[Any]) -> Array | pd.Series[Any]:
    """A checked copy, with the names that a Series has."""
    checked = read_array(baseline, "baseline", ndim=1)
    if isinstance(baseline, pd.Series):
        return pd.Series(checked, index=baseline.index)
    return checked


def smallest(keys: Array, size: int) -> Array:
    """1.0 for the ``size`` smallest of the last axis, 0.0 for the others."""
    last = np.partition(keys, size - 1, axis=-1)[..., size - 1 : size]
    return (keys <= last).astype(float)


def _correlation(pairs: Array, sizes: Array) -> Array:
    """Pearson's correlation over S of pairs (n, S, 2); NaN for a constant side.

    ``sizes`` (n, 2) are what rounding errors of either side are proportional to.
    """
    centred = pairs - pairs.mean(axis=1, keepdims=True)
    spread = np.abs(centred).max(axis=1)
    scale = np.maximum(np.abs(pairs).max(axis=1), sizes)
    constant = (spread <= _NEGLIGIBLE * scale).any(axis=1)
    spread[constant] = 1
    unit = centred / spread[:, None]
    norms = np.linalg.norm(unit, axis=1)
    product = (unit[..., 0] * unit[..., 1]).sum(axis=1)
    correlation = quotient(product, norms.prod(axis=1))
    return np.where(constant, np.nan, np.clip(correlation, -1, 1))


# ---- Sensitivity: how far attributions move when the point moves


@final
@suggests_arguments
@dataclass(frozen=True, kw_only=True)
class MaxSensitivity(Noisy, Metric):
    """Largest change of the attributions nearby (Yeh et al. 2019, max-sensitivity).

    max_s ‖w(x) − w(x + ε_s)‖₂, by default divided by ‖w(x)‖₂, ε_s uniform in the cube
    [−δ, δ]^D. A lower bound of the maximum over the cube, which grows with the number
    of samples. In relative units, undefined where w(x) = 0.

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
    The gradient of a linear function does not change; that of x² changes by 2ε.

    >>> from propopt.explaining.explainers import Gradient
    >>> from propopt.functions import Power
    >>> from propopt.explaining.metrics import BaselineMethod
    >>> square = BaselineMethod(explainer=Gradient(), function=Power(2))
    >>> values = MaxSensitivity(scale=0.1, units="absolute")(square, [[5.0]])
    >>> bool(0.19 < values[0] <= 0.2)
    True
    """

    better: ClassVar[Better] = "lower"

    distribution: Distribution = "uniform"
    units: AbsoluteOrRelative = "relative"

    def __post_init__(self) -> None:
        super().__post_init__()
        read_option(self.units, AbsoluteOrRelative, "units")

    def __call__(
        self, explain: ExplanationMethod, X: TableLike, *, rng: RandomSeed = None
    ) -> Array:
        """One number per point, shape (N,); X (N, D)."""
        refuse_documents(self.name, X)
        method, generator = MethodAtPoints.read(explain, X), metric_rng(rng)
        points, W = method.points, method.W  # a method that draws is asked first here

        def apart(rows: slice, noise: Array) -> Array:
            moved = method(points[rows, None] + noise)
            return np.linalg.norm(moved - W[rows, None], axis=-1)

        pieces = sampled(self, method.fixed, generator, apart)
        change = np.concatenate([values.max(axis=1) for _, values in pieces])
        if self.units == "relative":
            change = quotient(change, np.linalg.norm(W, axis=1))
        return warn_undefined(change, self.name)
