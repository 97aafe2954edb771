"""The output of a model under explanation, and the calls that compute it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_clusterer, is_outlier_detector
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from propopt.base.arrays import Array, Points, Values
from propopt.base.checks import describe_type, is_foreign, read_option
from propopt.base.errors import InvalidInput
from propopt.base.resources import ONE_THREAD, FewThreads
from propopt.base.text import Quantity, first_line
from propopt.structures.fitted_model import (
    FittedModel,
    MarginScale,
    as_stored,
    scaled_scores,
    with_label,
)
from propopt.structures.kinds import fitted_value, has_fitted, name_of
from propopt.structures.scores import Link, Network
from propopt.tables.frames import Labels, listed, refuse_other_columns


# ---- The choice of an output: names of outputs, labels of classes


Output: TypeAlias = Literal["auto", "value", "probability", "log_odds", "margin"]
Target: TypeAlias = int | float | str | bool | np.generic | None

METHODS: Final = {
    "probability": "predict_proba",
    "log_odds": "predict_proba",
    "margin": "decision_function",
    "value": "predict",
}
"""The method for each output; ``"auto"`` takes the first that a model has."""


def check_model(fitted: FittedModel) -> None:
    """Refuse non-models, classes, unfitted models, and predicted labels."""
    model = fitted.estimator
    if inspect.isclass(model):
        raise InvalidInput(
            f"model: {model.__name__} is a class; expected a fitted instance of it"
        )
    explains = is_foreign(model) and fitted.has("explain_row")
    if explains or not (callable(model) or fitted.methods):
        raise _no_numbers(model)
    owner = model.__self__ if inspect.ismethod(model) else None
    if has_fitted(owner, "classes_") and model.__name__ == "predict":
        raise InvalidInput(
            f"model: predict of {name_of(owner)} returns labels, which have no slopes; "
            "give the fitted model itself, and the class as target"
        )
    if not isinstance(model, BaseEstimator):
        return
    _check_fitted(model, "model:")
    for step in fitted.steps[:-1]:
        # a vectoriser with a fixed vocabulary, or without one, needs no fit
        kind = type(step).__name__
        needs_no_fit = kind == "HashingVectorizer" or (
            kind == "CountVectorizer" and step.vocabulary is not None
        )
        if type(step).__module__.startswith("sklearn.") and not needs_no_fit:
            _check_fitted(step, "model: its")


def _check_fitted(model: Any, label: str) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise InvalidInput(
            f"{label} {name_of(model)} is not fitted; call the model's fit(X, y) first"
        ) from None


def _no_numbers(model: object) -> InvalidInput:
    """The error for an object that is no model, with a suggestion."""
    name = getattr(model, "__name__", describe_type(model))
    expected = (
        "expected a callable, or a fitted model with predict_proba or "
        "decision_function (classifiers) or predict (others)"
    )
    if getattr(model, "refit", True) is False:
        expected += "; a search with refit=True has a best estimator"
    match model:
        case None:
            expected += "; fit the model first"
        case str() | bytes() | Path():
            expected += f"; load {str(model)!r:.80} first"
        case _ if describe_type(model) != type(model).__name__:  # of lime or shap
            expected += "; give the model that it explains"
        case _ if has_fitted(model, "shape"):
            expected += "; the model comes first, then X"
    return InvalidInput(f"model: {name} gives no numbers to explain; {expected}")


def check_target(target: object) -> None:
    """Refuse arrays of labels, and tables, as the target."""
    size = tuple(getattr(target, "shape", ()))
    if not size and not isinstance(target, list | tuple | set | Mapping):
        return
    noun = type(target).__name__
    shape = f" of shape {size}" if size else ""
    remedy = (
        "a table goes to data, as in wrap(model, data=X)"
        if len(size) > 1
        else "the model has learned its labels already: give one class; several are "
        "explained by po.explain(model, X, data=data, target=[*model.classes_])"
    )
    raise InvalidInput(
        "target: expected one class, or the position of an output, got "
        f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}{shape}; {remedy}"
    )


def read_output(model: FittedModel, output: str) -> str:
    """The checked name of the output to explain, one that the model has."""
    read_option(output, Output, "output")
    available = outputs_of(model)
    if not available:
        raise _no_numbers(model.estimator)
    if output == "auto":
        if "margin" in available and model.is_explained_by_margin:
            return "margin"
        by_log_odds = "log_odds" in available and model.has_exact_log_odds
        return "log_odds" if by_log_odds else available[0]
    if output not in available:
        raise InvalidInput(
            f"output: {model.name} has no {output!r}; it has {listed(available)}"
        )
    return output


def read_index(
    model: FittedModel, output: str, target: Target, scale: MarginScale | None = None
) -> int | None:
    """Index of the class or of the output column; None if there should be only one."""
    classes = model.classes
    if output == "value" or classes is None:
        index = _read_position(target)
        # the first margin of two classes would have the other sign
        return None if index == 0 and scale is not None and scale[1] else index
    labels = np.asarray(classes).tolist()
    if output == "margin":
        shape = fitted_value(model.final, "decision_function_shape")
        if shape == "ovo" and len(labels) > 2:
            raise InvalidInput(
                f"output: {model.name} has a margin for each pair of classes, not "
                "for each class; set its decision_function_shape to 'ovr'"
            )
    return read_class(labels, target)


def read_class(labels: list[Any], target: Target) -> int:
    """The index of a class among the labels; by default the second of two."""
    if target is None and len(labels) == 2:
        return 1
    if target is None:
        raise InvalidInput(f"target: choose one of the classes {listed(labels)}")
    if target not in labels:
        raise InvalidInput(
            f"target: expected one of the classes {listed(labels)}, got {target!r}"
        )
    return int(labels.index(target))


Call: TypeAlias = tuple[Callable[[Any], object], str]
"""A prediction function of tables, and its output: for log-odds maybe a margin."""


def call_of(model: FittedModel, output: str) -> Call:
    """The prediction function for an output of a model, and what it returns."""
    if output == "log_odds" and len(model.classes) == 2:
        logit = _logit_of(model)
        if logit is not None:  # probabilities close to 1 lose the digits of 1 − p
            return FewThreads(logit), "margin"
    # decision_function of a forest of LightGBM is a sum, and its margin the mean
    if output == "margin" and model.margin is not None:
        return FewThreads(model.margin), "margin"
    if METHODS[output] in model.methods:
        return FewThreads(getattr(model.estimator, METHODS[output])), output
    if output == "log_odds" and model.margin is not None:
        return FewThreads(model.margin), "margin"
    return model.estimator, output


def direct_call(model: FittedModel, output: str) -> DirectCall | None:
    """A booster's faster method for an output, if it accepts arrays."""
    reader = model.rules
    if reader.takes_numbers:
        return DirectCall(call_of(model, output)[0])
    call = None if reader.direct is None else reader.direct(model.estimator)
    if call is None:
        return None
    if output in ("value", "margin"):
        return DirectCall(partial(call, raw_score=output == "margin"))
    logit = _logit_of(model) if output == "log_odds" else None
    if isinstance(logit, partial) and logit.func is scaled_scores:
        return DirectCall(
            partial(scaled_scores, logit.args[0], partial(call, raw_score=True))
        )
    return None


