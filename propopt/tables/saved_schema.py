"""A schema as text, numbers and arrays, and back: nothing is pickled.

Every value is a JSON value, or an object with one key that says what it is: a dtype, an
index, a tuple, one of the missing values, an array that stands beside the text.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.tables.atoms import Atoms
from propopt.tables.columns import Categorical, Column, Numeric, OneHot
from propopt.tables.schema import TableSchema


ArraysByName: TypeAlias = dict[str, Array]

_RECORDS: Mapping[str, type[Any]] = {
    kind.__name__: kind for kind in (Numeric, Categorical, OneHot, Atoms)
}
_MISSING: Mapping[str, Any] = {"NaN": np.nan, "NA": pd.NA, "NaT": pd.NaT}


def pack_schema(schema: TableSchema, arrays: ArraysByName) -> dict[str, Any]:
    """A schema as JSON; its arrays are put into ``arrays``.

    Raises
    ------
    InvalidInput
        If it is of a table of another library than pandas, or has names, categories or
        dtypes that are no text and numbers.
    """
    if schema.kind is not None:
        raise InvalidInput(
            "data: a table of pandas is saved, and this one is of another library; "
            "fit on data.to_pandas()"
        )
    columns = [_packed(column, arrays) for column in schema.columns]
    return {"header": _packed(schema.header, arrays), "columns": columns}


def unpack_schema(header: Any, arrays: Mapping[str, Array]) -> TableSchema:
    """The schema that :func:`pack_schema` packed.

    Raises
    ------
    InvalidInput
        If it is something else.
    """
    try:
        columns = tuple(_unpacked(column, arrays) for column in header["columns"])
        index = _unpacked(header["header"], arrays)
        if not all(isinstance(column, Column) for column in columns):
            raise TypeError("no column")
        if not isinstance(index, pd.Index):
            raise TypeError("no header")
        for column in columns:
            _check_column(column)
        labels = [label for column in columns for label in _labels(column)]
        if len(labels) != len(index) or set(labels) != set(index):
            raise ValueError("its columns are not those of its header")
    except _NONSENSE as error:
        raise InvalidInput(f"its schema makes no sense: {error}") from None
    return TableSchema(index, columns)


_NONSENSE = (
    ArithmeticError,
    AttributeError,
    ImportError,  # of dtypes that need a package
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What text, numbers and arrays that are none of a schema raise."""


def _labels(column: Column) -> tuple[Hashable, ...]:
    """The columns of the DataFrame that a column of the encoded table is made of."""
    return column.members if isinstance(column, OneHot) else (column.name,)


def _check_column(column: Column) -> None:
    """Refuse fields that no table gives.

    Raises
    ------
    TypeError, ValueError
        Naming the column.
    """
    fits: bool
    dtypes: tuple[Any, ...]
    match column:
        case Numeric():
            dtypes = (column.dtype, column.plain)
            fits = _is_number(column.std, 0.0) and _is_number(column.missing_share, 0.0)
            fits &= _is_number(1.0 - column.missing_share, 0.0)
            fits &= type(column.mean) is float
            fits &= column.atoms is None or _are_atoms(column.atoms)
        case Categorical():
            dtypes = (column.dtype,)
            fits = _is_index(column.levels)
            fits &= _are_shares(column.frequencies, len(column.levels) + 1)
        case OneHot():
            dtypes = column.dtypes
            fits = len(dtypes) == len(column.members)
            fits &= _are_shares(column.frequencies, len(column.members))
        case _:
            raise TypeError("no column")
    known = (np.dtype, pd.api.extensions.ExtensionDtype)
    if not (fits and all(isinstance(dtype, known) for dtype in dtypes)):
        raise ValueError(f"column {column.name!r} is none of a table")


def _is_index(value: object) -> bool:
    return isinstance(value, pd.Index)


def _is_number(value: object, least: float) -> bool:
    return isinstance(value, float) and math.isfinite(value) and value >= least


def _are_atoms(atoms: object) -> bool:
    """Whether these are increasing numbers, and how often each is there."""
    if not isinstance(atoms, Atoms):
        return False
    values, counts = atoms.values, atoms.counts
    return (
        values.dtype == np.float64
        and counts.dtype.kind in "iu"
        and values.ndim == 1
        and values.shape == counts.shape
        and bool(np.isfinite(values).all() and (np.diff(values) > 0.0).all())
        and bool((counts > 0).all())
    )


