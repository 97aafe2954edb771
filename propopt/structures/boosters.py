"""Which step of a model jumps or counts words, and the scores of boosted models.

Classes of other libraries are known by their names, so that none is imported for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, Final, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import FeatureUnion, Pipeline

from propopt.base.arrays import Array


# ---- Classes by their names: a table of readers imports no module of models


_Entry = TypeVar("_Entry")


def known_as(thing: object) -> str:
    """The package and name of its class, such as ``sklearn.Pipeline``."""
    return _name(type(thing))


def is_a(thing: object, *names: str) -> bool:
    """Whether it is of one of these classes, or of a subclass."""
    return any(_name(kind) in names for kind in type(thing).__mro__)


def by_class(table: Mapping[str, _Entry], thing: object) -> _Entry | None:
    """What a table has of its class, or of the nearest one above; None if nothing."""
    names = map(_name, type(thing).__mro__)
    return next((table[name] for name in names if name in table), None)


TORCH_MODULE: Final = "torch.Module"


def _name(kind: type) -> str:
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


# ---- Native boosters as estimators, where their own methods take no tables


@final
@dataclass(frozen=True)
class XGBoostBooster:
    """A booster of XGBoost's native interface, which takes matrices of its own."""

    booster: Any  # what xgboost.train returns

    @property
    def feature_names_in_(self) -> list[str] | None:
        """The columns that it was fitted on, if they had names."""
        names: list[str] | None = self.booster.feature_names
        return names

    @property
    def n_features_in_(self) -> int:
        return int(self.booster.num_features())

    @property
    def is_made_of_trees(self) -> bool:
        """Whether it is piecewise constant: not linear."""
        learner = json.loads(self.booster.save_config())["learner"]
        return bool(learner["gradient_booster"]["name"] != "gblinear")

    @property
    def is_classifier(self) -> bool:
        """Whether its objective is one of classes."""
        learner = json.loads(self.booster.save_config())["learner"]
        return str(learner["objective"]["name"]).startswith(("binary:", "multi:"))

    def predict(self, table: Any, *, output_margin: bool = False) -> Array:
        """What the booster predicts, in the units of its objective."""
        import xgboost

        matrix = xgboost.DMatrix(table, enable_categorical=True)
        predicted: Array = self.booster.predict(matrix, output_margin=output_margin)
        return predicted

    def scores(self, table: Any) -> Array:
        """The sums of its trees, before any link."""
        return self.predict(table, output_margin=True)


@final
@dataclass(frozen=True)
class LightGBMBooster:
    """A booster of LightGBM's native interface."""

    booster: Any  # what lightgbm.train returns

    @property
    def n_features_in_(self) -> int:
        return int(self.booster.num_feature())

    @property
    def is_made_of_trees(self) -> bool:
        """Whether it is piecewise constant: leaves hold no linear models."""
        parameters = self.booster.params
        settings = (parameters.get(name) for name in ("linear_tree", "linear_trees"))
        return not any(str(value).lower() in ("true", "1", "+") for value in settings)

    @property
    def is_classifier(self) -> bool:
        """Whether its objective is one of classes."""
        name, _, _ = lightgbm_objective(self.booster.dump_model(num_iteration=1))
        return name in ("binary", "multiclass", "multiclassova")

    def predict(self, table: Any) -> Array:
        """What the booster predicts, in the units of its objective."""
        predicted: Array = self.booster.predict(table)
        return predicted

    def scores(self, table: Any) -> Array:
        """The sums of its trees, before any link."""
        scores: Array = self.booster.predict(table, raw_score=True)
        return scores


# ---- The door: the estimator that answers, where others only forward to it


_FORWARDS: Final[Mapping[str, str]] = {
    "dask_ml.DaskBaseSearchCV": "best_estimator_",
    "optuna_integration.OptunaSearchCV": "best_estimator_",
    "sklearn.BaseSearchCV": "best_estimator_",
    "sklearn.FixedThresholdClassifier": "estimator_",
    "sklearn.FrozenEstimator": "estimator",
    "sklearn.TunedThresholdClassifierCV": "estimator_",
}
"""Classes whose values, probabilities and margins are those of another estimator.

A threshold changes labels alone, which are explained by no output.
"""

_SELECTS: Final = "sklearn.RFE", "sklearn.RFECV"
"""Models that select columns before their ``estimator_`` answers."""

ANSWERS: Final = ("decision_function", "predict", "predict_proba")
"""Methods that tell what a model predicts."""


