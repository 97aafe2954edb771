"""Tables of any dataframe library, read as those of pandas, and made again."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.errors import InvalidInput


if TYPE_CHECKING:
    import narwhals.stable.v2 as nw


@final
@dataclass(frozen=True, eq=False)
class Kind:
    """The library that tables of one kind come from.

    Parameters
    ----------
    backend : narwhals.Implementation
        Such as polars or pyarrow.
    coded : dict of str to narwhals dtype
        Those of columns of text, booleans and text categories, which pandas does not
        have, or which nothing tells where all are null.
    """

    backend: Any
    coded: dict[str, Any] = field(default_factory=dict)

    def table(self, frame: pd.DataFrame) -> Any:
        """A table of this kind with the columns of a DataFrame of pandas."""
        import narwhals.stable.v2 as nw

        columns = {str(label): _plain(frame[label]) for label in frame.columns}
        table = nw.from_dict(columns, backend=self.backend)
        dtypes = {**_numbers_with_nulls(frame), **self.coded}
        casts = [nw.col(name).cast(dtype) for name, dtype in dtypes.items()]
        return (table.with_columns(*casts) if casts else table).to_native()


@final
@dataclass(frozen=True, eq=False)
class Frame:
    """A table with named columns.

    Parameters
    ----------
    table : DataFrame
        As pandas has it.
    kind : Kind or None
        What it was; None for pandas.
    named_rows : bool
        Whether its index names rows; tables of other libraries mostly have none.
    """

    table: pd.DataFrame
    kind: Kind | None = None
    named_rows: bool = True

    @property
    def points(self) -> tuple[Hashable, ...] | None:
        """The names of the rows, if they have any; a missing one is always one NaN."""
        if not self.named_rows:
            return None
        return tuple(np.nan if _is_nan(name) else name for name in self.table.index)


def _is_nan(name: Hashable) -> bool:
    return isinstance(name, float) and math.isnan(name)


def as_frame(table: object, what: str) -> Frame | None:
    """A table of any library that narwhals knows; None if it is no table.

    Raises
    ------
    InvalidInput
        If it is lazy, or two columns have one name.
    """
    if isinstance(table, pd.DataFrame):
        return Frame(table)
    frame = _of_narwhals(table, what)
    return None if frame is None else _read(frame)


def is_frame(table: object, what: str) -> bool:
    """Whether a table has named columns, whatever library it comes from."""
    return isinstance(table, pd.DataFrame) or _of_narwhals(table, what) is not None


def rows_of(table: Any, places: Sequence[int] | NDArray[np.intp]) -> Any:
    """Some rows of a table or array, in the form that it has.

    Examples
    --------
    >>> rows_of(pd.DataFrame({"age": [31, 47, 52]}, index=["a", "b", "c"]), [2, 0])
       age
    c   52
    a   31
    """
    if isinstance(table, pd.DataFrame):
        return table.iloc[np.asarray(places, dtype=np.intp)]
    frame = _of_narwhals(table, "X")
    if frame is None:
        return np.asarray(table)[np.asarray(places, dtype=np.intp)]
    # polars knows no integers of NumPy
    return frame[[int(place) for place in places]].to_native()


def some_columns(table: Any, places: Sequence[int]) -> Any:
    """Some columns of a table or array, in the form that it has.

    Examples
    --------
    >>> some_columns(pd.DataFrame({"age": [31, 47], "size": [1.6, 1.8]}), [1])
       size
    0   1.6
    1   1.8
    """
    if isinstance(table, pd.DataFrame):
        return table.iloc[:, list(places)]
    frame = _of_narwhals(table, "X")
    if frame is None:
        return np.asarray(table)[:, list(places)]
    return frame[:, [int(place) for place in places]].to_native()


def with_exchanged(table: Any, places: Sequence[int], order: NDArray[np.intp]) -> Any:
    """The same table, in some columns with the values of other rows.

    Examples
    --------
    >>> with_exchanged(np.array([[1, 5], [2, 6], [3, 7]]), [1], np.array([2, 0, 1]))
    array([[1, 7],
           [2, 5],
           [3, 6]])
    """
    if isinstance(table, pd.DataFrame):
        found = table.copy(deep=False)
        for place in places:
            found.isetitem(place, table.iloc[order, place].array)
        return found
    frame = _of_narwhals(table, "X")
    if frame is None:
        array = np.array(table)
        some = np.asarray(places, dtype=np.intp)
        array[:, some] = array[np.ix_(order, some)]
        return array
    names, rows = [frame.columns[place] for place in places], order.tolist()
    return frame.with_columns(*(frame[name][rows] for name in names)).to_native()


def names_of(table: Any) -> tuple[Hashable, ...] | None:
    """How the columns of a table are called; None of an array.

    Examples
    --------
    >>> names_of(pd.DataFrame({"age": [31, 47], "size": [1.6, 1.8]}))
    ('age', 'size')
    """
    if isinstance(table, pd.DataFrame):
        return tuple(table.columns)
    frame = _of_narwhals(table, "X")
    return None if frame is None else tuple(frame.columns)


def _of_narwhals(table: object, what: str) -> nw.DataFrame[Any] | None:
    """A table as narwhals has it, None if it knows no such table."""
    if table is None or isinstance(table, np.ndarray | list | tuple | float):
        return None  # without importing anything
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(table, pass_through=True)
    except DuplicateError as error:
        raise InvalidInput(f"{what}: columns appear more than once: {error}") from None
    if isinstance(frame, nw.LazyFrame):
        raise InvalidInput(
            f"{what}: a lazy table has no rows yet; collect it first, by its collect() "
            "or compute()"
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def _read(table: nw.DataFrame[Any]) -> Frame:
    import narwhals.stable.v2 as nw

    schema = table.schema
    columns = {name: _column(table[name]) for name in table.columns}
    index = nw.maybe_get_index(table)
    rows = None if index is None else list(index)
    coded = {
        name: dtype
        for name, dtype in schema.items()
        if isinstance(dtype, nw.String | nw.Boolean)
        or (_is_coded(dtype) and _is_of_text(columns[name]))
    }
    kind = Kind(table.implementation, coded)
    return Frame(pd.DataFrame(columns, index=rows), kind, named_rows=rows is not None)


def _column(column: nw.Series[Any]) -> Any:
    import narwhals.stable.v2 as nw

    dtype = column.dtype
    if _is_coded(dtype):
        categories = column.cat.get_categories().to_list()
        return pd.Categorical(column.to_list(), categories=categories)
    if dtype.is_numeric() and dtype not in (nw.Decimal, nw.Int128, nw.UInt128):
        return _numbers(column)
    return column.to_list()


def _numbers(column: nw.Series[Any]) -> Any:
    """Numbers in the dtype that has the same name, if a null is among them."""
    null = column.is_null().to_numpy()
    if not null.any():
        return column.to_numpy()
    known = pd.Series(column.fill_null(0).to_numpy())
    dtype = pd.api.types.pandas_dtype(str(column.dtype))
    return known.astype(dtype).mask(null)


def _is_coded(dtype: Any) -> bool:
    import narwhals.stable.v2 as nw

    return isinstance(dtype, nw.Categorical | nw.Enum)


def _is_of_text(column: pd.Categorical) -> bool:
    """Whether categories are no numbers, which not all libraries cast to categories."""
    return column.categories.dtype.kind not in "biuf"


def _plain(column: pd.Series[Any]) -> Any:
    """A column as libraries read it that do not know the dtypes of pandas."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return column.to_numpy()
    missing = column.isna().tolist()
    cells = zip(column.tolist(), missing, strict=True)
    return [None if absent else value for value, absent in cells]


def _numbers_with_nulls(frame: pd.DataFrame) -> dict[str, Any]:
    """Columns of numbers that may be null, whose dtypes have the same names."""
    import narwhals.stable.v2 as nw

    dtypes = frame.dtypes[[str(t) in _NULLABLE for t in frame.dtypes]]
    return {str(label): getattr(nw, str(dtype)) for label, dtype in dtypes.items()}


_NULLABLE = frozenset(
    [f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]
    + ["Float32", "Float64"]
)
"""Dtypes of pandas, which narwhals calls the same."""
