"""Names of points and features, cells, and frames of any library.

Attributions of whatever carries them, their rows and columns put in order by name.
Names decide where both sides have them: another order is put right, other names are
refused. Where one side has none, position decides.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import wraps
from numbers import Real
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    cast,
    final,
)

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Sparse
from propopt.base.checks import read_array, read_with_missing
from propopt.base.declared import transient
from propopt.base.errors import InvalidInput
from propopt.base.text import plain_name


if TYPE_CHECKING:
    import narwhals.stable.v2 as nw


# ---- Names of points and features: read from DataFrames, written back to them


def refuse_dates(column: pd.Series[Any], label: str) -> None:
    """Refuse times, and lengths of time: what they are numbers of is not said."""
    if column.dtype.kind in "mM":
        raise InvalidInput(
            f"{label}: column {column.name!r} has dtype {column.dtype}; times are no "
            "numbers: give seconds since the first, (column - "
            "column.min()).dt.total_seconds(), to a callable that makes times of them "
            "for the model"
        )


def plain_dtype(column: pd.Series[Any]) -> np.dtype[Any]:
    """The NumPy dtype of the numbers in a column; float64 where there are none."""
    plain = column.dtype
    if not isinstance(plain, np.dtype) or plain.kind not in "iuf":
        plain = column.dropna().infer_objects().to_numpy().dtype
    return plain if plain.kind in "iuf" else np.dtype(np.float64)


def nullable_dtype(dtype: Any) -> Any:
    """A dtype in which a value may be missing: the same, if it may there."""
    if is_nullable(dtype) or dtype.kind in "fO":
        return dtype
    return object if dtype.kind == "b" else np.dtype(np.float64)


def is_nullable(dtype: Any) -> bool:
    """Whether a dtype has a missing value that need not be NaN."""
    if isinstance(dtype, pd.api.extensions.ExtensionDtype):
        return dtype.na_value is pd.NA
    return bool(dtype == np.dtype(object))


# ---- Tables of any dataframe library, read as those of pandas, and made again


@final
@dataclass(frozen=True, eq=False)
class TableLibrary:
    """The library that tables of one kind come from."""

    backend: Any  # such as polars or pyarrow
    # those of columns of text, booleans and text categories
    coded: dict[str, Any] = dataclasses.field(default_factory=dict)

    def table(self, frame: pd.DataFrame) -> Any:
        """A table of this kind with the columns of a DataFrame of pandas."""
        import narwhals.stable.v2 as nw

        columns = {str(label): _plain(frame[label]) for label in frame.columns}
        table = nw.from_dict(columns, backend=self.backend)
        kinds = [(str(label), str(dtype)) for label, dtype in frame.dtypes.items()]
        dtypes = {name: getattr(nw, kind) for name, kind in kinds if kind in _NULLABLE}
        dtypes |= self.coded
        casts = [nw.col(name).cast(dtype) for name, dtype in dtypes.items()]
        return (table.with_columns(*casts) if casts else table).to_native()


@final
@dataclass(frozen=True, eq=False)
class Frame:
    """A table with named columns."""

    table: pd.DataFrame  # as pandas has it
    kind: TableLibrary | None = None  # what it was; None for pandas
    # whether its index names rows; tables of other libraries mostly have none
    named_rows: bool = True

    @property
    def labels(self) -> Labels:
        """Names of rows, if they have any, and of columns."""
        columns = tuple(self.table.columns)
        return Labels(self.rows, tuple(map(str, columns)), columns, self.kind)

    @property
    def rows(self) -> tuple[Hashable, ...] | None:
        """Names of rows, if they have any; a missing one is one NaN."""
        if not self.named_rows:
            return None
        return tuple(
            np.nan if isinstance(name, float) and math.isnan(name) else name
            for name in self.table.index
        )


def as_frame(table: object, label: str) -> Frame | None:
    """A table of any library that narwhals knows; None if it is no table."""
    if isinstance(table, pd.DataFrame):
        return Frame(table)
    frame = _of_narwhals(table, label)
    return None if frame is None else _read(frame)


def is_frame(table: object, label: str) -> bool:
    """Whether a table has named columns, whatever library it comes from."""
    return isinstance(table, pd.DataFrame) or _of_narwhals(table, label) is not None


def select_rows(table: Any, indices: Sequence[int] | NDArray[np.intp]) -> Any:
    """Some rows of a table or array, in the form that it has."""
    if isinstance(table, pd.DataFrame):
        return table.iloc[np.asarray(indices, dtype=np.intp)]
    frame = _of_narwhals(table, "X")
    if frame is None:
        return np.asarray(table)[np.asarray(indices, dtype=np.intp)]
    # polars knows no integers of NumPy
    return frame[[int(place) for place in indices]].to_native()


def select_columns(table: Any, indices: Sequence[int]) -> Any:
    """Some columns of a table or array, in the form that it has."""
    if isinstance(table, pd.DataFrame):
        return table.iloc[:, list(indices)]
    frame = _of_narwhals(table, "X")
    if frame is None:
        return np.asarray(table)[:, list(indices)]
    return frame[:, [int(place) for place in indices]].to_native()


def with_permuted_columns(
    table: Any, indices: Sequence[int], order: NDArray[np.intp]
) -> Any:
    """The same table, in some columns with the values of other rows."""
    if isinstance(table, pd.DataFrame):
        result = table.copy(deep=False)
        for place in indices:
            result.isetitem(place, table.iloc[order, place].array)
        return result
    frame = _of_narwhals(table, "X")
    if frame is None:
        array = np.array(table)
        some = np.asarray(indices, dtype=np.intp)
        array[:, some] = array[np.ix_(order, some)]
        return array
    names, rows = [frame.columns[place] for place in indices], order.tolist()
    return frame.with_columns(*(frame[name][rows] for name in names)).to_native()


def column_names(table: Any) -> tuple[Hashable, ...] | None:
    """How the columns of a table are called; None of an array."""
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

    columns = {name: _column(table[name]) for name in table.columns}
    index = nw.maybe_get_index(table)
    rows = None if index is None else list(index)
    coded = {
        name: dtype
        for name, dtype in table.schema.items()
        if isinstance(dtype, nw.String | nw.Boolean)
        # not all libraries cast numbers to categories
        or (
            isinstance(dtype, nw.Categorical | nw.Enum)
            and columns[name].categories.dtype.kind not in "biuf"
        )
    }
    kind = TableLibrary(table.implementation, coded)
    return Frame(pd.DataFrame(columns, index=rows), kind, named_rows=rows is not None)


def _column(column: nw.Series[Any]) -> Any:
    """Cells, categories or numbers: with nulls in the dtype that has the same name."""
    import narwhals.stable.v2 as nw

    dtype = column.dtype
    if isinstance(dtype, nw.Categorical | nw.Enum):
        categories = column.cat.get_categories().to_list()
        return pd.Categorical(column.to_list(), categories=categories)
    if not dtype.is_numeric() or dtype in (nw.Decimal, nw.Int128, nw.UInt128):
        return column.to_list()
    null = column.is_null().to_numpy()
    if not null.any():
        return column.to_numpy()
    known = pd.Series(column.fill_null(0).to_numpy())
    return known.astype(pd.api.types.pandas_dtype(str(dtype))).mask(null)


def _plain(column: pd.Series[Any]) -> Any:
    """A column as libraries read it that do not know the dtypes of pandas."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return column.to_numpy()
    missing = column.isna().tolist()
    cells = zip(column.tolist(), missing, strict=True)
    return [None if absent else value for value, absent in cells]