def as_estimator(model: Any) -> Any:
    """The estimator that answers, with what is before it as a pipeline.

    Searches, frozen estimators and classifiers with a threshold give what they forward
    to. A pipeline of imblearn is one of scikit-learn without samplers, which do nothing
    at prediction. Native boosters get the methods of an estimator. A model that
    forwards nothing is returned itself.
    """
    while (name := _forwarder(model)) is not None:
        model = getattr(model, _FORWARDS[name])
    if type(model) is Pipeline or known_as(model) == "imblearn.Pipeline":
        return _plain_pipeline(model, as_estimator)
    if inherits(model, *_SELECTS) and hasattr(model, "estimator_"):
        steps = [("columns", model), ("estimator", as_estimator(model.estimator_))]
        return Pipeline(steps)
    if is_a(model, "xgboost.Booster"):
        return XGBoostBooster(model)
    return LightGBMBooster(model) if is_a(model, "lightgbm.Booster") else model


def as_step(step: Any) -> Any:
    """The transformer that a step of a pipeline is, where it is frozen or nested."""
    while (name := _forwarder(step)) is not None:
        step = getattr(step, _FORWARDS[name])
    if type(step) is Pipeline or known_as(step) == "imblearn.Pipeline":
        return _plain_pipeline(step, as_step)
    return step


def inherits(model: object, *names: str) -> bool:
    """Whether it answers by the methods of one of these classes, or of a class above.

    A subclass that predicts by a rule of its own is no longer known.
    """
    kinds = type(model).__mro__
    known = next((k for k, kind in enumerate(kinds) if _name(kind) in names), None)
    if known is None:
        return False
    return not any(method in vars(kind) for kind in kinds[:known] for method in ANSWERS)


def _forwarder(model: Any) -> str | None:
    """Which class of those that forward it is, once it is fitted."""
    return next(
        (
            name
            for name, attribute in _FORWARDS.items()
            if inherits(model, name) and hasattr(model, attribute)
        ),
        None,
    )


def _plain_pipeline(model: Any, last: Callable[[Any], Any]) -> Any:
    """A pipeline of scikit-learn with plain steps; the same one where all are plain."""
    *before, (name, final) = model.steps
    steps = [(key, as_step(s)) for key, s in before if not hasattr(s, "fit_resample")]
    steps.append((name, last(final)))
    same = type(model) is Pipeline and len(steps) == len(model.steps)
    if same and all(a[1] is b[1] for a, b in zip(steps, model.steps, strict=True)):
        return model
    return Pipeline(steps)


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
        labels = labels_of(self.estimator)
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
        margins = margins_of(self.estimator)
        assert margins is not None, "it is of boosted trees"
        return np.asarray(margins.scores(table))[:, self.position]


_INDEPENDENT: Final = "sklearn.MultiOutputClassifier", "sklearn.OneVsRestClassifier"
"""Classes that ask a classifier of its own for each label."""


def labels_of(model: Any) -> list[NDArray[Any]] | None:
    """The classes of each label of a classifier of several; None of others."""
    final = last_step(model)
    classes = getattr(final, "classes_", None)
    if classes is None:
        return None
    if isinstance(classes, list) and all(np.ndim(own) == 1 for own in classes):
        return list(map(np.asarray, classes))
    n_outputs = getattr(final, "n_outputs_", 1)
    count = 1
    if getattr(final, "multilabel_", False):
        count = len(classes)
    elif getattr(final, "out_activation_", None) == "logistic" and n_outputs > 1:
        count = n_outputs
    elif is_a(final, "catboost.CatBoostClassifier"):
        loss = str(final.get_all_params().get("loss_function"))
        count = len(classes) if loss in ("MultiLogloss", "MultiCrossEntropy") else 1
    elif is_a(final, "xgboost.XGBClassifier"):
        learner = json.loads(final.get_booster().save_config())["learner"]
        count = int(learner["learner_model_param"].get("num_target", 1))
    return [np.arange(2)] * count if count > 1 else None


def with_label(model: Any, position: int) -> Any:
    """The classifier of one of several labels."""
    model = as_estimator(model)
    if type(model) is Pipeline:
        *before, (name, final) = model.steps
        return Pipeline([*before, (name, with_label(final, position))])
    if inherits(model, *_INDEPENDENT):
        return as_estimator(model.estimators_[position])
    kind = OneLabel if margins_of(model) is None else OneBoostedLabel
    return kind(model, position)


# ---- Scores of boosted models, which some libraries give by no method of their own


