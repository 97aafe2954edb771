"""One line from a model and a table to an optimized explanation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.estimates import Estimate
from propopt.explaining.contributions import (
    ContributionRule,
    ContributionsLike,
    Metric,
)
from propopt.explaining.defaults import (
    coordinates_of,
    in_words,
    neighbours_of,
    optimum,
    reference_of,
    sizes_of,
    wrapped,
)
from propopt.explaining.explainer import Explainer
from propopt.explaining.output_units import complete_explanation
from propopt.explaining.target import LawChoice, target_rule
from propopt.functions.models.outputs import Output, Target
from propopt.graphs.base import Graph
from propopt.losses import GradientMatching, PairwiseRobustness
from propopt.results.explanation import Explanation, Parameter
from propopt.tables.schema import ColumnScale, TableSchema


def explain(
    model: Any,
    X: Any,
    *,
    target: Target = None,
    output: Output = "auto",
    data: TableSchema | pd.DataFrame | Array | None = None,
    scale: ColumnScale = "std",
    units: Literal["scaled", "output"] = "scaled",
    contributions: ContributionsLike = "shapley",
    metric: Metric = "uniform",
    law: LawChoice = "auto",
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
    output       as of :func:`propopt.wrap`, but the margin of a boosted classifier,
                 which is a sum of trees
    gradients    as of :func:`propopt.wrap`; a model that jumps, such as a forest, has
                 none worth the name, and is explained by the slopes of its mean over
                 observed values near each row, Cov(V_j, f(V))/Var(V_j): exactly where
                 it is made of trees (:func:`propopt.smoothed`, ``law="data"``)
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
        At least two rows, whose attributions depend on each other; or one, with rows
        of ``data`` to compare it with: see :class:`propopt.Explainer`, which is fitted
        to 500 of these, at most, and can be kept and asked for others.
    target, output
        Of :func:`propopt.wrap`: which class or column, and in which units.
    data : DataFrame or TableSchema, optional
        The table that standard deviations, observed values and frequencies of
        categories come from, best the one that the model was fitted on; X by default.
        Categorical columns of numbers, and one-hot columns that are one feature, are
        declared by :meth:`propopt.TableSchema.of`.
    scale : "std", None, mapping or array (D,)
        s, and the units of distances. None: features as they are, plain gradients.
    units : {"scaled", "output"}
        ``"output"``: parts of the output that add up to f(x) − base in every row, the
        nearest to ``contributions`` that are robust:

        minimise  Σ_n ‖w_n − Φ_n‖² + c Σ_{n,n'} ‖w_n − w_n'‖² S_nn'  subject to
        Σ_d w_nd = f(x_n) − base

        with the mean of f over 100 rows of ``data`` as base. Then ``details`` has
        ``contributions`` (Φ), ``base_value``, ``prediction`` and what no complete
        explanation can remove of roughness (``irreducible.pairwise_robustness``).
    contributions : {"shapley", "slopes"} or attributions (N, D)
        Φ, for ``units="output"``: Shapley values against those 100 rows, exact for
        trees and sampled by orders of the features otherwise; slopes times steps from
        the mean row, and effects of categories; or what was computed elsewhere, an
        Explanation or ``shap.Explanation`` with its base values, or a table.
    metric : {"uniform", "effects"}
        For ``units="output"``: how differences of features count. ``"effects"`` divides
        their squares by the mean of Φ_nd² over the rows.
    law : {"auto", "data", "gaussian", "none"}
        Over what the model is averaged before its slopes are taken: observed values
        near each row; gaussian noise of half of ``scale``; nothing. By default as
        above.
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
    if graph is None and _is_alone(X, data):
        alone = Explainer(
            model,
            data,
            target=target,
            output=output,
            scale=scale,
            law=law,
            robustness=robustness,
            rng=rng,
        )
        return alone.fit(progress=progress).explain(X, progress=progress)
    function = wrapped(model, X, target, output, data)
    has_rows = not (data is None or isinstance(data, TableSchema))
    reference = reference_of(function, *((data, "data") if has_rows else (X, "X")))
    sizes = sizes_of(function, reference, scale)
    similar = graph or neighbours_of(coordinates_of(function, X, sizes))
    added: dict[str, Parameter]
    match units:
        case "scaled":
            aim = target_rule(function, reference, sizes, law=law, rng=rng).of(X)
            best = _faithful_to_slopes(aim, similar, robustness, progress)
            added = {"gradient": aim.source}
        case "output":
            known = ContributionRule(
                function=function, reference=reference, law=law, rng=rng
            ).of(X, contributions)
            aim = known.estimate
            best = complete_explanation(
                known, similar, robustness=robustness, metric=metric, progress=progress
            )
            added = {
                "contributions": aim.source,
                "contributions miss": known.missed,
                "metric": metric,
            }
        case _:
            raise InvalidInput(f"units: expected 'scaled' or 'output', got {units!r}")
    return replace(
        best,
        labels=aim.labels,
        units=aim.units,
        evaluations=aim.evaluations,
        parameters={
            "function": repr(function),
            **added,
            "scale": in_words(scale),
            "reference": f"{reference.in_words()}, sha256:{reference.digest[:12]}",
            "graph": repr(similar),
            "weight rule": "given" if robustness is not None else "knee of the curve",
            **({"notes": "; ".join(aim.notes)} if aim.notes else {}),
        },
    )


def _faithful_to_slopes(
    aim: Estimate, graph: Graph, robustness: float | None, progress: bool | None
) -> Explanation:
    """The optimum for slopes, with the slopes beside it."""
    matching, robust = 1.0 * GradientMatching(aim), PairwiseRobustness(graph)
    best = optimum(matching, robust, robustness, progress)
    return replace(best, details={**best.details, "gradient": aim.values})


def _is_alone(X: Any, data: Any) -> bool:
    """Whether there is one row, and others to compare it with."""
    has_rows = not (data is None or isinstance(data, TableSchema))
    return has_rows and hasattr(X, "__len__") and len(X) == 1
