"""Columns of a table: their cells, and their encoding as numbers or codes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Final, Self, TypeAlias, final, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array
from propopt.base.checks import read_only
from propopt.base.codecs import Codec, Members, record_codec
from propopt.base.declared import field
from propopt.base.errors import InvalidInput
from propopt.tables.frames import coerce_numbers, listed, row_name


MAX_OBSERVED_VALUES: Final = 10_000
"""A column with more distinct values is summarised by its mean and deviation."""


DATA_LAW: Final = "po.functions.smoothed(function, law='data', data=X_train)"
"""The call that smooths over fewer rows; it accepts arrays too."""


# ---- Labels, dtypes and missing values in files: text and numbers, no pickles


_MISSING: Final[Mapping[str, Any]] = {"NaN": np.nan, "NA": pd.NA, "NaT": pd.NaT}

_INVALID: Final = (
    ArithmeticError,
    AttributeError,
    ImportError,  # of dtypes that need a package
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Errors from text and numbers that are no labels or dtypes."""


def _packed(value: Any) -> Any:
    """A label, dtype, index or missing value, or a tuple of them, as JSON.

    It is a JSON value, or an object with one key for its kind.
    """
    match value:
        case None | bool() | str():
            return value
        case int() | np.integer():
            return int(value)
        case float() | np.floating() if math.isfinite(value):
            return float(value)
        case tuple():
            return {"tuple": [*map(_packed, value)]}
        case pd.MultiIndex():
            raise InvalidInput("data: columns with several levels cannot be saved")
        case pd.Index():
            values = [*map(_packed, value.tolist())]
            return {"index": [values, _packed(value.dtype), _packed(value.name)]}
        case pd.CategoricalDtype():
            return {"categories": [_packed(value.categories), bool(value.ordered)]}
        case np.dtype() | pd.api.extensions.ExtensionDtype():
            return {"dtype": _dtype_in_words(value)}
    if isinstance(value, float) and math.isnan(value):
        return {"missing": "NaN"}
    for name, missing in _MISSING.items():
        if value is missing:
            return {"missing": name}
    raise InvalidInput(
        f"data: {value!r} is neither text nor a number, so it cannot be saved"
    )


def _dtype_in_words(dtype: Any) -> str:
    """The text from which pandas makes a dtype again."""
    text = str(dtype)
    if isinstance(dtype, pd.StringDtype) and pd.api.types.pandas_dtype(text) != dtype:
        text = f"string[{dtype.storage}]"
    if pd.api.types.pandas_dtype(text) != dtype:
        raise InvalidInput(f"data: columns of dtype {dtype!r} cannot be saved")
    return text


def _unpacked(plain: Any) -> Any:
    """The value that :func:`_packed` packed."""
    if isinstance(plain, list):
        raise TypeError("a list is no label")
    if not isinstance(plain, dict):
        return plain
    ((kind, content),) = plain.items()
    match kind:
        case "tuple":
            return tuple(map(_unpacked, content))
        case "missing":
            return _MISSING[content]
        case "dtype":
            return pd.api.types.pandas_dtype(content)
        case "categories":
            categories, ordered = content
            return pd.CategoricalDtype(_unpacked(categories), ordered=ordered)
    values, dtype, name = plain["index"]
    return pd.Index(
        [*map(_unpacked, values)],
        dtype=_unpacked(dtype),
        name=_unpacked(name),
        tupleize_cols=False,
    )


def _unpack(plain: Any, name: str, _: Members) -> Any:
    try:
        return _unpacked(plain)
    except _INVALID as error:
        raise InvalidInput(f"{name}: it is not valid: {error}") from None


LABEL_CODEC: Final = Codec("a label", _unpack, lambda value, *_: _packed(value))
"""The codec of labels, dtypes, indices and missing values, and of tuples of them."""


# ---- Cells of a column: numbers, categories and missing values


LARGEST_INTEGER: Final = 2.0**53
"""The largest integer below which float64 has all integers."""


