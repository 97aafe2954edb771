"""One line from a model and a table to an optimized explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from propopt.base.arrays import Array
from propopt.base.errors import InvalidInput
from propopt.explaining.contributions import ContributionsLike
from propopt.explaining.joint_parts import MetricChoice
from propopt.explaining.plan import (
    BesideLike,
    ExplainSettings,
    InteractionScores,
    JointRows,
    KindChoice,
    TextLaw,
    stability_in_words,
    with_note,
)
from propopt.explaining.targets import (
    LawChoice,
    in_words,
    refuse_no_scale,
    warn_of_patterns,
)
from propopt.functions.function import Function
from propopt.functions.outputs import Output, Target
from propopt.functions.wrapping import wrapped_and_told
from propopt.laws.data_law import Reference
from propopt.losses.graphs.points import Graph
from propopt.results.explanation import Explanation
from propopt.tables.documents import TextSchema, is_documents
from propopt.tables.schema import ColumnScale, TableSchema


def explain(
    model: Any,
    X: Any,
    *,
    target: Target = None,
    output: Output = "auto",
    outcome: str | None = None,
    data: TableSchema | TextSchema | pd.DataFrame | Array | Sequence[str] | None = None,
    scale: ColumnScale = "std",
    kind: KindChoice | None = None,
    contributions: ContributionsLike = "shapley",
    metric: MetricChoice = "auto",
    law: LawChoice | TextLaw = "auto",
    graph: Graph | None = None,
    same_pattern: bool = False,
    beside: BesideLike = "auto",
    robustness: float | str | None = None,
    precision: float | None = None,
    max_evaluations: int | None = None,
    batch_rows: int | None = None,
    interactions: InteractionScores | None = None,
    rng: int | np.random.Generator | None = None,
    progress: bool | None = None,
) -> Explanation:
    """Explain a model at the rows of X: faithful to it, and robust between neighbours.

    Give it a fitted model and a table. It returns one attribution for each row and
    column, with proof of how near they are to the best possible.

    >>> import propopt as po
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X, y)
    >>> best = po.explain(model, X.iloc[::5], target=1)
    >>> best.to_frame().shape, best.parameters["weight rule"]
    ((30, 4), 'knee of the front')

    The attributions W have the least possible value of

    .. math::

        Σ_n ‖w_n − s ∘ ∇f(x_n)‖² + c Σ_{n,n'} ‖w_n − w_n'‖² S_nn'

    (Tadesse et al. 2024, Eq. 2 and 4). The first sum is small where they are faithful,
    the second where they are robust. Defaults are those of the table, and the result
    repeats them in ``parameters``; :func:`propopt.solve` and :func:`propopt.sweep` take
    any objective.

    ============ =====================================================================
    output       as of :func:`propopt.wrap`, but the margin of a boosted classifier,
                 which is a sum of trees
    gradients    as of :func:`propopt.wrap`; a model that jumps, such as a forest, has
                 none worth the name, and is explained by the slopes of its mean over
                 observed values near each row, Cov(V_j, f(V))/Var(V_j): exactly where
                 it is made of trees (:func:`propopt.functions.smoothed`,
                 ``law="data"``)
    s            the standard deviations of the features: attributions are changes of
                 the output per standard deviation; of a categorical column the effect
                 of its category, beside its mean over all categories
    S            1 between each row and its 8 nearest in features divided by ``scale``
    c            at the knee of the whole trade-off curve, of weights over six decades
                 (:meth:`propopt.TradeOffs.knee`)
    ============ =====================================================================

    Documents have words of their own. A word is compared between the documents that it
    stands in, Σ_{n,n'} S_nn' Σ_{j in both} (w_nj − w_n'j)², by
    :class:`propopt.losses.SharedRobustness`, and a word that is not in a document has
    the attribution 0 there. S is the cosine similarity of tf-idf between each document
    and the 8 nearest that share words with it (:func:`propopt.graphs.document_graph`).
    All attributions are in units of the output. What they are faithful to is exact, and
    of any model: f(x) less f of x without the word. With ``law=po.lime.TextLaw()`` it
    is what LIME's coefficients tend to. With ``kind="contributions"`` it is Shapley values by
    deletion, against the empty text: exact for models that are read, by all sets of few
    words else, or drawn; and the words of each document add up to f(x) less f of x
    without any word. ``scale``, ``metric``, ``same_pattern``, ``precision``,
    ``beside``, ``max_evaluations`` and ``interactions`` have no meaning there, and are
    refused.

    Parameters
    ----------
    model : estimator, torch module, callable or Function
        See :func:`propopt.wrap`.
    X : DataFrame or array (N, D), or documents
        A list or Series of texts, explained word by word as told above. Of a table at
        least two rows, whose attributions depend on each other; or one, in any units,
        with rows of ``data`` to compare it with: see :class:`propopt.Explainer`, which
        is fitted to 500 of these, at most, and can be kept and asked for others.
        ``same_pattern``, ``beside``, ``precision`` and ``max_evaluations`` are then
        refused, and so are ``contributions`` of that row alone.
    target, output
        Of :func:`propopt.wrap`: which class or column, and in which units.
    outcome : str, optional
        The name of the column that the model predicts, which models do not know: then
        cards, axes and files say "log-odds of churn = 1", else "log-odds of class 1".
    data : DataFrame, TableSchema, documents or TextSchema, optional
        The table that standard deviations, observed values and frequencies of
        categories come from, best the one that the model was fitted on; X by default.
        Categorical columns of numbers, and one-hot columns that are one feature, are
        declared by :meth:`propopt.functions.TableSchema.of`. Of a Function, which knows
        its columns, a table of reference rows.
    scale : "std", None, mapping or array (D,)
        s, and the units of distances. None: features as they are, plain gradients. A
        column that is constant in ``data`` has s = 0: its attribution is 0, it has no
        part in distances, and ``parameters["notes"]`` names it.
    units : {"scaled", "output"}
        ``"output"``: parts of the output that add up to f(x) − base in every row, the
        nearest to ``contributions`` that are robust:

        .. math::

            Σ_n ‖w_n − Φ_n‖² + c Σ_{n,n'} ‖w_n − w_n'‖² S_nn'
            subject to Σ_d w_nd = f(x_n) − base

        is minimal, with the mean of f over 100 rows of ``data`` as base. The
        explanation then has ``contributions`` (Φ), ``base_value`` and ``prediction``,
        and among its details what no complete one can remove of roughness
        (``irreducible.pairwise_robustness``).
    contributions : {"shapley", "slopes"} or attributions (N, D)
        Φ, for ``kind="contributions"``: Shapley values against those 100 rows, exact for
        trees, kernel machines, additive models and the like, and sampled by orders of
        the features otherwise; slopes times steps from
        the mean row, and effects of categories; or what was computed elsewhere, an
        Explanation or ``shap.Explanation`` with its base values, or a table.
    metric : {"uniform", "effects"}
        For ``kind="contributions"``: how differences of features count. ``"effects"`` divides
        their squares by the mean of Φ_nd² over the rows.
    law : {"auto", "data", "gaussian", "none"} or TextLaw
        Over what the model is averaged before its slopes are taken: observed values
        near each row; gaussian noise of half of ``scale``; nothing. By default as
        above.
    graph : Graph, optional
        S, if not by nearest neighbours.
    same_pattern : bool
        Leave out neighbours in which other columns are missing. A warning says so if
        they are more than 5 % of all: slopes are compared with effects there.
    beside : "own_value", OwnValues or table (N, D), optional
        What similar rows may differ in, G: Σ S_nn' ‖(w_n − g_n) − (w_n' − g_n')‖² is
        then what is small. ``"own_value"``, for ``kind="contributions"``, is what each
        column contributes by its value alone, over the rows that contributions are
        compared with (:func:`propopt.explainers.own_values`); ``parameters["own
        value"]`` says how much of the differences follows from it.
    robustness : float or str, optional
        A number is the weight c, if not at the knee; a text says by how much
        robustness is to be smaller than it is of the target, such as ``"-50%"``
        (:class:`propopt.solvers.Aim`): c follows from that.
    precision : float, optional
        Where slopes are sampled: draw until ``target_error`` is no larger, such as
        0.02. What the first draws cost is announced where it is long.
    max_evaluations : int, optional
        The most rows that the model is given for draws.
    batch_rows : int, optional
        The most rows that the model is given in one call.
    interactions : InteractionScores, optional
        Of the same features, from :class:`propopt.interactions.ILOCO`: a sentence in
        ``parameters["notes"]`` names sets of them that clearly matter jointly, which no
        additive attribution can show, and pairs that stand in for each other.
    rng : int, numpy.random.Generator or None
        For the noise on piecewise-constant models; None is seed 0.
    progress : bool, optional
        Show bars on standard error; by default only on a terminal.

    Returns
    -------
    Explanation
        With the names of X, ``losses``, the certified ``gap``, and
        ``gradient`` (N, D), what it is faithful to.

    Raises
    ------
    InvalidInput
        If the model or the table cannot be used; the message says what would do.
    """
    settings = ExplainSettings.of(locals())
    if is_documents(X) or (isinstance(model, Function) and model.takes_texts):
        from propopt.explaining.documents import fitted_documents

        return fitted_documents(settings, model, X, data, progress).reference
    _ = settings.law_of_columns  # refused if it deletes words
    settings.refuse_what_kinds_lack()
    has_rows = not (data is None or isinstance(data, TableSchema))
    if has_rows and settings.explains_jointly is None:
        from propopt.explaining.fitted_rows import fitted_rows

        return fitted_rows(settings, model, data, None, progress).explain(X, progress)
    function, told = wrapped_and_told(
        model, X, target, output, data, batch_rows, outcome
    )
    points, labels = told.read(function, X, "X")
    table = told.read(function, data, "data") if has_rows else (points, labels)
    reference = Reference.of_points(*table, function.schema)
    rows = JointRows(
        settings=settings,
        function=function,
        reference=reference,
        sizes=settings.sizes_of(function, reference),
        points=points,
        labels=labels,
        progress=progress,
        model=model,
    )
    note = rows.note
    if has_rows and not settings.parts:
        reference.refuse_equal_rows()
    if len(points) < 2 and graph is None:
        raise InvalidInput(
            "X: robustness compares rows, and there is one; give more, or the table "
            "that it comes from as data, or take the gradient alone by "
            "propopt.explainers.Gradient"
        )
    similar = rows.graph
    refuse_no_scale(rows.sizes, reference)
    if not settings.parts:  # parts are of one unit
        warn_of_patterns(similar, rows.coordinates)
    best = rows.best(rows.rule)
    verdict = function.jumps
    return replace(
        best,
        parameters={
            "function": repr(function),
            **({} if verdict is None else {"jump test": verdict.in_words()}),
            **with_note(best.parameters, note),
            "scale": in_words(scale),
            "reference": f"{reference.in_words()}, sha256:{reference.digest[:12]}",
            "graph": repr(similar),
            "weight rule": rows.weight[1],
            **rows.told_of_background(),
            **rows.told_of_own_values(best),
            "stability": stability_in_words(best),
        },
        background=rows.background_digest,
        **function.told(points),
    )