def quantity_of(
    model: FittedModel,
    output: str,
    index: int | None,
    scale: MarginScale | None = None,
) -> Quantity:
    """The name, kind and class of an output of a model; a margin may be log-odds."""
    name = name_of(model.final)
    classes = model.classes
    kind: Any = output
    if output == "value" or classes is None:
        if scale is not None:
            kind = scale[0]
        elif output == "margin" and index is None and _has_logit_margin(model):
            kind = "log_odds"  # of a native booster, which has no labels
        return Quantity(model=name, kind=kind, position=index)
    labels = np.asarray(classes).tolist()
    label = labels[1 if index is None and len(labels) == 2 else index or 0]
    if output == "margin" and len(labels) == 2 and _has_logit_margin(model):
        kind = "log_odds"
    alternative: Any = {"log_odds": "probability", "probability": "log_odds"}.get(kind)
    # log-odds follow from scores; of forests they are infinite for p = 0 or 1
    is_scored = model.margin is not None and model.logit_of_margin is not None
    if kind == "probability" and not is_scored and not model.has_exact_log_odds:
        has_scores = exact_scores(model.at_core, "log_odds", index or 0) is not None
        alternative = alternative if has_scores else None
    return Quantity(model=name, kind=kind, label=label, alternative=alternative)


def scale_of(model: FittedModel, output: str, few: Any) -> MarginScale | None:
    """The scale of the margin; None for classifiers, which have one for each class.

    ``few`` are rows of its input table, at which margin and prediction are compared.
    """
    if output != "margin" or model.margin is None or model.is_explained_by_margin:
        return None
    return ("score", False) if few is None else model.margin_scale(few)


def _has_logit_margin(model: FittedModel) -> bool:
    """Whether the margin equals log p/(1 − p), for trees or by exact formulas."""
    if model.margin is not None:
        return model.logit_of_margin == 1.0
    odds = exact_scores(model.at_core, "log_odds", 1)
    margin = exact_scores(model.at_core, "margin", 1)
    return odds is not None and margin is not None and odds[1] == margin[1]