def holds_categories(column: pd.Series[Any], label: str) -> bool:
    """Whether a column holds categories: text, booleans, objects except numbers."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(dtype):
        return True
    if not pd.api.types.is_string_dtype(dtype):  # true for objects too
        return False
    objects = column[column.notna()].tolist()
    for cell in objects:
        try:
            hash(cell)
        except TypeError:
            raise InvalidInput(
                f"{label}: column {column.name!r} holds a {type(cell).__name__} in a "
                "cell; expected numbers or categories: give a column for each item"
            ) from None
    if all(map(_is_number, objects)):
        return len(objects) == 0
    if all(isinstance(value, str) or _is_number(value) for value in objects):
        numbers = coerce_numbers(pd.Series(objects, dtype=object))
        if numbers.notna().all():
            text = next(value for value in objects if isinstance(value, str))
            raise InvalidInput(
                f"{label}: column {column.name!r} holds numbers as text, such as "
                f"{text!r}; convert them by pandas.to_numeric, or declare the column "
                "categorical"
            )
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_)


def refuse_dates(column: pd.Series[Any], label: str) -> None:
    """Refuse dates and lengths of time, which have no unit as numbers."""
    if column.dtype.kind in "mM":
        raise InvalidInput(
            f"{label}: column {column.name!r} has dtype {column.dtype}; times are no "
            "numbers: give seconds since the first, (column - "
            "column.min()).dt.total_seconds(), and a callable that converts them to "
            "times for the model"
        )


def read_numbers(column: pd.Series[Any], label: str) -> Array:
    """A column in float64, NaN if missing; other numbers must be finite."""
    if column.dtype.kind in "biuf":
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = _numbers_among_objects(column, label)
    _refuse_row(np.isinf(values), column, label, "a finite number")
    if column.dtype.kind in "iu":
        is_rounded = np.abs(values) > LARGEST_INTEGER
        _refuse_row(is_rounded, column, label, "an integer of at most 2^53")
    return values


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


def plain_floats(table: pd.DataFrame) -> Array | None:
    """All columns as by :func:`read_numbers`; None if one needs that function.

    Such a column has numbers above 2^53, or another dtype than NumPy's numbers.
    """
    values = table.to_numpy()
    if values.dtype.kind not in "iuf" or values.dtype.itemsize > 8:
        return None
    values = np.array(values, np.float64, order="C")
    is_exact = np.abs(values) <= LARGEST_INTEGER
    return values if bool((is_exact | np.isnan(values)).all()) else None


def missing_value(column: pd.Series[Any], label: str) -> Hashable:
    """The missing value of a column: None, NaN or ``pandas.NA``."""
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
            f"{' and '.join(sorted(kinds))}; the model may take them for "
            "different categories: fit it on one kind, as in "
            "column.where(column.notna(), None)"
        )
    return next(iter(kinds.values()), None)


def nullable_dtype(dtype: Any) -> Any:
    """The dtype itself if it has missing values, else the next wider one that has."""
    if getattr(dtype, "na_value", None) is pd.NA or dtype.kind in "fO":
        return dtype
    return object if dtype.kind == "b" else np.dtype(np.float64)


# ---- Columns of a DataFrame, each as a column of numbers or of codes


@final
@dataclass(frozen=True, eq=False)
class ObservedValues:
    """The distinct values of a column, v_1 to v_m, and their counts."""

    values: Array = field("m")  # ascending, without missing ones
    counts: NDArray[np.intp] = field("m", low=1)

    def validate(self) -> None:
        """Refuse values of a file that are not ascending, or without counts."""
        ascending = bool((np.diff(self.values) > 0.0).all())
        if not ascending or self.values.shape != self.counts.shape:
            raise InvalidInput("expected ascending values, and a count for each")

    @classmethod
    def of(cls, column: Array) -> ObservedValues | None:
        """Count the values of a column (n,), without missing ones; None for many."""
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        if len(values) > MAX_OBSERVED_VALUES:
            return None
        return cls(read_only(values), read_only(counts))

    @property
    def shares(self) -> Array:
        """The relative frequency of each value among those not missing, shape (m,)."""
        return self.counts / self.counts.sum()

    def share_up_to(self, ends: Array) -> Array:
        """The relative frequency of values v ≤ end for each of the ends, (n,)."""
        below = np.concatenate([[0.0], np.cumsum(self.shares)])
        return below[np.searchsorted(self.values, ends, side="right")]


def observed_values_of(
    observed: Sequence[ObservedValues | None], j: int
) -> ObservedValues:
    """The observed values of a column; refused if there are too many."""
    values = observed[j]
    if values is None:
        raise InvalidInput(
            "data: effects of missing numbers compare f(x) with its mean over all "
            f"observed values, but column {j} of the points has more than "
            f"{MAX_OBSERVED_VALUES:,}; {DATA_LAW} uses fewer"
        )
    return values


Codes: TypeAlias = NDArray[np.intp]
"""Indices of categories, shape (n,)."""


@dataclass(frozen=True, eq=False)
class Numeric:
    """A column of numbers; a missing one is NaN.

    As every column it has a mask of missing values, encodes a DataFrame as numbers or
    codes (n,), and decodes them to columns of the DataFrame. Distances in
    :mod:`propopt.graphs` are those of its ``coordinates`` (n, m).
    """

    name: Hashable = field(codec=LABEL_CODEC)  # its label
    dtype: Any = field(codec=LABEL_CODEC)  # its dtype in the DataFrame
    # the NumPy dtype of the same numbers
    plain: np.dtype[Any] = field(codec=LABEL_CODEC)
    # the missing value of the DataFrame: None, NaN or NA
    absent: Hashable = field(codec=LABEL_CODEC)
    # statistics of the numbers in the table of the schema, without missing ones
    mean: float = field(missing=True)
    std: float = field(low=0.0)
    # None if more than 10,000 are distinct
    observed_values: ObservedValues | None = field()
    # the share of rows in which the number is missing
    missing_share: float = field(low=0.0, high=1.0)

    def validate(self) -> None:
        """Refuse fields of a file that no table gives."""
        _refuse_unless(are_all(_DTYPES, self.dtype, self.plain), self.name)

    @classmethod
    def of(cls, column: pd.Series[Any], what: str) -> tuple[Self, Array]:
        """The column with its statistics, and its numbers (n,)."""
        refuse_dates(column, what)
        if column.dtype.kind not in "iuf" and column.dtype != object:
            raise InvalidInput(
                f"{what}: column {column.name!r} has dtype {column.dtype}; expected "
                "numbers, text, booleans or categories"
            )
        values = read_numbers(column, what)
        present = np.sort(values[~np.isnan(values)])  # sums round alike for any order
        mean, std = (present.mean(), present.std()) if len(present) else (np.nan, 0.0)
        plain = column.dtype
        if not isinstance(plain, np.dtype) or plain.kind not in "iuf":
            plain = column.dropna().infer_objects().to_numpy().dtype
        numeric = cls(
            name=column.name,
            dtype=column.dtype,
            plain=plain if plain.kind in "iuf" else np.dtype(np.float64),
            absent=missing_value(column, what),
            mean=float(mean),
            std=float(std),
            observed_values=ObservedValues.of(present),
            missing_share=1.0 - len(present) / len(values),
        )
        return numeric, values

    @property
    def spread(self) -> float:
        """The standard deviation; 0 for a column that is constant up to rounding."""
        return float(spreads(self.mean, self.std))

    @property
    def has_missing(self) -> bool:
        """Whether a value is missing in the table of the schema."""
        return self.missing_share > 0.0

    def encode(self, frame: pd.DataFrame, what: str) -> Array:
        """The numbers (n,) of the column in a DataFrame; NaN if missing."""
        return read_numbers(frame[self.name], what)

    def missing(self, values: Array) -> NDArray[np.bool_]:
        """Which of the encoded values are missing, (n,)."""
        return np.isnan(values)

    def decode(self, values: Array) -> Mapping[Hashable, pd.Series[Any]]:
        """The column in its dtype if that is exact, else in float64."""
        absent = self.missing(values)
        plain = self._plain(values)
        has_missing = bool(absent.any())
        has_room = not has_missing or nullable_dtype(self.dtype) == self.dtype
        if plain is None or not has_room:
            return {self.name: pd.Series(values.copy())}
        column = pd.Series(plain).astype(self.dtype)
        if has_missing:
            column[absent] = self.absent
        return {self.name: column}

    def holds(self, values: Array) -> bool:
        """Whether its dtype represents these numbers exactly, except missing ones."""
        return self._plain(values) is not None

    def _plain(self, values: Array) -> NDArray[Any] | None:
        """Numbers in the NumPy dtype of the column; None if that is not exact."""
        numbers = np.where(np.isnan(values), 0.0, values)
        with np.errstate(invalid="ignore", over="ignore"):  # then unequal below
            plain = numbers.astype(self.plain)
        return plain if bool((plain == numbers).all()) else None

    def coordinates(self, values: Array) -> Array:
        """The encoded values as coordinates for distances, (n, 1)."""
        return values[:, None]


@final
@dataclass(frozen=True, eq=False)
class Unread(Numeric):
    """A column that the model does not read, with any cells; all rows have a 0."""

    words: ClassVar[tuple[str, ...]] = ("not read",)

    @classmethod
    def of(cls, column: pd.Series[Any], what: str) -> tuple[Self, Array]:
        """The column, and zeros (n,)."""
        return super().of(pd.Series(np.zeros(len(column)), name=column.name), what)

    def encode(self, frame: pd.DataFrame, what: str) -> Array:
        """Zeros (n,)."""
        del what
        return np.zeros(len(frame))


class CategoricalColumn(ABC):
    """A column of categories, encoded by codes 0, 1, ..., K − 1."""

    name: Hashable
    frequencies: Array
    spread: ClassVar[float] = 1.0

    @property
    @abstractmethod
    def categories(self) -> tuple[Hashable, ...]:
        """The K categories, in the order of their codes."""

    @property
    @abstractmethod
    def present(self) -> tuple[Hashable, ...]:
        """The categories without the missing value."""

    @property
    def words(self) -> tuple[str, ...]:
        """The text of each code."""
        return tuple(map(str, self.categories))

    def coordinates(self, values: Array) -> Array:
        """One-hot / √2, so that two different categories have distance 1."""
        corners = np.zeros((len(values), len(self.frequencies)))
        corners[np.arange(len(values)), self.codes(values)] = 1.0 / np.sqrt(2)
        return corners

    def codes(self, values: Array) -> Codes:
        """``values`` as codes; refuses other numbers."""
        codes = np.where(np.isnan(values), -1.0, values).astype(np.intp)
        bad = (codes != values) | (codes < 0) | (codes >= len(self.frequencies))
        if bad.any():
            raise InvalidInput(
                f"points: column {self.name!r} has categories numbered 0 to "
                f"{len(self.frequencies) - 1}, got {values[int(bad.argmax())]}"
            )
        return codes


@final
@dataclass(frozen=True, eq=False)
class Categorical(CategoricalColumn):
    """A column of text, booleans or categories, or of numbers that encode categories.

    A missing value is a category too, the last one of the table of the schema, with
    frequency zero if no row has it. ``new_categories`` come after it; they are in no
    row of that table, and have frequency zero.
    """

    name: Hashable = field(codec=LABEL_CODEC)  # its label
    dtype: Any = field(codec=LABEL_CODEC)  # its dtype in the DataFrame
    # (K − 1,): the categories that are not missing
    levels: pd.Index = field(codec=LABEL_CODEC)
    absent: Hashable = field(codec=LABEL_CODEC)  # the missing value of the DataFrame
    # the share of each in the table of the schema
    frequencies: Array = field("K", low=0.0, high=1.0)
    # those of other tables only
    new_categories: tuple[Hashable, ...] = field(codec=LABEL_CODEC, default=())

    def validate(self) -> None:
        """Refuse fields of a file that no table gives."""
        fits = are_all(pd.Index, self.levels) and are_all(_DTYPES, self.dtype)
        fits = fits and are_all(tuple, self.new_categories)
        fits = fits and _are_shares(self.frequencies, len(self.levels) + 1)
        _refuse_unless(fits, self.name)

    @classmethod
    def of(cls, column: pd.Series[Any], what: str) -> tuple[Categorical, Array]:
        """The column with its categories and their frequencies, and its codes (n,)."""
        levels = _levels(column)
        codes = _positions(levels, column)
        shares = _shares(codes, len(levels) + 1)
        absent = missing_value(column, what)
        categorical = cls(column.name, column.dtype, levels, absent, shares)
        return categorical, codes.astype(float)

    def with_categories_of(self, column: pd.Series[Any]) -> Categorical:
        """The column with the new categories of another one, if its dtype has room.

        A dtype of categories is extended; other dtypes hold the values of their type.
        """
        unknown = column[self._codes_of(column) < 0].unique().tolist()
        if not unknown or not self._holds(unknown):
            return self
        frequencies = np.concatenate([self.frequencies, np.zeros(len(unknown))])
        categories = (*self.new_categories, *unknown)
        return replace(
            self, new_categories=categories, frequencies=read_only(frequencies)
        )

    def _holds(self, values: list[Any]) -> bool:
        if isinstance(self.dtype, pd.CategoricalDtype):
            return True
        try:
            cells = pd.Series(values, dtype=object).astype(self.dtype).tolist()
        except (TypeError, ValueError, OverflowError):
            return False
        return all(
            a == b and isinstance(a, type(b))
            for a, b in zip(cells, values, strict=True)
        )

    def is_new(self, values: Array) -> NDArray[np.bool_]:
        """Which codes are those of new categories, (n,)."""
        return values > len(self.levels)

    def _codes_of(self, column: pd.Series[Any]) -> Codes:
        """The code of each cell; −1 for unknown categories."""
        codes = _positions(self.levels, column)
        if self.new_categories:
            more = pd.Index(self.new_categories, dtype=object, tupleize_cols=False)
            index = more.get_indexer(pd.Index(column.astype(object)))
            is_new = (codes < 0) & (index >= 0)
            codes = np.where(is_new, len(self.levels) + 1 + index, codes)
        return codes

    @cached_property
    def _cells(self) -> pd.Index[Any]:
        """The categories without the missing value, new ones last."""
        if not self.new_categories:
            return self.levels
        every = [*self.present, *self.new_categories]
        return pd.Index(every, dtype=self.levels.dtype, tupleize_cols=False)

    @property
    def categories(self) -> tuple[Hashable, ...]:
        return (*self.present, self.absent, *self.new_categories)

    @property
    def present(self) -> tuple[Hashable, ...]:
        return tuple(self.levels.tolist())

    @property
    def words(self) -> tuple[str, ...]:
        return (*map(str, self.present), "missing", *map(str, self.new_categories))

    def encode(self, frame: pd.DataFrame, what: str) -> Array:
        """The codes (n,) of the column in a DataFrame; refuses unknown categories."""
        column = frame[self.name]
        codes = self._codes_of(column)
        if (codes < 0).any():
            n = int((codes < 0).argmax())
            raise InvalidInput(
                f"{what}: column {self.name!r}, row {row_name(column, n)}: unknown "
                f"category {column.tolist()[n]!r}; expected one of "
                f"{listed(self.present)}, of dtype {self.dtype}"
            )
        return codes.astype(float)

    def missing(self, values: Array) -> NDArray[np.bool_]:
        """Which of the codes are those of missing values, (n,)."""
        return values == len(self.levels)

    def decode(self, values: Array) -> Mapping[Hashable, pd.Series[Any]]:
        """The column in its dtype, extended if missing or new values need it."""
        codes = self.codes(values)
        absent = self.missing(values)
        is_new = self.is_new(values)
        codes = codes - is_new  # indices among the categories without the missing value
        if isinstance(self.dtype, pd.CategoricalDtype):
            dtype = self.dtype
            if is_new.any():
                every = [*self.present, *self.new_categories]
                dtype = pd.CategoricalDtype(every, ordered=self.dtype.ordered)
            cells = pd.Categorical.from_codes(
                np.where(absent, -1, codes).tolist(), dtype=dtype
            )
            return {self.name: pd.Series(cells)}
        if not absent.any():
            return {self.name: pd.Series(self._cells.take(codes), dtype=self.dtype)}
        dtype = nullable_dtype(self.dtype)
        objects = np.full(len(codes), self.absent, dtype=object)
        objects[~absent] = self._cells.astype(object)[codes[~absent]]
        return {self.name: pd.Series(objects, dtype=dtype)}


@final
@dataclass(frozen=True, eq=False)
class OneHot(CategoricalColumn):
    """One feature that is one-hot encoded by columns of 0 and 1."""

    name: Hashable = field(codec=LABEL_CODEC)  # the feature
    # (K,): the labels of the columns, which are the categories
    members: tuple[Hashable, ...] = field(codec=LABEL_CODEC)
    dtypes: tuple[Any, ...] = field(codec=LABEL_CODEC)  # shape (K,)
    # the share of each in the table of the schema
    frequencies: Array = field("K", low=0.0, high=1.0)

    def validate(self) -> None:
        """Refuse fields of a file that no table gives."""
        fits = are_all(tuple, self.members, self.dtypes)
        fits = fits and len(self.members) == len(self.dtypes)
        fits = fits and are_all(_DTYPES, *self.dtypes)
        fits = fits and _are_shares(self.frequencies, len(self.members))
        _refuse_unless(fits, self.name)

    @classmethod
    def of(
        cls,
        name: Hashable,
        members: tuple[Hashable, ...],
        frame: pd.DataFrame,
        what: str,
    ) -> tuple[OneHot, Array]:
        """The feature with its frequencies, and the index of the 1 of each row (n,)."""
        codes = _hot(name, members, frame, what)
        dtypes = tuple(frame[member].dtype for member in members)
        one_hot = cls(name, members, dtypes, _shares(codes, len(members)))
        return one_hot, codes.astype(float)

    @property
    def categories(self) -> tuple[Hashable, ...]:
        return self.members

    present = categories

    def missing(self, values: Array) -> NDArray[np.bool_]:
        """Which values are missing: none, since one-hot rows have a category."""
        return np.zeros(len(values), dtype=bool)

    def encode(self, frame: pd.DataFrame, what: str) -> Array:
        """The codes (n,) of the feature in a DataFrame."""
        return _hot(self.name, self.members, frame, what).astype(float)

    def decode(self, values: Array) -> Mapping[Hashable, pd.Series[Any]]:
        """The columns of 0 and 1 in their dtypes."""
        codes = self.codes(values)
        return {
            member: pd.Series((codes == k).astype(int)).astype(dtype)
            for k, (member, dtype) in enumerate(
                zip(self.members, self.dtypes, strict=True)
            )
        }


Column: TypeAlias = Numeric | Unread | Categorical | OneHot
"""A column of the encoded table, from one or more columns of a DataFrame."""


def column_of(
    name: Hashable,
    X: pd.DataFrame,
    declared: frozenset[Hashable],
    groups: Mapping[Hashable, Sequence[Hashable]],
    label: str,
    is_read: bool,
) -> tuple[Column, Array]:
    """The column of a feature, and its encoding (n,), from a table."""
    if name in groups:
        return OneHot.of(name, tuple(groups[name]), X, label)
    column = X[name]
    try:
        if name in declared or holds_categories(column, label):
            return Categorical.of(column, label)
        return Numeric.of(column, label)
    except InvalidInput:  # of cells that are neither numbers nor categories
        if is_read:
            raise
        return Unread.of(column, label)


_KINDS: Final = {kind.__name__: record_codec(kind) for kind in get_args(Column)}


def _pack_columns(columns: tuple[Column, ...], name: str, members: Members) -> Any:
    return [
        {type(x).__name__: record_codec(type(x)).pack(x, f"{name}.{j}", members)}
        for j, x in enumerate(columns)
    ]


def _unpack_columns(plain: Any, name: str, members: Members) -> tuple[Column, ...]:
    try:
        named = [(kind, fields) for one in plain for kind, fields in one.items()]
        codecs = [_KINDS[kind] for kind, _ in named]
    except _INVALID:
        kinds = ", ".join(_KINDS)
        raise InvalidInput(f"{name}: expected a list of {kinds}") from None
    return tuple(
        codec.unpack(fields, f"{name}.{j}", members)
        for j, (codec, (_, fields)) in enumerate(zip(codecs, named, strict=True))
    )


COLUMN_CODEC: Final = Codec("columns", _unpack_columns, _pack_columns)
"""The codec of columns, each with its kind."""


_DTYPES: Final = (np.dtype, pd.api.extensions.ExtensionDtype)


def are_all(kind: type | tuple[type, ...], *values: object) -> bool:
    """Whether all values, such as those of a file, are of a kind."""
    return all(isinstance(value, kind) for value in values)


def _are_shares(shares: Array, count: int) -> bool:
    """Whether these are relative frequencies of ``count`` categories."""
    return shares.shape == (count,) and abs(float(shares.sum()) - 1.0) < 1e-9


def _refuse_unless(fits: bool, name: Hashable) -> None:
    if not fits:
        raise InvalidInput(f"column {name!r} is not valid")


def _levels(column: pd.Series[Any]) -> pd.Index[Any]:
    """The categories of a column: in the order of its dtype, or sorted by type."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.dtype.categories
    levels = pd.Index(column.dropna().unique(), dtype=column.dtype)
    if column.dtype != object:
        return levels.sort_values()
    in_order = sorted(levels, key=lambda value: (type(value).__name__, str(value)))
    return pd.Index(in_order, dtype=object, tupleize_cols=False)


