"""Subjects of jobs: points, a table with its target, a function and its model."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from propopt.base.arrays import Attributions, Points, Values
from propopt.base.errors import FlatFunctionWarning, InvalidInput
from propopt.base.resources import threads_of_run
from propopt.base.text import Reason
from propopt.explaining.targets import jumps, reference_of
from propopt.functions import PAPER_FUNCTIONS, Function, Power, smoothed
from propopt.functions.function import EXACT, DerivedFunction
from propopt.functions.outputs import (
    read_class,
    read_output,
)
from propopt.functions.texts import TextFunction
from propopt.interactions.learning import free_seeds
from propopt.losses.faithfulness import Estimate
from propopt.problems.sections import Section
from propopt.problems.subject.models import ModelSection, TaskKind
from propopt.problems.subject.tables import SKLEARN_TABLES, missing_numbers
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.fitted_model import FittedModel
from propopt.structures.kinds import has_method
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.documents import document_coordinates, word_counts
from propopt.tables.frames import Labels, is_documents, joined_rows, listed
from propopt.tables.schema import TableSchema


# ---- The subject of a problem


class ModelFunction(NamedTuple):
    """A function, and the model behind it."""

    function: Function
    estimator: Any = None
    n_fitted: int | None = None
    """The number of rows of the fit; None for a model that was fitted elsewhere."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """The points and the function that are explained; models are fitted on demand.

    Parameters
    ----------
    points : array or DataFrame (N, D), or Series of documents (N,)
        The explained points X.
    others : array or DataFrame (M, D), or Series of documents (M,)
        The other rows, on which a model is fitted; ``points`` if all rows are
        explained.
    make : callable
        Returns the function, after fitting its model.
    columns : TableSchema or None
        Types of the columns, if some are categories.
    target : Series or array (N,) or None
        Target of ``points``, if there is one.
    others_target : Series or array (M,) or None
        Target of ``others``.
    make_learner : callable or None
        Returns the unfitted estimator without a seed; None for formulas.
    seed : int
        Seed for sampled slopes.
    unscaled : DataFrame or None
        Original numbers of ``points``, if columns are standardized.
    sample_weight : Series or None
        Background weights of ``others``.
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

    @property
    def all_points(self) -> Any:
        """The explained points, followed by the other rows."""
        points = self.points
        others = self.others
        return points if others is points else joined_rows(points, others)

    @property
    def n_rows(self) -> int:
        """The number of rows of the larger of the two tables."""
        return max(len(self.points), len(self.others))

    @cached_property
    def is_text(self) -> bool:
        """Whether the points are documents."""
        return is_documents(self.points)

    @cached_property
    def table(self) -> Any:
        """The points as a table (N, D): X, or word counts of documents."""
        return self.function.read(self.points)[0] if self.is_text else self.points

    @property
    def words(self) -> tuple[str, ...]:
        """All words of documents that get attributions."""
        assert isinstance(self.function, TextFunction)
        return self.function.text_schema.vocabulary

    @property
    def n_features(self) -> int:
        """The number of attributions of a point; for documents one for each word."""
        if self.is_text:
            return len(self.words)
        return self.points.shape[1] if self.columns is None else len(self.columns.names)

    @cached_property
    def coordinates(self) -> Any:
        """Coordinates (N, M) for distances: X, with categories one-hot over √2.

        For documents :func:`document_coordinates` of lower-case words, independent of
        the model: squared distances are 2 − 2 cos.
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
        """The function f, made on demand."""
        return self._model_function.function

    def with_function(self, wrapped: Callable[[Any], Function]) -> Subject:
        """A copy with another function of the same fitted model."""
        fitted = self._model_function
        function = wrapped(fitted.estimator)
        return replace(self, make=lambda: fitted._replace(function=function))

    @property
    def estimator(self) -> Any:
        """The fitted model, or None for a formula."""
        return self._model_function.estimator

    @property
    def learner(self) -> Any:
        """An unfitted estimator of the model, for refits.

        Raises
        ------
        InvalidInput
            If the function is not a model.
        """
        if self.make_learner is None:
            raise InvalidInput("a formula cannot be refitted")
        return require_learner(self.make_learner())

    @cached_property
    def score(self) -> ModelScore | Reason | None:
        """The score of the model on held-out rows; None without a model.

        The rows may be training rows of a model that was fitted elsewhere, which the
        score then states. A model that was fitted on all rows has no score.
        """
        _, model, n_fitted = self._model_function
        if model is None:
            return None
        if n_fitted is None:
            if self.target is None or not isinstance(model, BaseEstimator):
                return Reason("fitted elsewhere, no held-out score")
            return score_of(model, self.points, self.target, MAYBE_TRAINING)
        if self.others is self.points:
            return Reason(f"fitted on all {n_fitted:,} rows, no held-out score")
        return score_of(model, self.points, self.target)

    @cached_property
    def function_with_slopes(self) -> Function:
        """The function with gradients, or with smoothed slopes if it jumps.

        Smoothed slopes are those of its mean under the data law of ``others``
        (:func:`propopt.functions.smoothed`), which are exact for trees.
        """
        function = self.function
        if function.gradient_method == EXACT:
            return function
        reference = reference_of(function, self.others)
        if not jumps(function, reference):
            return function
        mean = smoothed(function, law="data", data=reference, rng=self.seed)
        return _SmoothedSlopes(function, mean)

    def gradient(self, X: Any) -> Any:
        """Slopes at X of ``function_with_slopes``.

        Raises
        ------
        InvalidInput
            If all slopes are zero, and the function does not jump.
        """
        with _refused_if_flat():
            return self.function_with_slopes.gradient(X)

    def estimate(self, X: Any) -> Estimate:
        """Slopes at X with their standard errors; see :meth:`gradient`.

        Raises
        ------
        InvalidInput
            If all slopes are zero, and the function does not jump.
        """
        with _refused_if_flat():
            return self.function_with_slopes.estimate(X)


@dataclass(frozen=True, eq=False, repr=False)
class _SmoothedSlopes(DerivedFunction):
    """Values of a function that jumps, with gradients of its mean."""

    function: Function
    mean: Function

    def __repr__(self) -> str:
        return repr(self.mean)

    @property
    def gradient_method(self) -> str:
        return self.mean.gradient_method

    @property
    def boxes(self) -> Boxes | None:
        """The boxes of the function, if it is a sum over boxes."""
        return self.function.boxes

    @property
    def margin_boxes(self) -> Boxes | None:
        """The boxes of the margin of the function, if it has some."""
        return self.function.margin_boxes

    @property
    def products(self) -> SumOfProducts | Reason:
        """The products of the function, or why there are none."""
        return self.function.products

    def products_in(self, n_columns: int) -> SumOfProducts | Reason:
        return self.function.products_in(n_columns)

    def estimate_at(self, points: Points, labels: Labels) -> Estimate:
        return self.mean.estimate_at(points, labels)

    def _value(self, points: Points, labels: Labels, /) -> Values:
        return self.function.value_at(points, labels)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        return self.mean.gradient_at(points, labels)


@contextmanager
def _refused_if_flat() -> Iterator[None]:
    """Refuse a function with zero slopes everywhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FlatFunctionWarning)
        try:
            yield
        except FlatFunctionWarning:
            raise InvalidInput(
                "the gradient of the model is zero everywhere, without a jump; use "
                "function_matching"
            ) from None


