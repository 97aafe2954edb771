"""One line from a model and a table to an optimized explanation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from propopt.base.arrays import Array
from propopt.base.errors import InvalidInput
from propopt.base.words_of_others import knows_other_words
from propopt.explaining.contributions import ContributionsLike
from propopt.explaining.joint_parts import MetricChoice
from propopt.explaining.offsets import with_offset
from propopt.explaining.plan import (
    ALONE,
    BesideLike,
    ExplainSettings,
    InteractionScores,
    JointRows,
    KindChoice,
    RowNumbers,
    TextLaw,
    note_on_others,
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
from propopt.laws.background import Background
from propopt.laws.data_law import Reference
from propopt.losses.graphs.points import Graph
from propopt.results.explanation import Explanation, Parameter
from propopt.tables.documents import TextSchema, is_documents
from propopt.tables.frames import is_frame
from propopt.tables.schema import ColumnScale, TableSchema


@knows_other_words
def explain(
    model: Any,
    X: Any,
    *,
    target: Target = None,
    output: Output = "auto",
    outcome: str | None = None,
    data: TableSchema | TextSchema | pd.DataFrame | Array | Sequence[str] | None = None,
    sample_weight: RowNumbers = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    offset: RowNumbers = None,
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
    """Explain a model at the rows of X, in contributions that add up in each row.

    Give it a fitted model, the rows, and the table that the model was fitted on. It
    returns one contribution for each row and column: near to Shapley values, and more
    alike between similar rows, with proof that none are better.

    >>> import propopt as po
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X, y)
    >>> best = po.explain(model, X.iloc[::5], data=X, target=1)
    >>> best.to_frame().shape, best.parameters["weight rule"]
    ((30, 4), 'a quarter of the way to the nearest rows')

    The contributions w of a row x minimise

    .. math::

        Σ_d (w_d − Φ_d)²/ω_d + 2b Σ_j s_j Σ_d ((w_d − g_d) − (w_jd − g_jd))²/ω_d

        subject to Σ_d w_d = f(x) − base

    ============ =====================================================================
    base, Φ      the mean of f over the rows of ``data``, and the Shapley values of x
                 against these rows: all of them where the model is read (trees, linear
                 and additive models, kernel machines), else 100 that follow from
                 ``data`` alone
    g            what each column contributes by its value alone: its centred partial
                 dependence over the same rows
    w_j, g_j     the same of the 8 nearest of up to 500 reference rows of ``data``,
                 which are explained together; their similarity s_j falls with distance
    ω_d          the mean of (Φ_d − g_d)² over the reference rows: columns move in
                 proportion to what they do jointly with others, and an additive column
                 keeps its Φ exactly
    b            1/48 with 8 neighbours: before rows are made to add up, they move a
                 quarter of the way to what the nearest rows suggest
    ============ =====================================================================

    A row's answer depends on the model, ``data`` and the settings alone: it is the same
    alone, among others in any order, and from :class:`propopt.Explainer`. A row that is
    one of the reference rows has its answer among these. **Without** ``data`` the rows
    of X are background and reference, and are explained together, as by
    :func:`propopt.solve` (Tadesse et al. 2024). So are rows with a ``graph``, a table
    of ``contributions`` or ``beside``, ``same_pattern``, ``precision`` or
    ``max_evaluations``: these have a meaning for the rows of X together.

    ``kind="slopes"`` has changes of the output per standard deviation of each column,
    which add up to nothing. They minimise Σ_n ‖w_n − s ∘ ∇f(x_n)‖² +
    c Σ_{n,n'} ‖w_n − w_n'‖² S_nn' (Eq. 2 and 4 there), with c at the knee of the whole
    trade-off. A model that jumps, such as a forest, has the slopes of its mean over
    observed values near each row, Cov(V_j, f(V))/Var(V_j).

    Documents have words of their own. A word is compared between the documents that it
    stands in, Σ_{n,n'} S_nn' Σ_{j in both} (w_nj − w_n'j)², by
    :class:`propopt.losses.SharedRobustness`, and a word that is not in a document has
    the attribution 0 there. S is the cosine similarity of tf-idf between each document
    and the 8 nearest that share words with it (:func:`propopt.graphs.document_graph`).
    By default they are faithful to the effects of single words, f(x) less f of x
    without the word. With ``law=po.lime.TextLaw()`` these are what LIME's coefficients
    tend to. ``kind="contributions"`` has Shapley values by deletion, against the empty
    text, and the words of each document add up. ``scale``, ``metric``,
    ``same_pattern``, ``precision``, ``beside``, ``max_evaluations`` and
    ``interactions`` have no meaning there, and are refused.

    Parameters
    ----------
    model : estimator, torch module, callable or Function
        See :func:`propopt.wrap`.
    X : DataFrame or array (N, D), or documents
        The rows. A list or Series of texts is explained word by word.
    target, output
        Of :func:`propopt.wrap`: which class or column, and in which units. By default
        a boosted classifier is explained in its margin, which for two classes is its
        log-odds, whatever pipelines, searches and thresholds it is wrapped in.
    outcome : str, optional
        The name of the column that the model predicts, which models do not know: then
        cards, axes and files say "log-odds of churn = 1", else "log-odds of class 1".
        With an article it is what class 1 means: "a flare" gives "log-odds of a flare".
    data : DataFrame, TableSchema, documents or TextSchema, optional
        The background and reference rows, best the table that the model was fitted on.
        Standard deviations and frequencies of categories come from it, too.
        Categorical columns of numbers, and one-hot columns that are one feature, are
        declared by :meth:`propopt.functions.TableSchema.of`.
    sample_weight : Series or array (M,), optional
        Weights of the background: one for each row of ``data``, or of X without
        ``data``, such as exposure or survey weights. The base is the weighted mean of
        the predictions, and Shapley values are over the weighted rows: a row of weight
        2 counts as two equal rows. Only ratios matter. A Series with the labels of
        ``data`` is put in their order. Scales and reference rows have no weights.
    groups : mapping of a name to columns, optional
        Columns that are one player, such as ``{"address": ["street", "zip"]}``: a
        contribution for each group, and for each column in no group. They are the
        Shapley values of the game among groups, computed as those of columns are; the
        sum of the values of its columns is another number. Distances remain those of
        columns.
    offset : Series or array (N,), optional
        What is added to the margin of each row of X outside the model, such as log
        exposure: ``base_margin`` of XGBoost, ``init_score`` of LightGBM, ``baseline``
        of CatBoost. It is part of base and prediction of its row; contributions do not
        change. Outputs that are no margin are refused.
    scale : "std", None, mapping or array (D,)
        The units of distances, and of slopes. Standard deviations in distances of
        contributions leave out the outer 0.5 % of values on either side. None: columns
        as they are. A column that is constant in ``data`` has no part in distances.
    kind : {"contributions", "slopes"}, optional
        As above; by default contributions of tables, and effects of words.
    contributions : {"shapley", "slopes"} or attributions (N, D)
        Φ: Shapley values; slopes times steps from the mean row, and effects of
        categories; or what was computed elsewhere, an Explanation or
        ``shap.Explanation`` with its base values, or a table.
    metric : {"auto", "joint", "uniform", "effects"}
        ω: as above (``"joint"``); one; or the mean of Φ_d². By default joint beside own
        values, and one else.
    law : {"auto", "data", "gaussian", "none"} or TextLaw
        Over what the model is averaged before its slopes are taken: observed values
        near each row; gaussian noise of half of ``scale``; nothing. By default observed
        values where the model jumps.
    graph : Graph, optional
        Who is similar, if not by nearest neighbours.
    same_pattern : bool
        Leave out neighbours in which other columns are missing. A warning says so if
        they are more than 5 % of all: slopes are compared with effects there.
    beside : {"auto", "own_value"}, None, OwnValues or table (N, D)
        What similar rows may differ in, g: own values of contributions
        (:func:`propopt.explainers.own_values`), and nothing of slopes. None: nothing.
        With ``"own_value"``, ``parameters["own value"]`` of rows that are explained
        together also says how much of the differences follows from it.
    robustness : float or str, optional
        The weight b; ``"knee"`` of the whole trade-off curve; or by how much
        differences between similar rows are to be smaller, such as ``"-50%"``
        (:class:`propopt.solvers.Aim`). 0 has Φ.
    precision : float, optional
        Where targets are sampled: draw until ``target_error`` is no larger, such as
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
        For what is sampled; None is seed 0. Neither background nor reference rows
        depend on it.
    progress : bool, optional
        Show bars on standard error; by default only on a terminal.

    Returns
    -------
    Explanation
        With the names of X, ``losses``, the certified ``gap``, ``contributions``,
        ``base_value``, ``prediction`` and the digest of the ``background``; of slopes
        ``gradient`` (N, D), what they are faithful to.

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
    several = has_rows and n_rows_of(data) > 1
    if several and settings.explains_jointly is None:  # a baseline has no neighbours
        from propopt.explaining.fitted_rows import fitted_rows

        fitted = fitted_rows(settings, model, data, None, progress)
        return fitted.explain(X, progress, offset)
    function, told = wrapped_and_told(
        model, X, target, output, data, batch_rows, outcome
    )
    function = function.taking(X)
    points, labels = told.read(function, X, "X")
    table = told.read(function, data, "data") if has_rows else (points, labels)
    reference = Reference.of_points(*table, function.schema)
    of_rows = sample_weight, data if has_rows else X, table[0]
    rows = JointRows(
        settings=settings,
        function=function,
        reference=reference,
        sizes=settings.sizes_of(function, reference),
        points=points,
        labels=labels,
        progress=progress,
        model=model,
        weighted=Background.weighed(*of_rows),
    )
    note = rows.note
    if has_rows and not settings.parts:
        reference.refuse_equal_rows()
    if len(points) < 2 and graph is None:
        if several:
            raise InvalidInput(f"{settings.explains_jointly}: {ALONE}")
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
    whole = replace(
        best,
        parameters={
            "function": repr(function),
            **({} if verdict is None else {"jump test": verdict.in_words()}),
            **with_note(
                with_note(best.parameters, note), note_on_others(function, points)
            ),
            **_without_data(rows, data),
            "scale": in_words(scale),
            "reference": f"{reference.in_words()}, sha256:{reference.digest[:12]}",
            "graph": repr(similar),
            "weight rule": rows.weight[1],
            **rows.told_of_background(),
            **rows.told_of_own_values(best),
            "stability": stability_in_words(best),
        },
        background=rows.background_digest,
        **rows.told(points),
    )
    return with_offset(whole, offset, X, function, model, points.shape[1])


def _without_data(rows: JointRows, data: Any) -> dict[str, Parameter]:
    """What contributions are compared with where no table was given."""
    if data is not None or not rows.settings.parts:
        return {}
    count = f"{len(rows.points):,} rows of X"
    return {
        "without data": f"The {count} are also the background, because data= was not "
        "given. With data=X_train, a row does not depend on the others."
    }


def n_rows_of(data: Any) -> int:
    """How many rows a table has; none of what is no table, and is refused elsewhere."""
    if is_frame(data, "data"):
        return len(data)
    is_list = isinstance(data, np.ndarray | list | tuple)
    is_number = isinstance(data, np.ndarray) and data.ndim == 0
    return len(data) if is_list and not is_number else 0