_NULLABLE = frozenset(
    [f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]
    + ["Float32", "Float64"]
)
"""Dtypes of pandas, which narwhals calls the same."""


# ---- Cells of a DataFrame: numbers, categories, missing ones, and the place of others


_LARGEST = int(np.finfo(float).max)

LARGEST_INTEGER = 2.0**53
"""Above it float64 skips integers."""


def holds_categories(column: pd.Series[Any], label: str) -> bool:
    """Whether a column holds categories: text, bool, category, objects but numbers."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(dtype):
        return True
    if not pd.api.types.is_string_dtype(dtype):  # which objects are said to be
        return False
    objects = column[column.notna()].tolist()
    for cell in objects:
        try:
            hash(cell)
        except TypeError:
            raise InvalidInput(
                f"{label}: column {column.name!r} holds a {type(cell).__name__} in a "
                "cell; expected numbers or categories: give each of its items a column"
            ) from None
    if all(map(_is_number, objects)):
        return len(objects) == 0
    if all(isinstance(value, str) or _is_number(value) for value in objects):
        numbers = coerce_numbers(pd.Series(objects, dtype=object))
        if numbers.notna().all():
            text = next(value for value in objects if isinstance(value, str))
            raise InvalidInput(
                f"{label}: column {column.name!r} holds numbers as text, such as "
                f"{text!r}; make them numbers by pandas.to_numeric, or declare "
                "the column categorical"
            )
    return True


def coerce_numbers(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Cells as numbers, NaN where they are none; infinite beyond all floats."""
    try:
        return pd.to_numeric(cells, errors="coerce")
    except OverflowError:  # whole numbers of hundreds of digits, among objects
        plain = [
            math.inf if isinstance(cell, int) and abs(cell) > _LARGEST else cell
            for cell in cells
        ]
        finite = pd.Series(plain, index=cells.index, dtype=object)
        return pd.to_numeric(finite, errors="coerce")