@final
@dataclass(frozen=True)
class Margins:
    """The sums of trees that a model predicts from."""

    # from the table that the model takes to (n,), or (n, K) of K classes
    scores: Callable[[Any], Array]
    # how many times the score the log-odds of the second of two classes are
    find_logit: Callable[[], float | None]


def margins_of(model: Any) -> Margins | None:
    """The scores of a boosted classifier, or of a native booster; None of others."""
    before, final = opened(model)
    rule = by_class(_RULES, final)
    if rule is None or not inherits(final, *_RULES):
        return None
    method, settings, find_logit = rule
    scores = partial(getattr(final, method), **settings)
    return Margins(behind_steps(before, scores), partial(find_logit, final))


_TAKE_NUMBERS: Final = (
    "catboost.CatBoostClassifier",
    "catboost.CatBoostRegressor",
    "xgboost.XGBClassifier",
    "xgboost.XGBRegressor",
)
"""Classes that take an array in place of the frame that they were fitted on."""


def takes_numbers(model: Any) -> bool:
    """Whether a model takes an array of its columns as readily as a frame of them."""
    return inherits(model, *_TAKE_NUMBERS)


def lightgbm_call(model: Any) -> Callable[..., Array] | None:
    """A LightGBM model as its booster answers a table of numbers; None of others."""
    if isinstance(model, LightGBMBooster):
        return partial(_of_booster, model, "booster", {})
    if not inherits(model, "lightgbm.LGBMClassifier", "lightgbm.LGBMRegressor"):
        return None
    # what an estimator does not know by name, its booster is given at prediction
    known = signature(type(model)).parameters
    others = {key: x for key, x in model.get_params().items() if key not in known}
    if any("thread" in key for key in others):
        return None
    return partial(_of_booster, model, "booster_", others)


def _of_booster(
    model: Any,
    name: str,
    settings: Mapping[str, Any],
    table: Any,
    raw_score: bool = False,
) -> Array:
    booster = getattr(model, name)  # of a model that is fitted again it is another
    said: Array = booster.predict(
        table, raw_score=raw_score, **{**settings, "num_threads": 1}
    )
    return said


def has_own_objective(model: Any) -> bool:
    """Whether a boosted classifier has an objective of its user, and scores alone."""
    _, final = opened(model)
    of_objective = inherits(final, "lightgbm.LGBMClassifier", "xgboost.XGBClassifier")
    return of_objective and callable(final.objective)


def is_explained_by_margin(model: Any) -> bool:
    """Whether the margin is what is explained of a classifier, by its class alone.

    So are boosted classifiers, and stacks that end in a logistic regression, whose
    margin is the sum that their probabilities are made of.
    """
    last, (_, final) = last_step(model), opened(model)
    if isinstance(final, LightGBMBooster | XGBoostBooster):
        return final.is_classifier
    if inherits(final, *_RULES, "sklearn.AdaBoostClassifier"):
        return True
    return inherits(last, _STACK) and inherits(final, *LOGISTIC)


LOGISTIC: Final = "sklearn.LogisticRegression", "sklearn.LogisticRegressionCV"
_STACK: Final = "sklearn.StackingClassifier"


def opened(model: Any) -> tuple[list[Any], Any]:
    """The estimator that answers at last, and what transforms the table before it."""
    model, before = as_estimator(model), list[Any]()
    while True:
        if inherits(model, "sklearn.Pipeline"):
            if len(model.steps) > 1:
                before.append(model[:-1])
            model = as_estimator(model.steps[-1][1])
        elif inherits(model, _STACK) and hasattr(model, "final_estimator_"):
            before.append(model)
            model = as_estimator(model.final_estimator_)
        else:
            return before, model


def behind_steps(
    before: Sequence[Any], scores: Callable[[Any], Array]
) -> Callable[[Any], Array]:
    """What is asked of a table behind steps."""
    return partial(_after, before, scores) if before else scores


def _after(before: Sequence[Any], scores: Callable[[Any], Array], table: Any) -> Array:
    for steps in before:
        table = steps.transform(table)
    return scores(table)


def _lightgbm_logit(booster: Any) -> float | None:
    told = booster.dump_model(num_iteration=1)
    _, _, slope = lightgbm_objective(told)
    if slope is not None and told["average_output"]:  # the mean of a random forest
        slope /= max(booster.best_iteration, 0) or booster.current_iteration()
    return slope


