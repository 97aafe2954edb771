"""Library's view of a fitted model: its steps, classes, margin and word vectorisers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import FeatureUnion, Pipeline

from propopt.base.arrays import Array
from propopt.structures.kinds import (
    PREDICTION_METHODS,
    class_name,
    class_name_of,
    fitted_value,
    forwarded,
    has_fitted,
    has_method,
    inherits,
    is_a,
    is_passthrough,
    name_of,
    plain_pipeline,
)
from propopt.structures.readers.catboost import CATBOOST
from propopt.structures.readers.interpret import INTERPRET
from propopt.structures.readers.lightgbm import LIGHTGBM
from propopt.structures.readers.model_reader import MarginRule, ModelReader, TreeRule
from propopt.structures.readers.sklearn_trees import SKLEARN
from propopt.structures.readers.xgboost import XGBOOST


# ---- Libraries: a file in readers/, and a line here


READERS: Final[dict[str, ModelReader]] = {
    **CATBOOST,
    **INTERPRET,
    **LIGHTGBM,
    **SKLEARN,
    **XGBOOST,
}
"""The reader of each class of models, by the package and the name of the class."""

_Part = TypeVar("_Part")


def of_class(
    model: Any, part: Callable[[ModelReader], _Part | None], *, predicting: bool = False
) -> _Part | None:
    """The part that the reader of a model's class, or of a base class, provides.

    With ``predicting`` a class that overrides a prediction method ends the search.
    """
    methods = PREDICTION_METHODS if predicting else frozenset[str]()
    for kind in type(model).__mro__:
        reader = READERS.get(class_name(kind))
        value = None if reader is None else part(reader)
        if value is not None or not methods.isdisjoint(vars(kind)):
            return value
    return None


def tree_rule(model: Any) -> TreeRule | None:
    """Function that reads the trees of a model; None for models that are not trees."""
    reader = READERS.get(class_name_of(model))
    return None if reader is None else reader.trees


# ---- The estimator that makes the predictions


LOGISTIC: Final = "sklearn.LogisticRegression", "sklearn.LogisticRegressionCV"
_STACK: Final = "sklearn.StackingClassifier"
_SELECTS: Final = "sklearn.RFE", "sklearn.RFECV"
"""Models that select columns before their ``estimator_`` predicts."""


def as_estimator(model: Any) -> Any:
    """The estimator that predicts, inside searches, thresholds and frozen wrappers.

    A pipeline of imblearn becomes one of scikit-learn without samplers. Native boosters
    get the methods of an estimator. Any other model is returned unchanged.
    """
    if isinstance(model, FittedModel):
        return model.estimator
    model = plain_pipeline(forwarded(model), as_estimator)
    if inherits(model, *_SELECTS) and has_fitted(model, "estimator_"):
        steps = [("columns", model), ("estimator", as_estimator(model.estimator_))]
        return Pipeline(steps)
    wraps = of_class(model, lambda reader: reader.wraps)
    return model if wraps is None else wraps(model)


@final
@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted model with its steps, classes and margin, each computed at first use.

    Parameters
    ----------
    estimator : object
        The estimator that predicts; :meth:`of` unwraps searches, thresholds and
        boosters.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    >>> model = FittedModel.of(pipeline.fit(X, [0, 0, 1, 1]))
    >>> model.final, model.n_columns, model.classes.tolist()
    (LogisticRegression(), 1, [0, 1])
    >>> model.margin is None, model.is_piecewise_constant
    (True, False)
    """

    estimator: Any

    @classmethod
    def of(cls, model: Any) -> FittedModel:
        """Wrap a model; a ``FittedModel`` is returned unchanged."""
        return model if isinstance(model, cls) else cls(as_estimator(model))

    def __reduce__(self) -> tuple[Any, ...]:
        return FittedModel, (self.estimator,)

    # ---- Steps

    @property
    def name(self) -> str:
        """A short name of the model for messages."""
        return name_of(self.estimator)

    def has(self, method: str) -> bool:
        """Whether the model has a method under its current settings."""
        return has_method(self.estimator, method)

    @cached_property
    def steps(self) -> list[Any]:
        """The steps of (nested) pipelines that transform something, or the model."""
        return _working(self.estimator)

    @cached_property
    def final(self) -> Any:
        """The final estimator of a pipeline, or the model itself."""
        model = self.estimator
        while isinstance(model, Pipeline):
            model = as_estimator(model.steps[-1][1])
        return model

    @property
    def entry(self) -> Any:
        """First step that transforms something, or the model; None if no step does."""
        return self.steps[0] if self.steps else None

    @cached_property
    def _opened(self) -> tuple[list[Any], Any]:
        model, transformers = self.estimator, list[Any]()
        while True:
            if inherits(model, "sklearn.Pipeline"):
                if len(model.steps) > 1:
                    transformers.append(model[:-1])
                model = as_estimator(model.steps[-1][1])
            elif inherits(model, _STACK) and has_fitted(model, "final_estimator_"):
                transformers.append(model)
                model = as_estimator(model.final_estimator_)
            else:
                return transformers, model

    @property
    def before(self) -> list[Any]:
        """The transformers that feed the core: steps, and the members of a stack."""
        return self._opened[0]

    @property
    def core(self) -> Any:
        """The estimator that predicts at the end, after all steps and stacks."""
        return self._opened[1]

    def behind_steps(self, scores: Callable[[Any], Array]) -> Callable[[Any], Array]:
        """A scoring function of the core as a function of the model's input table."""
        return partial(_after, self.before, scores) if self.before else scores

    @cached_property
    def members(self) -> list[Any]:
        """The models that the final estimator combines, such as voters; else none."""
        return _members_in(self.final)

    # ---- Columns and classes

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the columns that the model was fitted on, if it has them."""
        names = fitted_value(self.entry, "feature_names_in_")
        return None if names is None else tuple(str(name) for name in names)

    @property
    def n_columns(self) -> int | None:
        """The number of columns that the model was fitted on, if it records it."""
        count = fitted_value(self.entry, "n_features_in_")
        return None if count is None else int(count)

    @property
    def classes(self) -> Any:
        """The class labels of a classifier; None for other models."""
        return fitted_value(self.estimator, "classes_")

    @cached_property
    def labels(self) -> list[NDArray[Any]] | None:
        """Classes of each label of a multi-label classifier; None for other models."""
        final = self.final
        classes = fitted_value(final, "classes_")
        if classes is None:
            return None
        if isinstance(classes, list) and all(
            np.ndim(label_classes) == 1 for label_classes in classes
        ):
            return list(map(np.asarray, classes))
        count = 1
        n_labels = of_class(final, lambda reader: reader.n_labels)
        if fitted_value(final, "multilabel_"):
            count = len(classes)
        elif fitted_value(final, "out_activation_") == "logistic":
            count = final.n_outputs_
        elif n_labels is not None:
            count = n_labels(final)
        return [np.arange(2)] * count if count > 1 else None

    # ---- Margin

    @cached_property
    def margin(self) -> Callable[[Any], Array] | None:
        """The margin (raw score) of boosted models, as a function; None for others.

        It maps the model's input table to scores (n,), or (n, K) for K classes.
        """
        if self._rule is None:
            return None
        scores = partial(getattr(self.core, self._rule.method), **self._rule.settings)
        return self.behind_steps(scores)

    @cached_property
    def logit_of_margin(self) -> float | None:
        """The factor from the margin to log-odds of the second of two classes."""
        return None if self._rule is None else self._rule.logit(self.core)

    @cached_property
    def _rule(self) -> MarginRule | None:
        return of_class(self.core, lambda r: r.margin, predicting=True)

    @cached_property
    def is_explained_by_margin(self) -> bool:
        """Whether ``output="auto"`` explains the margin of this class of models.

        It does for boosted classifiers, and for stacks that end in a logistic
        regression.
        """
        explains = of_class(self.core, lambda r: r.explains_margin, predicting=True)
        if explains is not None:
            return explains(self.core)
        is_stack = inherits(self.final, _STACK) and inherits(self.core, *LOGISTIC)
        return is_stack or self._rule is not None

    @property
    def has_custom_objective(self) -> bool:
        """Whether a boosted classifier gives only scores, of a user's objective."""
        predicate = of_class(
            self.core, lambda r: r.has_custom_objective, predicting=True
        )
        return predicate is not None and predicate(self.core)

    @property
    def predicts_scores(self) -> bool:
        """Whether ``predict`` of a native booster returns the raw sums of its trees."""
        predicate = of_class(self.estimator, lambda reader: reader.predicts_scores)
        return predicate is not None and predicate(self.estimator)

    @property
    def takes_numbers(self) -> bool:
        """Whether an array gives the same predictions as the frame of the fit."""
        flag = of_class(
            self.estimator, lambda r: r.takes_numbers or None, predicting=True
        )
        return flag is not None

    @property
    def direct(self) -> Callable[..., Array] | None:
        """A faster prediction function for numeric tables, if the library has one."""
        make_call = of_class(self.estimator, lambda r: r.direct, predicting=True)
        return None if make_call is None else make_call(self.estimator)

    # ---- Shape

    @cached_property
    def is_piecewise_constant(self) -> bool:
        """Whether the model is constant between jumps, with zero slopes, as trees."""
        rule = of_class(self.final, lambda reader: reader.constant_if)
        parts = None if rule is None else rule(self.final)
        if parts is None:
            return False
        return all(FittedModel.of(part).is_piecewise_constant for part in parts)

    # ---- Vectorisers of texts

    @cached_property
    def text_entries(self) -> list[Any]:
        """The first steps that receive the texts: one, or one for each member."""
        parts = _members_in(self.entry)
        if isinstance(self.entry, FeatureUnion):
            transformers = self.entry.transformer_list
            parts = [part for _, part in transformers if not isinstance(part, str)]
        elif not parts:
            return [self.entry]
        return [entry for part in parts for entry in FittedModel.of(part).text_entries]

    @cached_property
    def text_vectorisers(self) -> list[Any]:
        """The vectorisers that the model begins with; none if other steps do."""
        entries = self.text_entries
        return entries if all(is_a(entry, *_COUNT_WORDS) for entry in entries) else []


