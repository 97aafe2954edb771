"""Dtypes of columns: numbers behind them, and whether values may be missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from propopt.errors import InvalidInput


def refuse_dates(column: pd.Series[Any], what: str) -> None:
    """Refuse times, and lengths of time: what they are numbers of is not said."""
    if column.dtype.kind in "mM":
        raise InvalidInput(
            f"{what}: column {column.name!r} has dtype {column.dtype}; times are no "
            "numbers: give seconds since the first, (column - "
            "column.min()).dt.total_seconds(), to a callable that makes times of them "
            "for the model"
        )


def plain_dtype(column: pd.Series[Any]) -> np.dtype[Any]:
    """The NumPy dtype of the numbers in a column; float64 where there are none."""
    plain = column.dropna().infer_objects().to_numpy().dtype
    return plain if plain.kind in "iuf" else np.dtype(np.float64)


def with_room(dtype: Any) -> Any:
    """A dtype in which a value may be missing: the same, if it may there."""
    if is_nullable(dtype) or dtype.kind in "fO":
        return dtype
    return object if dtype.kind == "b" else np.dtype(np.float64)


def is_nullable(dtype: Any) -> bool:
    """Whether a dtype has a missing value that need not be NaN."""
    if isinstance(dtype, pd.api.extensions.ExtensionDtype):
        return dtype.na_value is pd.NA
    return bool(dtype == np.dtype(object))