def lightgbm_objective(
    dumped: Mapping[str, Any],
) -> tuple[str, list[str], float | None]:
    """The name, the settings, and of what is binary the slope of the sigmoid.

    Of a model that was dumped, which tells of it in words: ``binary sigmoid:1``.
    """
    name, *settings = str(dumped.get("objective", "")).split() or [""]
    given = dict(s.split(":") for s in settings if ":" in s)
    return name, settings, float(given.get("sigmoid", 1)) if name == "binary" else None


_LIGHTGBM_VALUES: Final = frozenset(
    {
        "",  # an objective of the user's own, which the library does not know
        "fair",
        "huber",
        "lambdarank",
        "mape",
        "quantile",
        "rank_xendcg",
        "regression",
        "regression_l1",
    }
)
"""Objectives whose scores are what is predicted."""


def lightgbm_predicts_scores(dumped: Mapping[str, Any]) -> bool:
    """Whether a dumped model predicts the sums of its trees, or their mean."""
    name, settings, _ = lightgbm_objective(dumped)
    return name in _LIGHTGBM_VALUES and "sqrt" not in settings


def predicts_scores(model: Any) -> bool:
    """Whether a native booster predicts the sums of its trees as they are."""
    if not isinstance(model, LightGBMBooster):
        return False
    told = model.booster.dump_model(num_iteration=1)
    return lightgbm_predicts_scores(told) and not told["average_output"]


def _xgboost_logit(booster: Any) -> float | None:
    learner = json.loads(booster.save_config())["learner"]
    logits = {"binary:logistic": 1.0, "binary:logitraw": 1.0}
    return logits.get(learner["objective"]["name"])


_Rule: TypeAlias = tuple[str, Mapping[str, Any], Callable[[Any], float | None]]
"""The method for scores and its settings; how many times them the log-odds are."""

_RULES: Final[Mapping[str, _Rule]] = {
    "catboost.CatBoostClassifier": (
        "predict",
        {"prediction_type": "RawFormulaVal"},
        lambda model: {"CrossEntropy": 1.0, "Logloss": 1.0}.get(
            model.get_all_params().get("loss_function")
        ),
    ),
    "interpret.ExplainableBoostingClassifier": (
        "decision_function",
        {},
        lambda model: {"logit": 1.0}.get(model.link_),
    ),
    "lightgbm.LGBMClassifier": (
        "predict",
        {"raw_score": True},
        lambda model: _lightgbm_logit(model.booster_),
    ),
    "propopt.OneBoostedLabel": ("scores", {}, lambda _: 1.0),
    "propopt.LightGBMBooster": (
        "scores",
        {},
        lambda model: _lightgbm_logit(model.booster),
    ),
    "propopt.XGBoostBooster": (
        "scores",
        {},
        lambda model: _xgboost_logit(model.booster),
    ),
    "sklearn.GradientBoostingClassifier": (
        "decision_function",
        {},
        lambda model: {"log_loss": 1.0, "exponential": 2.0}.get(model.loss),
    ),
    "sklearn.HistGradientBoostingClassifier": (
        "decision_function",
        {},
        lambda _: 1.0,
    ),
    "xgboost.XGBClassifier": (
        "predict",
        {"output_margin": True},
        lambda model: (
            None if callable(model.objective) else _xgboost_logit(model.get_booster())
        ),
    ),
}


# ---- Pipelines: their first and last steps, and the steps that do nothing


UNREADABLE: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What reading a model raises that is kept in another way than is known."""


def unreadable(model: Any, error: Exception) -> str:
    """Why a model was not read, with its class."""
    name = type(last_step(model)).__name__
    return f"{name} cannot be read: {type(error).__name__}: {error}"


def last_step(model: Any) -> Any:
    """The final estimator of a pipeline, or the model itself."""
    model = as_estimator(model)
    while isinstance(model, Pipeline):
        model = as_estimator(model.steps[-1][1])
    return model


def first_step(model: Any) -> Any:
    """The first working step of a pipeline, or the model itself; None if none works."""
    model = as_estimator(model)
    while isinstance(model, Pipeline):
        steps = (step for _, step in model.steps)
        model = next((step for step in steps if not is_passthrough(step)), None)
    return model


def working_steps(model: Any) -> list[Any]:
    """The steps of a pipeline, and of pipelines in it, that do something; or itself."""
    if type(model) is not Pipeline:
        return [] if is_passthrough(model) else [model]
    return [step for _, part in model.steps for step in working_steps(part)]


def members_in(model: Any) -> list[Any]:
    """The models that a model is made of, as votes are; else none."""
    if is_a(model, "sklearn.TransformedTargetRegressor"):
        return [model.regressor_]
    if is_a(model, "sklearn.CalibratedClassifierCV"):
        return [part.estimator for part in model.calibrated_classifiers_]
    members = getattr(model, "estimators_", None)
    return members if isinstance(members, list) else []


def is_passthrough(step: object) -> bool:
    """Whether a step of a pipeline does nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


