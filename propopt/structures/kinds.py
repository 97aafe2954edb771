"""Classes of other libraries identified by name, so that none has to be imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import is_
from typing import Any, Final

from sklearn.pipeline import Pipeline


TORCH_MODULE: Final = "torch.Module"

PREDICTION_METHODS: Final = frozenset({"decision_function", "predict", "predict_proba"})
"""Methods that determine what a model predicts."""

UNREADABLE: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""Errors raised by a model that its library stores differently than expected."""


_CLASSES: Final = 1024
"""Classes with their names."""


@lru_cache(maxsize=_CLASSES)
def lineage(bases: tuple[type, ...]) -> tuple[str, ...]:
    """The names of an ``__mro__``: a class such as ``sklearn.Pipeline``, its bases."""
    return tuple(
        f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in bases
    )


@lru_cache(maxsize=_CLASSES)
def predicting(bases: tuple[type, ...]) -> tuple[str, ...]:
    """The first of these names, up to the class whose methods predict."""
    defines = [not PREDICTION_METHODS.isdisjoint(vars(base)) for base in bases]
    count = defines.index(True) + 1 if any(defines) else None
    return lineage(bases)[:count]


def class_name_of(value: object) -> str:
    """The package and the name of the class of an object."""
    return lineage(type(value).__mro__)[0]


def is_a(value: object, *names: str) -> bool:
    """Whether an object is an instance of one of these classes or of a subclass."""
    return not set(names).isdisjoint(lineage(type(value).__mro__))


def inherits(model: object, *names: str) -> bool:
    """Whether a model predicts by the methods of one of these classes.

    A subclass that overrides a prediction method does not.
    """
    return not set(names).isdisjoint(predicting(type(model).__mro__))


def fitted_value(model: object, attribute: str, default: Any = None) -> Any:
    """An attribute that fitting may set, or a setting that some versions lack."""
    return getattr(model, attribute, default)


def has_fitted(model: object, attribute: str) -> bool:
    """Whether fitting has set an attribute of the model."""
    return getattr(model, attribute, None) is not None


def has_method(model: object, method: str) -> bool:
    """Whether a model has a method that its settings do not exclude."""
    return callable(getattr(model, method, None))


def name_of(model: Any) -> str:
    """A short name of a model or callable for messages."""
    return str(getattr(model, "__name__", type(model).__name__))


def is_passthrough(step: object) -> bool:
    """Whether a step of a pipeline leaves the data unchanged."""
    return step is None or (isinstance(step, str) and step == "passthrough")


# ---- Wrappers that only forward to another estimator


_FORWARDS: Final[Mapping[str, str]] = {
    "dask_ml.DaskBaseSearchCV": "best_estimator_",
    "optuna_integration.OptunaSearchCV": "best_estimator_",
    "sklearn.BaseSearchCV": "best_estimator_",
    "sklearn.FixedThresholdClassifier": "estimator_",
    "sklearn.FrozenEstimator": "estimator",
    "sklearn.TunedThresholdClassifierCV": "estimator_",
}
"""The attribute with the wrapped estimator, for classes that return its values
unchanged.

A threshold changes only predicted labels, which are no output of explanations.
"""


@lru_cache(maxsize=_CLASSES)
def _forwards(bases: tuple[type, ...]) -> str | None:
    """The attribute with the wrapped estimator of a class; None if it wraps none."""
    return next((_FORWARDS[x] for x in predicting(bases) if x in _FORWARDS), None)


_PIPELINES: Final = "imblearn.Pipeline", "sklearn.Pipeline"


def unwrapped(model: Any, last: Callable[[Any], Any]) -> Any:
    """The estimator inside searches and frozen or thresholded classifiers.

    Of a pipeline one of scikit-learn with plain steps, and ``last`` of the final one;
    the same object if it is plain already. Samplers of imblearn are dropped: they do
    nothing at prediction.
    """
    attribute = _forwards(type(model).__mro__)
    if attribute is not None and has_fitted(model, attribute):
        return unwrapped(getattr(model, attribute), last)
    if class_name_of(model) not in _PIPELINES:
        return model
    *before, (name, final) = model.steps
    others = [(x, as_step(s)) for x, s in before if not has_method(s, "fit_resample")]
    steps = [*others, (name, last(final))]
    if type(model) is Pipeline and len(steps) == len(model.steps):
        parts = [part for _, part in model.steps]
        if all(map(is_, parts, [part for _, part in steps])):
            return model
    return Pipeline(steps)


def as_step(step: Any) -> Any:
    """The transformer of a pipeline step, unwrapped if it is frozen or nested."""
    return unwrapped(step, as_step)


def working_steps(model: Any) -> list[Any]:
    """The steps of a pipeline and of nested ones, without those that do nothing."""
    if type(model) is not Pipeline:
        return [] if is_passthrough(model) else [model]
    return [step for _, part in model.steps for step in working_steps(part)]