_COUNT_WORDS: Final = "sklearn.CountVectorizer", "sklearn.HashingVectorizer"
"""``TfidfVectorizer`` is a subclass of ``CountVectorizer``."""


def unreadable(model: Any, error: Exception) -> str:
    """The message for a model without a computable structure."""
    name = type(FittedModel.of(model).final).__name__
    return (
        f"the structure of {name} cannot be computed: {type(error).__name__}: {error}"
    )


def _after(
    transformers: list[Any], scores: Callable[[Any], Array], table: Any
) -> Array:
    for steps in transformers:
        table = steps.transform(table)
    return scores(table)


def _working(model: Any) -> list[Any]:
    """The steps of a pipeline and of nested ones, without those that do nothing."""
    if type(model) is not Pipeline:
        return [] if is_passthrough(model) else [model]
    return [step for _, part in model.steps for step in _working(part)]


def _members_in(model: Any) -> list[Any]:
    """The fitted models inside a wrapper or an ensemble."""
    if is_a(model, "sklearn.TransformedTargetRegressor"):
        return [model.regressor_]
    if is_a(model, "sklearn.CalibratedClassifierCV"):
        return [part.estimator for part in model.calibrated_classifiers_]
    members = fitted_value(model, "estimators_")
    return members if isinstance(members, list) else []


