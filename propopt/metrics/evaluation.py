"""Many metrics of many methods, as one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from propopt._typing import Array, Attributions
from propopt.checks import read_seed
from propopt.errors import InvalidInput
from propopt.explainers import Baseline
from propopt.functions import Function
from propopt.functions.base import read_function
from propopt.functions.text import TextFunction
from propopt.metrics.base import (
    ComplexityMetric,
    FaithfulnessMetric,
    Metric,
    OutputRobustnessMetric,
    RandomSeed,
    RobustnessMetric,
    TableLike,
)
from propopt.metrics.methods import BaselineMethod, ExplanationMethod
from propopt.metrics.reading import attributions_of
from propopt.results.foreign import AttributionsLike, explanation_of


Named = TypeVar("Named")

Measured: TypeAlias = Baseline | ExplanationMethod | AttributionsLike
"""What can be evaluated."""

AllMeasured: TypeAlias = Mapping[str, Measured] | Iterable[Baseline | AttributionsLike]
Metrics: TypeAlias = Mapping[str, Metric] | Iterable[Metric]


def evaluate(
    metrics: Metrics,
    function: Function,
    X: TableLike,
    methods: AllMeasured,
    *,
    rng: RandomSeed = None,
) -> pd.DataFrame:
    """One row per method, one column per metric: means over the points.

    Points where a metric is undefined (NaN) are left out of its mean, after a warning
    with their number; :func:`evaluate_rows` shows them. Every method meets the same
    draws, so that differences between methods are not those between draws.

    Parameters
    ----------
    metrics : sequence of Metric, or mapping from names
        Columns; in a sequence each has the name :attr:`Metric.name`.
    function : Function
        f.
    X : array or DataFrame (N, D)
        The points.
    methods : sequence of Explanation or Baseline, or mapping from names
        Rows; in a sequence each has the name of its ``method``. A ``shap.Explanation``,
        a DataFrame or an array (N, D) is an explanation too. In a mapping callables
        from points (m, D) to attributions (m, D) do as well. An explanation is of the
        points of X and knows of no others: it has NaN under the metrics of robustness.
    rng : int, numpy.random.Generator or None
        The seed of all metrics and explainers; a generator gives one. None is 0.

    Returns
    -------
    DataFrame
        Indexed by ``method``.

    Raises
    ------
    InvalidInput
        If two rows or two columns have one name, or as the metrics do.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from propopt.explainers import Gradient, SmoothGrad
    >>> function = po.functions.Power(2)
    >>> metrics = [po.metrics.Infidelity(), po.metrics.Sparseness()]
    >>> methods = [Gradient(), SmoothGrad(scale=0.5)]
    >>> table = evaluate(metrics, function, [[1.0, 2.0], [0.0, 3.0]], methods)
    >>> table.round(4)
                Infidelity  Sparseness
    method
    gradient        0.0006      0.3333
    smoothgrad      0.0007      0.3297
    """
    rows = evaluate_rows(metrics, function, X, methods, rng=rng)
    means = {name: part.mean() for name, part in _by_method(rows)}
    return pd.DataFrame(means).T.rename_axis("method")


def evaluate_rows(
    metrics: Metrics,
    function: Function,
    X: TableLike,
    methods: AllMeasured,
    *,
    rng: RandomSeed = None,
) -> pd.DataFrame:
    """One row per method and point, one column per metric.

    Parameters
    ----------
    metrics, function, X, methods, rng
        As for :func:`evaluate`.

    Returns
    -------
    DataFrame
        Indexed by ``method`` and ``point``, the row of X or its label.

    Raises
    ------
    InvalidInput
        As :func:`evaluate` does.

    Examples
    --------
    >>> import propopt as po
    >>> function = po.functions.Power(2)
    >>> gradient = po.explainers.Gradient()
    >>> X = [[1.0, 2.0], [0.0, 3.0]]
    >>> evaluate_rows([po.metrics.Sparseness()], function, X, [gradient]).round(4)
                    Sparseness
    method   point
    gradient 0          0.1667
             1          0.5000
    """
    seed = read_seed(rng)
    columns = _columns(metrics)
    task = _Task(function=read_function(function), X=X, seed=seed)
    frames = {
        name: task.measure(columns, subject) for name, subject in _rows(methods).items()
    }
    return pd.concat(frames, names=["method", "point"])


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    """Function, points and seed that all methods share."""

    function: Function
    X: TableLike
    seed: int

    def measure(self, metrics: Mapping[str, Metric], subject: Measured) -> pd.DataFrame:
        """The metrics of one method, one row per point."""
        points, labels = self.function.read(self.X)
        explanation = self._explanation(subject)
        W = attributions_of(explanation, points, labels)
        values = {
            name: self._value(metric, W, subject) for name, metric in metrics.items()
        }
        index = pd.RangeIndex(len(W)) if labels.points is None else labels.points
        return pd.DataFrame(values, index=pd.Index(index))

    @property
    def _words(self) -> Array | None:
        """Which words documents have; None of rows of a table."""
        texts = isinstance(self.function, TextFunction)
        return self.function.read(self.X)[0] if texts else None

    def _explanation(self, subject: Measured) -> AttributionsLike:
        if isinstance(subject, Baseline):
            return subject.explain(self.function, self.X, rng=self.seed)
        return subject(self.X) if callable(subject) else subject

    def _value(self, metric: Metric, W: Attributions, subject: Measured) -> Array:
        match metric:
            case ComplexityMetric():
                return metric(W, present=self._words)
            case FaithfulnessMetric():
                return metric(W, self.function, self.X, rng=self.seed)
            case RobustnessMetric() | OutputRobustnessMetric():
                return self._robustness(metric, subject, len(W))
        raise InvalidInput(f"metrics: expected a metric, got {metric!r}")

    def _robustness(
        self,
        metric: RobustnessMetric | OutputRobustnessMetric,
        subject: Measured,
        n_points: int,
    ) -> Array:
        if not isinstance(subject, Baseline) and not callable(subject):
            return np.full(n_points, np.nan)
        explain = self._method(subject)
        if isinstance(metric, RobustnessMetric):
            return metric(explain, self.X, rng=self.seed)
        return metric(explain, self.function, self.X, rng=self.seed)

    def _method(self, subject: Baseline | ExplanationMethod) -> Callable[[Any], Any]:
        if isinstance(subject, Baseline):
            return BaselineMethod(
                explainer=subject, function=self.function, rng=self.seed
            )
        return subject


def _by_method(rows: pd.DataFrame) -> Iterable[tuple[Any, pd.DataFrame]]:
    return rows.groupby(level="method", sort=False)


def _columns(metrics: Metrics) -> Mapping[str, Metric]:
    if isinstance(metrics, Mapping):
        return metrics
    return _named([(metric.name, metric) for metric in metrics], "metrics")


def _rows(methods: AllMeasured) -> Mapping[str, Measured]:
    if isinstance(methods, Mapping):
        return methods
    pairs: list[tuple[str, Measured]] = []
    for place, method in enumerate(methods, start=1):
        if isinstance(method, Baseline):
            pairs.append((method.method, method))
        else:
            explanation = explanation_of(method, f"method {place}")
            pairs.append((explanation.method, explanation))
    return _named(pairs, "methods")


def _named(pairs: list[tuple[str, Named]], what: str) -> Mapping[str, Named]:
    names = [name for name, _ in pairs]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated or not names:
        clash = f"two named {repeated[0]!r}" if repeated else "none"
        raise InvalidInput(
            f"{what}: expected at least one, of different names; got {clash} (a "
            "mapping gives names of your own)"
        )
    return dict(pairs)
