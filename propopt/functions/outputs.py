"""Which output of which model is meant, and how it is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, is_classifier, is_clusterer, is_outlier_detector
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from propopt.base.arrays import Array, Points, Values
from propopt.base.checks import describe_type, is_foreign
from propopt.base.errors import InvalidInput
from propopt.base.resources import ONE_THREAD, FewThreads
from propopt.base.text import Quantity
from propopt.functions.jumps import ValuesWithPrecision, as_numbers, precision_of
from propopt.structures.fitted_model import FittedModel, tree_rule, with_label
from propopt.structures.kinds import fitted_value, has_fitted, is_a, name_of
from propopt.structures.scores import Link, Network
from propopt.tables.frames import Labels, listed


# ---- Which output of which model is meant: names of outputs, labels of classes


Output: TypeAlias = Literal["auto", "value", "probability", "log_odds", "margin"]
Target: TypeAlias = int | float | str | bool | np.generic | None

METHODS: Final = {
    "probability": "predict_proba",
    "log_odds": "predict_proba",
    "margin": "decision_function",
    "value": "predict",
}
"""The method that gives each output; ``"auto"`` takes the first that a model has."""


def check_model(fitted: FittedModel) -> None:
    """Refuse what is no model, a class, what is not fitted, and predicted labels."""
    model = fitted.estimator
    if inspect.isclass(model):
        raise InvalidInput(
            f"model: {model.__name__} is a class; expected a fitted instance of it"
        )
    values_with_precision = callable(model) or any(map(fitted.has, METHODS.values()))
    explains = is_foreign(model) and fitted.has("explain_row")
    if not values_with_precision or explains:
        raise _no_numbers(model)
    owner = model.__self__ if inspect.ismethod(model) else None
    if has_fitted(owner, "classes_") and model.__name__ == "predict":
        raise InvalidInput(
            f"model: predict of {name_of(owner)} gives labels, which have no slopes; "
            "give the fitted model itself, and the class as target"
        )
    if not isinstance(model, BaseEstimator):
        return
    _check_fitted(model, f"model: {fitted.name}")
    for step in fitted.steps[:-1]:
        # a vectoriser that was given its words, or keeps none, needs no fit
        kind = type(step).__name__
        told = kind == "HashingVectorizer" or (
            kind == "CountVectorizer" and step.vocabulary is not None
        )
        if type(step).__module__.startswith("sklearn.") and not told:
            _check_fitted(step, f"model: its {name_of(step)}")


def _check_fitted(model: Any, label: str) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise InvalidInput(
            f"{label} is not fitted; call the model's fit(X, y) first"
        ) from None


def _no_numbers(model: object) -> InvalidInput:
    """What came in place of a model, and what would do."""
    name = getattr(model, "__name__", describe_type(model))
    expected = (
        "expected a callable, or a fitted model with predict_proba or "
        "decision_function (classifiers) or predict (others)"
    )
    if getattr(model, "refit", True) is False:
        expected += "; a search with refit=True keeps its best estimator"
    match model:
        case None:
            expected += "; fit the model before it is given"
        case str() | bytes() | Path():
            expected += f"; load {str(model)!r:.80} first"
        case _ if describe_type(model) != type(model).__name__:  # of lime or shap
            expected += "; give the model that it explains"
        case _ if has_fitted(model, "shape"):
            expected += "; the model comes first, then X"
    return InvalidInput(f"model: {name} gives no numbers to explain; {expected}")


def check_target(target: object) -> None:
    """Refuse labels of all rows, and tables, where one class or output is meant."""
    size = tuple(getattr(target, "shape", ()))
    if not size and not isinstance(target, list | tuple | set | Mapping):
        return
    noun, shape = type(target).__name__, f" of shape {size}" if size else ""
    remedy = (
        "a table goes to data, as in wrap(model, data=X)"
        if len(size) > 1
        else "the model has learned its labels already: name one class, or leave it out"
    )
    raise InvalidInput(
        "target: expected one class, or the position of an output, got "
        f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}{shape}; {remedy}"
    )


def read_output(model: FittedModel, output: str) -> str:
    """The output to explain, one that the model has."""
    if output != "auto" and output not in METHODS:
        raise InvalidInput(
            f"output: expected one of {listed(['auto', *METHODS])}, got {output!r}"
        )
    available = _outputs(model)
    if not available:
        raise _no_numbers(model.estimator)
    if output == "auto":
        by_margin = "margin" in available and model.is_explained_by_margin
        return "margin" if by_margin else available[0]
    if output not in available:
        raise InvalidInput(
            f"output: {model.name} has no {output!r}; it has {listed(available)}"
        )
    return output


def read_index(model: FittedModel, output: str, target: Target) -> int | None:
    """The position among the model's outputs; None if only one is expected."""
    classes = model.classes
    if output == "value" or classes is None:
        return _read_position(target)
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


