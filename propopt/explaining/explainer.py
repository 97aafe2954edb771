"""The public explainer of a model: its settings, fit, answers and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, final, overload

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError

from propopt.base.arrays import Array
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import missing_attribute, suggests_arguments
from propopt.explaining.out_of_sample import (
    FittedReference,
    FittedRows,
    with_base_margins,
)
from propopt.explaining.problem import (
    CheckedSettings,
    RowNumbers,
    RowsProblem,
    Settings,
    joint_setting_of,
    takes,
)
from propopt.explaining.row_tables import is_dask, row_table
from propopt.explaining.saved_explainer import SavedExplainer, read_explainer
from propopt.functions.function import Function
from propopt.functions.outputs import Target
from propopt.functions.wrapping import opened, several_classes
from propopt.results.explanation import Explanation, ExplanationsByClass
from propopt.tables.documents import TextSchema
from propopt.tables.frames import is_documents, is_frame, table_of_rows


if TYPE_CHECKING:
    from propopt.results.explained_table import ExplainedTable


@dataclass(eq=False)
class _Arguments(Settings):
    """The arguments of :func:`explain`: model, rows and settings."""

    model: Any
    X: Any
    data: Any = None
    _: KW_ONLY
    target: Target | list[Any] = None  # type: ignore[assignment]  # or several
    base_margin: RowNumbers = None
    progress: bool | None = None


@suggests_arguments
@takes(_Arguments)
def explain(given: _Arguments) -> Explanation | Any:
    """Explain a model at the rows of X by contributions that add up in each row.

    Give it a fitted model, the rows, and the table that the model was fitted on. It
    returns one contribution for each row and column. These are close to Shapley values
    and similar for similar rows, with a proof of optimality.

    >>> import propopt as po
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X, y)
    >>> best = po.explain(model, X.iloc[::5], data=X, target=1)
    >>> best.to_frame().shape, best.parameters["weight rule"]
    ((30, 4), 'a quarter of the way to the nearest rows')

    Parameters
    ----------
    model : estimator, torch module, callable or Function
        The fitted model; see :func:`propopt.wrap`.
    X : DataFrame or array (N, D), or documents
        The rows to explain. A list or Series of texts is explained word by word. One
        row may be a Series or a dict of the names of ``data``, and rows a list of
        dicts.
    data : DataFrame, array, TableSchema, documents or TextSchema, optional
        The background and reference rows, preferably the training data of the model.
    base_margin : Series or array (N,), optional
        Offsets of the margin, such as log exposure: ``base_margin`` of XGBoost,
        ``init_score`` of LightGBM, ``baseline`` of CatBoost; for several classes those
        of the class explained. The prediction is that of the library with them: XGBoost
        replaces its intercept by them, other libraries and functions add them. They
        change the base and the prediction, not the contributions. Outputs other than
        margins are refused.
    progress : bool, optional
        Whether to show progress bars on standard error; by default only on a terminal.
    **settings
        Settings of :class:`propopt.Explainer`: target, output, outcome, sample_weight,
        groups, scale, kind, contributions, metric, law, graph, offset, robustness and
        sampling.

    Returns
    -------
    Explanation
        The attributions with the names of X, ``losses``, the certified ``gap``, the
        Shapley values (``contributions``), ``base_value``, ``prediction`` and the
        digest of the ``background``. For slopes also ``gradient`` (N, D), their target.
        For a list of classes as ``target``, and without ``target`` for all classes of
        a model of three or more, an :class:`propopt.results.ExplanationsByClass`.

    Raises
    ------
    InvalidInput
        If the model or the table cannot be used; the message has a remedy.

    See Also
    --------
    Explainer : Fit once, then explain new rows.
    solve : Choose losses and weights.
    audit : Check attributions from another package.

    Notes
    -----
    The contributions w of a row x minimise

    .. math::

        Σ_d (w_d − Φ_d)²/ω_d + 2b Σ_j s_j Σ_d ((w_d − g_d) − (w_jd − g_jd))²/ω_d

        subject to Σ_d w_d = f(x) − base

    ============ =====================================================================
    base, Φ      the mean of f over the rows of ``data``, and the Shapley values of x
                 against these rows: all of up to 60,000 for trees, up to 10,000 for
                 other models that are computed exactly (linear and additive models;
                 fewer where a row is costly, such as of kernel machines), else 100
                 rows; which ones depends only on ``data``, not on its order, and they
                 have weights with which f has the base as its mean
    g            the main effect of each column: its centred partial dependence over
                 the same rows
    w_j, g_j     the same for the 8 nearest of up to 500 reference rows of ``data``,
                 which are explained jointly; their similarity s_j falls with distance
    ω_d          the mean of (Φ_d − g_d)² over the reference rows: columns move in
                 proportion to their interactions, and an additive column retains its
                 Φ exactly
    b            1/48 with 8 neighbours: before completeness, contributions move a
                 quarter of the way to the values that the nearest rows suggest
    ============ =====================================================================

    The answer for a row depends only on the model, ``data`` and the settings, not on
    the other rows of the call, and :class:`propopt.Explainer` gives the same. A row
    that equals a reference row has the answer of that row. **Without** ``data`` the
    rows of X are background and reference, and are explained jointly, as by
    :func:`propopt.solve` (Tadesse et al. 2024). The same applies with a graph of the
    rows, a table of ``contributions`` or ``offset``, a ``precision`` or
    ``max_evaluations``. In code, it is one of two lines::

        propopt.Explainer(model, data, **settings).fit().explain(X)
        propopt.Explainer(model, data, **settings).fit(X).reference_

    ``kind="slopes"`` gives changes of the output per standard deviation of each column,
    which do not add up. They minimise Σ_n ‖w_n − s ∘ ∇f(x_n)‖² +
    c Σ_{n,n'} ‖w_n − w_n'‖² S_nn' (Eq. 2 and 4 there), with c at the knee of the
    trade-off curve. A model that jumps, such as a forest, has the slopes of its mean
    over observed values close to each row, Cov(V_j, f(V))/Var(V_j).

    Documents are explained word by word. A word is compared between the documents that
    contain it, Σ_{n,n'} S_nn' Σ_{j in both} (w_nj − w_n'j)², by
    :class:`propopt.losses.SharedRobustness`; a word that is not in a document has the
    attribution 0 there. S is the cosine similarity of tf-idf between each document
    and the 8 nearest that share words with it (:func:`propopt.graphs.document_graph`).
    By default they are faithful to the effects of single words, f(x) minus f of x
    without the word. With ``law=po.lime.TextLaw()`` the targets are the limits of
    LIME's coefficients. ``kind="contributions"`` has Shapley values by deletion, with
    the empty text as background, and the words of each document add up. Documents take
    no ``scale``, ``metric``, ``offset``, ``groups`` or ``sample_weight``.
    """
    given.model = opened(given.model)
    classes = _classes_of(given)
    if not classes:
        return _explained(given)
    if given.base_margin is not None:
        raise InvalidInput(
            "base_margin: expected none for several classes, which have one each; give "
            "one class as target"
        )
    return ExplanationsByClass(
        {label: _explained(replace(given, target=label)) for label in classes}
    )


def _classes_of(given: _Arguments) -> list[Any]:
    """The classes to explain, if they are several."""
    target = given.target
    if isinstance(target, list) and len({*map(str, target)}) == len(target):
        return target  # labels of rows would occur more than once
    return several_classes(given.model) if target is None else []


def _explained(given: _Arguments) -> Explanation:
    """One explanation; refuses a target that is no class."""
    X = table_of_rows(given.X, given.data)
    # without a table of two rows or more, rows are explained jointly
    is_joint = joint_setting_of(given) is not None or n_rows_of(given.data) < 2
    table = X if is_joint else None
    fitted, margins = _fit(given, table, given.progress, given.base_margin, X)
    explained = fitted.explained if is_joint else fitted.explain(X, given.progress)
    return with_base_margins(explained, margins)


@final
@suggests_arguments
@dataclass(eq=False, repr=False)
class Explainer(Settings):
    """Explain a model row by row, after one fit to reference rows.

    ``fit`` explains the reference rows jointly, once, and fixes the scales, neighbours,
    background and weight. ``explain`` gives each new row its optimum given its nearest
    reference rows. :func:`propopt.explain` with ``data`` has the same answers, to the
    last bit, and documents what is minimised. Answers depend only on the row, the model
    and ``data``, not on other rows, their order or their number. If the row were
    appended to the reference, the reference would move a little; ``details`` bound this
    for each row.

    Slopes w of a new row, with target g and similarities s_j to the attributions w_j of
    its nearest reference rows, are

    .. math::

        (1 + 2bσ) w = g + 2b Σ_j s_j w_j, σ = Σ_j s_j.

    ``details`` bounds how far the reference would move if the row were added to it.

    Parameters
    ----------
    model : estimator, torch module, callable or Function
        The fitted model; see :func:`propopt.wrap`.
    data : DataFrame, array, TableSchema, documents or TextSchema, optional
        The background and reference rows, best the table that the model was fitted on;
        by default the rows given to :meth:`fit`. Standard deviations and frequencies of
        categories come from it, too. Declare categorical columns of numbers, and
        one-hot columns that are one feature, by
        :meth:`propopt.functions.TableSchema.of`. Documents are explained word by word:
        a new document is compared with those that share most of its words, over the
        shared words. Its new words retain their target.
    target, output
        The class or output column, and the output unit, as in :func:`propopt.wrap`. By
        default classifiers are explained in log-odds where these are exact, also behind
        pipelines, searches and thresholds: boosted trees (the margin of a class where
        there are several), logistic regression, discriminant analysis and naive Bayes
        of two classes. Others are explained in probability. The card has the unit.
    outcome : str or mapping of a class to its name, optional
        The name of the column that the model predicts, which models do not store. With
        it, cards, axes and files show "log-odds of churn", else "log-odds of class 1";
        of other classes than 0 and 1 they show "log-odds of grade = 2", and of class 0
        "log-odds of churn = 0". A name for each class stands alone: ``{0: "benign", 1:
        "malignant"}`` gives "log-odds of malignant".
    sample_weight : Series or array (M,), optional
        Weights of the background rows, such as exposure or survey weights: one for each
        row of ``data``, or of X without ``data``. The base is the weighted mean
        prediction, and Shapley values use the weighted rows: a row of weight 2 counts
        as two equal rows. Only ratios matter. A Series is reordered to the labels of
        ``data``. Scales and reference rows are not weighted.
    groups : mapping of a name to columns, or "auto", optional
        Columns that are one player, such as ``{"address": ["street", "zip"]}``. There
        is a contribution for each group and for each column without a group: the
        Shapley values of the game among groups, which differ from sums over columns.
        Distances are still computed from columns. ``"auto"`` takes the columns that
        data hardly ever has apart, of those that the model reads, which
        ``parameters["groups"]`` lists.
    scale : "std", None, mapping or array (D,)
        The units of distances and of slopes. For contributions, standard deviations are
        winsorised by 0.5 % of the values on either side. None: columns are not scaled.
        Columns that are constant in ``data`` do not enter distances.
    kind : {"contributions", "slopes"}, optional
        Parts of the output that add up to f(x) minus its mean; or slopes, changes of
        the output per ``scale``. By default contributions for tables, and effects of
        words for documents.
    contributions : {"shapley", "slopes"} or attributions (N, D)
        Φ: Shapley values; slopes times steps from the mean row, and effects of
        categories; or given values, an Explanation or ``shap.Explanation`` with its
        base values, or a table. If Shapley values are sampled, draws depend only on the
        seed and the values of a row.
    metric : {"auto", "joint", "uniform", "effects"}
        The weights ω of columns: the size of their interactions (as above), equal
        weights, or the mean of Φ_d². By default "joint" if main effects are left out,
        else "uniform".
    law : {"auto", "data", "gaussian", "none"} or TextLaw
        The law over which the model is averaged before its slopes are computed:
        observed values close to each row; gaussian noise of half of ``scale``; no
        averaging. By default observed values if the model jumps.
    graph : Nearest or Graph, optional
        The similar rows: the nearest reference rows (:class:`propopt.graphs.Nearest`),
        or a graph of the rows that are explained jointly.
    offset : {"auto", "main_effects"}, None, MainEffects or table (N, D)
        Values g whose differences between similar rows are not reduced: by default the
        main effects (:func:`propopt.explainers.main_effects`) for contributions, and
        none for slopes. None: no offset. With ``"main_effects"``,
        ``parameters["main effects"]`` of jointly explained rows is also the share of
        differences that main effects explain.
    robustness : float or str, optional
        The weight b; ``"knee"`` of the whole trade-off curve; or the reduction of
        differences between similar rows, such as ``"-50%"``
        (:class:`propopt.solvers.Aim`). 0 gives Φ. By default contributions move a
        quarter of the way to the nearest rows, and slopes take the knee.
    sampling : Sampling
        The seed of draws, and when to stop them.

    Attributes
    ----------
    reference_ : Explanation
        The joint explanation of the reference rows, named as in ``data``. A new row
        that equals one of them has the contributions of that row. Rows of ``data`` are
        sorted by a digest of their values, so all numbers are equal for any order of
        ``data``.
    robustness_ : float
        The weight b in use.

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
        """Explain the reference rows jointly; new rows are then explained given them.

        Parameters
        ----------
        X : DataFrame or array (n, D), optional
            The reference rows; by default up to 500 rows of ``data``
            (:class:`propopt.graphs.Nearest`).
        progress : bool, optional
            Whether to show progress bars on standard error; by default only on a
            terminal.

        Returns
        -------
        Explainer
            The fitted explainer.

        Raises
        ------
        InvalidInput
            If an argument cannot be used; the message says how to mend it.
        """
        self._fitted, _ = _fit(self, X, progress)
        return self

    @overload
    def explain(
        self,
        X: Any,
        *,
        base_margin: RowNumbers = None,
        to: None = None,
        progress: bool | None = None,
    ) -> Explanation: ...

    @overload
    def explain(
        self,
        X: Any,
        *,
        to: str | PathLike[str],
        keep: Sequence[str] = (),
        scheduler: Any = None,
        progress: bool | None = None,
    ) -> ExplainedTable: ...

    @suggests_arguments
    def explain(
        self,
        X: Any,
        *,
        base_margin: RowNumbers = None,
        to: str | PathLike[str] | None = None,
        keep: Sequence[str] = (),
        scheduler: Any = None,
        progress: bool | None = None,
    ) -> Explanation | ExplainedTable:
        """Explain each row separately, given the reference rows.

        Rows of tree models are computed in blocks. Other models predict one row at a
        time, because some give other digits for many rows. So a row has the same bits
        alone and in any block.

        Tables larger than memory are explained into a folder: give ``to``, and the path
        of Parquet or Arrow files. A run that was interrupted continues if it is called
        again, and gives the same bytes. A DataFrame of Dask is explained lazily, by
        partitions.

        Parameters
        ----------
        X : DataFrame or array (m, D), path, or table of Arrow or Dask
            The rows to explain, with the columns of the reference rows; one row may be
            a Series or a dict, and rows a list of dicts. With ``to``: a
            file or folder of Parquet or Arrow (Feather), a dataset or table of pyarrow,
            or a DataFrame; it may have more columns, which are not read.
        base_margin : Series or array (m,), optional
            As for :func:`propopt.explain`: the offset of the margin of each row.
            Not with ``to``, nor for Dask.
        to : path, optional
            A folder for the explained rows, as parts of Parquet with the columns of
            :meth:`transform`, and lists of Φ or g and of standard errors, which
            ``clear`` and ``reasons`` read. It is made, or continued. Needs
            ``pip install "propopt[parquet]"``.
        keep : sequence of str
            With ``to``: columns of the table to copy next to the attributions, such as
            the number of a customer.
        scheduler : str or distributed.Client, optional
            With ``to``: the address of a scheduler of Dask, whose workers use the same
            paths. If a worker is killed, another one makes its unfinished part.
        progress : bool, optional
            Show a bar on standard error; by default only on a terminal, and after more
            than a second.

        Returns
        -------
        Explanation, ExplainedTable or DataFrame of Dask
            With ``to``, an :class:`propopt.results.ExplainedTable`, which has the mean
            sizes and directions of all rows. For a DataFrame of Dask, a lazy one with
            the columns of :meth:`transform` and the same divisions. Else an Explanation
            with the ``certificate`` of the rows given the reference. For each row:

            =============================== =========================================
            ``gradient``                    (m, D), the target g of slopes
            ``contributions``               (m, D), the target Φ of contributions
            ``base_value``                  (m,), the base, equal for all rows
            ``prediction``                  (m,), f(x)
            ``additivity_error``            (m,), Σ_d w_d − (f(x) − base), rounding
            ``details["gap"]``              (m,), the certified relative gap of the row
            ``details["error"]``            (m,), the standard error of Φ or g, as a
                                            root mean square over features
            ``details["joint_excess"]``     (m,), a bound of the excess of the joint
                                            objective with this row appended
            ``details["joint_distance"]``   (m,), a bound of the distance from that
                                            joint optimum (Frobenius)
            ``details["similarity"]``       (m,), σ
            ``details["losses"]``           (m, 2), of which ``losses`` are the sums
            ``details["value"]``            (m,), the objective of the row, and
                                            ``excess``, ``value_of_zero``,
                                            ``violation`` and ``distance``, from which
                                            the certificate of some rows follows
            ``details["reference_rows"]``   (m, k), indices of the nearest, nearest
                                            first
            =============================== =========================================

        Raises
        ------
        InvalidInput
            If X does not have the columns of the fit, or ``to`` has the rows of another
            explainer or table.
        MissingExtra
            If pyarrow or Dask is needed and not installed.
        sklearn.exceptions.NotFittedError
            If the explainer was not fitted.
        """
        if to is not None or is_large_table(X):
            from propopt.explaining.large_tables import explain_large

            if base_margin is not None:
                raise InvalidInput(
                    "base_margin: expected none for a large table; explainer.transform("
                    "block, base_margin=...) takes the rows of one block with theirs"
                )
            return explain_large(
                self.fitted_, X, to, keep=keep, scheduler=scheduler, progress=progress
            )
        if keep or scheduler is not None:
            raise InvalidInput("keep, scheduler: expected none without to=, a folder")
        X = self._rows(X)
        margins = self.fitted_.problem.margins(base_margin, X)
        return with_base_margins(self.fitted_.explain(X, progress), margins)

    @suggests_arguments
    def transform(self, X: Any, *, base_margin: RowNumbers = None) -> pd.DataFrame:
        """Explain the rows of one block as a plain table, for a worker of a cluster.

        The numbers are those of :meth:`explain`, to the last bit, for any division of
        a table into blocks. The columns depend only on the fit and on the names of X,
        so a table without rows has them too.

        Parameters
        ----------
        X : DataFrame or array (m, D)
            The rows to explain, as for :meth:`explain`, also as dicts; m may be 0.
        base_margin : Series or array (m,), optional
            As for :meth:`explain`.

        Returns
        -------
        DataFrame
            With the index of X, and columns of float64:

            =============== =========================================================
            each feature    (or group) its attribution, under its name as text
            ``base_value``  the base; only contributions have one
            ``prediction``  f(x), base plus attributions; only contributions have one
            ``gap``         the certified relative gap of the row
            ``error``       the standard error of its sampled contributions or slopes
                            before optimization, as a root mean square over features:
                            0 if they are computed exactly, missing if it is unknown
            =============== =========================================================

            If a feature has one of the last four names, that column ends in an
            underscore, such as ``prediction_``. Names of features do not change.

        Raises
        ------
        InvalidInput
            If X does not have the columns of the fit, or is documents, whose words
            would be other columns in each block.
        sklearn.exceptions.NotFittedError
            If the explainer was not fitted.

        Examples
        --------
        >>> import numpy as np, pandas as pd, propopt as po
        >>> X = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) % 7})
        >>> explainer = po.Explainer(lambda X: X.a * X.b, data=X).fit()
        >>> table = explainer.transform(X.iloc[5:8])
        >>> list(table.columns), list(table.index)
        (['a', 'b', 'base_value', 'prediction', 'gap', 'error'], [5, 6, 7])
        """
        X = self._rows(X)
        return row_table(self.fitted_, X, base_margin)

    def save(self, path: str | Path) -> None:
        """Write everything except the model to an ``.npz`` file, without pickles.

        Tables of trees are not in it: they are made with the first rows, or, for deep
        forests, in each call, as ``reference_.parameters["tables"]`` says.

        Raises
        ------
        InvalidInput
            If the folder does not exist, a name or a category is neither text nor a
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
                "save: an Explainer of documents cannot be saved; save reference_, or "
                "fit it again"
            )
        SavedExplainer.of(rows).save(path)

    @classmethod
    def load(cls, path: str | Path, model: Any) -> Explainer:
        """Read an explainer that :meth:`save` wrote, for the same model.

        Parameters
        ----------
        path : path
            The file.
        model : estimator, torch module, callable or Function
            The model of the fit. Its values at up to 16 reference rows, and its targets
            at three, are compared with those of the fit.

        Returns
        -------
        Explainer
            A fitted explainer of the model.

        Raises
        ------
        InvalidInput
            If the file holds something else, or the model differs from that of the fit.
        FileNotFoundError
            If there is no file.
        """
        fitted = read_explainer(path, model)
        loaded = cls(model, **vars(fitted.problem.settings))
        loaded._fitted = fitted
        return loaded

    @property
    def reference_(self) -> Explanation:
        """The joint explanation of the reference rows."""
        return self.fitted_.explained

    @property
    def robustness_(self) -> float:
        """The weight of robustness in use."""
        return self.fitted_.weights[1]

    def __call__(self, *args: object, **settings: object) -> NoReturn:
        """Refuse calls, which explainers of shap have."""
        del args, settings
        raise InvalidInput(
            f"{self!r}: cannot be called; write explainer.fit() once, and then "
            "explainer.explain(X)"
        )

    if not TYPE_CHECKING:  # __getattr__ would hide missing names from type checkers

        def __getattr__(self, name: str) -> NoReturn:
            if name in dir(type(self)):  # a property, which raised it
                raise NotFittedError(f"{self!r}: call fit() first")
            raise missing_attribute(self, name, "explainer")

    def __repr__(self) -> str:
        name = type(self).__name__
        if self._fitted is None:
            return f"{name}({type(self.model).__name__}, not fitted)"
        n, _ = self._fitted.reference.shape
        return f"{name}({self._fitted.function.quantity}, {n:,} reference rows)"

    def __str__(self) -> str:
        step = "fit()" if self._fitted is None else "print(explainer.explain(X))"
        return f"{self!r}; next: {step}"

    def _rows(self, X: Any) -> Any:
        """A table of rows that are given as Series or mappings; else X."""
        encoding = self.fitted_.function.encoding
        return table_of_rows(
            X, self.fitted_.problem.points if encoding is None else encoding
        )

    @property
    def fitted_(self) -> FittedReference:
        """The reference rows and their attributions, given which rows are explained."""
        if self._fitted is None:
            raise NotFittedError(f"{self!r}: call fit() first")
        return self._fitted


def _fit(
    explainer: Explainer | _Arguments,
    X: Any,
    progress: bool | None,
    base_margin: RowNumbers = None,
    rows: Any = None,
) -> tuple[FittedReference, Array | None]:
    """The fit to X or data, and base margins of rows, refused before any work."""
    settings = CheckedSettings.of(explainer)
    model = explainer.model
    data = explainer.data
    if X is None:
        settings.refuse_joint_settings()
    is_text = is_documents(data if X is None else X) or isinstance(data, TextSchema)
    if is_text or (isinstance(model, Function) and model.takes_texts):
        from propopt.explaining.documents import DocumentsProblem, FittedDocuments

        documents = DocumentsProblem.of_model(settings, model, data, X, progress)
        documents.margins(base_margin, rows)
        return FittedDocuments.of(documents), None
    problem = RowsProblem.of(settings, model, data, X, progress)
    margins = problem.margins(base_margin, rows)
    return FittedRows.of(problem, data, X, rows if X is None else None), margins


def is_large_table(X: Any) -> bool:
    """Whether X is a path, a dataset of pyarrow, or a DataFrame of Dask.

    The type of X decides, so that no library is imported for it.
    """
    is_arrow = type(X).__module__.startswith("pyarrow.")
    is_dataset = is_arrow and hasattr(X, "get_fragments")
    return isinstance(X, str | PathLike) or is_dask(X) or is_dataset


def n_rows_of(data: Any) -> int:
    """The number of rows of a table or documents; 0 if it is neither."""
    if is_frame(data, "data"):
        return len(data)
    is_list = isinstance(data, np.ndarray | list | tuple)
    return len(data) if is_list and getattr(data, "ndim", True) else 0
