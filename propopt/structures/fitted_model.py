"""What a fitted model is, asked once where it enters: steps, outputs, margin, words."""

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
"""By the package and name of a class what is known of it."""

_Part = TypeVar("_Part")


def of_class(
    model: Any,
    part: Callable[[ModelReader], _Part | None],
    unchanged: tuple[str, ...] = (),
) -> _Part | None:
    """What readers tell of its class, or of the nearest one above.

    A class above is not asked where a subclass replaces one of the methods that should
    be ``unchanged``.
    """
    for kind in type(model).__mro__:
        reader = READERS.get(class_name(kind))
        told = None if reader is None else part(reader)
        if told is not None or any(method in vars(kind) for method in unchanged):
            return told
    return None


def tree_rule(model: Any) -> TreeRule | None:
    """What reads the trees of a model that is made of them; None of others."""
    reader = READERS.get(class_name_of(model))
    return None if reader is None else reader.trees


# ---- The estimator that answers


LOGISTIC: Final = "sklearn.LogisticRegression", "sklearn.LogisticRegressionCV"
_STACK: Final = "sklearn.StackingClassifier"
_SELECTS: Final = "sklearn.RFE", "sklearn.RFECV"
"""Models that select columns before their ``estimator_`` answers."""


def as_estimator(model: Any) -> Any:
    """The estimator that answers, with what is before it as a pipeline.

    Searches, frozen estimators and classifiers with a threshold give what they forward
    to. A pipeline of imblearn is one of scikit-learn without samplers. Native boosters
    get the methods of an estimator. A model that forwards nothing is returned itself.
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
    """A model as it answers; each property is found when it is first asked for.

    Parameters
    ----------
    estimator : object
        What answers: :meth:`of` finds it behind searches, thresholds and boosters.

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
        """What a model is; a ``FittedModel`` is returned as it is."""
        return model if isinstance(model, cls) else cls(as_estimator(model))

    def __reduce__(self) -> tuple[Any, ...]:
        return FittedModel, (self.estimator,)

    # ---- Its steps

    @property
    def name(self) -> str:
        """A short name for messages."""
        return name_of(self.estimator)

    def has(self, method: str) -> bool:
        """Whether it has a method, with its settings."""
        return has_method(self.estimator, method)

    @cached_property
    def steps(self) -> list[Any]:
        """The steps that do something, also of pipelines in it; or itself."""
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
        """The first working step of a pipeline, or the model; None if none works."""
        return self.steps[0] if self.steps else None

    @cached_property
    def _opened(self) -> tuple[list[Any], Any]:
        model, before = self.estimator, list[Any]()
        while True:
            if inherits(model, "sklearn.Pipeline"):
                if len(model.steps) > 1:
                    before.append(model[:-1])
                model = as_estimator(model.steps[-1][1])
            elif inherits(model, _STACK) and has_fitted(model, "final_estimator_"):
                before.append(model)
                model = as_estimator(model.final_estimator_)
            else:
                return before, model

    @property
    def before(self) -> list[Any]:
        """What transforms the table for the core: steps, and the members of a stack."""
        return self._opened[0]

    @property
    def core(self) -> Any:
        """The estimator that answers at last, behind steps and stacks."""
        return self._opened[1]

    def behind_steps(self, scores: Callable[[Any], Array]) -> Callable[[Any], Array]:
        """What the core is asked, as a function of the table before the steps."""
        return partial(_after, self.before, scores) if self.before else scores

    @cached_property
    def members(self) -> list[Any]:
        """The models that its final estimator is made of, as votes are; else none."""
        return _members_in(self.final)

    # ---- Its columns and classes

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the columns that it was fitted on; None if these had none."""
        names = fitted_value(self.entry, "feature_names_in_")
        return None if names is None else tuple(str(name) for name in names)

    @property
    def n_columns(self) -> int | None:
        """How many columns it was fitted on; None where it does not tell."""
        count = fitted_value(self.entry, "n_features_in_")
        return None if count is None else int(count)

    @property
    def classes(self) -> Any:
        """The labels of the classes; None of what is no classifier."""
        return fitted_value(self.estimator, "classes_")

    @cached_property
    def labels(self) -> list[NDArray[Any]] | None:
        """The classes of each label of a classifier of several; None of others."""
        final = self.final
        classes = fitted_value(final, "classes_")
        if classes is None:
            return None
        if isinstance(classes, list) and all(np.ndim(own) == 1 for own in classes):
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

    # ---- Its margin

    @cached_property
    def margin(self) -> Callable[[Any], Array] | None:
        """The scores of boosted classifiers and native boosters; None of others.

        From the table that the model takes to (n,), or (n, K) of K classes.
        """
        if self._rule is None:
            return None
        scores = partial(getattr(self.core, self._rule.method), **self._rule.settings)
        return self.behind_steps(scores)

    @cached_property
    def logit_of_margin(self) -> float | None:
        """How many times the margin the log-odds of the second of two classes are."""
        return None if self._rule is None else self._rule.logit(self.core)

    @cached_property
    def _rule(self) -> MarginRule | None:
        return of_class(self.core, lambda reader: reader.margin, PREDICTION_METHODS)

    @cached_property
    def is_explained_by_margin(self) -> bool:
        """Whether the margin is what is explained of a classifier, by its class alone.

        So are boosted classifiers, and stacks that end in a logistic regression, whose
        margin is the sum that their probabilities are made of.
        """
        explains = of_class(
            self.core, lambda reader: reader.explains_margin, PREDICTION_METHODS
        )
        if explains is not None:
            return explains(self.core)
        is_stack = inherits(self.final, _STACK) and inherits(self.core, *LOGISTIC)
        return is_stack or self._rule is not None

    @property
    def has_custom_objective(self) -> bool:
        """Whether a boosted classifier has its user's objective, and scores alone."""
        known = of_class(
            self.core, lambda reader: reader.has_custom_objective, PREDICTION_METHODS
        )
        return known is not None and known(self.core)

    @property
    def predicts_scores(self) -> bool:
        """Whether a native booster predicts the sums of its trees as they are."""
        known = of_class(self.estimator, lambda reader: reader.predicts_scores)
        return known is not None and known(self.estimator)

    @property
    def takes_numbers(self) -> bool:
        """Whether it takes an array of its columns as readily as a frame of them."""
        known = of_class(
            self.estimator, lambda r: r.takes_numbers or None, PREDICTION_METHODS
        )
        return known is not None

    @property
    def direct(self) -> Callable[..., Array] | None:
        """A faster call of a table of numbers, where its library has one."""
        find = of_class(
            self.estimator, lambda reader: reader.direct, PREDICTION_METHODS
        )
        return None if find is None else find(self.estimator)

    # ---- Its shape

    @cached_property
    def is_piecewise_constant(self) -> bool:
        """Whether it is known to be constant between jumps, with slopes 0."""
        rule = of_class(self.final, lambda reader: reader.constant_if)
        parts = None if rule is None else rule(self.final)
        if parts is None:
            return False
        return all(FittedModel.of(part).is_piecewise_constant for part in parts)

    # ---- What it does first with texts

    @cached_property
    def text_entries(self) -> list[Any]:
        """The parts that are given the texts: one, or one of each member."""
        parts = _members_in(self.entry)
        if isinstance(self.entry, FeatureUnion):
            transformers = self.entry.transformer_list
            parts = [part for _, part in transformers if not isinstance(part, str)]
        elif not parts:
            return [self.entry]
        return [own for part in parts for own in FittedModel.of(part).text_entries]

    @cached_property
    def text_vectorisers(self) -> list[Any]:
        """The vectorisers that it begins with; none where another part sees texts."""
        found = [entry for entry in self.text_entries if is_a(entry, *_COUNT_WORDS)]
        return found if len(found) == len(self.text_entries) else []


