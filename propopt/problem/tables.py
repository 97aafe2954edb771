"""The points of a problem file, and the function to explain at them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from pandas.errors import EmptyDataError, ParserError
from sklearn import datasets
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from propopt._typing import Points
from propopt.errors import InvalidInput
from propopt.functions import PAPER_FUNCTIONS, Function, Power, grid, wrap
from propopt.memory import memory_refusal
from propopt.problem.explained import Data, Formula, Model, Uniform
from propopt.problem.reading import Location, Source, did_you_mean
from propopt.problem.schema import ProblemSchema
from propopt.threads import threads_of_run


TaskKind: TypeAlias = Literal["classification", "regression"]

_TASKS: dict[str, TaskKind] = {
    "breast_cancer": "classification",
    "diabetes": "regression",
    "digits": "classification",
    "iris": "classification",
    "wine": "classification",
}
PARAMETER_COPIES = 42
"""Of all parameters: ten pairs of steps and changes, and what each step needs."""

_LOADERS = {name: getattr(datasets, f"load_{name}") for name in _TASKS}


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to explain and rows to fit a model on, in one scale."""

    explained: pd.DataFrame
    fitted: pd.DataFrame
    target: pd.Series


@dataclass(frozen=True, eq=False)
class Explained:
    """What a problem file explains.

    Parameters
    ----------
    points : array or DataFrame (N, D)
        X.
    others : array or DataFrame (M, D)
        The rows that are not explained; all of X where every row is.
    function : Function
        f.
    """

    points: Any
    others: Any
    function: Function

    @property
    def n_rows(self) -> int:
        """Of the larger of the two tables."""
        return max(len(self.points), len(self.others))


def read_explained(schema: ProblemSchema, source: Source) -> Explained:
    """Points and a function, as a problem file describes them."""
    explained, data = schema.explained, schema.data
    if isinstance(explained, Formula):
        points, others = _known_points(data, schema.seed, source)
        return Explained(points, others, formula(explained))
    table = read_table(data, schema.seed, source)
    function = fitted_function(schema, explained, table, source)
    return Explained(table.explained, table.fitted, function)


def _known_points(data: Data, seed: int, source: Source) -> tuple[Any, Any]:
    """Rows to explain and the others, for a function that learns nothing."""
    if data.grid is not None:
        points = grid(**data.grid.model_dump())
        return points, points
    if data.uniform is not None:
        points = _uniform(data.uniform, seed, source)
        count = _n_explained(data, len(points), source)
        return (points, points) if count is None else (points[:count], points[count:])
    table = read_table(data, seed, source)
    return table.explained, table.fitted


def _uniform(spec: Uniform, seed: int, source: Source) -> Points:
    shape = (spec.points, spec.dimensions)
    refusal = memory_refusal(
        8.0 * spec.points * spec.dimensions, "these points", "take fewer"
    )
    if refusal is not None:
        raise source.error(("data", "uniform"), refusal)
    return np.random.default_rng(seed).uniform(spec.low, spec.high, shape)


def formula(spec: Formula) -> Function:
    """The named function of the paper."""
    return Power(spec.degree) if spec.degree else PAPER_FUNCTIONS[spec.name]()


def read_table(data: Data, seed: int, source: Source) -> Table:
    """Load, shuffle by the seed, split and scale a table."""
    features, target = _csv(data, source) if data.csv is not None else _sklearn(data)
    order = np.random.default_rng(seed).permutation(len(features))
    features, target = features.iloc[order], target.iloc[order]
    count = _n_explained(data, len(features), source)
    explained = fitted = features
    if count is not None:
        explained, fitted = features.iloc[:count], features.iloc[count:]
        target = target.iloc[count:]
    if data.standardize:
        explained, fitted = _standardized(explained, fitted, data)
    return Table(explained, fitted, target)


def _n_explained(data: Data, n_rows: int, source: Source) -> int | None:
    """How many rows are explained; None is all of them."""
    if data.explain is not None and data.explain >= n_rows:
        raise source.error(
            ("data", "explain"),
            f"expected fewer than the {n_rows} rows there are, so that some are left "
            f"to fit on, got {data.explain}",
        )
    return data.explain


