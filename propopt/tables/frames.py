"""DataFrames of any library, and the names of their rows and columns.

Two tables with names are aligned by name: another order is corrected, other names are
refused. If one of them has no names, rows and columns are matched by position.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
    Sized,
)
from dataclasses import dataclass, replace
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    NoReturn,
    TypeVar,
    cast,
    final,
)

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt.base.arrays import Array, Sparse, quotient
from propopt.base.checks import did_you_mean, read_array, read_with_missing
from propopt.base.declared import transient
from propopt.base.errors import InvalidInput
from propopt.base.extras import require
from propopt.base.text import enumerated, plain_name, repeated


if TYPE_CHECKING:
    import narwhals.stable.v2 as nw


_Name = TypeVar("_Name", bound=Hashable)


# ---- Tables of any library, converted to pandas and back


@final
@dataclass(frozen=True, eq=False)
class TableLibrary:
    """The library of a table other than pandas, to which results are converted."""

    backend: Any  # such as polars or pyarrow
    # dtypes of columns of text, booleans and text categories
    coded: dict[str, Any] = dataclasses.field(default_factory=dict)

    def table(self, frame: pd.DataFrame) -> Any:
        """A table of this library with the columns of a pandas DataFrame."""
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
    """A table with named columns, as a pandas DataFrame."""

    table: pd.DataFrame
    kind: TableLibrary | None = None  # its library; None for pandas
    # whether its index has names of rows; most other libraries have none
    named_rows: bool = True

    @property
    def labels(self) -> Labels:
        """The names of rows, if they have any, and of columns."""
        return self.with_columns(tuple(self.table.columns))

    def with_columns(self, columns: tuple[Hashable, ...]) -> Labels:
        """The names of rows, with other ones of columns."""
        return Labels(self.rows, tuple(map(str, columns)), columns, self.kind)

    @property
    def rows(self) -> tuple[Hashable, ...] | None:
        """The names of rows, if they have any; missing names are one NaN object."""
        if not self.named_rows:
            return None
        index = self.table.index
        if isinstance(index, pd.MultiIndex) or not index.hasnans:
            return tuple(index)
        return tuple(
            np.nan if isinstance(name, float) and math.isnan(name) else name
            for name in index
        )


def as_frame(table: object, label: str) -> Frame | None:
    """Convert a table of any library that narwhals supports; None if it is no table."""
    if isinstance(table, pd.DataFrame):
        return Frame(table)
    frame = _as_narwhals(table, label)
    return None if frame is None else _converted(frame)


def as_arrow(table: object) -> Any:
    """Convert a table of any library to one of pyarrow; None if it is no table."""
    if isinstance(table, pd.DataFrame):
        return require("pyarrow").Table.from_pandas(table, preserve_index=False)
    frame = _as_narwhals(table, "X")
    return None if frame is None else frame.to_arrow()


def is_frame(table: object, label: str) -> bool:
    """Whether it is a table with named columns, of any library."""
    return isinstance(table, pd.DataFrame) or _as_narwhals(table, label) is not None


def is_documents(X: object) -> bool:
    """Whether X is a sequence, a Series or an array with a string or bytes in it."""
    if isinstance(X, pd.DataFrame):
        return False
    if isinstance(X, np.ndarray | pd.Series) and X.dtype.kind in "biufcmM":
        return False  # by the dtype alone
    texts = items_of(X)
    return texts is not None and any(isinstance(text, str | bytes) for text in texts)


def items_of(X: Any) -> list[Any] | None:
    """The items of X in order; None if it is no sequence."""
    if isinstance(X, str | bytes | memoryview | Mapping | pd.DataFrame):
        return None
    if isinstance(X, np.ndarray):
        return X.tolist() if X.ndim == 1 else None
    if isinstance(X, pd.Series | pd.Index | Sequence):
        return list(X)
    import narwhals.stable.v2 as nw

    if not nw.dependencies.is_into_series(X):
        return None
    return nw.from_native(X, series_only=True).to_list()


def select_rows(table: Any, indices: Sequence[int] | NDArray[np.intp]) -> Any:
    """Select rows of a table or array; the type of the table stays."""
    rows = np.asarray(indices, dtype=np.intp)
    if isinstance(table, pd.DataFrame):
        return table.iloc[rows]
    frame = _as_narwhals(table, "X")
    if frame is None:
        return np.asarray(table)[rows]
    return frame[rows.tolist()].to_native()  # polars takes no integers of NumPy


def joined_rows(first: Any, second: Any) -> Any:
    """The rows of two tables or targets, concatenated."""
    if isinstance(first, pd.DataFrame | pd.Series):
        return pd.concat([first, second])
    return np.concatenate([first, second])


def select_columns(table: Any, indices: Sequence[int]) -> Any:
    """Select columns of a table or array; the type of the table stays."""
    columns = list(map(int, indices))
    if isinstance(table, pd.DataFrame):
        return table.iloc[:, columns]
    frame = _as_narwhals(table, "X")
    if frame is None:
        return np.asarray(table)[:, columns]
    return frame[:, columns].to_native()


def with_permuted_columns(
    table: Any, indices: Sequence[int], order: NDArray[np.intp]
) -> Any:
    """A copy of a table with some columns permuted; ``order`` has the rows."""
    if isinstance(table, pd.DataFrame):
        result = table.copy(deep=False)
        for index in indices:
            result.isetitem(index, table.iloc[order, index].array)
        return result
    frame = _as_narwhals(table, "X")
    if frame is None:
        array = np.array(table)
        columns = np.asarray(indices, dtype=np.intp)
        array[:, columns] = array[np.ix_(order, columns)]
        return array
    names = [frame.columns[index] for index in indices]
    rows = order.tolist()
    return frame.with_columns(*(frame[name][rows] for name in names)).to_native()


def column_names(table: Any) -> tuple[Hashable, ...] | None:
    """The labels of the columns of a table; None for an array."""
    if isinstance(table, pd.DataFrame):
        return tuple(table.columns)
    frame = _as_narwhals(table, "X")
    return None if frame is None else tuple(frame.columns)


def _as_narwhals(table: object, what: str) -> nw.DataFrame[Any] | None:
    """A table as one of narwhals; None if narwhals does not support it."""
    if table is None or isinstance(table, np.ndarray | list | tuple | float):
        return None  # narwhals is not imported
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(table, pass_through=True)
    except DuplicateError as error:
        raise InvalidInput(f"{what}: two columns have one name: {error}") from None
    if isinstance(frame, nw.LazyFrame):
        raise InvalidInput(
            f"{what}: a lazy table has no rows yet; give its collect() or compute()"
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def _converted(table: nw.DataFrame[Any]) -> Frame:
    """A table of narwhals as one of pandas."""
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
    """A column as cells, categories or numbers; with nulls in a nullable dtype."""
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
    numbers = pd.Series(column.fill_null(0).to_numpy())
    return numbers.astype(pd.api.types.pandas_dtype(str(dtype))).mask(null)


def _plain(column: pd.Series[Any]) -> Any:
    """A column as an array of numbers, or a list of cells with None if missing."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return column.to_numpy()
    cells = zip(column.tolist(), column.isna().tolist(), strict=True)
    return [None if absent else value for value, absent in cells]


