"""Explanations of a model: the settings, the fit, the answers, the file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack, final

import numpy as np
from sklearn.exceptions import NotFittedError

from propopt.base.errors import InvalidInput
from propopt.base.suggestions import missing_attribute, suggests_arguments
from propopt.explaining.out_of_sample import FittedReference, FittedRows
from propopt.explaining.problem import (
    CheckedSettings,
    RowNumbers,
    Settings,
    SettingsByName,
    joint_setting_of,
    takes_settings,
)
from propopt.explaining.saved_explainer import SavedExplainer, read_explainer
from propopt.functions.function import Function
from propopt.results.explanation import Explanation
from propopt.tables.documents import TextSchema, is_documents
from propopt.tables.frames import is_frame


@suggests_arguments
@takes_settings
def explain(
    model: Any,
    X: Any,
    data: Any = None,
    *,
    base_margin: RowNumbers = None,
    progress: bool | None = None,
    **settings: Unpack[SettingsByName],
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
    :func:`propopt.solve` (Tadesse et al. 2024). So are rows with a graph of their own,
    a table of ``contributions`` or ``offset``, a ``precision`` or
    ``max_evaluations``: these have a meaning for the rows of X together. In code, it is
    one of two lines::

        propopt.Explainer(model, data, **settings).fit().explain(X)
        propopt.Explainer(model, data, **settings).fit(X).reference_

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
    text, and the words of each document add up. Documents take no ``scale``,
    ``metric``, ``offset``, ``groups`` or ``sample_weight``.

    Parameters
    ----------
    model : estimator, torch module, callable or Function
        See :func:`propopt.wrap`.
    X : DataFrame or array (N, D), or documents
        The rows. A list or Series of texts is explained word by word.
    data : DataFrame, array, TableSchema, documents or TextSchema, optional
        The background and reference rows, best the table that the model was fitted on.
    base_margin : Series or array (N,), optional
        What is added to the margin of each row of X outside the model, such as log
        exposure: ``base_margin`` of XGBoost, ``init_score`` of LightGBM, ``baseline``
        of CatBoost. It is part of base and prediction of its row; contributions do not
        change. Outputs that are no margin are refused.
    progress : bool, optional
        Show bars on standard error; by default only on a terminal.
    **settings
        Those of :class:`propopt.Explainer`, which explains each: target, output,
        outcome, sample_weight, groups, scale, kind, contributions, metric, law, graph,
        beside, robustness and sampling.

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
    explainer = Explainer(model, data, **settings)
    # rows are each other's reference without a table of more than one row
    if joint_setting_of(explainer) is not None or n_rows_of(data) < 2:
        fitted = explainer.fit(X, progress=progress).fitted_
        return fitted.with_base_margin(fitted.explained, base_margin, X)
    return explainer.fit(progress=progress).explain(
        X, base_margin=base_margin, progress=progress
    )


class NotFitted(InvalidInput, NotFittedError):  # type: ignore[misc]  # it is Any
    """An explainer is asked before its fit."""


@final
@suggests_arguments
@dataclass(eq=False, repr=False)
class Explainer(Settings):
    """A model's explainer: fitted to reference rows once, then asked row by row.

    ``fit`` explains reference rows together, once, and fixes what answers depend on:
    scales, neighbours, background and weight. ``explain`` gives each new row its
    optimum beside its nearest reference rows. :func:`propopt.explain` with ``data`` has
    the same answers, to the last bit, and says what is minimised. They depend on the
    row, the model and ``data`` alone: not on other rows, their order or their number.
    That the reference would move a little if the row were appended to it is bounded for
    each row, in ``details``.

    Slopes w of a new row, with target g and similarities s_j to the attributions w_j of
    its nearest reference rows, are

    .. math::

        (1 + 2bσ) w = g + 2b Σ_j s_j w_j, σ = Σ_j s_j.

    Parameters
    ----------
    model : estimator, torch module, callable or Function
        See :func:`propopt.wrap`.
    data : DataFrame, array, TableSchema, documents or TextSchema, optional
        The background and reference rows, best the table that the model was fitted on;
        the rows given to :meth:`fit` by default. Standard deviations and frequencies of
        categories come from it, too. Categorical columns of numbers, and one-hot
        columns that are one feature, are declared by
        :meth:`propopt.functions.TableSchema.of`. Documents are explained word by word:
        a new one beside those that share most of its words, over the words that both
        have. Its new words have what the model says of them.
    target, output
        Of :func:`propopt.wrap`: which class or column, and in which units. By default
        a boosted classifier is explained in its margin, which for two classes is its
        log-odds, whatever pipelines, searches and thresholds it is wrapped in.
    outcome : str, optional
        The name of the column that the model predicts, which models do not know: then
        cards, axes and files say "log-odds of churn = 1", else "log-odds of class 1".
        With an article it is what class 1 means: "a flare" gives "log-odds of a flare".
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
    scale : "std", None, mapping or array (D,)
        The units of distances, and of slopes. Standard deviations in distances of
        contributions leave out the outer 0.5 % of values on either side. None: columns
        as they are. A column that is constant in ``data`` has no part in distances.
    kind : {"contributions", "slopes"}, optional
        Parts of the output that add up to f(x) less its mean; or slopes, changes of the
        output per ``scale``. By default contributions of tables, and effects of words.
    contributions : {"shapley", "slopes"} or attributions (N, D)
        Φ: Shapley values; slopes times steps from the mean row, and effects of
        categories; or what was computed elsewhere, an Explanation or
        ``shap.Explanation`` with its base values, or a table. Where
        Shapley values are sampled, the seed and the values of a row name its draws.
    metric : {"auto", "joint", "uniform", "effects"}
        How moves of columns count, ω: by what each does jointly with others (as above),
        alike, or by the mean of Φ_d². By default joint without main effects, and one else.
    law : {"auto", "data", "gaussian", "none"} or TextLaw
        Over what the model is averaged before its slopes are taken: observed values
        near each row; gaussian noise of half of ``scale``; nothing. By default observed
        values where the model jumps.
    graph : Nearest or Graph, optional
        Who is similar: the nearest reference rows (:class:`propopt.graphs.Nearest`), or
        a graph of the rows that are explained together.
    offset : {"auto", "main_effects"}, None, MainEffects or table (N, D)
        What similar rows may differ in, g: main effects of contributions
        (:func:`propopt.explainers.main_effects`), and nothing of slopes. None: nothing.
        With ``"main_effects"``, ``parameters["main effect"]`` of rows that are explained
        together also says how much of the differences follows from it.
    robustness : float or str, optional
        The weight b; ``"knee"`` of the whole trade-off curve; or by how much
        differences between similar rows are to be smaller, such as ``"-50%"``
        (:class:`propopt.solvers.Aim`). 0 has Φ. By default contributions move a quarter
        of the way to the nearest rows, and slopes take the knee.
    sampling : Sampling
        Of what has to be drawn: the seed, and when to stop.

    Attributes
    ----------
    reference_ : Explanation
        The reference rows, explained together. Contributions of a new row that equals
        one of them are its own there.
    robustness_ : float
        b.

    Examples
    --------
    >>> import propopt as po
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X, y)
    >>> explainer = po.Explainer(model, data=X, target=1).fit()
    >>> one, all_ = explainer.explain(X.iloc[[7]]), explainer.explain(X.iloc[:20])
    >>> bool((one.attributions[0] == all_.attributions[7]).all())
    True

    Contributions add up to the prediction:

    >>> total = one.prediction - one.base_value
    >>> bool(abs(one.attributions.sum() - total) < 1e-12)
    True
    """

    model: Any
    data: Any = None
    _fitted: FittedReference | None = field(default=None, init=False)

    @suggests_arguments
    def fit(self, X: Any = None, *, progress: bool | None = None) -> Self:
        """Explain reference rows together, and remember what answers depend on.

        Parameters
        ----------
        X : DataFrame or array (n, D), optional
            The reference rows; by default up to 500 rows of ``data``
            (:class:`propopt.graphs.Nearest`).
        progress : bool, optional
            Show bars on standard error; by default only on a terminal.

        Raises
        ------
        InvalidInput
            If an argument cannot be used; the message says what would do.
        """
        settings = CheckedSettings.of(self)
        table = self.data if X is None else X
        is_text = is_documents(table) or isinstance(self.data, TextSchema)
        if is_text or (isinstance(self.model, Function) and self.model.takes_texts):
            from propopt.explaining.documents import FittedDocuments

            fitted: Any = FittedDocuments
        else:
            fitted = FittedRows
        self._fitted = fitted.of(settings, self.model, self.data, X, progress)
        return self

    @suggests_arguments
    def explain(
        self, X: Any, *, base_margin: RowNumbers = None, progress: bool | None = None
    ) -> Explanation:
        """Explain each row by itself, given the reference rows.

        Rows of trees are answered in blocks. Other models are asked about one row at a
        time, for some answer many rows with other digits. So a row has the same bits
        alone and in any block.

        Parameters
        ----------
        X : DataFrame or array (m, D)
            The rows, of the columns of the reference.
        base_margin : Series or array (m,), optional
            As for :func:`propopt.explain`: what is added to the margin of each row.
        progress : bool, optional
            Show a bar on standard error; by default only on a terminal, and of work
            that takes more than a second.

        Returns
        -------
        Explanation
            ``certificate`` is that of the rows given the reference. For each row:

            =============================== =========================================
            ``gradient``                    (m, D), its target g; in units of the
                                            output instead:
            ``contributions``               (m, D), Φ
            ``base_value``                  (m,), the base, one and the same
            ``prediction``                  (m,), f(x)
            ``completeness_gap``            (m,), Σ_d w_d − (f(x) − base), of rounding
            ``details["joint_excess"]``     (m,), the objective of all rows together,
                                            this one appended, is at most so much above
                                            its least
            ``details["joint_distance"]``   (m,), and its optimum so near (Frobenius)
            ``details["similarity"]``       (m,), σ
            ``details["reference_rows"]``   (m, k), places of the nearest, nearest first
            =============================== =========================================

        Raises
        ------
        InvalidInput
            If X is not a table like that of the fit.
        sklearn.exceptions.NotFittedError
            Before :meth:`fit`.
        """
        return self.fitted_.explain(X, progress, base_margin)

    def save(self, path: str | Path) -> None:
        """Write all but the model to an ``.npz`` file: arrays and text, no pickles.

        Raises
        ------
        InvalidInput
            If the folder is not there, a name or a category is neither text nor a
            number, or documents are explained.
        sklearn.exceptions.NotFittedError
            Before :meth:`fit`.

        Examples
        --------
        >>> import tempfile, numpy as np, propopt as po
        >>> X = np.linspace(-1, 1, 20)[:, None]
        >>> explainer = po.Explainer(np.ravel, data=X).fit()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     explainer.save(f"{folder}/explainer.npz")
        ...     same = po.Explainer.load(f"{folder}/explainer.npz", np.ravel)
        >>> bool(
        ...     (
        ...         same.explain(X).attributions == explainer.explain(X).attributions
        ...     ).all()
        ... )
        True
        """
        rows = self.fitted_
        if not isinstance(rows, FittedRows):
            raise InvalidInput(
                "save: an Explainer of documents is not saved, for words have no "
                "schema in a file; save reference_, or fit it again"
            )
        SavedExplainer.of(rows).save(path)

    @classmethod
    def load(cls, path: str | Path, model: Any) -> Explainer:
        """The explainer that :meth:`save` wrote, for the same model.

        Parameters
        ----------
        path : path
            The file.
        model : estimator, torch module, callable or Function
            What the explainer was fitted to. Its values at up to 16 of the reference
            rows, and targets at three, are compared with those of the fit.

        Raises
        ------
        InvalidInput
            If the file is another one, or the model is another function.
        FileNotFoundError
            If there is no file.
        """
        fitted = read_explainer(path, model)
        loaded = cls(model, **vars(fitted.problem.settings))
        loaded._fitted = fitted
        return loaded

    @property
    def reference_(self) -> Explanation:
        """The reference rows, explained together."""
        return self.fitted_.explained

    @property
    def robustness_(self) -> float:
        """The weight of robustness in use."""
        return self.fitted_.weights[1]

    def __call__(self, *args: object, **settings: object) -> NoReturn:
        """Explainers of shap are called; this one says how it is asked."""
        del args, settings
        raise InvalidInput(
            f"{self!r}: is not called; fit() it once, and explain(X) explains rows"
        )

    if not TYPE_CHECKING:  # which trusts whatever a class with __getattr__ is asked

        def __getattr__(self, name: str) -> NoReturn:
            if name in dir(type(self)):  # a property, which raised it
                raise NotFitted(f"{self!r}: call fit() first")
            raise missing_attribute(self, name, "explainer")

    def __repr__(self) -> str:
        name = type(self).__name__
        if self._fitted is None:
            return f"{name}({self.model!r}, not fitted)"
        n, _ = self._fitted.reference.shape
        return f"{name}({self._fitted.function!r}, {n} reference rows)"

    @property
    def fitted_(self) -> FittedReference:
        """What the fit left, on which answers depend."""
        if self._fitted is None:
            raise NotFitted(f"{self!r}: call fit() first")
        return self._fitted


def n_rows_of(data: Any) -> int:
    """How many rows a table has, or documents; 0 of what is no table."""
    if is_frame(data, "data"):
        return len(data)
    is_list = isinstance(data, np.ndarray | list | tuple)
    is_number = isinstance(data, np.ndarray) and data.ndim == 0
    return len(data) if is_list and not is_number else 0
