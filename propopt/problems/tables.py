"""The points of a problem file, and the function to explain at them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

from propopt._typing import Points
from propopt.checks import did_you_mean
from propopt.errors import InvalidInput
from propopt.functions import PAPER_FUNCTIONS, Function, Power
from propopt.graphs import grid
from propopt.graphs.grid_points import grid_size
from propopt.problems.csv_tables import CsvTable
from propopt.problems.explained import Data, Formula, Uniform
from propopt.problems.extent import (
    Extent,
    check_explain,
    check_extent,
    extent_of_formula,
)
from propopt.problems.learning import TASKS, check_learning, fitted_function
from propopt.problems.parts import Location
from propopt.problems.schema import ProblemSchema
from propopt.problems.source import Source
from propopt.tables.schema import Groups, TableSchema


LARGEST = 1e100
"""Of the numbers of a table: their squares do not overflow."""
_LOADERS = {name: getattr(datasets, f"load_{name}") for name in TASKS}


@dataclass(frozen=True, eq=False)
class Rows:
    """A table as it is read.

    Parameters
    ----------
    features : DataFrame
        All rows, or the first.
    target : Series
        Of all rows.
    """

    features: pd.DataFrame
    target: pd.Series[Any]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to explain and rows to fit a model on, in one scale."""

    explained: pd.DataFrame
    fitted: pd.DataFrame
    target: pd.Series


@dataclass(frozen=True, eq=False)
class Subject:
    """What a problem file explains.

    Parameters
    ----------
    points : array or DataFrame (N, D)
        X.
    others : array or DataFrame (M, D)
        The rows that are not explained; all of X where every row is.
    columns : TableSchema or None
        What the columns hold, where some are categories.
    make : callable
        Gives the function, and fits it if it is a model.
    """

    points: Any
    others: Any
    columns: TableSchema | None
    make: Callable[[], Function]

    @property
    def n_rows(self) -> int:
        """Of the larger of the two tables."""
        return max(len(self.points), len(self.others))

    @property
    def n_features(self) -> int:
        """How many attributions each point gets."""
        return self.points.shape[1] if self.columns is None else len(self.columns.names)

    @cached_property
    def coordinates(self) -> Any:
        """Where the points lie, (N, M): X, with categories one-hot over √2."""
        if self.columns is None:
            return self.points
        return self.columns.coordinates(self.points, scale=None)

    @cached_property
    def function(self) -> Function:
        """The function f, made when it is first asked for."""
        return self.make()


def read_explained(schema: ProblemSchema, source: Source) -> Subject:
    """Points and a function, as a problem file describes them."""
    rows, data = check_explained(schema, source, None), schema.data
    table = None if rows is None else _split(rows, data, schema.seed)
    if isinstance(schema.explained, Formula):
        make = partial(formula, schema.explained)
        return Subject(*_known_points(data, schema.seed, table), None, make)
    assert table is not None  # a model has one, by the schema
    columns = None
    if data.categorical or data.groups:
        columns = _columns(table.fitted, data, source)
    make = partial(fitted_function, schema, table.fitted, table.target, source)
    return Subject(table.explained, table.fitted, columns, make)


def check_explained(
    schema: ProblemSchema, source: Source, n_rows: int | None
) -> Rows | None:
    """Refuse what cannot be explained, as far as that shows before anything is fitted.

    Parameters
    ----------
    schema, source
        The file.
    n_rows : int or None
        So many rows of a CSV are read, from the first, and of its target all; None is
        all rows.

    Returns
    -------
    Rows or None
        What was read of the table, if there is one.

    Raises
    ------
    ProblemFileError
        For tables, columns, targets and outputs that cannot be, and for sizes that do
        not fit each other.
    """
    data = schema.data
    if data.grid is not None or data.uniform is not None:
        check_extent(schema, extent_of_formula(data, source), source)
        return None
    rows = _sklearn(data) if data.csv is None else _csv(data, source, n_rows)
    features, target = rows.features, rows.target
    check_explain(data, len(target), source)
    n_columns = features.shape[1]
    n_features = len(_columns(features, data, source).names)
    extent = Extent.of(data, len(target), n_columns, n_features)
    check_extent(schema, extent, source)
    if schema.model is not None:
        learned = target.iloc[_order(schema.seed, len(target))[data.explain or 0 :]]
        check_learning(schema, schema.model, learned, n_columns, source)
    return rows


def first_points(schema: ProblemSchema, rows: Rows | None, count: int) -> Any:
    """Some of the points, the last of a whole grid among them."""
    data = schema.data
    if rows is not None:
        first = rows.features[:count]
        return _standardized(first, first, data)[0] if data.standardize else first
    if data.uniform is not None:
        points = min(data.uniform.points, count)
        return _uniform(data.uniform.model_copy(update={"points": points}), schema.seed)
    assert data.grid is not None
    ends = data.grid.model_dump()
    total = grid_size(data.grid.per_dimension, data.grid.dimensions, data.grid.first)
    some = grid(**(ends | {"first": min(total, count)}))
    last = np.full((int(data.grid.first is None), data.grid.dimensions), data.grid.high)
    return np.concatenate([some, last])


def _columns(table: pd.DataFrame, data: Data, source: Source) -> TableSchema:
    groups: Groups = dict(data.groups.items())
    with source.blaming("data"):
        return TableSchema.of(table, data.categorical, groups)


