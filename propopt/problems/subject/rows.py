"""Tables of a problem file: rows as they are read, and as they are explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

from propopt.checks import did_you_mean
from propopt.problems.sources.base import Faults, Source
from propopt.problems.subject.columns import check_declared, joined, read_columns
from propopt.problems.subject.csv_tables import CsvTable
from propopt.problems.subject.data import Data


@dataclass(frozen=True, eq=False)
class Rows:
    """A table as it is read.

    Parameters
    ----------
    features : DataFrame or Series
        All rows, or the first; all documents where there are such.
    n_rows : int
        How many there are.
    target : Series or None
        Of all rows; None where no column is to be learned.
    """

    features: Any
    n_rows: int
    target: pd.Series[Any] | None


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to explain and rows to fit on, in one scale, with their targets.

    Both are one table where all rows are explained.
    """

    explained: Any
    fitted: Any
    target: pd.Series[Any] | None
    fitted_target: pd.Series[Any] | None


def read_rows(data: Data, source: Source, n_rows: int | None) -> Rows:
    """The table of a problem file.

    Parameters
    ----------
    data, source
        The section, and its file.
    n_rows : int or None
        So many rows of a CSV are read, from the first, and of its target all; None is
        all rows.

    Raises
    ------
    ProblemFileError
        For tables, columns and targets that cannot be.
    """
    return _of_sklearn(data) if data.csv is None else _of_csv(data, source, n_rows)


def order_of_rows(seed: int, n_rows: int) -> Any:
    """The shuffled rows: those to explain come first."""
    return np.random.default_rng(seed).permutation(n_rows)


def split(rows: Rows, data: Data, seed: int) -> Split:
    """Shuffle a table by the seed, split and scale it."""
    order, count = order_of_rows(seed, rows.n_rows), data.explain
    features = rows.features.iloc[order]
    target = None if rows.target is None else rows.target.iloc[order]
    explained = fitted = features
    fitted_target = target
    if count is not None:
        explained, fitted = features.iloc[:count], features.iloc[count:]
        if target is not None:
            target, fitted_target = target.iloc[:count], target.iloc[count:]
    if data.standardize:
        explained, fitted = standardized(explained, fitted, data)
    if count is None:
        fitted = explained
    return Split(explained, fitted, target, fitted_target)


def standardized(
    explained: pd.DataFrame, fitted: pd.DataFrame, data: Data
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables, their numeric columns with mean 0 and variance 1 in the second."""
    numbers = data.numeric(fitted)
    scaler = StandardScaler().set_output(transform="pandas").fit(fitted[numbers])
    scaled = [
        joined(scaler.transform(table[numbers]), table.drop(columns=numbers))[
            list(table)
        ]
        for table in (explained, fitted)
    ]
    return scaled[0], scaled[1]


def _of_sklearn(data: Data) -> Rows:
    bunch = getattr(datasets, f"load_{data.sklearn}")(as_frame=True)
    target = bunch.target
    if data.sklearn in ("breast_cancer", "iris", "wine"):
        target = target.map(dict(enumerate(map(str, bunch.target_names))))
    return Rows(bunch.data, len(bunch.data), target)


def _of_csv(data: Data, source: Source, n_rows: int | None) -> Rows:
    faults, target = Faults(), None
    with source.blaming("data", "csv"):
        table = CsvTable.of(source.path.parent / str(data.csv))
        for key, column in (("target", data.target), ("text", data.text)):
            with faults.noted():
                _check_column(key, column, table, source)
        with faults.noted():
            others = [column for column in table.columns if column != data.target]
            check_declared(others, data, source)
        faults.refuse()
        features = _features(table, data, source, n_rows)
        if data.target is not None:  # a formula learns nothing
            target = table.read([data.target])[data.target]
    missing = 0 if target is None else int(target.isna().sum())
    with faults.noted():
        if missing:
            raise source.error(("data", "target"), f"{missing} values are missing")
    with faults.noted():
        if data.text is None:
            features = read_columns(features, data, source)
    faults.refuse()
    return Rows(features, table.n_rows, target)


def _features(table: CsvTable, data: Data, source: Source, n_rows: int | None) -> Any:
    """The columns to explain: numbers and categories as they are, or documents."""
    if data.text is not None:
        with source.blaming("data", "text"):
            return table.read_texts(data.text)
    if table.columns == (data.target,):
        raise source.error(
            ("data", "csv"), f"{table.path.name} has no column beside the target"
        )
    frame = table.read(n_rows=n_rows)
    return frame if data.target is None else frame.drop(columns=data.target)


def _check_column(
    key: str, column: str | None, table: CsvTable, source: Source
) -> None:
    if column is not None and column not in table.columns:
        raise source.error(
            ("data", key),
            f"{table.path.name} has no column {column!r}"
            f"{did_you_mean(column, table.columns)}; "
            f"it has {', '.join(table.columns)}",
        )