# ---- Multi-label classifiers


class OneLabel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # has no types
    """One label of a multi-label classifier, as a classifier by itself.

    Parameters
    ----------
    estimator : estimator
        A fitted multi-label classifier.
    position : int
        The index of the label.
    """

    def __init__(self, estimator: Any, position: int) -> None:
        self.estimator = estimator
        self.position = position

    @property
    def __name__(self) -> str:
        """The name of the multi-label classifier, for messages."""
        return type(self.estimator).__name__

    def fit(self, _X: Any, _y: Any) -> OneLabel:
        """Return the classifier itself, which is fitted already."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes of this label."""
        labels = FittedModel.of(self.estimator).labels
        assert labels is not None, "the classifier is multi-label"
        return labels[self.position]

    @property
    def feature_names_in_(self) -> Any:
        """The names of the columns that the classifier was fitted on."""
        return self.estimator.feature_names_in_

    @property
    def n_features_in_(self) -> int:
        """The number of columns that the classifier was fitted on."""
        return int(self.estimator.n_features_in_)

    def predict_proba(self, table: Any) -> Array:
        """Probabilities of the classes of this label, shape (n, K)."""
        given = self.estimator.predict_proba(table)
        if isinstance(given, list):
            return np.asarray(given[self.position])
        p = np.asarray(given)[:, self.position]
        return np.stack([1.0 - p, p], axis=1)


class OneBoostedLabel(OneLabel):
    """One label of boosted trees that fit a separate sum of trees for each label."""

    def scores(self, table: Any) -> Array:
        """The sum of the trees of this label before the link, shape (n,)."""
        margin = FittedModel.of(self.estimator).margin
        assert margin is not None, "boosted trees have a margin"
        return np.asarray(margin(table))[:, self.position]


_INDEPENDENT: Final = "sklearn.MultiOutputClassifier", "sklearn.OneVsRestClassifier"
"""Classes that fit a separate classifier for each label."""


def with_label(model: Any, position: int) -> Any:
    """The binary classifier of one label of a multi-label model."""
    model = as_estimator(model)
    if type(model) is Pipeline:
        *before, (name, final) = model.steps
        return Pipeline([*before, (name, with_label(final, position))])
    if inherits(model, *_INDEPENDENT):
        return as_estimator(model.estimators_[position])
    is_boosted = FittedModel.of(model).margin is not None
    return (OneBoostedLabel if is_boosted else OneLabel)(model, position)