def _logit_of(model: FittedModel) -> Callable[[Any], Values] | None:
    """The log-odds of the second of two classes from scores; None if only from p."""
    logit = _final_logit(model.at_core)
    return None if logit is None else model.behind_steps(logit)


def _final_logit(model: FittedModel) -> Callable[[Any], Values] | None:
    if model.margin is not None:
        times = model.logit_of_margin
        return None if times is None else partial(scaled_scores, times, model.margin)
    if model.has("predict_joint_log_proba"):  # naive Bayes
        return partial(_difference, model.estimator.predict_log_proba)
    exact = exact_scores(model, "log_odds", 1)
    if exact is None:
        return None
    if model.has("decision_function"):  # which takes sparse tables as well
        return partial(scaled_scores, 1.0, model.estimator.decision_function)
    return partial(_read_scores, *exact)


def exact_scores(
    model: FittedModel, output: str, index: int | None
) -> tuple[Network, Link] | None:
    """The exact scores of a fitted model with the link to an output, or None."""
    network = model.network
    if network is None:
        return None
    if index is None or output == "value":
        index = read_column(index, network.n_scores)
    link = model.link(output, index)
    return None if link is None else (network, link)


def _difference(log_probabilities: Callable[[Any], Array], table: Any) -> Values:
    """Log-odds of two classes; log p retains its digits if p is close to 1."""
    first, second = log_probabilities(table).T
    return second - first


def _read_scores(network: Network, link: Link, table: Any) -> Values:
    points = np.asarray(table.toarray() if sp.issparse(table) else table, np.float64)
    values = [
        link.value(network.scores(points[rows])) for rows in network.blocks(points)
    ]
    return np.concatenate(values)


def outputs_of(fitted: FittedModel) -> list[str]:
    """The outputs that a model has; predicted labels of classifiers do not count."""
    model = fitted.estimator
    is_estimator = isinstance(model, BaseEstimator)
    if is_estimator and is_clusterer(model):  # its numbers are labels, no quantity
        distance = (
            "wrap(lambda X: model.transform(X)[:, k]) is the distance to the centre of "
            "cluster k"
            if fitted.has("transform")
            else "wrap a callable that returns one, such as the distance to a centre"
        )
        raise InvalidInput(
            f"model: {fitted.name} predicts the number of a cluster, which is no "
            f"quantity; {distance}"
        )
    if fitted.has_custom_objective:  # its "probabilities" are scores
        return ["margin"]
    outputs = [name for name, method in METHODS.items() if method in fitted.methods]
    if not outputs and callable(model):
        return ["value"]
    if "margin" not in outputs and fitted.margin is not None:
        outputs.append("margin")
    labels = is_estimator and (is_classifier(model) or is_outlier_detector(model))
    if labels or "probability" in outputs:
        return [name for name in outputs if name != "value"]
    return outputs


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


def one_label(
    model: FittedModel, target: Target
) -> tuple[FittedModel, Target, int | None]:
    """Binary model of one label, its target and the label's index, if multi-label."""
    labels = model.labels
    if labels is None:
        return model, target, None
    position = _read_position(target)
    if position is None or position >= len(labels):
        raise InvalidInput(
            f"target: {name_of(model.final)} gives {len(labels)} labels to each "
            f"point; choose the position of one, 0 to {len(labels) - 1}"
        )
    n_classes = len(labels[position])
    if n_classes != 2:
        raise InvalidInput(
            f"target: label {position} of {name_of(model.final)} has {n_classes} "
            "classes; expected two; wrap the number to explain, such as "
            f"lambda X: model.predict_proba(X)[{position}][:, k]"
        )
    return FittedModel(with_label(model.estimator, position)), None, position


# ---- The columns that a model was fitted on, and its input tables


@dataclass(frozen=True)
class FittedColumns:
    """The names and the number of columns that an estimator was fitted on."""

    names: tuple[str, ...] | None  # their names; None for a model fitted on an array
    count: int | None  # their number; None if the model does not record it

    @classmethod
    def of(cls, model: FittedModel) -> FittedColumns:
        """The columns that a model recorded when it was fitted."""
        return cls(model.columns, model.n_columns)

    def check(self, count: int, labels: Any, table: str = "X") -> None:
        """Refuse a table with another number of columns, or with other labels."""
        if self.names is not None and labels is not None:
            stored = as_stored(labels, self.names)
            if stored != self.names:
                refuse_other_columns(
                    stored,
                    self.names,
                    table,
                    "the model was fitted on",
                    f"wrap(model, data={table}) puts",
                )
        if self.count in (None, count):
            return
        remedy = "give all of them"
        if count > self.count:
            remedy = "leave out columns that it was not trained on, such as the target"
        raise InvalidInput(
            f"{table}: the model was fitted on {self.count} columns, got {count}; "
            f"{remedy}"
        )

    def table(self, points: Points, labels: Labels) -> Array | pd.DataFrame:
        """An input table in the form of the training table."""
        self.check(points.shape[1], labels.features)
        copy = np.array(points)  # a model may write into its input
        return copy if self.names is None else pd.DataFrame(copy, columns=self.names)