# ---- What a model of texts does first: the parts of it that are given the texts


_COUNT_WORDS: Final = "sklearn.CountVectorizer", "sklearn.HashingVectorizer"
"""``TfidfVectorizer`` is a ``CountVectorizer`` too."""


def text_entries(model: Any) -> list[Any]:
    """The parts of a fitted model that see the texts: one, or one of each member."""
    entry = first_step(model)
    parts = members_in(entry)
    if isinstance(entry, FeatureUnion):
        parts = [
            part for _, part in entry.transformer_list if not isinstance(part, str)
        ]
    elif not parts:
        return [entry]
    return [own for part in parts for own in text_entries(part)]


def text_vectorisers(model: Any) -> list[Any]:
    """The vectorisers that a model begins with; none where another part sees texts."""
    entries = text_entries(model)
    vectorisers = [entry for entry in entries if is_a(entry, *_COUNT_WORDS)]
    return vectorisers if len(vectorisers) == len(entries) else []


# ---- Models that are piecewise constant: trees, forests, boosting and their like


_FLAT: Final = (
    "catboost.CatBoost",
    "interpret.ExplainableBoostingClassifier",
    "interpret.ExplainableBoostingRegressor",
    "sklearn.DecisionTreeClassifier",
    "sklearn.DecisionTreeRegressor",
    "sklearn.DummyClassifier",
    "sklearn.DummyRegressor",
    "sklearn.ExtraTreeClassifier",
    "sklearn.ExtraTreeRegressor",
    "sklearn.ExtraTreesClassifier",
    "sklearn.ExtraTreesRegressor",
    "sklearn.HistGradientBoostingClassifier",
    "sklearn.HistGradientBoostingRegressor",
    "sklearn.IsolationForest",
    "sklearn.RandomForestClassifier",
    "sklearn.RandomForestRegressor",
)
"""Classes that are piecewise constant whatever their settings."""

_BOOSTED: Final = (
    "sklearn.GradientBoostingClassifier",
    "sklearn.GradientBoostingRegressor",
)
_NEIGHBORS: Final = (
    "sklearn.KNeighborsClassifier",
    "sklearn.KNeighborsRegressor",
    "sklearn.RadiusNeighborsClassifier",
    "sklearn.RadiusNeighborsRegressor",
)
_ENSEMBLES: Final = (
    "sklearn.AdaBoostClassifier",
    "sklearn.AdaBoostRegressor",
    "sklearn.BaggingClassifier",
    "sklearn.BaggingRegressor",
    "sklearn.StackingClassifier",
    "sklearn.StackingRegressor",
    "sklearn.VotingClassifier",
    "sklearn.VotingRegressor",
)
_WRAPPERS: Final = (
    "sklearn.CalibratedClassifierCV",
    "sklearn.TransformedTargetRegressor",
)


def is_piecewise_constant(model: Any) -> bool:
    """Whether a fitted model is known to be constant between jumps, with slopes 0."""
    final = last_step(model)
    if isinstance(final, OneLabel):
        return is_piecewise_constant(final.estimator)
    if is_a(final, *_FLAT):
        return True
    if is_a(final, *_BOOSTED):
        return isinstance(final.init_, str) or is_piecewise_constant(final.init_)
    if is_a(final, *_NEIGHBORS):
        return bool(final.weights == "uniform")
    if is_a(final, *_ENSEMBLES):
        # what combines members sees nothing but their outputs
        passes_features = bool(final.get_params(deep=False).get("passthrough", False))
        return not passes_features and all(
            map(is_piecewise_constant, final.estimators_)
        )
    if is_a(final, *_WRAPPERS):
        return all(map(is_piecewise_constant, members_in(final)))
    if is_a(final, "lightgbm.LGBMModel"):
        return not final.get_params().get("linear_tree", False)
    if isinstance(final, XGBoostBooster | LightGBMBooster):
        return final.is_made_of_trees
    if is_a(final, "xgboost.XGBModel"):
        return bool(final.get_params().get("booster") != "gblinear")
    return False