def _known_points(data: Data, seed: int, table: Table | None) -> tuple[Any, Any]:
    """Rows to explain and the others, for a function that learns nothing."""
    if table is not None:
        return table.explained, table.fitted
    if data.grid is not None:
        points = grid(**data.grid.model_dump())
        return points, points
    assert data.uniform is not None
    points = _uniform(data.uniform, seed)
    count = data.explain
    return (points, points) if count is None else (points[:count], points[count:])


def _uniform(spec: Uniform, seed: int) -> Points:
    shape = (spec.points, spec.dimensions)
    return np.random.default_rng(seed).uniform(spec.low, spec.high, shape)


def formula(spec: Formula) -> Function:
    """The named function of the paper."""
    return Power(spec.degree) if spec.degree else PAPER_FUNCTIONS[spec.name]()


def _order(seed: int, n_rows: int) -> Any:
    return np.random.default_rng(seed).permutation(n_rows)


def _split(rows: Rows, data: Data, seed: int) -> Table:
    """Shuffle a table by the seed, split and scale it."""
    order, count = _order(seed, len(rows.target)), data.explain
    features, target = rows.features.iloc[order], rows.target.iloc[order]
    explained = fitted = features
    if count is not None:
        explained, fitted = features.iloc[:count], features.iloc[count:]
        target = target.iloc[count:]
    if data.standardize:
        explained, fitted = _standardized(explained, fitted, data)
    return Table(explained, fitted, target)


def _standardized(
    explained: pd.DataFrame, fitted: pd.DataFrame, data: Data
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables, their numeric columns with mean 0 and variance 1 in the second."""
    numbers = _measured(fitted, data)
    scaler = StandardScaler().set_output(transform="pandas").fit(fitted[numbers])
    scaled = [
        _joined(scaler.transform(table[numbers]), table.drop(columns=numbers))[
            list(table)
        ]
        for table in (explained, fitted)
    ]
    return scaled[0], scaled[1]


def _measured(table: pd.DataFrame, data: Data) -> list[str]:
    """The columns that neither are categories nor encode one."""
    one_hot = [column for group in data.groups.values() for column in group]
    return [c for c in map(str, table) if c not in (*data.categorical, *one_hot)]


def _sklearn(data: Data) -> Rows:
    bunch = _LOADERS[str(data.sklearn)](as_frame=True)
    target = bunch.target
    if data.sklearn in ("breast_cancer", "iris", "wine"):
        target = target.map(dict(enumerate(map(str, bunch.target_names))))
    return Rows(bunch.data, target)


def _csv(data: Data, source: Source, n_rows: int | None) -> Rows:
    with source.blaming("data", "csv"):
        table = CsvTable.of(source.path.parent / str(data.csv))
        _check_target(table, data, source)
        frame = table.read(n_rows=n_rows)
        if data.target is None:  # a formula learns nothing
            features, target = frame, pd.Series(np.zeros(table.n_rows))
        else:
            features = frame.drop(columns=data.target)
            target = table.read([data.target])[data.target]
    missing = int(target.isna().sum())
    if missing:
        raise source.error(("data", "target"), f"{missing} values are missing")
    return Rows(_features(features, data, source), target)


def _check_target(table: CsvTable, data: Data, source: Source) -> None:
    if data.target is not None and data.target not in table.columns:
        raise source.error(
            ("data", "target"),
            f"{table.path.name} has no column {data.target!r}"
            f"{did_you_mean(data.target, table.columns)}; "
            f"it has {', '.join(table.columns)}",
        )
    if table.columns == (data.target,):
        raise source.error(
            ("data", "csv"), f"{table.path.name} has no column beside the target"
        )


def _features(table: pd.DataFrame, data: Data, source: Source) -> pd.DataFrame:
    """The columns as numbers, or categories where declared, none of them missing."""
    _check_declared(table, data, source)
    if data.standardize and not _measured(table, data):
        raise source.error(("data", "standardize"), "there is no numeric column")
    numbers = [c for c in table if c not in data.categorical]
    with source.blaming("data", "csv"):
        _check_numeric(table[numbers])
        floats, categories = table[numbers].astype(float), table[data.categorical]
        sizes = np.abs(floats.to_numpy(dtype=float)).max(axis=0, initial=0)
        incomplete = [*floats.columns[~np.isfinite(sizes)]]
        incomplete += categories.columns[categories.isna().any()].tolist()
        if incomplete:
            raise InvalidInput(
                "columns must be complete, and in these are values missing or "
                f"infinite: {', '.join(incomplete)}"
            )
        large = floats.columns[sizes > LARGEST]
        if len(large):
            raise InvalidInput(
                f"numbers must lie within ±{LARGEST:g}, and in these columns some are "
                f"larger: {', '.join(large)}"
            )
    return _joined(floats, categories.astype("category"))[list(table)]


def _check_numeric(table: pd.DataFrame) -> None:
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes]
    text = table.columns[~np.array(numeric, dtype=bool)]
    if len(text):
        column = table[text[0]]
        strange = column[pd.to_numeric(column, errors="coerce").isna() & column.notna()]
        example = f"; {text[0]} holds {strange.iloc[0]!r:.60}" if len(strange) else ""
        raise InvalidInput(
            "columns must be numeric, or be named in data.categorical, and these are "
            f"not: {', '.join(text)}{example}"
        )


def _joined(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """The columns of both; far faster than column by column where there are many."""
    return pd.concat([one, other], axis=1)


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