# ---- Models of a problem file: tasks, checks and fits


_MOST_CLASSES: Final = 10
"""Largest number of different integers of a target that count as classes."""


@dataclass(frozen=True)
class LearningTask:
    """The task of a model, and the reason if it was inferred."""

    kind: TaskKind
    why: str = ""

    @classmethod
    def of_target(cls, target: pd.Series[Any]) -> LearningTask:
        """The task by values: classes for text or two values, else by integers."""
        numbers = pd.api.types.is_numeric_dtype(target.dtype)
        if not numbers or pd.api.types.is_bool_dtype(target.dtype):
            return cls("classification", "its values are not numbers")
        n_values = target.nunique()
        if (target % 1 != 0).any():
            return cls("regression", "some of its values are fractions")
        if n_values <= 2:
            return cls("classification", "it has two values")
        few = n_values <= _MOST_CLASSES
        kind: TaskKind = "classification" if few else "regression"
        other = "regression" if few else "classification"
        why = f"it has {n_values:,} different whole numbers; write task: {other} "
        return cls(kind, f"{why}if that is meant")

    def in_words(self, target: str | None) -> str:
        """A sentence on an inferred task; empty if the file states it."""
        if not self.why:
            return ""
        return f"task: {self.kind}, inferred from the target {target!r}: {self.why}"


def task_of(
    spec: ModelSection, table: str | None, target: pd.Series[Any] | None
) -> LearningTask | None:
    """The task of a model: given, known for tables of scikit-learn, or inferred.

    For a CSV it is inferred from the values of the target.
    """
    if "task" not in type(spec).model_fields or target is None:
        return None
    of_table: Any = None if table is None else SKLEARN_TABLES[table][0]
    given: TaskKind | None = spec.settings()["task"] or of_table
    return LearningTask.of_target(target) if given is None else LearningTask(given)


def is_unfitted(model: Any) -> bool:
    """Whether a model is an unfitted scikit-learn estimator."""
    if not (isinstance(model, BaseEstimator) and has_method(model, "fit")):
        return False
    try:
        check_is_fitted(model)
    except NotFittedError:
        return True
    return False