def _positions(levels: pd.Index[Any], column: pd.Series[Any]) -> Codes:
    """The index of each cell among K levels; K if missing, −1 if unknown."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        indices = np.append(levels.get_indexer(column.dtype.categories), -1)
        codes = indices[column.cat.codes.to_numpy()]
    else:
        codes = levels.get_indexer(pd.Index(column, tupleize_cols=False))
    return np.where(column.isna().to_numpy(dtype=bool), len(levels), codes)


def _shares(codes: Codes, n_categories: int) -> Array:
    return read_only(np.bincount(codes, minlength=n_categories) / len(codes))


def _hot(
    name: Hashable, members: tuple[Hashable, ...], frame: pd.DataFrame, label: str
) -> Codes:
    """The index of the 1 in each row; refused unless all others are 0."""
    table = np.stack([read_numbers(frame[member], label) for member in members], axis=1)
    absent = np.isnan(table).any(axis=1)
    if absent.any():
        n = int(absent.argmax())
        raise InvalidInput(
            f"{label}: group {name!r}, row {row_name(frame, n)}: a value is missing; "
            "add a column for missing values to the group, or explain the column "
            "before it was one-hot encoded"
        )
    bad = ((table != 0) & (table != 1)).any(axis=1) | (table.sum(axis=1) != 1)
    if bad.any():
        n = int(bad.argmax())
        raise InvalidInput(
            f"{label}: group {name!r}, row {row_name(frame, n)}: expected a single 1 "
            f"and otherwise 0, got {table[n].tolist()}"
        )
    return np.asarray(table.argmax(axis=1), dtype=np.intp)


def spreads(means: Array | float, deviations: Array | float) -> Array:
    """Standard deviations; 0 if a column is constant up to rounding."""
    rounding = 16 * np.finfo(float).eps * np.abs(means)
    return np.where(deviations > rounding, deviations, 0.0)
