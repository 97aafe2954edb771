"""What all jobs share: points, a table with its target, a function."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field
from sklearn.base import BaseEstimator

from propopt.base.errors import FlatFunctionWarning, InvalidInput, PropoptError
from propopt.base.text import Reason
from propopt.base.words_of_others import knows_other_words
from propopt.explaining.targets import jumps, reference_of
from propopt.functions import PAPER_FUNCTIONS, Function, Power, smoothed
from propopt.functions.function import EXACT, read_function
from propopt.functions.outputs import Output, Target
from propopt.functions.texts import TextFunction
from propopt.functions.wrapping import wrap
from propopt.losses.faithfulness import Estimate
from propopt.problems.sections import Section, wrong
from propopt.problems.subject.learning import (
    MAYBE_FITTED,
    ModelScore,
    fit,
    is_unfitted,
    require_learner,
    score_of,
)
from propopt.problems.subject.model_sections import SmoothGradients
from propopt.problems.subject.tables import order_of_rows
from propopt.tables.documents import document_coordinates, is_documents, word_counts
from propopt.tables.schema import TableSchema


# ---- What all jobs of a problem share: points, a table with its target, and a function


class ModelFunction(NamedTuple):
    """A function, and the model that computes it."""

    function: Function
    estimator: Any = None
    n_fitted: int | None = None
    """On how many rows it was fitted here; None if it came as it is."""


@knows_other_words
@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """What is explained. Nothing is fitted before it is asked for.

    Parameters
    ----------
    points : array or DataFrame (N, D), or Series of documents (N,)
        X, to be explained.
    others : array or DataFrame (M, D), or Series of documents (M,)
        The rows that are not explained, on which a model is fitted; ``points`` itself
        where every row is explained.
    make : callable
        Gives the function, and fits it if it is a model.
    columns : TableSchema or None
        What the columns hold, where some are categories.
    target : Series or array (N,) or None
        Of ``points``, where there is one.
    others_target : Series or array (M,) or None
        Of ``others``.
    make_learner : callable or None
        Gives the estimator before it is fitted, without a seed; None where there is
        none.
    seed : int
        For slopes that are sampled.
    unscaled : DataFrame or None
        Of ``points`` the numbers that the file has, where columns are standardized.
    sample_weight : Series or None
        Of ``others``: weights of the background.

    Examples
    --------
    >>> import propopt as po
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> subject = Subject.of_model(LinearRegression(), X, y, explain=100)
    >>> subject.points.shape, subject.others.shape
    ((100, 10), (342, 10))
    >>> subject.score.in_words()
    'R² 0.493 on 100 held-out rows'
    >>> Subject.of(X, po.wrap(LinearRegression().fit(X, y))).score is None
    True
    """

    points: Any
    others: Any
    make: Callable[[], ModelFunction]
    columns: TableSchema | None = None
    target: Any = None
    others_target: Any = None
    make_learner: Callable[[], Any] | None = None
    seed: int = 0
    unscaled: pd.DataFrame | None = None
    sample_weight: pd.Series[Any] | None = None

    @classmethod
    def of(cls, X: Any, function: Function) -> Subject:
        """A function at points.

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The points.
        function : Function
            f; see :func:`propopt.wrap`.

        Raises
        ------
        InvalidInput
            If the function was not wrapped.
        """
        same = ModelFunction(read_function(function))
        return cls(points=X, others=X, make=lambda: same, columns=function.schema)

    @classmethod
    def of_model(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        explain: int | None = None,
        target: Target = None,
        output: Output = "auto",
        columns: TableSchema | None = None,
        seed: int = 0,
    ) -> Subject:
        """An estimator and a table, as a problem file has them.

        Parameters
        ----------
        model : estimator or callable
            Fitted, or an estimator that is then fitted, a copy of it.
        X : array or DataFrame (N, D)
            The table.
        y : Series or array (N,), optional
            Its target, which an estimator needs that is not fitted.
        explain : int, optional
            So many rows, drawn by the seed, are explained, and the model is fitted on
            the others; by default all are, and it is fitted on all.
        target, output
            As for :func:`propopt.wrap`.
        columns : TableSchema, optional
            What the columns hold; by default as they are, where some are text,
            categories or booleans.
        seed : int
            For the rows, and for the model where it has no seed.

        Raises
        ------
        InvalidInput
            If there is no target to fit to, or there are too few rows.
        """
        if y is None and is_unfitted(model):
            raise InvalidInput(f"{type(model).__name__} is not fitted: give y too")
        explained, rest = _rows(len(X), explain, seed)
        points, others = _taken(X, explained), _taken(X, rest)
        if explain is None:
            others = points
        schema = columns
        if schema is None and isinstance(others, pd.DataFrame):
            of_table = TableSchema.of(others)
            schema = of_table if of_table.categorical.any() else None
        labels = None if y is None else _taken(y, rest)
        wrapped = partial(wrap, target=target, output=output, data=schema)
        return cls(
            points=points,
            others=others,
            make=partial(learn, model, others, labels, wrapped, seed),
            columns=schema,
            target=None if y is None else _taken(y, explained),
            others_target=labels,
            make_learner=lambda: model,
            seed=seed,
        )

    @property
    def all_points(self) -> Any:
        """What is explained, then the others."""
        points, others = self.points, self.others
        return points if others is points else joined_rows(points, others)

    @property
    def n_rows(self) -> int:
        """Of the larger of the two tables."""
        return max(len(self.points), len(self.others))

    @property
    def is_text(self) -> bool:
        """Whether the points are documents."""
        return is_documents(self.points)

    @cached_property
    def table(self) -> Any:
        """The points as a table (N, D): X, or how often words come in documents."""
        return self.function.read(self.points)[0] if self.is_text else self.points

    @property
    def words(self) -> tuple[str, ...]:
        """Of documents, all words that get attributions."""
        assert isinstance(self.function, TextFunction)
        return self.function.text_schema.vocabulary

    @property
    def n_features(self) -> int:
        """How many attributions each point gets; of documents one for each word."""
        if self.is_text:
            return len(self.words)
        return self.points.shape[1] if self.columns is None else len(self.columns.names)

    @cached_property
    def coordinates(self) -> Any:
        """Where the points lie, (N, M): X, with categories one-hot over √2.

        Of documents those of :func:`document_coordinates`, of words in lower case,
        whatever the model sees: the squared distance of two is 2 − 2 cos.
        """
        if self.is_text:
            return document_coordinates(word_counts(self.points.str.lower()))
        if self.columns is None:
            return self.points
        return self.columns.coordinates(self.points, scale=None)

    @cached_property
    def _model_function(self) -> ModelFunction:
        return self.make()

    @property
    def function(self) -> Function:
        """The function f, made when it is first asked for."""
        return self._model_function.function

    @property
    def estimator(self) -> Any:
        """The fitted model, or None for a formula."""
        return self._model_function.estimator

    @property
    def learner(self) -> Any:
        """The estimator of the model, to be fitted anew.

        Raises
        ------
        InvalidInput
            If there is none.
        """
        if self.make_learner is None:
            raise InvalidInput("a function as it is cannot be fitted again")
        return require_learner(self.make_learner())

    @cached_property
    def score(self) -> ModelScore | Reason | None:
        """That of the model on rows that it was not fitted on; None without a model.

        Where the model came fitted, it may have been on these rows, and the score says
        so; where it was fitted on all rows, there is none.
        """
        model, n_fitted = self._model_function.estimator, self._model_function.n_fitted
        if model is None:
            return None
        if n_fitted is None:
            if self.target is None or not isinstance(model, BaseEstimator):
                return Reason("fitted elsewhere, no held-out score")
            return score_of(model, self.points, self.target, MAYBE_FITTED)
        if self.others is self.points:
            return Reason(f"fitted on all {n_fitted:,} rows, no held-out score")
        return score_of(model, self.points, self.target)

    @cached_property
    def sloped(self) -> Function:
        """The function with slopes that say how it changes.

        Its values are those of :attr:`function`, and so are its gradients, but where
        that jumps: then they are the slopes of its mean under the data law of
        ``others`` (:func:`propopt.functions.smoothed`), exact where it is made of
        trees.
        """
        function = self.function
        known = function.gradient_method == EXACT
        if known or isinstance(function, SmoothGradients):  # as model.smooth says
            return function
        reference = reference_of(function, self.others)
        if not jumps(function, reference):
            return function
        mean = smoothed(function, law="data", data=reference, rng=self.seed)
        return SmoothGradients(function, mean)

    def gradient(self, X: Any) -> Any:
        """The slopes at X of ``sloped``.

        Raises
        ------
        InvalidInput
            If they are all zero, and nothing jumps.
        """
        with _refused_if_flat():
            return self.sloped.gradient(X)

    def estimate(self, X: Any) -> Estimate:
        """The slopes at X with what is known of their error: see :meth:`gradient`.

        Raises
        ------
        InvalidInput
            If they are all zero, and nothing jumps.
        """
        with _refused_if_flat():
            return self.sloped.estimate(X)


@contextmanager
def _refused_if_flat() -> Iterator[None]:
    """Refuse a function that turns out to have no slope anywhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FlatFunctionWarning)
        try:
            yield
        except FlatFunctionWarning:
            raise InvalidInput(
                "the model has a gradient of zero everywhere, and no jump was found; "
                "add `smooth: {law: data}` to the model for slopes of its mean over "
                "observed values, or take function_matching"
            ) from None


