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
    """Explain a model at the rows of X by contributions that add up to its predictions.

    Each row gets one contribution per column: close to its Shapley values, and similar
    for similar rows. A certificate proves that no explanation is better by more than
    ``gap``.

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
        The rows to explain. A list or Series of texts is explained word by word.
    data : DataFrame, array, TableSchema, documents or TextSchema, optional
        The background and reference rows, preferably the training data of the model.
    base_margin : Series or array (N,), optional
        Offsets that are added to the margin outside the model, such as log exposure:
        ``base_margin`` of XGBoost, ``init_score`` of LightGBM, ``baseline`` of
        CatBoost. They change the base and the prediction, not the contributions.
        Outputs other than margins are refused.
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
    base, Φ      the mean of f over the background, and the Shapley values of x for
                 this background: all rows of ``data`` if the model is computed exactly
                 (trees, linear and additive models, kernel machines), else 100 rows
                 that depend only on ``data``
    g            main effects: the centred partial dependence of each column over the
                 background
    w_j, g_j     the same for the 8 nearest of up to 500 reference rows of ``data``,
                 which are explained together; the similarity s_j falls with distance
    ω_d          the mean of (Φ_d − g_d)² over the reference rows: columns change in
                 proportion to their joint effects with other columns, and additive
                 columns keep Φ exactly
    b            1/48 with 8 neighbours: before the constraint, rows move a quarter of
                 the way to the values that their nearest rows suggest
    ============ =====================================================================

    The answer for a row depends only on the row, the model, ``data`` and the settings,
    not on other rows. A reference row has its contributions among the reference rows.
    Without ``data``, the rows of X are both background and reference and are explained
    together, as by :func:`propopt.solve` (Tadesse et al. 2024). So are rows with a
    graph, a table of ``contributions`` or ``offset``, a ``precision`` or
    ``max_evaluations``, which refer to all rows of X. The function is one of two
    lines::

        propopt.Explainer(model, data, **settings).fit().explain(X)
        propopt.Explainer(model, data, **settings).fit(X).reference_

    ``kind="slopes"`` gives changes of the output per standard deviation of each column,
    which do not add up to the prediction. They minimise (Eq. 2 and 4 there)

    .. math::

        Σ_n ‖w_n − s ∘ ∇f(x_n)‖² + c Σ_{n,n'} ‖w_n − w_n'‖² S_nn'

    with c at the knee of the trade-off. For models with jumps, such as forests, the
    target is the slope of the mean output over observed values near each row,
    Cov(V_j, f(V))/Var(V_j).

    For documents the columns are words. A word is compared between documents that
    contain it, by :class:`propopt.losses.SharedRobustness`,

    .. math::

        Σ_{n,n'} S_nn' Σ_{j in both} (w_nj − w_n'j)²

    and has the attribution 0 in other documents. S is the cosine similarity of tf-idf
    between each document and the 8 nearest that share words with it
    (:func:`propopt.graphs.document_graph`). The default target is the effect of each
    word: f(x) minus f of x without the word. With ``law=po.lime.TextLaw()`` it is the
    limit of LIME's coefficients. ``kind="contributions"`` has Shapley values by
    deletion, for which the words of each document add up. Documents take no ``scale``,
    ``metric``, ``offset``, ``groups`` or ``sample_weight``.
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
    """An explainer was used before it was fitted."""


@final
@suggests_arguments
@dataclass(eq=False, repr=False)
class Explainer(Settings):
    """An explainer of a model: fitted to reference rows once, then used row by row.

    ``fit`` explains the reference rows together and fixes scales, neighbours,
    background and weight. ``explain`` gives each new row its optimum given its nearest
    reference rows. The result depends only on the row, the model and ``data``. It is
    that of :func:`propopt.explain` with ``data``, where the objective is defined.

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
        The background and reference rows, preferably the training data of the model; by
        default the rows given to :meth:`fit`. It also gives standard deviations and
        frequencies of categories. :meth:`propopt.functions.TableSchema.of` declares
        categorical columns of numbers, and one-hot columns that are one feature.
        Documents are explained word by word: a new one is compared with those that
        share most of its words, and its new words have their effects on the output.
    target, output
        The class or output column, and the output unit, as in :func:`propopt.wrap`. By
        default a boosted classifier is explained in its margin, also behind pipelines,
        searches and thresholds. For two classes the margin is the log-odds.
    outcome : str, optional
        The name of the predicted column for titles and axes: "log-odds of churn = 1"
        instead of "log-odds of class 1". A name with an article describes class 1: "a
        flare" gives "log-odds of a flare".
    sample_weight : Series or array (M,), optional
        Weights of the background rows, such as exposure or survey weights: one for each
        row of ``data``, or of X without ``data``. The base is the weighted mean
        prediction, and Shapley values use the weighted rows: a row of weight 2 counts
        as two equal rows. Only ratios matter. A Series is reordered to the labels of
        ``data``. Scales and reference rows are not weighted.
    groups : mapping of a name to columns, optional
        Columns that form one player, such as ``{"address": ["street", "zip"]}``. Each
        group, and each column in no group, gets one contribution: the Shapley value of
        the game among groups, which differs from the sum over its columns. Distances
        remain those of columns.
    scale : "std", None, mapping or array (D,)
        The units of columns in distances and slopes. Standard deviations for distances
        of contributions ignore the outer 0.5 % of values on either side. None: columns
        without scaling. Constant columns of ``data`` do not enter distances.
    kind : {"contributions", "slopes"}, optional
        Contributions add up to f(x) minus the base; slopes are changes of the output
        per ``scale``. The default is contributions for tables, word effects for texts.
    contributions : {"shapley", "slopes"} or attributions (N, D)
        The target Φ: Shapley values; slopes times steps from the mean row, with effects
        of categories; or given values: an Explanation or ``shap.Explanation`` with base
        values, or a table. Sampled Shapley values of a row depend only on its values
        and the seed.
    metric : {"auto", "joint", "uniform", "effects"}
        The weights of columns, ω: their joint effects with other columns (see
        :func:`propopt.explain`), 1, or the mean of Φ_d². The default is joint effects
        with main effects as ``offset``, and 1 otherwise.
    law : {"auto", "data", "gaussian", "none"} or TextLaw
        The distribution over which the model is averaged before taking slopes: observed
        values near each row; Gaussian noise of half of ``scale``; or none. The default
        is observed values for models with jumps.
    graph : Nearest or Graph, optional
        The similar rows: nearest reference rows (:class:`propopt.graphs.Nearest`), or a
        graph of rows that are explained together.
    offset : {"auto", "main_effects"}, None, MainEffects or table (N, D)
        Justified differences between similar rows, g: main effects for contributions
        (:func:`propopt.explainers.main_effects`), and none for slopes. With
        ``"main_effects"``, ``parameters["main effect"]`` of rows that are explained
        together reports their share of the differences.
    robustness : float or str, optional
        The weight b; ``"knee"`` of the trade-off curve; or the reduction of differences
        between similar rows, such as ``"-50%"`` (:class:`propopt.solvers.Aim`). 0 gives
        Φ. By default contributions move a quarter of the way to the nearest rows, and
        slopes use the knee.
    sampling : Sampling
        The seed and the stopping rule of sampling.

    Attributes
    ----------
    reference_ : Explanation
        The explanation of the reference rows, computed together. A new row that equals
        one of them has the same contributions.
    robustness_ : float
        The weight b.

    See Also
    --------
    explain : The same for one table in one call.

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
        """Explain the reference rows together, and save them for new rows.

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
            If an argument cannot be used; the message has a remedy.
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
        """Explain each row separately, given the reference rows.

        A row gets identical numbers alone and together with others: trees are evaluated
        in blocks, and other models row by row.

        Parameters
        ----------
        X : DataFrame or array (m, D)
            The rows to explain, with the columns of the reference rows.
        base_margin : Series or array (m,), optional
            Offsets added to the margin of each row, as for :func:`propopt.explain`.
        progress : bool, optional
            Whether to show a progress bar on standard error; by default only on a
            terminal, for work of more than a second.

        Returns
        -------
        Explanation
            The attributions, with the ``certificate`` of the rows given the reference.
            For each row:

            =============================== =========================================
            ``gradient``                    (m, D), the target g of slopes
            ``contributions``               (m, D), the target Φ of contributions
            ``base_value``                  (m,), the base, equal for all rows
            ``prediction``                  (m,), f(x)
            ``completeness_gap``            (m,), the rounding error Σ_d w_d − (f(x) −
                                            base)
            ``details["joint_excess"]``     (m,), a bound on the excess of the joint
                                            objective with this row added
            ``details["joint_distance"]``   (m,), a bound on the Frobenius distance to
                                            the joint optimum
            ``details["similarity"]``       (m,), the sum of similarities σ
            ``details["reference_rows"]``   (m, k), indices of the nearest reference
                                            rows, nearest first
            =============================== =========================================

        Raises
        ------
        InvalidInput
            If X does not have the columns of the fit.
        sklearn.exceptions.NotFittedError
            If the explainer was not fitted.
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