def _standardized(
    explained: pd.DataFrame, fitted: pd.DataFrame, data: Data
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables, their numeric columns with mean 0 and variance 1 in the second."""
    one_hot = [column for group in data.groups.values() for column in group]
    numbers = [c for c in fitted if c not in (*data.categorical, *one_hot)]
    scaler = StandardScaler().set_output(transform="pandas").fit(fitted[numbers])
    scaled = [
        table.assign(**scaler.transform(table[numbers]))
        for table in (explained, fitted)
    ]
    return scaled[0], scaled[1]


def fitted_function(
    schema: ProblemSchema, spec: Model, table: Table, source: Source
) -> Function:
    """The model of a problem file, fitted and wrapped."""
    task = spec.task or _TASKS.get(schema.data.sklearn or "")
    if spec.kind == "mlp" and task is None:
        raise source.error(
            ("model",), "required for an mlp on a csv, and missing", missing="task"
        )
    data = schema.data
    columns = _columns(data.categorical)
    _refuse_large_network(spec, table, source)
    model = make_pipeline(columns, _estimator(spec, task, schema.seed))
    try:
        with threads_of_run(len(table.fitted)):
            model.fit(table.fitted, table.target)
    except ValueError as error:  # such as text where a regression needs numbers
        message = f"cannot be fitted to the target {table.target.name!r}: {error}"
        raise source.error(("model",), message) from None
    try:
        return wrap(model, spec.target_class, spec.output, **_declared(data, table))
    except InvalidInput as error:
        raise source.error(("model",), str(error)) from error


def _columns(categorical: list[str]) -> Any:
    """What makes numbers of the same size from the columns of a table."""
    if not categorical:
        return StandardScaler()
    # a category that occurs only in rows to explain has no indicator
    encoder = OneHotEncoder(handle_unknown="ignore")
    categories = ("categories", encoder, categorical)
    return ColumnTransformer([categories], remainder=StandardScaler())


def _declared(data: Data, table: Table) -> dict[str, Any]:
    """What :func:`propopt.wrap` is told of the columns, if any is not a number."""
    if not (data.categorical or data.groups):
        return {}
    return {
        "data": table.fitted,
        "categorical": data.categorical or "auto",
        "groups": data.groups or None,
    }


def _refuse_large_network(spec: Model, table: Table, source: Source) -> None:
    """What L-BFGS keeps of the parameters, and what each layer keeps of the rows."""
    if spec.kind != "mlp":
        return
    n_rows, n_features = table.fitted.shape
    widths = [n_features, *spec.hidden, 1]
    n_parameters = sum((1 + m) * n for m, n in pairwise(widths))
    n_bytes = 8.0 * (PARAMETER_COPIES * n_parameters + 3 * n_rows * sum(widths))
    refusal = memory_refusal(n_bytes, "a network of this size", "make `hidden` smaller")
    if refusal is not None:
        raise source.error(("model", "hidden"), refusal)


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


def _sklearn(data: Data) -> tuple[pd.DataFrame, pd.Series]:
    bunch = _LOADERS[str(data.sklearn)](as_frame=True)
    target = bunch.target
    if data.sklearn in ("breast_cancer", "iris", "wine"):
        target = target.map(dict(enumerate(map(str, bunch.target_names))))
    return bunch.data, target


def _csv(data: Data, source: Source) -> tuple[pd.DataFrame, pd.Series]:
    path = source.path.parent / str(data.csv)
    if not path.is_file():
        raise source.error(("data", "csv"), f"there is no file {path}")
    frame = _read_csv(path, source)
    columns = [str(column) for column in frame]
    if data.target is None:  # a formula learns nothing
        return _features(frame, data, source), pd.Series(np.zeros(len(frame)))
    if data.target not in columns:
        hint = did_you_mean(data.target, columns)
        raise source.error(
            ("data", "target"),
            f"{path.name} has no column {data.target!r}{hint}; "
            f"it has {', '.join(columns)}",
        )
    target = frame[data.target]
    if target.isna().any():
        raise source.error(
            ("data", "target"), f"{target.isna().sum()} values are missing"
        )
    return _features(frame.drop(columns=data.target), data, source), target


def _read_csv(path: Path, source: Source) -> pd.DataFrame:
    try:
        frame = pd.read_csv(path)
    except (ParserError, EmptyDataError, UnicodeDecodeError) as error:
        raise source.error(
            ("data", "csv"), f"{path} is not a CSV table: {error}"
        ) from None
    if frame.empty:
        raise source.error(("data", "csv"), f"{path} has no rows")
    return frame


def _features(table: pd.DataFrame, data: Data, source: Source) -> pd.DataFrame:
    """The columns as numbers, or categories where declared, none of them missing."""
    _check_declared(table, data, source)
    numbers = [c for c in table if c not in data.categorical]
    text = [str(c) for c in numbers if not pd.api.types.is_numeric_dtype(table[c])]
    if text:
        raise source.error(
            ("data", "csv"),
            "columns must be numeric, or be named in data.categorical, and these are "
            f"not: {', '.join(text)}",
        )
    gaps = [str(c) for c in numbers if not np.isfinite(table[c]).all()]
    gaps += [c for c in data.categorical if table[c].isna().any()]
    if gaps:
        raise source.error(
            ("data", "csv"),
            f"columns must be complete, and in these are values missing or infinite: "
            f"{', '.join(gaps)}",
        )
    kinds = dict.fromkeys(numbers, "float") | dict.fromkeys(
        data.categorical, "category"
    )
    return table.astype(kinds)


def _check_declared(table: pd.DataFrame, data: Data, source: Source) -> None:
    """Refuse categories and groups of columns that are not there."""
    known = [str(column) for column in table]
    declared: list[tuple[Location, list[str]]] = [
        (("data", "categorical"), data.categorical),
        *((("data", "groups", name), group) for name, group in data.groups.items()),
    ]
    for location, columns in declared:
        for column in columns:
            if column not in known:
                raise source.error(
                    location,
                    f"there is no column {column!r}{did_you_mean(column, known)}; "
                    f"there are {', '.join(known)}",
                )