def learn(
    model: Any,
    table: Any,
    target: Any,
    wrapped: Callable[[Any], Function],
    seed: int,
) -> ModelFunction:
    """The function that a model computes, fitted to a table if it is not yet."""
    if not is_unfitted(model):
        return ModelFunction(wrapped(model), model)
    own = fit(model, table, target, seed)
    return ModelFunction(wrapped(own), own, len(table))


def _rows(n_rows: int, explain: int | None, seed: int) -> tuple[Any, Any]:
    """The rows to explain, and those to fit on."""
    if explain is None:
        return np.arange(n_rows), np.arange(n_rows)
    if not 1 <= explain < n_rows:
        raise InvalidInput(
            f"explain: expected fewer than the {n_rows} rows there are, so that some "
            f"are left to fit on, and at least 1; got {explain}"
        )
    order = order_of_rows(seed, n_rows)
    return order[:explain], order[explain:]


def _taken(table: Any, rows: Any) -> Any:
    if isinstance(table, pd.DataFrame | pd.Series):
        return table.iloc[rows]
    return np.asarray(table)[rows]


def joined_rows(first: Any, second: Any) -> Any:
    """The rows of two tables, or targets."""
    if isinstance(first, pd.DataFrame | pd.Series):
        return pd.concat([first, second])
    return np.concatenate([first, second])


# ---- The section ``function``: one of the paper's formulas


class Formula(Section):
    """One of the paper's functions, a sum over the features."""

    name: Literal[
        "power",
        "interactions",
        "sine",
        "sine_of_exponential",
        "linear_plus_sine_of_exponential",
        "linear_plus_sine",
        "quadratic_plus_sine",
        "exponential",
    ]
    degree: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None, description="of power only"
    )

    def conflicts(self) -> Iterator[PropoptError]:
        if self.name != "power":
            yield from self.without_effect(self.name, "degree")
        elif self.degree is None:
            yield wrong("power needs a degree, such as 3")

    def build(self) -> Function:
        """The function of that name."""
        return Power(self.degree) if self.degree else PAPER_FUNCTIONS[self.name]()