def _is_number(value: object) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_)


def read_numbers(column: pd.Series[Any], label: str) -> Array:
    """A column in float64, NaN where a number is missing; others must be finite."""
    if column.dtype.kind in "biuf":
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = _numbers_among_objects(column, label)
    _refuse_row(np.isinf(values), column, label, "a finite number")
    if column.dtype.kind in "iu":
        vague = np.abs(values) > LARGEST_INTEGER
        _refuse_row(vague, column, label, "an integer of at most 2^53, as floats know")
    return values


def plain_floats(table: pd.DataFrame) -> Array | None:
    """All columns as :func:`read_numbers` has them, at once; None where they need it.

    It has no finite numbers above 2^53, and no dtypes but those of NumPy's numbers.
    """
    values = table.to_numpy()
    if values.dtype.kind not in "iuf" or values.dtype.itemsize > 8:
        return None
    values = np.array(values, np.float64, order="C")
    known = np.abs(values) <= LARGEST_INTEGER
    return values if bool((known | np.isnan(values)).all()) else None


def missing_value(column: pd.Series[Any], label: str) -> Hashable:
    """What stands in a column where a value is missing: None, NaN or ``pandas.NA``."""
    dtype = column.dtype
    if isinstance(dtype, pd.api.extensions.ExtensionDtype):
        return dtype.na_value
    if dtype != np.dtype(object):
        return None if dtype.kind == "b" else np.nan
    kinds = {
        "NaN" if isinstance(value, Real) else repr(value): value
        for value in column[column.isna()].tolist()
    }
    if len(kinds) > 1:
        raise InvalidInput(
            f"{label}: column {column.name!r} has missing values of several kinds, "
            f"{' and '.join(sorted(kinds))}; make them one, as "
            "column.where(column.notna(), None) does"
        )
    return next(iter(kinds.values()), None)


def plain_numbers(table: pd.DataFrame) -> NDArray[Any]:
    """The cells of a table as NumPy has them, NaN where one is missing; not checked."""
    plain = all(isinstance(t, np.dtype) and t.kind in "biuf" for t in table.dtypes)
    if plain or not table.isna().any(axis=None):
        return table.to_numpy()
    return np.column_stack(
        [_cells_plain(table.iloc[:, j]) for j in range(table.shape[1])]
    )


def _cells_plain(column: pd.Series[Any]) -> NDArray[Any]:
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
        bad = objects.notna().to_numpy(dtype=bool)
        if not _has_named_categories(column):
            bad = bad & coerce_numbers(objects).isna().to_numpy(dtype=bool)
        if bad.any():
            n = int(bad.argmax())
            value = objects.tolist()[n]
            return f"column {column.name!r}, row {row_name(column, n)} holds {value!r}"
    return None


def _has_named_categories(column: pd.Series[Any]) -> bool:
    """Whether its dtype declares categories that are text, be it of digits."""
    dtype = column.dtype
    return isinstance(dtype, pd.CategoricalDtype) and any(
        isinstance(category, str) for category in dtype.categories
    )


def row_name(column: pd.Series[Any] | pd.DataFrame, n: int) -> str:
    """The label of the n-th row, for messages."""
    return repr(column.index[n : n + 1].tolist()[0])