def _are_shares(shares: object, count: int) -> bool:
    """Whether these are shares of so many categories."""
    return (
        isinstance(shares, np.ndarray)
        and shares.dtype == np.float64
        and shares.shape == (count,)
        and bool(((shares >= 0.0) & (shares <= 1.0)).all())
        and abs(float(shares.sum()) - 1.0) < 1e-9
    )


def _packed(value: Any, arrays: ArraysByName) -> Any:
    """A value as JSON."""
    if dataclasses.is_dataclass(value) and type(value).__name__ in _RECORDS:
        fields = {
            field.name: _packed(getattr(value, field.name), arrays)
            for field in dataclasses.fields(value)
        }
        return {type(value).__name__: fields}
    match value:
        case None | bool() | str():
            return value
        case int() | np.integer():
            return int(value)
        case float() | np.floating() if math.isfinite(value):
            return float(value)
        case tuple():
            return {"tuple": [_packed(part, arrays) for part in value]}
        case np.ndarray():
            return _packed_array(value, arrays)
        case pd.Index():
            return _packed_index(value, arrays)
        case np.dtype() | pd.api.extensions.ExtensionDtype():
            return _packed_dtype(value, arrays)
    return _packed_missing(value)


def _packed_array(array: Array, arrays: ArraysByName) -> dict[str, str]:
    name = f"schema.{len(arrays)}"
    arrays[name] = array
    return {"array": name}


def _packed_index(index: pd.Index[Any], arrays: ArraysByName) -> dict[str, Any]:
    if isinstance(index, pd.MultiIndex):
        raise InvalidInput("data: columns with several levels are not saved")
    values = [_packed(_plain(value), arrays) for value in index.tolist()]
    name = _packed(_plain(index.name), arrays)
    return {"index": [values, _packed(index.dtype, arrays), name]}


def _plain(value: Hashable) -> Hashable:
    """Categories of an index as JSON has them; dates and intervals are none."""
    if isinstance(value, str | bool | int | float | tuple) or pd.isna(value):  # type: ignore[call-overload]
        return value
    raise InvalidInput(f"data: {value!r} is neither text nor a number: it is not saved")


def _packed_dtype(dtype: Any, arrays: ArraysByName) -> dict[str, Any]:
    if isinstance(dtype, pd.CategoricalDtype):
        categories = _packed(dtype.categories, arrays)
        return {"categories": [categories, bool(dtype.ordered)]}
    text = str(dtype)
    if isinstance(dtype, pd.StringDtype) and pd.api.types.pandas_dtype(text) != dtype:
        text = f"string[{dtype.storage}]"
    if pd.api.types.pandas_dtype(text) != dtype:
        raise InvalidInput(f"data: columns of dtype {dtype!r} are not saved")
    return {"dtype": text}


def _packed_missing(value: Any) -> dict[str, str]:
    if isinstance(value, float) and math.isnan(value):
        return {"missing": "NaN"}
    for name, missing in _MISSING.items():
        if value is missing:
            return {"missing": name}
    raise InvalidInput(f"data: {value!r} is neither text nor a number: it is not saved")


def _unpacked(value: Any, arrays: Mapping[str, Array]) -> Any:
    """What :func:`_packed` packed."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind in _RECORDS:
        fields = {name: _unpacked(part, arrays) for name, part in content.items()}
        return _RECORDS[kind](**fields)
    return _READERS[kind](content, arrays)


def _index(content: Any, arrays: Mapping[str, Array]) -> pd.Index[Any]:
    values, dtype, name = content
    return pd.Index(
        [_unpacked(value, arrays) for value in values],
        dtype=_unpacked(dtype, arrays),
        name=_unpacked(name, arrays),
        tupleize_cols=False,
    )


def _categories(content: Any, arrays: Mapping[str, Array]) -> pd.CategoricalDtype:
    categories, ordered = content
    return pd.CategoricalDtype(_unpacked(categories, arrays), ordered=ordered)


_READERS: Mapping[str, Callable[[Any, Mapping[str, Array]], Any]] = {
    "tuple": lambda content, arrays: tuple(_unpacked(x, arrays) for x in content),
    "array": lambda content, arrays: arrays[content],
    "index": _index,
    "dtype": lambda content, _: pd.api.types.pandas_dtype(content),
    "categories": _categories,
    "missing": lambda content, _: _MISSING[content],
}
