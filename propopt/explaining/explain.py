"""One line from a model and a table to an optimized explanation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from propopt._typing import Array
from propopt.checks import read_nonnegative
from propopt.errors import InvalidInput
from propopt.explaining.target import target_of
from propopt.functions import Function, wrap
from propopt.functions.models.outputs import Output, Target
from propopt.graphs.base import Graph
from propopt.graphs.points import knn_graph
from propopt.losses import GradientMatching, PairwiseRobustness
from propopt.results.explanation import Explanation
from propopt.solvers import solve
from propopt.tables.frames import is_frame
from propopt.tables.names import read_table
from propopt.tables.schema import ColumnScale, TableSchema, array_scales
from propopt.tradeoffs.sweep import sweep


_N_NEIGHBORS = 8
_DECADES, _N_WEIGHTS = 3, 61
"""The default curve: weights 10^∓DECADES times one over twice the mean degree."""


def explain(
    model: Any,
    X: Any,
    *,
    target: Target = None,
    output: Output = "auto",
    data: TableSchema | pd.DataFrame | None = None,
    scale: ColumnScale = "std",
    graph: Graph | None = None,
    robustness: float | None = None,
    rng: int | np.random.Generator | None = None,
    progress: bool | None = None,
) -> Explanation:
    """Explain a model at the rows of X: faithful to it, and robust between neighbours.

    minimise over W:  Σ_n ‖w_n − s ∘ ∇f(x_n)‖² + c Σ_{n,n'} ‖w_n − w_n'‖² S_nn'

    (Tadesse et al. 2024, Eq. 2 and 4). This is a first look with stated defaults, which
    the result repeats in ``parameters``; :func:`propopt.solve` and
    :func:`propopt.sweep` take any objective.

    ============ =====================================================================
    gradients    as of :func:`propopt.wrap`; a piecewise-constant model, such as a
                 forest, has none and is explained by those of its mean over gaussian
                 noise of half a standard deviation (:func:`propopt.smoothed`)
    s            the standard deviations of the features: attributions are changes of
                 the output per standard deviation; of a categorical column the effect
                 of its category, beside its mean over all categories
    S            1 between each row and its 8 nearest in features divided by ``scale``
    c            at the knee of the whole trade-off curve, of weights over six decades
                 (:meth:`propopt.TradeOffs.knee`)
    ============ =====================================================================

    Parameters
    ----------
    model : estimator, torch module, callable or Function
        See :func:`propopt.wrap`.
    X : DataFrame or array (N, D)
        At least two rows.
    target, output
        Of :func:`propopt.wrap`: which class or column, and in which units.
    data : DataFrame or TableSchema, optional
        The table that standard deviations and frequencies of categories come from, best
        the one that the model was fitted on; X by default. Categorical columns of
        numbers, and one-hot columns that are one feature, are declared by
        :meth:`propopt.TableSchema.of`.
    scale : "std", None, mapping or array (D,)
        s, and the units of distances. None: features as they are, plain gradients.
    graph : Graph, optional
        S, if not by nearest neighbours.
    robustness : float, optional
        c, if not at the knee.
    rng : int, numpy.random.Generator or None
        For the noise on piecewise-constant models; None is seed 0.
    progress : bool, optional
        Show bars on standard error; by default only on a terminal.

    Returns
    -------
    Explanation
        With the names of X, ``losses``, the certified ``gap``, and
        ``details["gradient"]`` (N, D), what it is faithful to.

    Raises
    ------
    InvalidInput
        If the model or the table cannot be used; the message says what would do.

    Examples
    --------
    >>> import pandas as pd, propopt as po
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X, y)
    >>> best = po.explain(model, X.iloc[::5], target=1)
    >>> best.to_frame().shape, best.parameters["weight rule"]
    ((30, 4), 'knee of the curve')
    """
    function = _function(model, X, target, output, data)
    sizes, coordinates = _scales(function, X, scale)
    aim = target_of(function, X, sizes, rng=rng)
    similar = graph or _neighbours(coordinates)
    matching = GradientMatching(aim)
    robust = PairwiseRobustness(similar)
    best = _optimum(matching, robust, robustness, progress)
    return replace(
        best,
        labels=aim.labels,
        units=aim.units,
        evaluations=aim.evaluations,
        details={**best.details, "gradient": aim.values},
        parameters={
            "function": repr(function),
            "gradient": aim.source,
            "scale": scale if isinstance(scale, str) else _in_words(scale),
            "graph": repr(similar),
            "weight rule": "given" if robustness is not None else "knee of the curve",
        },
    )


def _function(
    model: Any,
    X: Any,
    target: Target,
    output: Output,
    data: TableSchema | pd.DataFrame | None,
) -> Function:
    if isinstance(model, Function):
        if data is not None:
            raise InvalidInput(
                f"data: it belongs to wrap(model, data=...), and {model!r} is wrapped "
                "already"
            )
        return wrap(model, target, output)
    table = X if data is None and is_frame(X, "X") else data
    return wrap(model, target, output, data=table)


def _scales(function: Function, X: Any, scale: ColumnScale) -> tuple[Array, Array]:
    """S (D,), and the points where distances are measured."""
    if function.schema is not None:
        schema = function.schema
        return schema.scales(scale), schema.coordinates(X, scale)
    points, _ = read_table(X, "X")
    sizes = array_scales(points, scale)
    return sizes, points / sizes


def _neighbours(coordinates: Array) -> Graph:
    if len(coordinates) < 2:
        raise InvalidInput(
            "X: robustness compares rows, and there is one; give more, or take the "
            "gradient alone by propopt.explainers.Gradient"
        )
    return knn_graph(coordinates, min(_N_NEIGHBORS, len(coordinates) - 1))


def _optimum(
    matching: GradientMatching,
    robust: PairwiseRobustness,
    weight: float | None,
    progress: bool | None,
) -> Explanation:
    if weight is not None:
        return solve(matching + read_nonnegative(weight, "robustness") * robust)
    degree = 2.0 * robust.graph.similarities.sum() / robust.n_points
    weights = np.logspace(-_DECADES, _DECADES, _N_WEIGHTS) / degree
    curve = sweep(matching + robust, {robust.name: weights}, progress=progress)
    return curve.knee()


def _in_words(scale: Any) -> str:
    if scale is None:
        return "none"
    if isinstance(scale, Mapping):
        return ", ".join(f"{name}: {size:.6g}" for name, size in scale.items())
    return ", ".join(f"{size:.6g}" for size in np.asarray(scale, float))