def as_given(points: Any, labels: Labels) -> Array | pd.DataFrame:
    """An input table of the kind that the user gave."""
    return labels.table(np.array(points))


# ---- Values that models return, and their precision


DOUBLE: Final = float(np.finfo(np.float64).eps)
SINGLE: Final = float(np.finfo(np.float32).eps)

SHORT_BITS: Final = 12
"""Numbers of so few bits, such as 0.25 and 130, do not show their precision."""

ValuesWithPrecision: TypeAlias = tuple[Values, float]
"""Values (n,), and the relative rounding ε of the precision of their computation."""


def as_numbers(answer: object, source: str = "the model") -> Array:
    """The values that a model returned as a float64 copy; others are refused."""
    array = _plain(answer, source)
    try:
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{source} returned no numbers: {error}") from None


def precision_of(answer: object) -> float:
    """The rounding ε of a model's values; single if they all fit into float32."""
    array = _plain(answer, "the model")
    if array.dtype.kind != "f":
        return DOUBLE
    epsilon = float(np.finfo(array.dtype).eps)
    return SINGLE if epsilon < SINGLE and _was_single(array) else epsilon


def _plain(answer: object, source: str) -> NDArray[Any]:
    """An array of numbers from the model's result; lossy conversions are refused."""
    # NumPy would drop the mask
    if isinstance(answer, np.ma.MaskedArray) and np.ma.is_masked(answer):
        raise InvalidInput(
            f"{source} returned a masked array, with {answer.mask.sum()} values "
            "masked; fill them, or explain other rows"
        )
    if sp.issparse(answer):
        raise InvalidInput(
            f"{source} returned a sparse {type(answer).__name__}; return its toarray()"
        )
    if getattr(answer, "requires_grad", False) is True:
        raise InvalidInput(
            f"{source} returned a torch tensor that requires grad; return its "
            "detach(), or wrap the torch.nn.Module itself for gradients by autograd"
        )
    try:
        array = np.asarray(answer)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"{source} returned no numbers: {error}") from None
    if array.dtype.kind == "c":
        raise InvalidInput(
            f"{source} returned complex numbers ({array.dtype}); return their real "
            "part or their absolute value"
        )
    if array.dtype.kind not in "biufO":
        raise InvalidInput(
            f"{source} returned no numbers, but {array.dtype}; return a number for "
            "each row, of a classifier a column of its predict_proba"
        )
    return array


def _was_single(array: NDArray[Any]) -> bool:
    numbers = array[np.isfinite(array)].astype(np.float64)
    with np.errstate(over="ignore"):
        converted = numbers.astype(np.float32).astype(np.float64)
    if not np.array_equal(converted, numbers):
        return False
    significands, _ = np.frexp(numbers)
    return bool((np.ldexp(significands, SHORT_BITS) % 1.0 != 0.0).any())


# ---- Calls of a model, and the output in their results


ALL_ROWS: Final = (
    "a model receives all rows together and returns one number for each; for a "
    "function f of one row give"
)


COMPARED: Final = 64
"""Rows at which direct predictions are compared."""

MARGIN_ROWS: Final = 20
"""Rows at which margins and predictions are compared, and exact forms."""


@final
@dataclass(eq=False)
class DirectCall:
    """A booster called with an array instead of a frame, ten times faster.

    It is used only if its first predictions equal those of the model to the last bit.
    """

    call: Callable[[Points], object]  # from a table of numbers to predictions
    # whether it can replace the call of the model; None before the comparison
    agrees: bool | None = None

    def compare(self, points: Points, answer: object) -> None:
        """Compare it with the model's predictions at the same points."""
        if self.agrees is not None:
            return
        expected = np.asarray(answer)[:COMPARED]
        try:
            direct = np.asarray(self.call(points[:COMPARED]))
        except Exception:  # noqa: BLE001  # libraries may raise anything for arrays
            self.agrees = False
            return
        same_type = direct.dtype == expected.dtype and direct.shape == expected.shape
        self.agrees = same_type and direct.tobytes() == expected.tobytes()


