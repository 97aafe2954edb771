"""Models that are fitted here, and how good they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from propopt.base.errors import InvalidInput
from propopt.base.resources import threads_of_run
from propopt.base.text import Reason
from propopt.functions.outputs import (
    check_model,
    one_label,
    read_class,
    read_index,
    read_output,
)
from propopt.interactions.learning import free_seeds
from propopt.problems.sections import Missing, wrong
from propopt.problems.subject.model_sections import ModelSection, TaskKind
from propopt.problems.subject.tables import SKLEARN_TABLES, missing_numbers
from propopt.structures.fitted_model import FittedModel
from propopt.structures.kinds import has_method
from propopt.tables.frames import listed


# ---- Models of a problem file: what they can learn and give, and how they are fitted


_MOST_CLASSES: Final = 10
"""Different whole numbers of a target that are taken for classes."""


@dataclass(frozen=True)
class LearningTask:
    """What a model learns, and why where no file says so."""

    kind: TaskKind
    why: str = ""

    @classmethod
    def of_target(cls, target: pd.Series[Any]) -> LearningTask:
        """By its values: text and two values are classes, fractions are numbers."""
        numbers = pd.api.types.is_numeric_dtype(target.dtype)
        if not numbers or pd.api.types.is_bool_dtype(target.dtype):
            return cls("classification", "its values are no numbers")
        n_values = target.nunique()
        if (target % 1 != 0).any():
            return cls("regression", "some of its values are no whole numbers")
        if n_values <= 2:
            return cls("classification", "it has two values")
        few = n_values <= _MOST_CLASSES
        kind: TaskKind = "classification" if few else "regression"
        other = "regression" if few else "classification"
        why = f"it has {n_values:,} different whole numbers; write task: {other} "
        return cls(kind, f"{why}if that is meant")

    def in_words(self, target: str | None) -> str:
        """A sentence on what was inferred; nothing where a file says it."""
        if not self.why:
            return ""
        return f"task: {self.kind}, inferred from the target {target!r}: {self.why}"


def task_of(
    spec: ModelSection, table: str | None, target: Callable[[], pd.Series[Any] | None]
) -> LearningTask | None:
    """What a model learns: as the file says, or scikit-learn's table is for.

    Of one's own table it follows from the values of the target.
    """
    if not spec.takes("task"):
        return None
    known: Any = None if table is None else SKLEARN_TABLES[table][0]
    told: TaskKind | None = spec.settings()["task"] or known
    if told is not None:
        return LearningTask(told)
    values = target()
    if values is None:
        message = f"required for {spec.words} without data.target, and missing"
        raise wrong(message, Missing("task"))
    return LearningTask.of_target(values)


def is_unfitted(model: Any) -> bool:
    """Whether a model is an estimator of scikit-learn's kind and not fitted."""
    if not (isinstance(model, BaseEstimator) and has_method(model, "fit")):
        return False
    try:
        check_is_fitted(model)
    except NotFittedError:
        return True
    return False


def fit(model: Any, table: Any, target: Any, seed: int) -> Any:
    """A fitted copy of an estimator, seeded where nothing else is said."""
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
    """Refuse a target that a model cannot learn, and an output that it cannot give."""
    if refits:
        require_learner(model)
    elif not is_unfitted(model):
        fitted = FittedModel.of(model)
        check_model(fitted)
        fitted, chosen, _ = one_label(fitted, spec.chosen_class)
        read_index(fitted, read_output(fitted, spec.output), chosen)
        return
    if target is None:
        raise InvalidInput(
            f"{type(model).__name__} is not fitted, and data has no target to fit "
            "it to; name the column in data.target, or give a fitted one"
        )
    estimator = FittedModel.of(model).final
    if not refits:
        read_output(FittedModel.of(estimator), spec.output)
    labels: list[Any] = [None]  # of a classifier, or one output
    if is_classifier(estimator):
        labels = _classes(target)
    else:
        _check_regression(target, spec)
    spec.check_size(n_columns, len(labels), len(target))
    if is_classifier(estimator) and not refits:
        read_class(labels, spec.chosen_class)


def require_learner(model: Any) -> BaseEstimator:
    """The model, if it is an estimator of scikit-learn's kind."""
    if isinstance(model, BaseEstimator) and has_method(model, "fit"):
        return model
    raise InvalidInput(
        "expected an estimator of scikit-learn's kind, which can be fitted again, got "
        f"{type(model).__name__}"
    )


def _classes(target: pd.Series[Any]) -> list[Any]:
    """The labels of a classifier, as it will know them."""
    labels = np.unique(target.to_numpy()).tolist()
    if len(labels) < 2:
        why = f"a classifier needs two classes, and these rows have {labels[0]!r} alone"
        raise InvalidInput(_not_fitted(target, why))
    try:
        check_classification_targets(target)
    except ValueError as error:  # such as measurements
        raise InvalidInput(_not_fitted(target, error)) from None
    return labels


def _check_regression(target: pd.Series[Any], spec: ModelSection) -> None:
    if spec.chosen_class is not None:
        raise InvalidInput("target_class has no effect with regression")
    if not pd.api.types.is_numeric_dtype(target):
        why = "a regression needs numbers, and some are text"
        raise InvalidInput(_not_fitted(target, why))
    if not np.isfinite(target.to_numpy(dtype=float)).all():
        raise InvalidInput(_not_fitted(target, "some values are infinite"))


def _why(error: ValueError, table: Any) -> str:
    """What an estimator says; of a table with missing numbers, that it has some."""
    columns = missing_numbers(table) if isinstance(table, pd.DataFrame) else []
    if not columns:
        return str(error)
    said = str(error).partition("\n")[0]
    return (
        f"numbers are missing in {listed(columns)}, and {said} An estimator that takes "
        "them would do, or a pipeline that imputes them first"
    )


def _not_fitted(target: Any, why: object) -> str:
    return f"cannot be fitted to the target {getattr(target, 'name', 'y')!r}: {why}"


# ---- How well a fitted model does on rows that it was not fitted on


HELD_OUT: Final = "held-out rows"
MAYBE_FITTED: Final = "rows that it may have been fitted on"


@dataclass(frozen=True)
class ModelScore:
    """A score of a fitted model."""

    name: str
    value: float
    n_rows: int
    rows: str = HELD_OUT
    constant: float = 0.0  # of the commonest label, or of the mean, whose R² is 0

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, rows: str = HELD_OUT) -> ModelScore:
        """That of a fitted estimator on rows with their target."""
        with threads_of_run(len(X)):
            answers = model.predict(X)
        if is_classifier(model):
            value, commonest = accuracy_score(y, answers), Counter(y).most_common(1)
            return cls("accuracy", float(value), len(y), rows, commonest[0][1] / len(y))
        return cls("R²", float(r2_score(y, answers)), len(y), rows)

    def in_words(self) -> str:
        """On one line."""
        verdict = "" if self.value > self.constant else ", no better than a constant"
        return f"{self.name} {self.value:.3f} on {self.n_rows:,} {self.rows}{verdict}"


def score_of(model: Any, X: Any, y: Any, rows: str = HELD_OUT) -> ModelScore | Reason:
    """The score of an estimator, or why there is none."""
    if not is_classifier(model) and len(y) < 2:
        return Reason("one held-out row, too few for R²")
    try:
        return ModelScore.of(model, X, y, rows)
    except ValueError as error:  # such as labels of another kind
        return Reason(f"no score: {error}")
