"""Models of a problem file: what they can learn and give, and how they are fitted."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.multiclass import check_classification_targets

from propopt.errors import InvalidInput
from propopt.functions import Function, wrap
from propopt.functions.models.outputs import read_class, read_output
from propopt.memory import require_memory
from propopt.problems.explained import Data, Model
from propopt.problems.schema import ProblemSchema
from propopt.problems.section import MOST_NUMBERS
from propopt.problems.source import Source
from propopt.tables.schema import Groups, TableSchema
from propopt.threads import threads_of_run


TaskKind: TypeAlias = Literal["classification", "regression"]

TASKS: dict[str, TaskKind] = {
    "breast_cancer": "classification",
    "diabetes": "regression",
    "digits": "classification",
    "iris": "classification",
    "wine": "classification",
}
WEIGHT_COPIES = 42
"""Of all weights: ten pairs of steps and changes, and what each step needs."""


def check_learning(
    schema: ProblemSchema,
    spec: Model,
    target: pd.Series[Any],
    n_columns: int,
    source: Source,
) -> None:
    """Refuse a target that a model cannot learn, and an output that it cannot give.

    Parameters
    ----------
    schema, spec, source
        The file, and its section on the model.
    target : Series
        Of the rows to fit on.
    n_columns : int
        Of these rows.

    Raises
    ------
    ProblemFileError
        With the line of the model.
    """
    estimator = _estimator(spec, _task(schema, spec, source), schema.seed)
    with source.blaming("model"):
        read_output(estimator, spec.output)
        if is_classifier(estimator):
            labels = _classes(target)
        else:
            labels = [None]  # one output
            _check_regression(target, spec)
    if spec.kind == "mlp":
        with source.blaming("model", "hidden"):
            _check_network((n_columns, *spec.hidden, len(labels)), len(target))
    if is_classifier(estimator):
        with source.blaming("model"):
            read_class(labels, spec.target_class)


def _check_network(widths: tuple[int, ...], n_rows: int) -> None:
    """What L-BFGS keeps of the parameters, and what each layer keeps of the rows."""
    n_weights = sum((1 + one) * other for one, other in pairwise(widths))
    if n_weights > MOST_NUMBERS:
        raise InvalidInput(
            f"expected at most {MOST_NUMBERS:,} weights, got {n_weights:,}"
        )
    n_bytes = 8.0 * (WEIGHT_COPIES * n_weights + 3 * n_rows * sum(widths))
    require_memory(n_bytes, "a network of this size", "make `hidden` smaller")


def _classes(target: pd.Series[Any]) -> list[Any]:
    """The labels of a classifier, as it will know them."""
    try:
        check_classification_targets(target)
    except ValueError as error:  # such as measurements
        raise InvalidInput(_not_fitted(target, error)) from None
    labels = np.unique(target.to_numpy()).tolist()
    if len(labels) < 2:
        why = f"a classifier needs two classes, and these rows have {labels[0]!r} alone"
        raise InvalidInput(_not_fitted(target, why))
    return labels


def _check_regression(target: pd.Series[Any], spec: Model) -> None:
    if spec.target_class is not None:
        raise InvalidInput("target_class has no effect with regression")
    if not pd.api.types.is_numeric_dtype(target):
        why = "a regression needs numbers, and some are text"
        raise InvalidInput(_not_fitted(target, why))
    if not np.isfinite(target.to_numpy(dtype=float)).all():
        raise InvalidInput(_not_fitted(target, "some values are infinite"))


def _not_fitted(target: pd.Series[Any], why: object) -> str:
    return f"cannot be fitted to the target {target.name!r}: {why}"


def _task(schema: ProblemSchema, spec: Model, source: Source) -> TaskKind | None:
    task = spec.task or TASKS.get(schema.data.sklearn or "")
    if spec.kind == "mlp" and task is None:
        raise source.error(
            ("model",), "required for an mlp on a csv, and missing", missing="task"
        )
    return task


def fitted_function(
    schema: ProblemSchema,
    table: pd.DataFrame,
    target: pd.Series[Any],
    source: Source,
) -> Function:
    """The model of a problem file, fitted to rows and their target, and wrapped."""
    data, spec = schema.data, schema.model
    assert spec is not None
    estimator = _estimator(spec, _task(schema, spec, source), schema.seed)
    model = make_pipeline(_columns(data.categorical), estimator)
    with source.blaming("model"):
        try:
            with threads_of_run(len(table)):
                model.fit(table, target)
        except ValueError as error:  # such as numbers whose squares are too large
            raise InvalidInput(_not_fitted(target, error)) from None
        columns = _columns_of(data, table)
        return wrap(model, spec.target_class, spec.output, data=columns)


def _columns(categorical: list[str]) -> Any:
    """What makes numbers of the same size from the columns of a table."""
    if not categorical:
        return StandardScaler()
    # a category that occurs only in rows to explain has no indicator
    encoder = OneHotEncoder(handle_unknown="ignore")
    categories = ("categories", encoder, categorical)
    return ColumnTransformer([categories], remainder=StandardScaler())


def _columns_of(data: Data, table: pd.DataFrame) -> TableSchema | None:
    """What :func:`propopt.wrap` is told of the columns, if any is not a number."""
    if not (data.categorical or data.groups):
        return None
    groups: Groups = dict(data.groups.items())
    return TableSchema.of(table, data.categorical, groups)


def _estimator(spec: Model, task: TaskKind | None, seed: int) -> Any:
    if spec.kind == "linear":
        return LinearRegression()
    if spec.kind == "logistic":
        strength = spec.regularization
        return LogisticRegression(
            C=1 / strength if strength else np.inf, max_iter=10_000
        )
    kind = MLPClassifier if task == "classification" else MLPRegressor
    return kind(
        hidden_layer_sizes=tuple(spec.hidden),
        activation=spec.activation,
        alpha=spec.regularization,
        solver="lbfgs",  # tables are small: it converges, and depends on chance least
        max_iter=20_000,
        random_state=seed,
    )