@dataclass(frozen=True)
class Readout:
    """One output of a model, computed by calling it."""

    method: Callable[[Any], object]  # a method of the model, or a plain callable
    # the input table of the method from points and labels; a list for texts
    table: Callable[[Any, Labels], Any]
    output: str  # "value", "probability", "log_odds" or "margin"
    index: int | None  # the column of the output; None if there can be only one
    # the columns that the model was fitted on, if there is no schema
    columns: FittedColumns | None = None
    direct: DirectCall | None = None  # for numeric tables

    @property
    def features(self) -> tuple[str, ...] | None:
        """Names of the columns that the model was fitted on; None if not recorded."""
        return None if self.columns is None else self.columns.names

    def __call__(self, points: Points | list[str], labels: Labels) -> Values:
        """Values of the output at points, shape (n,)."""
        return self._chosen(self._answer(points, labels), points, labels)

    def values_with_precision(
        self, points: Points | list[str], labels: Labels
    ) -> ValuesWithPrecision:
        """Values of the output, with the precision of the model's computation."""
        predicted = self._answer(points, labels)
        return self._chosen(predicted, points, labels), precision_of(predicted)

    def _answer(self, points: Points | list[str], labels: Labels) -> object:
        direct = self.direct
        if direct is None or not isinstance(points, np.ndarray):
            return self.method(self.table(points, labels))
        if direct.agrees and len(points) <= ONE_THREAD:
            if self.columns is not None:
                self.columns.check(points.shape[1], labels.features)
            return direct.call(points)
        predicted = self.method(self.table(points, labels))
        direct.compare(points, predicted)
        return predicted

    def _chosen(
        self, answer: object, points: Points | list[str], labels: Labels
    ) -> Values:
        """The output in the model's result, which has the shape (n,) or (n, K)."""
        array = as_numbers(answer)
        n_rows = len(points)
        if array.ndim not in (1, 2) or len(array) != n_rows:
            raise InvalidInput(
                f"the model returned shape {array.shape} for {n_rows} rows; expected "
                f"({n_rows},) or ({n_rows}, outputs); {ALL_ROWS} "
                f"lambda X: {_row_by_row(self.table(points, labels))}"
            )
        columns = array.reshape(n_rows, -1)
        n_columns = columns.shape[1]
        if self.output == "margin" and n_columns == 1:  # two classes share one margin
            return -columns[:, 0] if self.index == 0 else columns[:, 0]
        index = read_column(self.index, n_columns)
        return (
            _log_odds(columns, index)
            if self.output == "log_odds"
            else columns[:, index]
        )

    def misfit(self, error: Exception, points: Any, labels: Labels) -> str:
        """A message with the input of a failing model, its error and a suggestion."""
        table = self.table(points, labels)
        message = f"{type(error).__name__}: {first_line(error)}"
        given = f"{type(table).__name__} of {len(table)} rows"
        if isinstance(self.method, FewThreads):
            remedy = "give it a table like the one that it was fitted on"
        else:
            remedy = f"{ALL_ROWS} lambda X: {_row_by_row(table, error)}"
        return f"for a {given} it raises {message}; {remedy}"


def _row_by_row(table: object, error: Exception | None = None) -> str:
    """An expression that applies f to one row at a time."""
    if isinstance(table, list):
        return "[f(text) for text in X]"
    if not isinstance(table, pd.DataFrame):
        return "np.apply_along_axis(f, 1, X)"
    named = not (isinstance(error, KeyError) and isinstance(error.args[0], int))
    return "X.apply(f, axis=1)" if named else "np.apply_along_axis(f, 1, X.to_numpy())"


def read_column(index: int | None, n_columns: int) -> int:
    """The checked column of an output among ``n_columns``."""
    if index is None and n_columns == 1:
        return 0
    if index is None:
        raise InvalidInput(
            f"target: the model has {n_columns} outputs; give the position of one, "
            f"0 to {n_columns - 1}"
        )
    if index >= n_columns:
        rest = "leave target out" if n_columns == 1 else "counted from 0"
        raise InvalidInput(
            f"target: no output at position {index}; the model has {n_columns}, {rest}"
        )
    return index


def _log_odds(probabilities: Array, index: int) -> Values:
    """Log-odds log p_t − log Σ_{k≠t} p_k, accurate for small 1 − p_t."""
    others = np.delete(probabilities, index, axis=1).sum(axis=1)
    with np.errstate(divide="ignore"):  # p = 0 or 1: infinite, reported with its row
        log_odds: Values = np.log(probabilities[:, index]) - np.log(others)
    return log_odds
