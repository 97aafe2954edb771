"""Explanations of single rows, the same whoever else is asked: fitted once."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, final

import numpy as np
from sklearn.exceptions import NotFittedError

from propopt.base.checks import read_seed
from propopt.base.errors import InvalidInput
from propopt.base.words_of_others import knows_other_words, no_such_name
from propopt.explaining.contributions import ContributionChoice
from propopt.explaining.fitted_rows import FittedReference, FittedRows, fitted_rows
from propopt.explaining.joint_parts import MetricChoice
from propopt.explaining.plan import (
    MOST_REFERENCE_ROWS,
    BesideLike,
    ExplainSettings,
    InteractionScores,
    KindChoice,
    RowNumbers,
    TextLaw,
)
from propopt.explaining.saved_explainer import SavedExplainer, read_explainer
from propopt.explaining.targets import N_NEIGHBORS, LawChoice
from propopt.functions.outputs import Output, Target
from propopt.functions.texts import TextFunction
from propopt.results.explanation import Explanation
from propopt.tables.documents import is_documents
from propopt.tables.schema import ColumnScale


class NotFitted(InvalidInput, NotFittedError):  # type: ignore[misc]  # it is Any
    """An explainer is asked before its fit."""


@final
@knows_other_words
@dataclass(eq=False, repr=False)
class Explainer:
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
    data : DataFrame, array, TableSchema or documents, optional
        The table that scales come from, and reference rows, best the one that the
        model was fitted on; the rows given to :meth:`fit` by default. Documents are
        explained word by word, as by :func:`propopt.explain`: a new one beside those
        that share most of its words, over the words that both have. Its own words may
        be new; they have what the model says of them.
    target, output
        Of :func:`propopt.wrap`: which class or column, and in which units.
    outcome : str, optional
        Of :func:`propopt.wrap`: the name of the column that the model predicts.
    scale : "std", None, mapping or array (D,)
        As for :func:`propopt.explain`: units of slopes and of distances.
    kind, contributions, metric, beside
        As for :func:`propopt.explain`, of any row. Where Shapley values are sampled,
        the seed and the values of the row name its draws, whoever else is asked.
    law : {"auto", "data", "gaussian", "none"}
        As for :func:`propopt.explain`: over what the model is averaged before its
        slopes are taken. Shapley values have no slopes, and refuse it. Of documents
        ``po.lime.TextLaw()`` too.
    sample_weight : Series or array (M,), optional
        As for :func:`propopt.explain`: a weight for each background row of ``data``, or
        of the rows given to :meth:`fit` without ``data``.
    groups : mapping of a name to columns, optional
        As for :func:`propopt.explain`: columns that are one player.
    n_neighbors : int
        Reference rows that each row is compared with.
    robustness : float or str, optional
        b, ``"knee"``, or a share such as ``"-50%"`` by which that of the reference rows
        is to be smaller. By default contributions move a quarter of the way to the
        nearest rows, and slopes take the knee of the trade-off curve.
    n_reference : int
        ``fit()`` takes so many rows of ``data`` where it has more, which follow from
        ``data`` alone. Of 500, the default, it takes fewer where contributions of a row
        take long.
    interactions : InteractionScores, optional
        As for :func:`propopt.explain`: what matters jointly is told in all notes.
    rng : int, numpy.random.Generator or None
        For targets that are sampled; None is seed 0.

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
    _: KW_ONLY
    target: Target = None
    output: Output = "auto"
    outcome: str | None = None
    sample_weight: RowNumbers = None
    groups: Mapping[str, Sequence[str]] | None = None
    scale: ColumnScale = "std"
    kind: KindChoice | None = None
    contributions: ContributionChoice = "shapley"
    metric: MetricChoice = "auto"
    law: LawChoice | TextLaw = "auto"
    beside: BesideLike = "auto"
    n_neighbors: int = N_NEIGHBORS
    robustness: float | str | None = None
    n_reference: int = MOST_REFERENCE_ROWS
    interactions: InteractionScores | None = None
    rng: int | np.random.Generator | None = None
    _fitted: FittedReference | None = field(default=None, init=False)

    @knows_other_words
    def fit(self, X: Any = None, *, progress: bool | None = None) -> Self:
        """Explain reference rows together, and remember what answers depend on.

        Parameters
        ----------
        X : DataFrame or array (n, D), optional
            The reference rows; by default ``n_reference`` rows of ``data``, drawn
            without replacement, or all where there are fewer.
        progress : bool, optional
            Show bars on standard error; by default only on a terminal.

        Raises
        ------
        InvalidInput
            If an argument cannot be used; the message says what would do.
        """
        settings = replace(ExplainSettings.of(vars(self)), rng=read_seed(self.rng))
        documents = X if self.data is None else self.data
        if isinstance(self.model, TextFunction) or is_documents(documents):
            from propopt.explaining.documents import drawn_documents

            self._fitted = drawn_documents(settings, self.model, self.data, X, progress)
        else:
            self._fitted = fitted_rows(settings, self.model, self.data, X, progress)
        return self

    @knows_other_words
    def explain(
        self, X: Any, *, offset: RowNumbers = None, progress: bool | None = None
    ) -> Explanation:
        """Explain each row by itself, given the reference rows.

        Rows of trees are answered in blocks. Other models are asked about one row at a
        time, for some answer many rows with other digits. So a row has the same bits
        alone and in any block.

        Parameters
        ----------
        X : DataFrame or array (m, D)
            The rows, of the columns of the reference.
        offset : Series or array (m,), optional
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
        return self.fitted_.explain(X, progress, offset)

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
        settings, own = vars(fitted.plan.settings), inspect.signature(cls).parameters
        loaded = cls(model, **{name: x for name, x in settings.items() if name in own})
        loaded._fitted = fitted
        return loaded

    @property
    def reference_(self) -> Explanation:
        """The reference rows, explained together."""
        return self.fitted_.reference

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
            if hasattr(type(self), name):  # a property, which raised it
                raise NotFitted(f"{self!r}: call fit() first")
            raise no_such_name(self, name, "explainer")

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