def fit(model: Any, table: Any, target: Any, seed: int) -> Any:
    """A fitted clone of an estimator, with the seed where it has none."""
    seeded = clone(model)
    seeded.set_params(**dict.fromkeys(free_seeds(model), seed))
    try:
        with threads_of_run(len(table)):
            return seeded.fit(table, target)
    except ValueError as error:  # such as numbers whose squares are too large
        raise InvalidInput(_not_fitted(target, _why(error, table))) from None


def check_learning(
    model: Any,
    spec: ModelSection,
    target: pd.Series[Any] | None,
    n_columns: int,
    *,
    refits: bool,
) -> None:
    """Refuse what a long fit would be in vain for: its size, output and class."""
    if refits:
        require_learner(model)
    if not is_unfitted(model):
        return
    if target is None:
        raise InvalidInput(
            f"{type(model).__name__} is not fitted, and data has no target; name "
            "the column in data.target, or give a fitted model"
        )
    estimator = FittedModel.of(model).final
    labels: list[Any] = [None]  # one output of a regressor
    if is_classifier(estimator):
        labels = _classes(target)
    elif spec.chosen_class is not None:
        raise InvalidInput("target_class: has no effect with regression")
    spec.check_size(n_columns, len(labels), len(target))
    if not refits:
        read_output(FittedModel.of(estimator), spec.output)
        if is_classifier(estimator):
            read_class(labels, spec.chosen_class)


def _classes(target: pd.Series[Any]) -> list[Any]:
    """The sorted labels of a target for a classifier."""
    labels = np.unique(target.to_numpy()).tolist()
    if len(labels) < 2:
        why = f"a classifier needs two classes, and all rows have {labels[0]!r}"
        raise InvalidInput(_not_fitted(target, why))
    try:
        check_classification_targets(target)
    except ValueError as error:  # such as measurements
        raise InvalidInput(_not_fitted(target, error)) from None
    return labels


def require_learner(model: Any) -> BaseEstimator:
    """The model, which must be a scikit-learn estimator."""
    if isinstance(model, BaseEstimator) and has_method(model, "fit"):
        return model
    raise InvalidInput(
        "expected a scikit-learn estimator, which can be refitted, got "
        f"{type(model).__name__}"
    )


def _why(error: ValueError, table: Any) -> str:
    """The message of an estimator, with the columns that have missing numbers."""
    columns = missing_numbers(table) if isinstance(table, pd.DataFrame) else []
    if not columns:
        return str(error)
    message = str(error).partition("\n")[0]
    return (
        f"numbers are missing in {listed(columns)}, and {message} Use an estimator "
        "that takes them, or a pipeline that imputes them first"
    )


def _not_fitted(target: Any, why: object) -> str:
    return f"cannot be fitted to the target {getattr(target, 'name', 'y')!r}: {why}"


# ---- Scores of fitted models on held-out rows


HELD_OUT: Final = "held-out rows"
MAYBE_TRAINING: Final = "rows that may be training rows"


@dataclass(frozen=True)
class ModelScore:
    """A score of a fitted model."""

    name: str
    value: float
    n_rows: int
    rows: str = HELD_OUT
    constant: float = 0.0  # score of the most frequent label, or R² of the mean

    def in_words(self) -> str:
        """The score with its rows, on one line."""
        verdict = "" if self.value > self.constant else ", no better than a constant"
        return f"{self.name} {self.value:.3f} on {self.n_rows:,} {self.rows}{verdict}"


def score_of(model: Any, X: Any, y: Any, rows: str = HELD_OUT) -> ModelScore | Reason:
    """The score of a fitted estimator on rows, or the reason why it has none."""
    n_rows = len(y)
    if not is_classifier(model) and n_rows < 2:
        return Reason("one held-out row, too few for R²")
    try:
        with threads_of_run(n_rows):
            predictions = model.predict(X)
        if not is_classifier(model):
            return ModelScore("R²", float(r2_score(y, predictions)), n_rows, rows)
        value = float(accuracy_score(y, predictions))
        share = Counter(y).most_common(1)[0][1] / n_rows
        return ModelScore("accuracy", value, n_rows, rows, share)
    except ValueError as error:  # such as labels of another type
        return Reason(f"no score: {error}")


# ---- The section ``function``


class Formula(Section):
    """A function of the paper, which is a sum over features."""

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
        None, description="only for power"
    )

    def build(self) -> Function:
        """Make the function of that name; only powers take a degree."""
        made = PAPER_FUNCTIONS.get(self.name, Power)
        return made(**self.model_dump(exclude={"name"}, exclude_none=True))