_NULLABLE = frozenset(
    [f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]
    + ["Float32", "Float64"]
)
"""Nullable dtypes of pandas; narwhals has the same names."""


# ---- Cells of a DataFrame as numbers


_LARGEST = int(np.finfo(float).max)


def coerce_numbers(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Cells as numbers: NaN if they are none, infinite beyond all floats."""
    try:
        return pd.to_numeric(cells, errors="coerce")
    except OverflowError:  # integers of hundreds of digits among objects
        plain = [
            math.inf if isinstance(cell, int) and abs(cell) > _LARGEST else cell
            for cell in cells
        ]
        finite = pd.Series(plain, index=cells.index, dtype=object)
        return pd.to_numeric(finite, errors="coerce")


def plain_numbers(table: pd.DataFrame) -> NDArray[Any]:
    """The cells of a table as an array, NaN if missing; types are not checked."""
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


def _first_word(frame: pd.DataFrame) -> str | None:
    """The first cell of a table that is a word, as text; None if there is none."""
    for j, dtype in enumerate(frame.dtypes):
        if dtype.kind in "biufcmM":
            continue
        column = frame.iloc[:, j]
        objects = column.astype(object)
        bad = objects.notna().to_numpy(dtype=bool)
        categories = getattr(column.dtype, "categories", ())
        if not any(isinstance(category, str) for category in categories):
            bad = bad & coerce_numbers(objects).isna().to_numpy(dtype=bool)
        if bad.any():
            n = int(bad.argmax())
            value = objects.tolist()[n]
            return f"column {column.name!r}, row {row_name(column, n)} holds {value!r}"
    return None


def row_name(column: pd.Series[Any] | pd.DataFrame, n: int) -> str:
    """The label of the n-th row as text for messages."""
    return repr(column.index[n : n + 1].tolist()[0])


# ---- Names of rows and columns


@dataclass(frozen=True)
class Labels:
    """The names of the N rows and the D features of a table, if it has names."""

    points: tuple[Hashable, ...] | None = None
    features: tuple[str, ...] | None = None
    # the labels of a DataFrame, of any type; only :meth:`table` needs them
    columns: tuple[Hashable, ...] | None = transient(
        default=None, compare=False, repr=False
    )
    # the library of the table, if not pandas; only :meth:`table` needs it
    kind: TableLibrary | None = transient(default=None, compare=False, repr=False)
    # the N documents
    texts: tuple[str, ...] | None = transient(default=None, compare=False, repr=False)

    shared_in_files: ClassVar[bool] = True

    def table(self, values: NDArray[Any]) -> Any:
        """``values`` (n, D) as a table of the library of the input, or as an array."""
        if self.features is None:
            return values
        index = self.points
        if index is not None and len(index) != len(values):
            index = None
        columns = self.features if self.columns is None else self.columns
        frame = pd.DataFrame(values, columns=list(columns), index=index)
        if self.kind is None:
            return frame
        # a missing number is null in other libraries, not NaN
        has_missing = values.dtype.kind == "f" and bool(np.isnan(values).any())
        return self.kind.table(frame.astype("Float64") if has_missing else frame)

    def frame(self, values: Array) -> pd.DataFrame:
        """A copy as a DataFrame; columns without names are ``x0, x1, ...``."""
        columns = list(self.feature_names(values.shape[1]))
        return pd.DataFrame(values, columns=columns, index=self.points, copy=True)

    def feature_names(self, count: int) -> tuple[str, ...]:
        """The names of D features, ``x0, x1, ...`` without names."""
        return self.features or tuple(f"x{j}" for j in range(count))

    def row(self, n: int) -> Hashable:
        """The name of the n-th row; its number without names."""
        return n if self.points is None else self.points[n]

    def check(self, shape: tuple[int, ...], label: str) -> None:
        """Refuse names if their number differs from the rows or columns of a table.

        Parameters
        ----------
        shape : (int, int)
            The numbers of rows N and of columns D.
        label : str
            The name of the table in errors.

        Raises
        ------
        InvalidInput
            If there are more or fewer names, or two features have one name.
        """
        N, D = shape
        axes = (self.points, "points", N), (self.features, "features", D)
        for names, noun, count in axes:
            if names is not None and len(names) != count:
                raise InvalidInput(
                    f"{label}: expected {count} names of {noun}, got {len(names)}"
                )
        refuse_repeated(self.features or (), label)

    def position(self, row: Hashable, n_points: int) -> int:
        """The position of a row, by its name or, without names, by its number.

        Parameters
        ----------
        row : hashable
            The name or number.
        n_points : int
            The number of rows.

        Raises
        ------
        InvalidInput
            If there is no such row.
        """
        names = range(n_points) if self.points is None else self.points
        if row not in names:
            raise InvalidInput(
                f"row: there is no row {row!r}; there are {n_points}, from "
                f"{names[0]!r} to {names[-1]!r}"
            )
        return names.index(row)  # type: ignore[arg-type]  # a range has whole numbers

    def or_else(self, other: Labels) -> Labels:
        """These names, completed by those of another table."""
        return replace(
            other if self.features is None else self,
            points=other.points if self.points is None else self.points,
            texts=other.texts if self.texts is None else self.texts,
        )

    def of_positions(self, rows: slice | Sequence[int] | NDArray[np.intp]) -> Labels:
        """The names for some rows, by their positions."""
        points = _selected(self.points, rows)
        return replace(self, points=points, texts=_selected(self.texts, rows))

    def of_columns(self) -> Labels:
        """The names of the features without those of the rows."""
        return replace(self, points=None, texts=None)

    def of_features(self, order: NDArray[np.intp]) -> Labels:
        """The names with the features in another order."""
        features = _selected(self.features, order)
        return replace(self, features=features, columns=_selected(self.columns, order))


NO_NAMES: Final = Labels()
"""Labels of a table without names."""


def _selected(names: Any, rows: Any) -> Any:
    """Some names, by a slice or by positions; None without names."""
    if names is None or isinstance(rows, slice):
        return names and names[rows]
    return tuple([names[n] for n in rows])


def differ(names: object, others: object) -> bool:
    """Whether both have names, and these differ or are in another order."""
    return names is not None and others is not None and names != others


def listed(names: Sequence[object], most: int = 8) -> str:
    """The first names as text, and the number of others."""
    shown = ", ".join(repr(name) for name in names[:most])
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{shown}{more}" or "none"


def refuse_repeated(names: Iterable[Hashable], label: str) -> None:
    """Refuse names of columns that occur more than once."""
    twice = repeated(names)
    if twice:
        raise InvalidInput(f"{label}: two columns have one name: {listed(twice)}")


def refuse_other_columns(
    names: Sequence[object],
    expected: Sequence[object],
    label: str,
    source: str,
    in_order: str,
) -> NoReturn:
    """Refuse columns that are not the expected ones, or in another order.

    ``source`` says what has the expected ones, and ``in_order`` what has their order.
    """
    missing = [name for name in expected if name not in names]
    unexpected = [name for name in names if name not in expected]
    if missing or unexpected:
        remedy = f"rename those of {label} if they are the same"
        if not missing:
            remedy = f"leave these out, {label}.drop(columns=[{listed(unexpected, 3)}])"
        elif not unexpected:
            remedy = "give these too"
        raise InvalidInput(
            f"{label}: the columns differ from those {source}; missing: "
            f"{listed(missing)}; unexpected: {listed(unexpected)}; {remedy}"
        )
    raise InvalidInput(
        f"{label}: the columns are those {source}, in another order or repeated; "
        f"expected {listed(expected)}, got {listed(names)}; {in_order} them in order"
    )


def position_of(key: Hashable, label: str, names: Sequence[str]) -> int:
    """The position of a column, from its name or its position."""
    if str(key) in names:
        return names.index(str(key))
    if isinstance(key, int | np.integer) and 0 <= key < len(names):
        return int(key)
    raise InvalidInput(
        f"{label}: no column {key!r}{did_you_mean(key, names)}; there are "
        f"{listed(names)}"
    )


def group_of_each(
    groups: Mapping[_Name, Any], columns: Sequence[_Name]
) -> dict[_Name, _Name]:
    """The group of each column that belongs to one."""
    group_of = dict[_Name, _Name]()
    names = set(columns)
    for group, members in groups.items():
        has_members = isinstance(members, Sized) and len(members) > 0
        if isinstance(members, str) or not has_members:
            raise InvalidInput(
                f"groups: {group!r}: expected a list of features, got {members!r}"
            )
        for member in members:
            if member not in names:
                hint = did_you_mean(member, [*map(str, columns)])
                raise InvalidInput(
                    f"groups: {group!r}: no feature {member!r}{hint}; the features "
                    f"are {listed(columns)}"
                )
            if member in group_of:
                raise InvalidInput(f"groups: {member!r} appears twice")
            group_of[member] = group
    clashes = [name for name in groups if name in names and name not in group_of]
    if clashes:
        raise InvalidInput(
            f"groups: {listed(clashes)}: a feature outside the group has that name"
        )
    return group_of


def group_sums(
    groups: Mapping[str, Sequence[str]], features: tuple[str, ...]
) -> tuple[Array, tuple[str, ...]]:
    """The sums of K groups of D features: a matrix (K, D) of ones and zeros, and names.

    A feature in no group is a group by itself. Groups are in the order of their first
    features.
    """
    refuse_repeated(features, "groups")
    group_of = group_of_each(groups, features)
    group_names = [group_of.get(feature, feature) for feature in features]
    names = tuple(dict.fromkeys(group_names))
    return np.array([[x == name for x in group_names] for name in names], float), names


def joined_groups(
    groups: Iterable[Sequence[str]], unit_of: Mapping[str, str]
) -> tuple[tuple[str, ...], ...]:
    """Groups of features as groups of the units that replace some features.

    Groups that share a unit are one; a unit alone is none.
    """
    joined = list[set[str]]()
    for group in groups:
        units = {unit_of[feature] for feature in group}
        met = [other for other in joined if other & units]
        joined = [other for other in joined if not other & units]
        joined.append(units.union(*met))
    order = list(dict.fromkeys(unit_of.values()))
    return tuple(
        tuple(sorted(units, key=order.index)) for units in joined if len(units) > 1
    )


def sums_of_groups(
    values: Array, features: tuple[str, ...], groups: Iterable[Sequence[str]]
) -> Array:
    """For each of values (N, D) the sum of its group; NaN for features in none."""
    sums = np.full(values.shape, np.nan)
    for group in groups:
        members = [*map(features.index, group)]
        sums[:, members] = values[:, members].sum(axis=1, keepdims=True)
    return sums


_NAMED_MEMBERS: Final = 3


def name_of_group(members: Sequence[str], last: str = "and") -> str:
    """The name of a group: ``"a and b"``, or the first two and how many more."""
    if len(members) > _NAMED_MEMBERS:
        members = [*members[:2], f"{len(members) - 2} more"]
    return enumerated(members, last)


def numbers_of_rows(
    numbers: Any, table: Any, n_rows: int, label: str, table_name: str
) -> Array:
    """A finite number for each row of a table, (n,); a Series is aligned."""
    if isinstance(numbers, str):
        raise InvalidInput(
            f"{label}: expected a number for each row of {table_name}, got the name "
            f"{numbers!r}; give that column, {table_name}[{numbers!r}]"
        )
    if isinstance(numbers, pd.Series) and isinstance(table, pd.DataFrame):
        names = numbers.index
        index = table.index
        is_unique = names.is_unique and index.is_unique and len(names) == len(index)
        if not names.equals(index) and not (is_unique and index.isin(names).all()):
            raise InvalidInput(
                f"{label}: its index is not that of {table_name}; give "
                f"{label}.to_numpy() if the rows are in the same order"
            )
        numbers = numbers if names.equals(index) else numbers.loc[index]
    array = read_array(numbers, label, ndim=1)
    if len(array) != n_rows:
        raise InvalidInput(
            f"{label}: expected one for each of the {n_rows:,} rows of {table_name}, "
            f"got {len(array):,}"
        )
    return array


def read_table(table: object, label: str) -> tuple[Array, Labels]:
    """Read a table as a finite float64 array (N, D) and its names."""
    frame = as_frame(table, label)
    if frame is None:
        return read_array(table, label, ndim=2), NO_NAMES
    return read_array(plain_numbers(frame.table), label, ndim=2), frame.labels


def read_points(
    table: object,
    label: str,
    remedy: str = "po.functions.TableSchema.of(X).coordinates(X) encodes it for "
    "distances",
) -> tuple[Array, Labels]:
    """As :func:`read_table`, but missing values (None, NA, null) become NaN.

    ``remedy`` is the advice for a table with words.
    """
    frame = as_frame(table, label)
    if frame is not None:
        if (word := _first_word(frame.table)) is not None:
            raise InvalidInput(f"{label}: expected numbers, but {word}; {remedy}")
        points = read_with_missing(plain_numbers(frame.table), label)
        return points, frame.labels
    if isinstance(table, np.ndarray) and table.dtype == object:
        table = np.where(pd.isna(table), np.nan, table)
    return read_with_missing(table, label), NO_NAMES


Builder = TypeVar("Builder", bound=Callable[..., Any])


def named_by(noun: Literal["points", "features"]) -> Callable[[Builder], Builder]:
    """Give the result of a builder the names of its argument X as ``names``."""

    def decorated(build: Builder) -> Builder:
        @wraps(build)
        def named(*args: Any, **settings: Any) -> Any:
            built = build(*args, **settings)
            frame = as_frame(args[0] if args else settings["X"], "X")
            built.names = None if frame is None else getattr(frame.labels, noun)
            return built

        return cast(Builder, named)

    return decorated


# ---- Rows of unit length


def directions(rows: Sparse) -> Sparse:
    """Scale rows (N, M) to length one; rows of zeros stay zero."""
    sizes = np.asarray(abs(rows).max(axis=1).toarray(), float).ravel()
    scaled = _divided(rows, sizes)  # its squares neither overflow nor vanish
    return _divided(scaled, np.sqrt(scaled.power(2).sum(axis=1)))


def _divided(rows: Sparse, sizes: Array) -> Sparse:
    return sp.csr_array(sp.diags_array(quotient(1.0, sizes)) @ rows)


# ---- Alignment of rows and columns by name


def orders_of(
    labels: Labels, names: Labels, label: str, table_name: str
) -> tuple[Any, Any]:
    """Indices of rows and of columns that put them in the order of ``names``.

    Rows that are named 0, 1, 2, ... are not reordered, see :func:`order_of`.
    """
    columns = order_of(
        labels.features, names.features, f"{label}: its columns", table_name
    )
    rows = order_of(
        labels.points, names.points, f"{label}: its rows", table_name, counted=True
    )
    every = slice(None)
    return every if rows is None else rows, every if columns is None else columns


def aligned_vector(
    values: object, names: Sequence[Hashable] | None, label: str, table_name: str
) -> Array:
    """Numbers (n,); those of a Series in the order of ``names``."""
    array = read_array(values, label, ndim=1)
    if not isinstance(values, pd.Series):
        return array
    order = order_of(tuple(values.index), names, f"{label}: its labels", table_name)
    return array if order is None else array[order]


def order_of(
    names: Sequence[Hashable] | None,
    wanted: Sequence[Hashable] | None,
    label: str,
    table_name: str,
    *,
    counted: bool = False,
) -> NDArray[np.intp] | None:
    """The index of each wanted name; None if the order is the same, or without names.

    Names are compared as files store them: a date is its text. With ``counted``, names
    0, 1, 2, ... are not reordered: they may be the default index of a DataFrame.
    """
    if names is None or wanted is None or not differ(tuple(names), tuple(wanted)):
        return None
    have, want = ([plain_name(name) for name in each] for each in (names, wanted))
    if have == want:
        return None
    index = {key: n for n, key in enumerate(have)}
    _refuse_others(have, want, label, table_name)
    if len(index) < len(have) or len(have) != len(want):
        raise InvalidInput(
            f"{label} have equal names, and are in another order than those of "
            f"{table_name}; {_REMEDY}"
        )
    if counted and have == list(range(len(have))):
        raise InvalidInput(
            f"{label} are the numbers 0, 1, 2, ..., and those of {table_name} are in "
            f"another order; {_REMEDY}"
        )
    return np.array([index[key] for key in want], dtype=np.intp)


def table_of_rows(X: Any, like: Any) -> Any:
    """A table of one row that is a Series or a mapping, or of a list of mappings.

    They need the names of ``like``, a table or its schema, in any order; anything else
    is returned unchanged.
    """
    index = None
    header = getattr(like, "header", column_names(like))
    rows = X if isinstance(X, list) and X else [X]
    if isinstance(X, pd.Series):
        is_row = X.dtype.kind in "biuf" if header is None else X.name not in header
        if like is None or not (is_row and X.index.is_unique):
            return X
        rows = [X.to_dict()]
        index = [X.name]
    table = []
    for n, row in enumerate(rows):
        if not isinstance(row, Mapping) or any(np.ndim(x) > 0 for x in row.values()):
            return X
        header = tuple(row) if header is None else tuple(header)
        order = order_of(tuple(row), header, f"X: row {n}: its names", "data")
        cells = [*row.values()]
        table.append(cells if order is None else [cells[k] for k in order])
    return pd.DataFrame(table, columns=header, index=index)


_REMEDY = "give them the same names, or an array, which is matched by position"


def _refuse_others(
    have: Sequence[object], want: Sequence[object], label: str, table_name: str
) -> None:
    """Refuse names if one of two tables has others; both are sequences of names."""
    available = set(have)
    needed = set(want)
    lists = (
        ([name for name in want if name not in available], "missing"),
        ([name for name in have if name not in needed], "unexpected"),
    )
    parts = [f"{listed(names, 3)} {verb}" for names, verb in lists if names]
    if parts:
        raise InvalidInput(
            f"{label} are not those of {table_name}: {', '.join(parts)}; {_REMEDY}"
        )