_COUNT_WORDS: Final = "sklearn.CountVectorizer", "sklearn.HashingVectorizer"
"""``TfidfVectorizer`` is a ``CountVectorizer`` too."""


def unreadable(model: Any, error: Exception) -> str:
    """Why a model was not read, with its class."""
    name = type(FittedModel.of(model).final).__name__
    return f"{name} cannot be read: {type(error).__name__}: {error}"


def _after(before: list[Any], scores: Callable[[Any], Array], table: Any) -> Array:
    for steps in before:
        table = steps.transform(table)
    return scores(table)


def _working(model: Any) -> list[Any]:
    if type(model) is not Pipeline:
        return [] if is_passthrough(model) else [model]
    return [step for _, part in model.steps for step in _working(part)]


def _members_in(model: Any) -> list[Any]:
    if is_a(model, "sklearn.TransformedTargetRegressor"):
        return [model.regressor_]
    if is_a(model, "sklearn.CalibratedClassifierCV"):
        return [part.estimator for part in model.calibrated_classifiers_]
    members = fitted_value(model, "estimators_")
    return members if isinstance(members, list) else []


# ---- Classifiers that give several labels to each point


class OneLabel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # has no types
    """One label of a classifier that gives several, as a classifier of its own.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier of several labels.
    position : int
        Which of its labels.
    """

    def __init__(self, estimator: Any, position: int) -> None:
        self.estimator = estimator
        self.position = position

    @property
    def __name__(self) -> str:
        """That of its classifier, for messages."""
        return type(self.estimator).__name__

    def fit(self, _X: Any, _y: Any) -> OneLabel:
        """Itself: its classifier is fitted, and stays as it is."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes of the label."""
        labels = FittedModel.of(self.estimator).labels
        assert labels is not None, "its classifier gives several labels"
        return labels[self.position]

    @property
    def feature_names_in_(self) -> Any:
        """The columns that the classifier was fitted on, if they had names."""
        return self.estimator.feature_names_in_

    @property
    def n_features_in_(self) -> int:
        return int(self.estimator.n_features_in_)

    def predict_proba(self, table: Any) -> Array:
        """Probabilities of the classes of the label, (n, K)."""
        given = self.estimator.predict_proba(table)
        if isinstance(given, list):
            return np.asarray(given[self.position])
        p = np.asarray(given)[:, self.position]
        return np.stack([1.0 - p, p], axis=1)


class OneBoostedLabel(OneLabel):
    """One label of boosted trees, which have a sum of trees for each."""

    def scores(self, table: Any) -> Array:
        """The sum of the trees of the label, before the link."""
        margin = FittedModel.of(self.estimator).margin
        assert margin is not None, "it is of boosted trees"
        return np.asarray(margin(table))[:, self.position]


_INDEPENDENT: Final = "sklearn.MultiOutputClassifier", "sklearn.OneVsRestClassifier"
"""Classes that ask a classifier of its own for each label."""


def with_label(model: Any, position: int) -> Any:
    """The classifier of one of several labels."""
    model = as_estimator(model)
    if type(model) is Pipeline:
        *before, (name, final) = model.steps
        return Pipeline([*before, (name, with_label(final, position))])
    if inherits(model, *_INDEPENDENT):
        return as_estimator(model.estimators_[position])
    is_boosted = FittedModel.of(model).margin is not None
    return (OneBoostedLabel if is_boosted else OneLabel)(model, position)