def _numbers_among_objects(column: pd.Series[Any], label: str) -> Array:
    objects = column.astype(object).tolist()
    missing = column.isna().to_numpy(dtype=bool)
    text = np.array([not isinstance(v, Real | Decimal) for v in objects], dtype=bool)
    _refuse_row(text & ~missing, column, label, "a number")
    numbers = np.full(len(objects), np.nan)
    numbers[~missing] = np.array(objects, dtype=object)[~missing]
    return numbers


def _refuse_row(
    bad: NDArray[np.bool_], column: pd.Series[Any], label: str, expected: str
) -> None:
    if bad.any():
        n = int(bad.argmax())
        raise InvalidInput(
            f"{label}: column {column.name!r}, row {row_name(column, n)}: expected "
            f"{expected}, got {column.tolist()[n]!r}"
        )


@dataclass(frozen=True)
class Labels:
    """Names of the N points and the D features of a table."""

    points: tuple[Hashable, ...] | None = None
    features: tuple[str, ...] | None = None
    # the columns as the DataFrame has them, of any type; only a table needs them
    columns: tuple[Hashable, ...] | None = transient(
        default=None, compare=False, repr=False
    )
    # the library of the table, if not pandas; only a table needs it
    kind: TableLibrary | None = transient(default=None, compare=False, repr=False)
    # the N points themselves, where they are texts
    texts: tuple[str, ...] | None = transient(default=None, compare=False, repr=False)

    shared_in_files: ClassVar[bool] = True

    def table(self, values: NDArray[Any]) -> Any:
        """``values`` (any number of rows, D) in the form that the input had."""
        if self.features is None:
            return values
        index = self.points if self.names_rows_of(values) else None
        columns = self.features if self.columns is None else self.columns
        frame = pd.DataFrame(values, columns=list(columns), index=index)
        if self.kind is None:
            return frame
        # a number that is missing is null to other libraries, and not NaN
        misses = values.dtype.kind == "f" and bool(np.isnan(values).any())
        return self.kind.table(frame.astype("Float64") if misses else frame)

    def frame(self, values: Array) -> pd.DataFrame:
        """A DataFrame of a copy, with ``x0, x1, ...`` for missing names of columns."""
        columns = list(self.feature_names(values.shape[1]))
        return pd.DataFrame(values, columns=columns, index=self.points, copy=True)

    def feature_names(self, count: int) -> tuple[str, ...]:
        """The names of D features, ``x0, x1, ...`` where there are none."""
        return self.features or tuple(f"x{j}" for j in range(count))

    def row(self, n: int) -> Hashable:
        """The name of the n-th point; its number where there are none."""
        return n if self.points is None else self.points[n]

    def check(self, shape: tuple[int, ...], label: str) -> None:
        """Refuse names that are not one for each row and column of a table."""
        N, D = shape
        own = (self.points, "points", N), (self.features, "features", D)
        for names, noun, count in own:
            if names is not None and len(names) != count:
                raise InvalidInput(
                    f"{label}: expected {count} names of {noun}, got {len(names)}"
                )
        if self.features is not None and len(set(self.features)) < D:
            twice = [x for x in self.features if self.features.count(x) > 1]
            raise InvalidInput(f"{label}: two features have one name: {twice[0]!r}")

    def position(self, row: Hashable, n_points: int) -> int:
        """Where a row stands, by its name or, without names, by its number."""
        names = range(n_points) if self.points is None else self.points
        if row not in names:
            raise InvalidInput(
                f"row: there is no row {row!r}; there are {n_points}, from "
                f"{names[0]!r} to {names[-1]!r}"
            )
        return names.index(row)  # type: ignore[arg-type]  # a range has whole numbers

    def or_else(self, other: Labels) -> Labels:
        """These names, with those of ``other`` where there are none."""
        return replace(
            other if self.features is None else self,
            points=other.points if self.points is None else self.points,
            texts=other.texts if self.texts is None else self.texts,
        )

    def of_positions(self, rows: slice | Sequence[int] | NDArray[np.intp]) -> Labels:
        """The names of the points at these positions."""

        def some(names: Any) -> Any:
            if names is None or isinstance(rows, slice):
                return names and names[rows]
            return tuple(names[n] for n in rows)

        return self._with(some(self.points), some(self.texts))

    def of_columns(self) -> Labels:
        """The names of the features alone, for other points."""
        return self._with(None, None)

    def _with(
        self, points: tuple[Hashable, ...] | None, texts: tuple[str, ...] | None
    ) -> Labels:
        """The same names of features for other points."""
        return Labels(points, self.features, self.columns, self.kind, texts)

    def of_features(self, order: NDArray[np.intp]) -> Labels:
        """The names of features in another order."""
        if self.features is None:
            return self
        features = tuple(self.features[j] for j in order)
        columns = self.columns and tuple(self.columns[j] for j in order)
        return replace(self, features=features, columns=columns)

    def names_rows_of(self, values: Array) -> bool:
        """Whether there is one name for each row of ``values``."""
        return self.points is not None and len(self.points) == len(values)


