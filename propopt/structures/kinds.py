"""Classes of other libraries by their names, so that none is imported for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from sklearn.pipeline import Pipeline


TORCH_MODULE: Final = "torch.Module"

PREDICTION_METHODS: Final = ("decision_function", "predict", "predict_proba")
"""Methods that tell what a model predicts."""

UNREADABLE: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What reading a model raises that is kept in another way than is known."""


def class_name(kind: type) -> str:
    """The package and name of a class, such as ``sklearn.Pipeline``."""
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def class_name_of(thing: object) -> str:
    """The package and name of its class."""
    return class_name(type(thing))


def is_a(thing: object, *names: str) -> bool:
    """Whether it is of one of these classes, or of a subclass."""
    return any(class_name(kind) in names for kind in type(thing).__mro__)


def inherits(model: object, *names: str) -> bool:
    """Whether it answers by the methods of one of these classes, or of a class above.

    A subclass that predicts by another rule is not one of them.
    """
    for kind in type(model).__mro__:
        if class_name(kind) in names:
            return True
        if any(method in vars(kind) for method in PREDICTION_METHODS):
            return False
    return False


def fitted_value(thing: object, attribute: str) -> Any:
    """An attribute that fitting may set, such as ``classes_``; None where absent."""
    return getattr(thing, attribute, None)


def has_fitted(thing: object, attribute: str) -> bool:
    """Whether fitting has set an attribute."""
    return fitted_value(thing, attribute) is not None


def has_method(thing: object, method: str) -> bool:
    """Whether it has a method; scikit-learn hides those that its settings exclude."""
    return callable(fitted_value(thing, method))


def name_of(model: Any) -> str:
    """A short name for messages."""
    return str(getattr(model, "__name__", type(model).__name__))


def is_passthrough(step: object) -> bool:
    """Whether a step of a pipeline does nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


# ---- What only forwards to another estimator


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


def forwarded(model: Any) -> Any:
    """The estimator that a search, a frozen or a thresholded one forwards to."""
    for name, attribute in _FORWARDS.items():
        if inherits(model, name):
            inner = fitted_value(model, attribute)
            return model if inner is None else forwarded(inner)
    return model


def as_step(step: Any) -> Any:
    """The transformer that a step of a pipeline is, where it is frozen or nested."""
    return plain_pipeline(forwarded(step), as_step)


def plain_pipeline(model: Any, last: Callable[[Any], Any]) -> Any:
    """A pipeline of scikit-learn with plain steps; the same one where all are plain.

    Samplers of imblearn do nothing at prediction. What is no pipeline is returned.
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