Call: TypeAlias = tuple[Callable[[Any], object], str]
"""From a table to the answer; what that is: log-odds of two classes may be a margin."""


def call_of(model: FittedModel, output: str) -> Call:
    """The method for an output of a model, which may be called itself."""
    if output == "log_odds" and len(model.classes) == 2:
        logit = _logit_of(model)
        if logit is not None:  # probabilities near 1 lose what is known of 1 − p
            return FewThreads(logit), "margin"
    if model.has(METHODS[output]):
        return FewThreads(getattr(model.estimator, METHODS[output])), output
    if output in ("log_odds", "margin") and model.margin is not None:
        return FewThreads(model.margin), "margin"
    return model.estimator, output


def direct_call(model: FittedModel, output: str) -> DirectCall | None:
    """A booster's own method for an output, if it takes numbers without a frame."""
    if model.takes_numbers:
        return DirectCall(call_of(model, output)[0])
    ask = model.direct
    if ask is None:
        return None
    if output in ("value", "margin"):
        return DirectCall(partial(ask, raw_score=output == "margin"))
    logit = _logit_of(model) if output == "log_odds" else None
    if isinstance(logit, partial) and logit.func is _times:
        return DirectCall(partial(_times, logit.args[0], partial(ask, raw_score=True)))
    return None


def quantity_of(model: FittedModel, output: str, index: int | None) -> Quantity:
    """What an output of a model is: of which class, and log-odds where a margin is."""
    name, classes = name_of(model.final), model.classes
    kind: Any = output
    if output == "value" or classes is None:
        if output == "margin" and index is None and _has_logit_margin(model):
            kind = "log_odds"  # of a native booster, which knows no labels
        elif output == "margin" and model.predicts_scores:
            kind = "value"
        return Quantity(model=name, kind=kind, position=index)
    labels = np.asarray(classes).tolist()
    label = labels[1 if index is None and len(labels) == 2 else index or 0]
    if output == "margin" and len(labels) == 2 and _has_logit_margin(model):
        kind = "log_odds"
    return Quantity(model=name, kind=kind, label=label)


def _has_logit_margin(model: FittedModel) -> bool:
    """Whether log p/(1 − p) is the margin: of trees, or by formulas that are one."""
    if model.margin is not None:
        return model.logit_of_margin == 1.0
    odds, margin = (
        exact_scores(model.core, output, 1) for output in ("log_odds", "margin")
    )
    return odds is not None and margin is not None and odds[1] == margin[1]


def _logit_of(model: FittedModel) -> Callable[[Any], Values] | None:
    """The log-odds of the second of two classes as scores; None if only by p."""
    logit = _final_logit(FittedModel.of(model.core))
    return None if logit is None else model.behind_steps(logit)


