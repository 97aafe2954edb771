"""Cells of a DataFrame: numbers, categories, missing ones, and the place of others."""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.errors import InvalidInput


LARGEST_INTEGER = 2.0**53
"""Above it float64 skips integers."""


def is_coded(column: pd.Series[Any], what: str) -> bool:
    """Whether a column holds categories: text, bool, category, objects but numbers.

    Raises
    ------
    InvalidInput
        If it holds text, and all of it is numbers: they might be either.
    """
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(dtype):
        return True
    if not pd.api.types.is_string_dtype(dtype):  # which objects are said to be
        return False
    objects = column[column.notna()].tolist()
    if all(map(_is_number, objects)):
        return len(objects) == 0
    _refuse_numbers_as_text(column, objects, what)
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_)


def _refuse_numbers_as_text(
    column: pd.Series[Any], objects: list[Any], what: str
) -> None:
    if not all(isinstance(value, str) or _is_number(value) for value in objects):
        return
    if pd.to_numeric(pd.Series(objects, dtype=object), errors="coerce").notna().all():
        text = next(value for value in objects if isinstance(value, str))
        raise InvalidInput(
            f"{what}: column {column.name!r} holds numbers as text, such as {text!r}; "
            "make them numbers by pandas.to_numeric, or declare the column categorical"
        )


def read_numbers(column: pd.Series[Any], what: str) -> Array:
    """A column in float64, NaN where a number is missing; others must be finite."""
    if column.dtype.kind in "biuf":
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = _numbers_among_objects(column, what)
    _refuse_row(np.isinf(values), column, what, "a finite number")
    if column.dtype.kind in "iu":
        vague = np.abs(values) > LARGEST_INTEGER
        _refuse_row(vague, column, what, "an integer of at most 2^53, as floats know")
    return values


def missing_value(column: pd.Series[Any], what: str) -> Hashable:
    """What stands in a column where a value is missing: None, NaN or ``pandas.NA``.

    Raises
    ------
    InvalidInput
        If they are of several kinds: models tell them apart.
    """
    dtype = column.dtype
    if dtype == np.dtype(object):
        return _missing_object(column, what)
    if isinstance(dtype, pd.api.extensions.ExtensionDtype):
        return dtype.na_value
    return None if dtype.kind == "b" else np.nan


def _missing_object(column: pd.Series[Any], what: str) -> Hashable:
    kinds = {
        "NaN" if isinstance(value, Real) else repr(value): value
        for value in column[column.isna()].tolist()
    }
    if len(kinds) > 1:
        raise InvalidInput(
            f"{what}: column {column.name!r} has missing values of several kinds, "
            f"{' and '.join(sorted(kinds))}; make them one, as "
            "column.where(column.notna(), None) does"
        )
    return next(iter(kinds.values()), None)


def plain_numbers(table: pd.DataFrame) -> NDArray[Any]:
    """The cells of a table as NumPy has them, NaN where one is missing.

    Whether they are numbers is for others to check.
    """
    plain = all(isinstance(t, np.dtype) and t.kind in "biuf" for t in table.dtypes)
    if plain or not table.isna().any(axis=None):
        return table.to_numpy()
    return np.column_stack([_plain(table.iloc[:, j]) for j in range(table.shape[1])])


def _plain(column: pd.Series[Any]) -> NDArray[Any]:
    if column.dtype.kind in "biuf":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    objects = column.astype(object).to_numpy(copy=True)
    objects[column.isna().to_numpy(dtype=bool)] = np.nan
    return objects


def text_in(frame: pd.DataFrame) -> str | None:
    """The first place in a table that is no number, in words; None if all are."""
    for j, dtype in enumerate(frame.dtypes):
        if dtype.kind in "biuf":
            continue
        column = frame.iloc[:, j]
        objects = column.astype(object)
        numbers = pd.to_numeric(objects, errors="coerce")
        bad = (numbers.isna() & objects.notna()).to_numpy(dtype=bool)
        if bad.any():
            n = int(bad.argmax())
            value = objects.tolist()[n]
            return f"column {column.name!r}, row {row_name(column, n)} holds {value!r}"
    return None


def row_name(column: pd.Series[Any] | pd.DataFrame, n: int) -> str:
    """The label of the n-th row, for messages."""
    return repr(column.index[n : n + 1].tolist()[0])


def _numbers_among_objects(column: pd.Series[Any], what: str) -> Array:
    objects = column.astype(object).tolist()
    missing = column.isna().to_numpy(dtype=bool)
    text = np.array([not isinstance(v, Real | Decimal) for v in objects], dtype=bool)
    _refuse_row(text & ~missing, column, what, "a number")
    numbers = np.full(len(objects), np.nan)
    numbers[~missing] = np.array(objects, dtype=object)[~missing]
    return numbers


def _refuse_row(
    bad: NDArray[np.bool_], column: pd.Series[Any], what: str, expected: str
) -> None:
    if bad.any():
        n = int(bad.argmax())
        raise InvalidInput(
            f"{what}: column {column.name!r}, row {row_name(column, n)}: expected "
            f"{expected}, got {column.tolist()[n]!r}"
        )