def differ(names: object, others: object) -> bool:
    """Whether both tables have names, and not the same ones in the same order."""
    return names is not None and others is not None and names != others


def listed(names: Sequence[object], most: int = 8) -> str:
    """The first names in words, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:most])
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{shown}{more}" or "none"


def group_sums(
    groups: Mapping[str, Sequence[str]], features: tuple[str, ...]
) -> tuple[Array, tuple[str, ...]]:
    """Which of D features each of K groups adds up, (K, D) of ones and zeros; names.

    A feature in no group is one by itself; a group has the place of its first feature.
    """
    columns, group_of = set(features), dict[str, str]()
    if len(columns) < len(features):
        raise InvalidInput("groups: two features have one name; rename the columns")
    for name, members in groups.items():
        if isinstance(members, str) or len(members) == 0:
            raise InvalidInput(f"groups: {name!r}: expected a list of features")
        for member in members:
            if member not in columns:
                raise InvalidInput(f"groups: {name!r}: no feature {member!r}")
            if member in group_of:
                raise InvalidInput(f"groups: {member!r} appears twice")
            group_of[member] = name
    clashes = [name for name in groups if name in columns and name not in group_of]
    if clashes:
        raise InvalidInput(f"groups: {listed(clashes)}: a feature is called so too")
    own = [group_of.get(feature, feature) for feature in features]
    names = tuple(dict.fromkeys(own))
    return np.array([[x == name for x in own] for name in names], float), names


def numbers_of_rows(
    numbers: Any, table: Any, n_rows: int, label: str, whose: str
) -> Array:
    """One finite number for each row of a table (n,); a Series is put in order."""
    if isinstance(numbers, str):
        raise InvalidInput(
            f"{label}: expected a number for each row of {whose}, got the name "
            f"{numbers!r}; give that column itself, as {whose}[{numbers!r}]"
        )
    if isinstance(numbers, pd.Series) and isinstance(table, pd.DataFrame):
        own, index = numbers.index, table.index
        same = own.is_unique and index.is_unique and len(own) == len(index)
        if not own.equals(index) and not (same and index.isin(own).all()):
            raise InvalidInput(
                f"{label}: its index is not that of {whose}; give "
                f"{label}.to_numpy() if the rows stand in the same order"
            )
        numbers = numbers if own.equals(index) else numbers.loc[index]
    array = read_array(numbers, label, ndim=1)
    if len(array) != n_rows:
        raise InvalidInput(
            f"{label}: expected one for each of the {n_rows:,} rows of {whose}, got "
            f"{len(array):,}"
        )
    return array


def read_table(table: object, label: str) -> tuple[Array, Labels]:
    """A finite float64 array (N, D) and the names that came with it."""
    frame = as_frame(table, label)
    if frame is None:
        return read_array(table, label, ndim=2), Labels()
    return read_array(plain_numbers(frame.table), label, ndim=2), frame.labels


def read_points(table: object, label: str) -> tuple[Array, Labels]:
    """As :func:`read_table`, but NaN where it is missing: NaN, None, NA or null."""
    frame = table if isinstance(table, Frame) else as_frame(table, label)
    if frame is not None:
        if words := _columns_of_words(frame.table):
            raise InvalidInput(
                f"{label}: expected numbers, got words in {listed(words)}; where "
                "distances are meant, po.functions.TableSchema.of(X).coordinates(X) "
                "has numbers for them"
            )
        points = read_with_missing(plain_numbers(frame.table), label, ndim=2)
        return points, frame.labels
    if isinstance(table, np.ndarray) and table.dtype == object:
        table = np.where(pd.isna(table), np.nan, table)
    return read_with_missing(table, label, ndim=2), Labels()


def _columns_of_words(table: pd.DataFrame) -> list[Hashable]:
    """Columns with a cell that is there and that no number can be read from."""
    kinds = enumerate(table.dtypes)
    columns = (table.iloc[:, j] for j, kind in kinds if kind.kind not in "biufcmM")
    return [
        column.name
        for column in columns
        if (_has_named_categories(column) and column.notna().any())
        or pd.to_numeric(column.dropna().astype(object), errors="coerce").isna().any()
    ]


def table_labels(table: object) -> Labels:
    """The names that come with a table; none where it is no DataFrame."""
    frame = as_frame(table, "X")
    return Labels() if frame is None else frame.labels


Builder = TypeVar("Builder", bound=Callable[..., Any])


def named_by(noun: Literal["points", "features"]) -> Callable[[Builder], Builder]:
    """The same builder, whose result has as ``names`` those of the table X it takes."""

    def decorated(build: Builder) -> Builder:
        @wraps(build)
        def named(*args: Any, **settings: Any) -> Any:
            built = build(*args, **settings)
            built.names = getattr(
                table_labels(args[0] if args else settings["X"]), noun
            )
            return built

        return cast(Builder, named)

    return decorated


# ---- Rows of a table as directions


def directions(rows: Sparse) -> Sparse:
    """Rows (N, M) at length one, those of zeros as they are."""
    sizes = np.asarray(abs(rows).max(axis=1).toarray(), float).ravel()
    near_one = _divided(rows, sizes)  # whose squares neither overflow nor vanish
    return _divided(near_one, np.sqrt(near_one.power(2).sum(axis=1)))


def _divided(rows: Sparse, sizes: Array) -> Sparse:
    shares = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
    return sp.csr_array(sp.diags_array(shares) @ rows)


# ---- Rows and columns put in order by name


def orders_of(
    own: Labels, names: Labels, label: str, whose: str, *, counted: bool = False
) -> tuple[Any, Any]:
    """Indices of rows and of columns that put them in the order of ``names``."""
    columns = order_of(own.features, names.features, f"{label}: its columns", whose)
    rows = order_of(
        own.points, names.points, f"{label}: its rows", whose, counted=counted
    )
    every = slice(None)
    return every if rows is None else rows, every if columns is None else columns


def aligned_vector(
    carrier: object, names: Sequence[Hashable] | None, label: str, whose: str
) -> Array:
    """Numbers (n,), those of a Series in the order of ``names``."""
    array = read_array(carrier, label, ndim=1)
    if not isinstance(carrier, pd.Series):
        return array
    order = order_of(tuple(carrier.index), names, f"{label}: its labels", whose)
    return array if order is None else array[order]


def order_of(
    own: Sequence[Hashable] | None,
    wanted: Sequence[Hashable] | None,
    label: str,
    whose: str,
    *,
    counted: bool = False,
) -> NDArray[np.intp] | None:
    """Where each wanted name stands among one's own; None if both are in one order.

    Names are the same where a file would have the same of both: a date is its text.
    With ``counted``, names that only count from zero are put in no other order: they
    may be no more than the index that a DataFrame has when it has no other.
    """
    if own is None or wanted is None or not differ(tuple(own), tuple(wanted)):
        return None
    have, want = ([plain_name(name) for name in names] for names in (own, wanted))
    if have == want:
        return None
    index = {key: n for n, key in enumerate(have)}
    _refuse_others(have, want, label, whose)
    if len(index) < len(have) or len(have) != len(want):
        raise InvalidInput(
            f"{label} are not told apart by their names: some appear twice, and in "
            f"another order than those of {whose}"
        )
    if counted and have == list(range(len(have))):
        raise InvalidInput(
            f"{label} are counted, and those of {whose} have the same numbers in "
            f"another order; {_REMEDY}"
        )
    return np.array([index[key] for key in want], dtype=np.intp)


_REMEDY = "give them the same names, or an array, which goes by position"


def _refuse_others(
    have: Sequence[object], want: Sequence[object], label: str, whose: str
) -> None:
    own, needed = set(have), set(want)
    lacking = [name for name in want if name not in own]
    unknown = [name for name in have if name not in needed]
    parts = [
        f"{listed(names, 3)} {verb}"
        for names, verb in ((lacking, "missing"), (unknown, "not known"))
        if names
    ]
    if parts:
        raise InvalidInput(
            f"{label} are not those of {whose}: {', '.join(parts)}; {_REMEDY}"
        )