def _final_logit(model: FittedModel) -> Callable[[Any], Values] | None:
    if model.margin is not None:
        times = model.logit_of_margin
        return None if times is None else partial(_times, times, model.margin)
    if model.has("predict_joint_log_proba"):  # naive Bayes
        return partial(_difference, model.estimator.predict_log_proba)
    known = exact_scores(model.estimator, "log_odds", 1)
    if known is None:
        return None
    if model.has("decision_function"):  # which takes sparse tables as well
        return partial(_times, 1.0, model.estimator.decision_function)
    return partial(_read_scores, *known)


def exact_scores(
    model: Any, output: str, index: int | None
) -> tuple[Network, Link] | None:
    """The scores of a fitted model, and what reads an output from them, if known."""
    if tree_rule(model) is not None:
        return None
    from propopt.structures.registry import exact_link, exact_network  # if no tree

    network = exact_network(model)
    if network is None:
        return None
    if index is None or output == "value":
        index = read_column(index, network.n_scores)
    link = exact_link(model, output, index, network.n_scores)
    return None if link is None else (network, link)


def _times(factor: float, scores: Callable[[Any], object], table: Any) -> Values:
    return factor * np.asarray(scores(table), dtype=np.float64)


def _difference(log_probabilities: Callable[[Any], Array], table: Any) -> Values:
    """Of two classes; log p keeps its digits where p is next to 1."""
    first, second = log_probabilities(table).T
    return np.asarray(second - first)


def _read_scores(network: Network, link: Link, table: Any) -> Values:
    points = np.asarray(table.toarray() if issparse(table) else table, np.float64)
    values = [
        link.value(network.scores(points[rows])) for rows in network.blocks(points)
    ]
    return np.concatenate(values)


def _outputs(fitted: FittedModel) -> list[str]:
    """The outputs that a model has; the labels that a classifier predicts are none."""
    model = fitted.estimator
    _refuse_clusters(fitted)
    if fitted.has_custom_objective:  # what it calls probabilities are its scores
        return ["margin"]
    outputs = [name for name, method in METHODS.items() if fitted.has(method)]
    if not outputs and callable(model):
        return ["value"]
    if "margin" not in outputs and fitted.margin is not None:
        outputs.append("margin")
    labels = isinstance(model, BaseEstimator) and (
        is_classifier(model) or is_outlier_detector(model)
    )
    if labels or "probability" in outputs:
        return [name for name in outputs if name != "value"]
    return outputs


def _refuse_clusters(fitted: FittedModel) -> None:
    """Refuse a number of a cluster: it is no quantity, and another order is as good."""
    model = fitted.estimator
    if not isinstance(model, BaseEstimator) or not is_clusterer(model):
        return
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
    """A model of one number, the target in it, and which of several labels it is."""
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
            "classes, and one of two is expected; wrap the number to explain, such as "
            f"lambda X: model.predict_proba(X)[{position}][:, k]"
        )
    return FittedModel.of(with_label(model, position)), None, position


# ---- The columns a model was fitted on, and the tables it is given


@dataclass(frozen=True)
class FittedColumns:
    """The columns that an estimator was fitted on."""

    names: tuple[str, ...] | None  # their names; None for a model fitted on an array
    count: int | None  # their number; None where the model does not tell

    @classmethod
    def of(cls, model: FittedModel) -> FittedColumns:
        """What ``model`` remembers of the table that it was fitted on."""
        return cls(model.columns, model.n_columns)

    def check(self, points: Points, labels: Labels) -> None:
        """Refuse a table that has other columns."""
        if self.names is not None and labels.features is not None:
            _check_names(_as_kept(labels.features, self.names), self.names, "X")
        _check_count(points.shape[1], self.count, "X")

    def table(self, points: Points, labels: Labels) -> Array | pd.DataFrame:
        """A table that the model takes without complaint."""
        self.check(points, labels)
        own = np.array(points)  # a model may write into what it is given
        return own if self.names is None else pd.DataFrame(own, columns=self.names)


