"""The outputs of a model of trees in the conventions of ``shap``, and its tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import is_
from typing import Any, Self, final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from propopt.base.arrays import Array, Points, filled
from propopt.base.errors import InvalidInput
from propopt.base.text import Reason
from propopt.functions.function import Function
from propopt.functions.outputs import (
    FittedColumns,
    call_of,
    check_model,
    outputs_of,
)
from propopt.functions.wrapping import ReferenceTable, wrap_model
from propopt.shap.games import LogLoss, MarginLink, Probability, SquaredLoss
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.fitted_model import FittedModel, as_stored
from propopt.structures.kinds import class_name_of, fitted_value, is_a, name_of
from propopt.structures.readers.sklearn_trees import PathLengths
from propopt.tables.frames import Labels, as_frame, listed


# ---- Tables: frames, arrays, and the containers of boosting libraries


@final
@dataclass(frozen=True, eq=False)
class ShapTable:
    """Rows to explain: a frame or an array, and whether they were one row alone."""

    rows: Any  # (N, D)
    is_one: bool = False

    @classmethod
    def of(cls, X: Any, label: str = "X") -> Self:
        """The rows of a frame, an array, or a container of a boosting library."""
        if isinstance(X, pd.Series):
            return cls(X.to_frame().T.infer_objects(), is_one=True)
        if is_a(X, "xgboost.DMatrix"):
            return cls(_named(filled(X.get_data(), np.nan), X.feature_names))
        if is_a(X, "lightgbm.Dataset", "catboost.Pool"):
            return cls.of(_contents(X, label), label)
        frame = as_frame(X, label)
        if frame is not None:
            return cls(frame.table)
        array = X.toarray() if sp.issparse(X) else np.asarray(X)
        if array.ndim == 1:
            return cls(array[None], is_one=True)
        return cls(array)

    @property
    def array(self) -> Any:
        """The rows as an array, of numbers or cells."""
        rows = self.rows if self.frame is None else self.frame.to_numpy()
        return self.one([rows])

    def one(self, outputs: Sequence[Array]) -> Array:
        """Values of outputs as one array; of one row alone without the axis of rows."""
        values = stacked(outputs)
        return values[0] if self.is_one else values

    @property
    def frame(self) -> pd.DataFrame | None:
        """The rows if their columns have names."""
        return self.rows if isinstance(self.rows, pd.DataFrame) else None

    def for_model(self, model: TreeModel, label: str = "X") -> Self:
        """The same rows under the names that the model, or its table, has."""
        columns = FittedColumns.of(model.fitted)
        frame = self.frame
        if frame is None:
            columns.check(self.rows.shape[1], None, label)
            header = None if model.frame is None else [*model.frame.columns]
            return replace(self, rows=_named(self.rows, header))
        names = [*frame.columns]
        fitted = columns.names or ()
        is_named = not set(as_stored(names, fitted)).isdisjoint(fitted)
        if is_named or len(fitted) != len(names):
            if model.fitted.checks_columns:
                in_order = model.fitted.in_order(frame.columns)
                columns.check(len(in_order), in_order, label)
            return self
        warnings.warn(
            f"the model was fitted on {listed(fitted, 3)}, and {label} has "
            f"{listed(names, 3)}: columns are taken by position",
            stacklevel=3,
        )
        return replace(self, rows=frame.set_axis(list(fitted), axis=1))


def stacked(outputs: Sequence[Array]) -> Array:
    """Arrays of outputs as one, with a last axis of outputs if there are several."""
    return outputs[0] if len(outputs) == 1 else np.stack(outputs, axis=-1)


def _named(array: Array, names: Sequence[Any] | None) -> Any:
    return array if names is None else pd.DataFrame(array, columns=list(names))


def _contents(X: Any, label: str) -> Any:
    """The rows inside a Dataset of LightGBM or a Pool of CatBoost."""
    reason = "it has freed its rows"
    if is_a(X, "lightgbm.Dataset"):
        rows = X.data
    else:
        names = X.get_feature_names()
        try:
            rows = _named(X.get_features(), names if all(names) else None)
        except Exception as error:  # noqa: BLE001  # a class of its own in the library
            rows = None
            reason = str(error)
    if rows is None:
        raise InvalidInput(
            f"{label}: {class_name_of(X)} does not return its rows: {reason}; give the "
            "table that it was made of"
        )
    return rows


# ---- Outputs of a model


def targets_of(
    fitted: FittedModel, classes: Any, call: Callable[[], object]
) -> list[Any]:
    """The positions of labels, or classes, or positions of outputs at a row."""
    if fitted.labels is not None:
        return list(range(len(fitted.labels)))
    if classes is not None:
        return np.asarray(classes).tolist()
    count = np.asarray(call()).size
    return [None] if count == 1 else list(range(count))


def functions_of(
    fitted: FittedModel, targets: Sequence[Any], kind: Any, table: Any
) -> tuple[Function, ...]:
    """Each output as a function of a table."""
    rest = None, None, None, ReferenceTable(table, model=fitted), None
    return tuple(wrap_model(fitted, target, kind, *rest) for target in targets)


class NoTrees(InvalidInput):
    """A model is no sum of trees, or only for a table with its categories."""


@final
@dataclass(frozen=True, eq=False)
class TreeModel:
    """A model of trees and its raw outputs, as ``explainer.model`` has them.

    Raw are the margins of boosted models, with the log-odds of two classes as one
    output; the probabilities of all classes of other classifiers; and predictions.
    """

    fitted: FittedModel
    # rows that define columns and categories; None for arrays
    frame: pd.DataFrame | None = None

    @classmethod
    def of(cls, model: Any) -> Self:
        """Read a model; an isolation forest is the mean length of its paths."""
        forest = fitted_value(model, "detector_", model)  # inside of an IForest of pyod
        if is_a(forest, "sklearn.IsolationForest"):
            check_model(FittedModel.of(forest))
            model = PathLengths(forest)
        return cls(FittedModel.of(model))

    @property
    def name(self) -> str:
        """The name of its class."""
        return name_of(self.fitted.final)

    @property
    def original_model(self) -> Any:
        """The model as its library has it."""
        return self.fitted.native

    @cached_property
    def kind(self) -> Any:
        """The raw output: "margin", "probability" or "value"."""
        available = outputs_of(self.fitted)
        if self.fitted.margin is not None or available[0] == "margin":
            return "margin"
        return available[0]

    @cached_property
    def targets(self) -> list[Any]:
        """The class, or the position, of each raw output; None for a single one."""
        classes = None if self.kind == "value" else self.fitted.classes
        if self.kind == "margin" and classes is not None and len(classes) == 2:
            classes = classes[1:]
        call, _ = call_of(self.fitted, self.kind)
        try:
            return targets_of(self.fitted, classes, lambda: call(self._some_row))
        except Exception as error:
            if self.frame is not None:
                raise
            raise self._no_trees("its categories are those of a table") from error

    @property
    def _some_row(self) -> Any:
        """A row of its input table."""
        if self.frame is not None:
            return self.frame.iloc[:1][self.fitted.in_order(self.frame.columns)]
        view = self.fitted.structure(self.kind).view
        assert view is not None, "models of trees record their columns"
        return view.transform(view.start[None])

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Each raw output as a function of the table."""
        return functions_of(self.fitted, self.targets, self.kind, self.frame)

    @cached_property
    def boxes(self) -> tuple[Boxes, ...]:
        """Each raw output as a sum of trees; the error has the reason if it is none."""
        boxes = []
        for function in self.functions:
            if function.boxes is None:
                read = function.products
                words = read.reason if isinstance(read, Reason) else "it has products"
                raise self._no_trees(words)
            boxes.append(function.boxes)
        return tuple(boxes)

    def refuse_others(self) -> None:
        """Refuse models of classes that are never read as trees."""
        check_model(self.fitted)
        rules = self.fitted.at_core.rules
        if rules.trees is None and rules.sum is None:
            raise self._no_trees(rules.inexact or "its class has no reader of trees")

    def _no_trees(self, reason: str) -> NoTrees:
        return NoTrees(
            f"model: {self.name} is not read as a sum of trees: {reason}; "
            "propopt.shap.Explainer(model, data) explains any model"
        )

    @property
    def is_readable(self) -> bool:
        """True if the trees are available; those of categories need a table."""
        try:
            return len(self.boxes) > 0
        except NoTrees:
            return False

    @property
    def num_outputs(self) -> int:
        """How many raw outputs there are."""
        return len(self.targets)

    @property
    def tree_limit(self) -> int:
        """How many trees the model uses, in all outputs."""
        first = self.boxes[0].trees
        trees = () if first is None else first.trees
        return sum(len(tree.roots) for tree in trees) * self._n_sums

    @property
    def _n_sums(self) -> int:
        """How many outputs have trees of their own; classes of a forest share them."""
        return self.num_outputs if self.kind == "margin" else 1

    def limited(self, tree_limit: int | None) -> tuple[Boxes, ...]:
        """The outputs with the first trees: with K sums ``tree_limit // K`` of each."""
        if not self.is_limited(tree_limit):
            return self.boxes
        assert tree_limit is not None, "see is_limited"
        count = tree_limit // self._n_sums
        sums = [one.trees for one in self.boxes if one.trees is not None]
        return tuple(one.first(count).boxes() for one in sums)

    def is_limited(self, tree_limit: int | None) -> bool:
        """True for fewer trees than the model has."""
        return tree_limit is not None and 0 <= tree_limit < self.tree_limit

    @property
    def is_prediction(self) -> bool:
        """True if ``predict`` returns the raw output."""
        return self.functions[0].quantity.kind == "value"

    @property
    def probability(self) -> MarginLink | Reason:
        """The probability of the second class as a function of the margin."""
        factor = self._logit_factor
        if factor is None:
            return Reason(
                "it is no function of one margin; po.explain(model, X, data=data, "
                "output='probability') computes its Shapley values"
            )
        return Probability(factor)

    @property
    def loss(self) -> MarginLink | Reason:
        """The loss as a function of the raw output."""
        if self._logit_factor is not None:
            return LogLoss(self._logit_factor)
        if self.num_outputs == 1 and self.is_prediction:
            return SquaredLoss()
        return Reason(
            "a loss is explained for one margin of two classes, or one number"
        )

    @property
    def _logit_factor(self) -> float | None:
        """The factor from one margin to the log-odds of the second of two classes."""
        if self.kind != "margin" or self.num_outputs > 1:
            return None
        if self.functions[0].quantity.kind in ("log_odds", "logit"):
            return 1.0
        return None if self.fitted.classes is None else self.fitted.logit_of_margin

    def for_table(self, table: ShapTable) -> TreeModel:
        """The same model for the columns and the categories of a table."""
        frame = table.frame
        if frame is None:
            return self
        if self.frame is None:
            return TreeModel(self.fitted, frame)
        wide = tuple(one.with_categories_of(frame) for one in self.functions)
        if all(map(is_, wide, self.functions)):
            return self
        model = TreeModel(self.fitted, self.frame)
        vars(model).update(functions=wide)
        return model

    def read(self, table: ShapTable, label: str = "X") -> tuple[Points, Labels]:
        """The rows of a table as numbers and codes, with their names."""
        return self.functions[0].read(table.rows, label)

    def predict(
        self, X: Any, y: Any = None, output: Any = None, tree_limit: int | None = None
    ) -> Array:
        """The raw outputs at rows, (N,) or (N, K), of the first trees if limited."""
        del y, output
        table = ShapTable.of(X).for_model(self)
        model = self.for_table(table)
        points, labels = model.read(table)
        if model.is_limited(tree_limit):
            values = [one.value(points) for one in model.limited(tree_limit)]
        else:
            values = [one.value_at(points, labels) for one in model.functions]
        return stacked(values)
