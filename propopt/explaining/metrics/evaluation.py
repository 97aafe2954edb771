"""Many methods by many metrics, as one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from propopt.base.arrays import Array, Attributions
from propopt.base.checks import read_seed
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.explaining.explainers import Baseline
from propopt.explaining.metrics.literature import MaxSensitivity, Sparseness
from propopt.explaining.metrics.metric import (
    BaselineMethod,
    ExplanationMethod,
    FaithfulnessMetric,
    Metric,
    RandomSeed,
    TableLike,
    attributions_of,
)
from propopt.functions import Function
from propopt.functions.function import read_function
from propopt.functions.texts import TextFunction
from propopt.results.explanation import explanation_of
from propopt.tables.imported import AttributionsLike


Named = TypeVar("Named")

Measured: TypeAlias = Baseline | ExplanationMethod | AttributionsLike
"""What can be evaluated."""

AllMeasured: TypeAlias = Mapping[str, Measured] | Iterable[Baseline | AttributionsLike]
Metrics: TypeAlias = Mapping[str, Metric] | Iterable[Metric]


@suggests_arguments
def evaluate(
    metrics: Metrics,
    function: Function,
    X: TableLike,
    methods: AllMeasured,
    *,
    rng: RandomSeed = None,
) -> pd.DataFrame:
    """Measure explanations by metrics: a table of means over points.

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
        points of X and knows of no others: it has NaN under :class:`MaxSensitivity`.
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
    >>> from propopt.explaining.explainers import Gradient, SmoothGrad
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
    parts = rows.groupby(level="method", sort=False)
    means = {name: part.mean() for name, part in parts}
    return pd.DataFrame(means).T.rename_axis("method")


@suggests_arguments
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
    seed, columns = read_seed(rng), metrics
    if not isinstance(columns, Mapping):
        columns = _named([(metric.name, metric) for metric in columns], "metrics")
    f = read_function(function)
    points, labels = f.read(X)
    present = points if isinstance(f, TextFunction) else None

    def measured(metric: Metric, method: Measured, W: Attributions) -> Array:
        match metric:
            case Sparseness():
                return metric(W, present=present)
            case FaithfulnessMetric():
                return metric(W, f, X, rng=seed)
            case MaxSensitivity():
                if isinstance(method, Baseline):
                    method = BaselineMethod(explainer=method, function=f, rng=seed)
                elif not callable(method):
                    return np.full(len(W), np.nan)
                return metric(method, X, rng=seed)
        raise InvalidInput(f"metrics: expected a metric, got {metric!r}")

    index = pd.RangeIndex(len(points)) if labels.points is None else labels.points
    frames = {}
    for name, method in _rows(methods).items():
        attributions: Any = method
        if isinstance(method, Baseline):
            attributions = method.explain(f, X, rng=seed)
        elif callable(method):
            attributions = method(X)
        W = attributions_of(attributions, points, labels)
        values = {
            column: measured(metric, method, W) for column, metric in columns.items()
        }
        frames[name] = pd.DataFrame(values, index=pd.Index(index))
    return pd.concat(frames, names=["method", "point"])


def _rows(methods: AllMeasured) -> Mapping[str, Measured]:
    if isinstance(methods, Mapping):
        return methods
    pairs: list[tuple[str, Measured]] = []
    for number, method in enumerate(methods, start=1):
        if isinstance(method, Baseline):
            pairs.append((method.method, method))
        else:
            explanation = explanation_of(method, f"method {number}")
            pairs.append((explanation.method, explanation))
    return _named(pairs, "methods")


def _named(pairs: list[tuple[str, Named]], label: str) -> Mapping[str, Named]:
    names = [name for name, _ in pairs]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated or not names:
        clash = f"two named {repeated[0]!r}" if repeated else "none"
        raise InvalidInput(
            f"{label}: expected one or more with different names, got {clash}; a "
            "mapping gives other names"
        )
    return dict(pairs)
