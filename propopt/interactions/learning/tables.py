"""The table of a learner: in the form that it came, with names for its columns."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.errors import InvalidInput
from propopt.tables.frames import names_of, rows_of, some_columns
from propopt.tables.names import listed


def read_learning_table(X: Any) -> tuple[Any, tuple[Hashable, ...]]:
    """A table as it came, dtypes and missing values kept, and names of its columns.

    DataFrames of any library stay what they are; all else becomes an array, whose
    columns are called 0, 1, ...

    Raises
    ------
    InvalidInput
        If it is not two-dimensional, is sparse or lazy, has no rows or columns, or two
        columns of one name.
    """
    if sp.issparse(X):
        raise InvalidInput(
            f"X: expected a dense table, got a sparse {type(X).__name__}; give its "
            "toarray()"
        )
    names = names_of(X)
    table = np.asarray(X) if names is None else X
    shape = tuple(table.shape)
    if len(shape) != 2:
        raise InvalidInput(
            f"X: Expected 2D array, got shape {shape}; Reshape your data, a row for "
            "each point"
        )
    if shape[0] == 0:
        raise InvalidInput(f"X: 0 sample(s) (shape={shape}) while some are required.")
    if shape[1] == 0:
        raise InvalidInput(
            f"X: 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        )
    if names is None:
        if table.dtype.kind == "c":
            raise InvalidInput("X: Complex data not supported; give real numbers")
        return table, tuple(range(shape[1]))
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise InvalidInput(f"X: columns appear more than once: {listed(twice)}")
    return table, names


def taken(table: Any, rows: NDArray[np.intp] | None, columns: NDArray[np.intp]) -> Any:
    """Some rows, or all, and some columns, in the form that a table has.

    Without any column it is an array, (n, 0): tables of some libraries, such as polars,
    have no rows then.
    """
    if not len(columns):
        return np.empty((table.shape[0] if rows is None else len(rows), 0))
    if isinstance(table, np.ndarray):
        return table[:, columns] if rows is None else table[rows[:, None], columns]
    part = some_columns(table, columns.tolist())
    return part if rows is None else rows_of(part, rows.tolist())
