"""Which output of which model is meant: names of outputs, labels of classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.quantity import Quantity
from propopt.structures.margins import margins_of
from propopt.structures.pipelines import last_step
from propopt.structures.registry import exact_link, exact_network
from propopt.tables.names import listed
from propopt.threads import Sparing


Output: TypeAlias = Literal["auto", "value", "probability", "log_odds", "margin"]
Target: TypeAlias = int | float | str | bool | np.generic | None

METHODS: Final = {
    "probability": "predict_proba",
    "log_odds": "predict_proba",
    "margin": "decision_function",
    "value": "predict",
}
"""The method that gives each output; ``"auto"`` takes the first that a model has."""


def check_model(model: Any) -> None:
    """Refuse a class, and an estimator that is not fitted."""
    if inspect.isclass(model):
        raise InvalidInput(
            f"model: {model.__name__} is a class; expected a fitted instance of it"
        )
    if not isinstance(model, BaseEstimator):
        return
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise InvalidInput(
            f"model: {name_of(model)} is not fitted; call its fit(X, y) first"
        ) from None


def read_output(model: Any, output: str) -> str:
    """The output to explain, one that the model has."""
    if output != "auto" and output not in METHODS:
        raise InvalidInput(
            f"output: expected one of {listed(['auto', *METHODS])}, got {output!r}"
        )
    available = _outputs(model)
    if not available:
        raise InvalidInput(
            f"model: {name_of(model)} gives no numbers to explain; expected a "
            "callable, or a fitted model with predict_proba or decision_function "
            "(classifiers) or predict (others)"
        )
    if output == "auto":
        return available[0]
    if output not in available:
        raise InvalidInput(
            f"output: {name_of(model)} has no {output!r}; it has {listed(available)}"
        )
    return output


def read_index(model: Any, output: str, target: Target) -> int | None:
    """The position among the model's outputs; None if only one is expected."""
    classes = getattr(model, "classes_", None)
    if output == "value" or classes is None:
        return _read_position(target)
    _check_single_label(model, classes)
    labels = np.asarray(classes).tolist()
    if output == "margin":
        _check_margin_per_class(model, len(labels))
    return read_class(labels, target)


def read_class(labels: list[Any], target: Target) -> int:
    """The position of a class among the labels; by default the second of two."""
    if target is None and len(labels) == 2:
        return 1
    if target is None:
        raise InvalidInput(f"target: choose one of the classes {listed(labels)}")
    if target not in labels:
        raise InvalidInput(
            f"target: expected one of the classes {listed(labels)}, got {target!r}"
        )
    return int(labels.index(target))


def has_method(model: Any, method: str) -> bool:
    """Whether a model has a method: scikit-learn hides those that its settings lack."""
    return callable(getattr(model, method, None))


class Call(NamedTuple):
    """How a model is asked for an output."""

    method: Callable[[Any], object]
    """From a table to the answer."""

    output: str
    """What the answer is: log-odds of two classes may be a margin."""


def call_of(model: Any, output: str) -> Call | None:
    """The method for an output of a model; None if the model is called itself."""
    margins = margins_of(model) if output in ("log_odds", "margin") else None
    if margins is not None and output == "log_odds" and len(model.classes_) == 2:
        logit = margins.find_logit()
        if logit is not None:  # probabilities near 1 lose what is known of 1 − p
            times = partial(_times, logit, margins.scores)
            return Call(Sparing(times), "margin")
    if has_method(model, METHODS[output]):
        return Call(Sparing(getattr(model, METHODS[output])), output)
    return None if margins is None else Call(Sparing(margins.scores), "margin")


def quantity_of(model: Any, output: str, index: int | None) -> Quantity:
    """What an output of a model is: of which class, and log-odds where a margin is."""
    name, classes = name_of(last_step(model)), getattr(model, "classes_", None)
    if output == "value" or classes is None:
        kind: Any = output
        return Quantity(model=name, kind=kind, position=index)
    labels = np.asarray(classes).tolist()
    label = labels[1 if index is None and len(labels) == 2 else index or 0]
    return Quantity(model=name, kind=_kind(model, output, len(labels)), label=label)


def _kind(model: Any, output: str, n_classes: int) -> Any:
    """The output; log-odds for a margin of two classes that is these."""
    is_log_odds = output == "margin" and n_classes == 2 and _has_logit_margin(model)
    return "log_odds" if is_log_odds else output


def _has_logit_margin(model: Any) -> bool:
    """Whether log p/(1 − p) is the margin: of trees, or by formulas that are one."""
    margins = margins_of(model)
    if margins is not None:
        return margins.find_logit() == 1.0
    final = last_step(model)
    network = exact_network(final)
    if network is None:
        return False
    odds, margin = (
        exact_link(final, output, 1, network.n_scores)
        for output in ("log_odds", "margin")
    )
    return odds is not None and odds == margin


def _times(factor: float, scores: Callable[[Any], object], table: Any) -> Array:
    return factor * np.asarray(scores(table), dtype=np.float64)


def name_of(model: Any) -> str:
    """A short name for messages."""
    return str(getattr(model, "__name__", type(model).__name__))


def _outputs(model: Any) -> list[str]:
    """The outputs that a model has; the labels that a classifier predicts are none."""
    outputs = [name for name, method in METHODS.items() if has_method(model, method)]
    if not outputs and callable(model):
        return ["value"]
    if "margin" not in outputs and margins_of(model) is not None:
        outputs.append("margin")
    classifies = isinstance(model, BaseEstimator) and is_classifier(model)
    if classifies or "probability" in outputs:
        return [name for name in outputs if name != "value"]
    return outputs


def _read_position(target: Target) -> int | None:
    if target is None:
        return None
    is_position = isinstance(target, int | np.integer) and not isinstance(target, bool)
    position = int(target) if is_position else -1
    if position < 0:
        raise InvalidInput(
            f"target: expected the position of an output, 0, 1, ..., got {target!r}"
        )
    return position


def _check_single_label(model: Any, classes: Any) -> None:
    final = last_step(model)
    sigmoids = getattr(final, "out_activation_", None) == "logistic"
    if (
        isinstance(classes, list)
        or getattr(final, "multilabel_", False)
        or (sigmoids and final.n_outputs_ > 1)
    ):
        raise InvalidInput(
            f"model: {name_of(model)} gives several labels to each point; wrap a "
            "callable that returns the one number to explain"
        )


def _check_margin_per_class(model: Any, n_classes: int) -> None:
    shape = getattr(last_step(model), "decision_function_shape", "ovr")
    if shape == "ovo" and n_classes > 2:
        raise InvalidInput(
            f"output: {name_of(model)} has a margin for each pair of classes, not for "
            "each class; set its decision_function_shape to 'ovr'"
        )
