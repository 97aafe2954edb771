"""Which output of which model is meant: names of outputs, labels of classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import issparse
from sklearn.base import (
    BaseEstimator,
    is_classifier,
    is_clusterer,
    is_outlier_detector,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from propopt._typing import Array, Values
from propopt.errors import InvalidInput
from propopt.quantity import Quantity
from propopt.structures.links import Link
from propopt.structures.margins import margins_of
from propopt.structures.networks import Network
from propopt.structures.pipelines import last_step, working_steps
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
    """Refuse what is no model, a class, what is not fitted, and predicted labels."""
    if inspect.isclass(model):
        raise InvalidInput(
            f"model: {model.__name__} is a class; expected a fitted instance of it"
        )
    if not callable(model) and not any(has_method(model, m) for m in METHODS.values()):
        raise _no_numbers(model)
    owner = getattr(model, "__self__", None)
    if hasattr(owner, "classes_") and getattr(model, "__name__", "") == "predict":
        raise InvalidInput(
            f"model: predict of {name_of(owner)} gives labels, which have no slopes; "
            "give the fitted model itself, and the class as target"
        )
    if not isinstance(model, BaseEstimator):
        return
    _check_fitted(model, f"model: {name_of(model)}")
    for step in working_steps(model)[:-1]:
        if type(step).__module__.startswith("sklearn.") and not _is_told(step):
            _check_fitted(step, f"model: its {name_of(step)}")


def _check_fitted(model: Any, what: str) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise InvalidInput(
            f"{what} is not fitted; call the model's fit(X, y) first"
        ) from None


def _is_told(step: Any) -> bool:
    """Whether a vectoriser was given its words, and needs no fit."""
    return type(step) is CountVectorizer and step.vocabulary is not None


def _no_numbers(model: object) -> InvalidInput:
    """What came in place of a model, and what would do."""
    expected = (
        "expected a callable, or a fitted model with predict_proba or "
        "decision_function (classifiers) or predict (others)"
    )
    match model:
        case None:
            expected += "; fit the model before it is given"
        case str() | bytes() | Path():
            expected += f"; load {str(model)!r:.80} first"
        case _ if hasattr(model, "shape"):
            expected += "; the model comes first, then X"
    return InvalidInput(
        f"model: {name_of(model)} gives no numbers to explain; {expected}"
    )


def check_target(target: object) -> None:
    """Refuse labels of all rows, and tables, where one class or output is meant."""
    size = tuple(getattr(target, "shape", ()))
    if not size and not isinstance(target, list | tuple | set | Mapping):
        return
    shape = f" of shape {size}" if size else ""
    remedy = (
        "a table goes to data, as in wrap(model, data=X)"
        if len(size) > 1
        else "the model has learned its labels already: name one class, or leave it out"
    )
    raise InvalidInput(
        "target: expected one class, or the position of an output, got "
        f"{_article(type(target).__name__)}{shape}; {remedy}"
    )


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def read_output(model: Any, output: str) -> str:
    """The output to explain, one that the model has."""
    if output != "auto" and output not in METHODS:
        raise InvalidInput(
            f"output: expected one of {listed(['auto', *METHODS])}, got {output!r}"
        )
    available = _outputs(model)
    if not available:
        raise _no_numbers(model)
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
    if output == "log_odds" and len(model.classes_) == 2:
        logit = _logit_of(model)
        if logit is not None:  # probabilities near 1 lose what is known of 1 − p
            return Call(Sparing(logit), "margin")
    if has_method(model, METHODS[output]):
        return Call(Sparing(getattr(model, METHODS[output])), output)
    margins = margins_of(model) if output in ("log_odds", "margin") else None
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


def _logit_of(model: Any) -> Callable[[Any], Values] | None:
    """The log-odds of the second of two classes as scores; None if only by p."""
    if isinstance(model, Pipeline):
        logit = _logit_of(model.steps[-1][1])
        if logit is None or len(model.steps) == 1:
            return logit
        return partial(_after, model[:-1], logit)
    if hasattr(model, "best_estimator_"):  # a search
        return _logit_of(model.best_estimator_)
    margins = margins_of(model)
    if margins is not None:
        times = margins.find_logit()
        return None if times is None else partial(_times, times, margins.scores)
    if hasattr(model, "predict_joint_log_proba"):  # naive Bayes
        return partial(_difference, model.predict_log_proba)
    network = exact_network(model)
    if network is None:
        return None
    link = exact_link(model, "log_odds", 1, network.n_scores)
    if link is None:
        return None
    if has_method(model, "decision_function"):  # which takes sparse tables as well
        return partial(_times, 1.0, model.decision_function)
    return partial(_read, network, link)


def _after(steps: Pipeline, logit: Callable[[Any], Values], table: Any) -> Values:
    return logit(steps.transform(table))


def _times(factor: float, scores: Callable[[Any], object], table: Any) -> Values:
    return factor * np.asarray(scores(table), dtype=np.float64)


def _difference(log_probabilities: Callable[[Any], Array], table: Any) -> Values:
    """Of two classes; log p keeps its digits where p is next to 1."""
    first, second = log_probabilities(table).T
    return np.asarray(second - first)


def _read(network: Network, link: Link, table: Any) -> Values:
    points = np.asarray(table.toarray() if issparse(table) else table, np.float64)
    values = [
        link.value(network.scores(points[rows])) for rows in network.blocks(points)
    ]
    return np.concatenate(values)


def name_of(model: Any) -> str:
    """A short name for messages."""
    return str(getattr(model, "__name__", type(model).__name__))


def _outputs(model: Any) -> list[str]:
    """The outputs that a model has; the labels that a classifier predicts are none."""
    _refuse_clusters(model)
    outputs = [name for name, method in METHODS.items() if has_method(model, method)]
    if not outputs and callable(model):
        return ["value"]
    if "margin" not in outputs and margins_of(model) is not None:
        outputs.append("margin")
    labels = isinstance(model, BaseEstimator) and (
        is_classifier(model) or is_outlier_detector(model)
    )
    if labels or "probability" in outputs:
        return [name for name in outputs if name != "value"]
    return outputs


def _refuse_clusters(model: Any) -> None:
    """Refuse a number of a cluster: it is no quantity, and another order is as good."""
    if not isinstance(model, BaseEstimator) or not is_clusterer(model):
        return
    distance = (
        "wrap(lambda X: model.transform(X)[:, k]) is the distance to the centre of "
        "cluster k"
        if has_method(model, "transform")
        else "wrap a callable that returns one, such as the distance to a centre"
    )
    raise InvalidInput(
        f"model: {name_of(model)} predicts the number of a cluster, which is no "
        f"quantity; {distance}"
    )


def _read_position(target: Target) -> int | None:
    if target is None:
        return None
    is_position = isinstance(target, int | np.integer) and not isinstance(target, bool)
    position = int(target) if is_position else -1
    if position < 0:
        raise InvalidInput(
            f"target: expected the position of an output, 0, 1, ..., got {target!r}; "
            "leave it out where there is one output"
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
