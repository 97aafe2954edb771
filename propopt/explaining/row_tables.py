"""Explained rows as plain tables: the block that a worker of a cluster returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from propopt.base.errors import InvalidInput
from propopt.explaining.out_of_sample import (
    FittedReference,
    FittedRows,
    with_base_margins,
)
from propopt.results.clear import is_exact
from propopt.results.explanation import Explanation
from propopt.tables.frames import as_frame


ENDS: Final = ("base_value", "prediction")
"""Numbers of each row that contributions have in addition to their parts."""

PROOFS: Final = ("gap", "error")
"""The certified gap of each row, and the error of its target."""


def is_dask(X: Any) -> bool:
    """Whether X is a DataFrame of Dask; Dask is not imported for it."""
    is_of_dask = type(X).__module__.partition(".")[0] == "dask"
    return is_of_dask and hasattr(X, "map_partitions")


def row_table(fitted: FittedReference, X: Any, base_margin: Any) -> pd.DataFrame:
    """The rows of X, explained one by one, with the index of X."""
    rows = rows_of_tables(fitted)
    is_array = isinstance(X, np.ndarray) and X.ndim == 2
    frame = as_frame(pd.DataFrame(X) if is_array and len(X) == 0 else X, "X")
    header = None if frame is None else frame.table.columns
    columns = row_columns(rows, None if is_array else header)
    if frame is not None and header is not None and len(frame.table) == 0:
        check_columns(rows, header)
        empty = np.zeros((0, len(columns)))
        return pd.DataFrame(empty, columns=columns, index=frame.table.index)
    margins = rows.problem.margins(base_margin, X)
    explained = with_base_margins(rows.explain(X, progress=False), margins)
    index = X.index if isinstance(X, pd.DataFrame) else None
    return pd.DataFrame(row_numbers(explained), columns=columns, index=index)


def rows_of_tables(fitted: FittedReference) -> FittedRows:
    """The fitted rows of a table; refused for documents."""
    if isinstance(fitted, FittedRows):
        return fitted
    raise InvalidInput(
        "X: expected a table, and these are documents: each block has other words, so "
        "they have no common columns; use explain(X), which joins the words of all "
        "documents"
    )


def row_columns(fitted: FittedReference, header: pd.Index | None) -> list[str]:
    """The columns of explained rows, given the labels of their table, if it has any.

    Features retain their names. A column of another number ends in an underscore if a
    feature has its name.
    """
    reference = fitted.reference
    features = reference.labels.features
    if features is None and header is not None:
        features = tuple(map(str, header))
    features = features or reference.labels.feature_names(reference.shape[1])
    ends = () if reference.base_value is None else ENDS
    return [*features, *(free_name(name, features) for name in (*ends, *PROOFS))]


def row_cells(explained: Explanation) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The targets of attributions and the standard errors of these (m, 2D)."""
    before = explained.gradient
    errors = explained.standard_errors
    if before is None:
        before = explained.contributions
    assert before is not None, "each row has a target"
    if errors is None:
        errors = np.full(before.shape, 0.0 if is_exact(explained) else np.nan)
    return np.hstack([before, errors])


def free_name(name: str, taken: Sequence[str]) -> str:
    """The name, with as many underscores as it takes to differ from the others."""
    while name in taken:
        name += "_"
    return name


def check_columns(rows: FittedRows, header: pd.Index) -> None:
    """Refuse a table without rows if its columns are not those of the fit."""
    schema = rows.function.schema
    count = rows.problem.points.shape[1]
    if schema is not None:
        schema.check_header(header)
    elif len(header) != count:
        raise InvalidInput(f"X: expected {count} columns, got {len(header)}")


def row_numbers(explained: Explanation) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The attributions of rows, their ends, gaps and errors (m, ...)."""
    numbers = [getattr(explained, name) for name in ENDS]
    numbers = [array for array in numbers if array is not None]
    numbers += [explained.details[name] for name in PROOFS]
    return np.column_stack([explained.attributions, *numbers])
