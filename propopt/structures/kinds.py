"""Classes of other libraries identified by name, so that none has to be imported."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from sklearn.pipeline import Pipeline


TORCH_MODULE: Final = "torch.Module"

PREDICTION_METHODS: Final = frozenset({"decision_function", "predict", "predict_proba"})
"""Methods that determine what a model predicts."""

UNREADABLE: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""Errors raised by a model that its library stores differently than expected."""


_Lineage: TypeAlias = Mapping[str, bool]

_LINEAGES: Final = WeakKeyDictionary[type, _Lineage]()


def lineage(value: object) -> _Lineage:
    """The names of an object's class and of its bases, and which define a prediction.

    A name has the package and the class, such as ``sklearn.Pipeline``.
    """
    kind = type(value)
    if kind not in _LINEAGES:
        _LINEAGES[kind] = {
            f"{base.__module__.partition('.')[0]}.{base.__name__}": (
                not PREDICTION_METHODS.isdisjoint(vars(base))
            )
            for base in kind.__mro__
        }
    return _LINEAGES[kind]


def class_name_of(value: object) -> str:
    """The package and the name of the class of an object."""
    return next(iter(lineage(value)))


def is_a(value: object, *names: str) -> bool:
    """Whether an object is an instance of one of these classes or of a subclass."""
    return not lineage(value).keys().isdisjoint(names)


def inherited(model: object, names: Container[str]) -> str | None:
    """The first of these classes by whose methods a model predicts; None if none is.

    A subclass that overrides a prediction method does not count.
    """
    for name, predicts in lineage(model).items():
        if name in names:
            return name
        if predicts:
            return None
    return None


def inherits(model: object, *names: str) -> bool:
    """Whether a model predicts by the methods of one of these classes."""
    return inherited(model, names) is not None


def fitted_value(model: object, attribute: str, default: Any = None) -> Any:
    """An attribute that fitting may set, or a setting that some versions lack."""
    return getattr(model, attribute, default)


def has_fitted(model: object, attribute: str) -> bool:
    """Whether fitting has set an attribute of the model."""
    return fitted_value(model, attribute) is not None


def has_method(model: object, method: str) -> bool:
    """Whether a model has a method that its settings do not exclude."""
    return callable(fitted_value(model, method))


def name_of(model: Any) -> str:
    """A short name of a model or callable for messages."""
    return str(fitted_value(model, "__name__", type(model).__name__))


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


def forwarded(model: Any) -> Any:
    """The estimator inside a search, a frozen or a thresholded classifier."""
    name = inherited(model, _FORWARDS)
    inner = None if name is None else fitted_value(model, _FORWARDS[name])
    return model if inner is None else forwarded(inner)


def as_step(step: Any) -> Any:
    """The transformer of a pipeline step, unwrapped if it is frozen or nested."""
    return plain_pipeline(forwarded(step), as_step)


def plain_pipeline(model: Any, last: Callable[[Any], Any]) -> Any:
    """A scikit-learn pipeline with plain steps.

    The same object if all steps are plain already.

    Samplers of imblearn are dropped: they do nothing at prediction. Anything but a
    pipeline is returned unchanged.
    """
    if type(model) is not Pipeline and class_name_of(model) != "imblearn.Pipeline":
        return model
    *before, (name, final) = model.steps
    samples = [(key, s) for key, s in before if not has_method(s, "fit_resample")]
    steps = [*((key, as_step(s)) for key, s in samples), (name, last(final))]
    same = type(model) is Pipeline and len(steps) == len(model.steps)
    if same and all(a[1] is b[1] for a, b in zip(steps, model.steps, strict=True)):
        return model
    return Pipeline(steps)