def _as_kept(got: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of X as LightGBM keeps them, with underscores, if it is its model."""
    kept = tuple(name.replace(" ", "_") for name in got)
    return kept if set(kept) == set(names) else got


def check_data(
    model: FittedModel, columns: Sequence[Hashable], label: str = "data"
) -> None:
    """Refuse a ``data`` table that a scikit-learn model was not fitted on."""
    # others rename columns, and column transformers pass over those they do not know
    entry = model.entry
    ours = type(entry).__module__.startswith("sklearn.")
    if not ours or is_a(entry, "sklearn.ColumnTransformer"):
        return
    fitted = FittedColumns.of(model)
    if fitted.names is not None:
        kept = _as_kept(tuple(map(str, columns)), fitted.names)
        _check_names(kept, fitted.names, label)
    _check_count(len(columns), fitted.count, label)


def as_given(points: Any, labels: Labels) -> Array | pd.DataFrame:
    """A table of the kind that the user gave."""
    return labels.table(np.array(points))


def _check_count(came: int, fitted: int | None, label: str) -> None:
    if fitted is None or came == fitted:
        return
    remedy = (
        "leave out what it did not learn from, such as its target"
        if came > fitted
        else "give all of them"
    )
    raise InvalidInput(
        f"{label}: the model was fitted on {fitted} columns, got {came}; {remedy}"
    )


def _check_names(got: tuple[str, ...], expected: tuple[str, ...], label: str) -> None:
    if got == expected:
        return
    missing = [name for name in expected if name not in set(got)]
    unexpected = [name for name in got if name not in set(expected)]
    if missing or unexpected:
        remedy = (
            f"where the model has renamed them, wrap(model, data={label}) hands it "
            f"{label}'s own, and a problem file needs a table with the model's names"
        )
        if not missing:
            remedy = f"leave these out, {label}.drop(columns=[{listed(unexpected, 3)}])"
        elif not unexpected:
            remedy = "give these too"
        raise InvalidInput(
            f"{label}: the columns differ from those the model was fitted on; missing: "
            f"{listed(missing)}; unexpected: {listed(unexpected)}; {remedy}"
        )
    raise InvalidInput(
        f"{label}: the columns are those the model was fitted on, but in another order "
        f"or repeated; expected {listed(expected)}, got {listed(got)}; "
        f"{label}[list(model.feature_names_in_)] has them in order"
    )


ALL_ROWS: Final = (
    "it is given all rows at once and returns one number for each; for a function f of "
    "one row give"
)
_NEW_LINE: Final = "\n"


COMPARED: Final = 64
"""Rows at which direct answers are compared."""


@final
@dataclass(eq=False)
class DirectCall:
    """A booster that is asked without a frame, whose checks take ten times as long.

    Its answers are those of the model to the last bit, or it is asked no more: the
    first answers are compared.
    """

    ask: Callable[[Points], object]  # of a table of numbers
    agrees: bool | None = None  # None before it was compared

    @property
    def is_known(self) -> bool:
        """Whether it may be asked in place of the model."""
        return self.agrees is True

    def compare(self, points: Points, answer: object) -> None:
        """Compare it with what the model said of the same points."""
        if self.agrees is not None:
            return
        some = np.asarray(answer)[:COMPARED]
        try:
            own = np.asarray(self.ask(points[:COMPARED]))
        except Exception:  # noqa: BLE001  # whatever a library says of arrays
            self.agrees = False
            return
        alike = own.dtype == some.dtype and own.shape == some.shape
        self.agrees = alike and own.tobytes() == some.tobytes()


@dataclass(frozen=True)
class Readout:
    """One output of a model, by calling it."""

    method: Callable[[Any], object]  # a method of the model, or a plain callable
    # makes the table that method is given from points and labels; of texts a list
    table: Callable[[Any, Labels], Any]
    output: str  # what the numbers are: "value", "probability", "log_odds" or "margin"
    index: int | None  # the column that is read; None if there can be only one
    # those that the model was fitted on, where no schema has others
    columns: FittedColumns | None = None
    direct: DirectCall | None = None  # where tables are nothing but numbers

    @property
    def features(self) -> tuple[str, ...] | None:
        """The names of the columns that the model was fitted on, where it tells."""
        return None if self.columns is None else self.columns.names

    def __call__(self, points: Points | list[str], labels: Labels) -> Values:
        """Values, shape (n,)."""
        return self._chosen(self._columns(self._answer(points, labels), points, labels))

    def values_with_precision(
        self, points: Points | list[str], labels: Labels
    ) -> ValuesWithPrecision:
        """Values, with the precision in which the model computed."""
        answer = self._answer(points, labels)
        columns = self._columns(answer, points, labels)
        return self._chosen(columns), precision_of(answer)

    def _answer(self, points: Points | list[str], labels: Labels) -> object:
        direct = self.direct if isinstance(points, np.ndarray) else None
        if direct is not None and direct.is_known and len(points) <= ONE_THREAD:
            if self.columns is not None:
                self.columns.check(points, labels)  # type: ignore[arg-type]  # no text
            return direct.ask(points)  # type: ignore[arg-type]  # no text
        answer = self.method(self.table(points, labels))
        if direct is not None:
            direct.compare(points, answer)  # type: ignore[arg-type]
        return answer

    def _columns(
        self, answer: object, points: Points | list[str], labels: Labels
    ) -> Array:
        """What a model returned as a matrix (n, K) of our own."""
        array, n_rows = as_numbers(answer), len(points)
        if array.ndim not in (1, 2) or len(array) != n_rows:
            raise InvalidInput(
                f"the model returned shape {array.shape} for {n_rows} rows; expected "
                f"({n_rows},) or ({n_rows}, outputs); {ALL_ROWS} "
                f"lambda X: {_row_by_row(self.table(points, labels))}"
            )
        return array.reshape(n_rows, -1)

    def misfit(self, error: Exception, points: Any, labels: Labels) -> str:
        """What a model was given that fails, what it says, and what would do."""
        table = self.table(points, labels)
        said = f"{type(error).__name__}: {str(error).partition(_NEW_LINE)[0]}"
        came = f"{type(table).__name__} of {len(table)} rows"
        if isinstance(self.method, FewThreads):
            remedy = "give it a table like the one that it was fitted on"
        else:
            remedy = f"{ALL_ROWS} lambda X: {_row_by_row(table, error)}"
        return f"given a {came} it raises {said}; {remedy}"

    def _chosen(self, columns: Array) -> Values:
        n_columns = columns.shape[1]
        match self.output:
            case "log_odds":
                return _log_odds(columns, read_column(self.index, n_columns))
            case "margin" if n_columns == 1:  # two classes share one margin
                return -columns[:, 0] if self.index == 0 else columns[:, 0]
            case _:
                return columns[:, read_column(self.index, n_columns)]


def _row_by_row(table: object, error: Exception | None = None) -> str:
    """What asks f for one row at a time, with cells as it asked for them."""
    if isinstance(table, list):
        return "[f(text) for text in X]"
    if not isinstance(table, pd.DataFrame):
        return "np.apply_along_axis(f, 1, X)"
    named = not (isinstance(error, KeyError) and isinstance(error.args[0], int))
    return "X.apply(f, axis=1)" if named else "np.apply_along_axis(f, 1, X.to_numpy())"


def read_column(index: int | None, n_columns: int) -> int:
    """The column that is meant, among ``n_columns``."""
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
    """Log-odds log p_t − log Σ_{k≠t} p_k, which keep small 1 − p_t."""
    others = np.delete(probabilities, index, axis=1).sum(axis=1)
    with np.errstate(divide="ignore"):  # p = 0 or 1: infinite, and reported by its row
        log_odds: Values = np.log(probabilities[:, index]) - np.log(others)
    return log_odds
