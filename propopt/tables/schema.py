"""The schema of a table: its columns, and their encoding as numbers."""

from __future__ import annotations

import warnings
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from propopt.base.arrays import Array, Points, quotient
from propopt.base.checks import (
    describe_type,
    read_array,
    read_only,
    read_positive,
    refuse_sparse,
    target_hint,
)
from propopt.base.codecs import Codec
from propopt.base.declared import field
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.tables.columns import (
    COLUMN_CODEC,
    LABEL_CODEC,
    Categorical,
    CategoricalColumn,
    Column,
    Numeric,
    ObservedValues,
    Unread,
    are_all,
    column_of,
    plain_floats,
    spreads,
)
from propopt.tables.documents import TextSchema
from propopt.tables.frames import (
    NO_NAMES,
    Frame,
    Labels,
    TableLibrary,
    as_frame,
    group_of_each,
    listed,
    refuse_other_columns,
    refuse_repeated,
)


CategoricalChoice: TypeAlias = Literal["auto"] | Sequence[Hashable]
Groups: TypeAlias = Mapping[Hashable, Sequence[Hashable]]
ColumnScale: TypeAlias = Literal["std"] | Mapping[Hashable, float] | ArrayLike | None


def _refuse_library(kind: TableLibrary | None, *_: object) -> None:
    if kind is not None:
        raise InvalidInput(
            "data: only schemas of pandas tables can be saved; fit on data.to_pandas()"
        )


_PANDAS: Final = Codec("null", lambda *_: None, _refuse_library)


@final
@suggests_arguments
@dataclass(frozen=True, eq=False, repr=False)
class TableSchema:
    """The columns of a DataFrame, and how each row is encoded as D numbers.

    A column has numbers or categories; a category is encoded as 0, 1, ..., and the
    columns that one-hot encode a feature become one column of categories. A missing
    number is NaN, and a missing category has the last code.

    Parameters
    ----------
    header : Index
        The labels of the DataFrame, of any hashable type.
    columns : tuple of Column (D,)
        The columns of the encoded table: :class:`Numeric` with ``mean`` and ``std``;
        :class:`Categorical` and :class:`OneHot` with ``categories`` and
        ``frequencies``.
    kind : TableLibrary or None
        The library of the table, if not pandas.

    Examples
    --------
    >>> import pandas as pd, propopt as po
    >>> X = pd.DataFrame({"age": [31, 47], "colour": ["red", "blue"]}, index=["a", "b"])
    >>> schema = po.functions.TableSchema.of(X)
    >>> schema
    TableSchema(2 columns: 1 numeric, 1 categorical)
    >>> points, labels = schema.encode(X)
    >>> points
    array([[31.,  1.],
           [47.,  0.]])
    >>> schema.decode(points, labels).equals(X)
    True
    """

    header: pd.Index = field(codec=LABEL_CODEC)
    columns: tuple[Column, ...] = field(codec=COLUMN_CODEC)
    kind: TableLibrary | None = field(codec=_PANDAS, default=None)

    @classmethod
    def of(
        cls,
        X: Any,
        categorical: CategoricalChoice = "auto",
        groups: Groups | None = None,
        *,
        what: str = "data",
        read: Collection[Hashable] | None = None,
    ) -> TableSchema:
        """The schema of a table, usually of the one that the model was fitted on.

        Parameters
        ----------
        X : DataFrame (N, C)
            A table of pandas, polars or another library that narwhals supports. It
            gives the frequencies of categories, and means and deviations of numbers
            that are not missing.
        categorical : "auto" or sequence of column labels
            Columns of dtype string, category and bool are always categorical, and
            objects unless all of them are numbers. A sequence declares more, such as
            integer codes.
        groups : mapping of a feature to its column labels, optional
            ``{"colour": ["colour_red", "colour_blue"]}`` means that these columns
            one-hot encode a feature: exactly one of them is 1 in each row.
        what : str
            The name of X in errors.
        read : collection of column labels, optional
            The columns that the model reads; by default all. Others may hold anything,
            such as dates: they are encoded as 0, and attributions to them are 0.

        Returns
        -------
        TableSchema
            The encoding of C columns as D features.

        Raises
        ------
        InvalidInput
            If X is not a DataFrame with rows and distinct columns, a column is neither
            numeric nor categorical, a number is infinite, a declared column does not
            exist, a group is not one-hot, or text is all numbers; the first such row is
            named.
        """
        return read_with_schema(X, categorical, groups, what, read)[0]

    @cached_property
    def names(self) -> tuple[Hashable, ...]:
        """The labels of the D encoded columns; one-hot columns have one label."""
        return tuple([column.name for column in self.columns])

    @cached_property
    def categorical(self) -> NDArray[np.bool_]:
        """Which of the D encoded columns are codes of categories, shape (D,)."""
        return np.array(
            [isinstance(column, CategoricalColumn) for column in self.columns]
        )

    @property
    def n_codes(self) -> tuple[int | None, ...]:
        """How many codes each of the D encoded columns has; None for numbers."""
        codes = [
            len(column.frequencies) if isinstance(column, CategoricalColumn) else None
            for column in self.columns
        ]
        return tuple(codes)

    @cached_property
    def words_of_codes(self) -> dict[str, tuple[str, ...]]:
        """The texts of the codes of each column that has no numbers."""
        coded = [
            column
            for column in self.columns
            if isinstance(column, CategoricalColumn | Unread)
        ]
        return {str(column.name): column.words for column in coded}

    @cached_property
    def observed(self) -> tuple[ObservedValues | None, ...]:
        """The distinct values of each numeric column, (D,).

        None for a categorical column, or one with very many values.
        """
        return tuple(
            column.observed_values if isinstance(column, Numeric) else None
            for column in self.columns
        )

    def encode(self, X: object, what: str = "X") -> tuple[Points, Labels]:
        """Encode a table as numbers and codes, with the names of rows and columns.

        Parameters
        ----------
        X : DataFrame (N, C)
            A table with exactly the columns of the schema, in their order.
        what : str
            The name of X in errors.

        Returns
        -------
        array (N, D), Labels
            Numbers, NaN if missing, and codes of categories; names.

        Raises
        ------
        InvalidInput
            If X is not such a table, or holds an infinite value, text among numbers or
            an unknown category; the column and the first such row are named.
        """
        frame = _check_frame(X, what)
        table = frame.table
        self.check_header(table.columns, what)
        points = plain_floats(table) if self.is_numeric else None
        if points is None:
            columns = [column.encode(table, what) for column in self.columns]
            points = np.stack(columns, axis=1)
        return read_only(points), frame.with_columns(self.names)

    def check_header(self, columns: pd.Index, what: str = "X") -> None:
        """Refuse the labels of columns unless they are those of the schema, in order.

        Parameters
        ----------
        columns : Index
            The labels of the columns of a table.
        what : str
            The name of the table in errors.

        Raises
        ------
        InvalidInput
            If labels are missing, unexpected, repeated or in another order.
        """
        if not _same_labels(columns, self.header):
            refuse_other_columns(
                tuple(columns),
                tuple(self.header),
                what,
                "of `data`",
                f"{what}[list(data.columns)] has",
            )

    def with_categories_of(self, X: Any) -> TableSchema:
        """The schema extended by categories of X that it lacks.

        Codes of present categories are unchanged. Categories that do not fit the dtype
        of the column are not added.
        """
        if not self._categorical:
            return self
        frame = as_frame(X, "X")
        if frame is None or not _same_labels(frame.table.columns, self.header):
            return self
        columns = tuple(
            column.with_categories_of(frame.table[column.name])
            if isinstance(column, Categorical) and not self._is_enum(column.name)
            else column
            for column in self.columns
        )
        if all(new is old for new, old in zip(columns, self.columns, strict=True)):
            return self
        return replace(self, columns=columns)

    def _is_enum(self, name: Hashable) -> bool:
        """Whether a column of another library has a fixed list of categories."""
        dtype = None if self.kind is None else self.kind.coded.get(str(name))
        return type(dtype).__name__ == "Enum"

    def new_categories(self, points: Points) -> NDArray[np.bool_]:
        """A mask (n, D) of categories outside the dtype of the schema's column."""
        mask = np.zeros(points.shape, dtype=bool)
        for j, column in self._categorical:
            if isinstance(column, Categorical):
                mask[:, j] = column.is_new(points[:, j])
        return mask

    def unseen(self, points: Points) -> NDArray[np.bool_]:
        """A mask (n, D) of categories that no row of the schema's table has."""
        mask = np.zeros(points.shape, dtype=bool)
        for j, column in self._categorical:
            mask[:, j] = column.frequencies[column.codes(points[:, j])] == 0.0
        return mask

    def unseen_categories(self, points: Points) -> tuple[int, str]:
        """How many rows have categories of no row of the schema's table, and which.

        A category counts also if the dtype of the column has it. A missing value is no
        category here.
        """
        others = self.unseen(points) & ~self.missing(points)
        parts = []
        for j, column in self._categorical:
            codes = np.unique(points[others[:, j], j]).astype(int)
            if len(codes) == 0:
                continue
            cells = listed([column.categories[code] for code in codes], 3)
            pairs = zip(column.categories, column.frequencies, strict=True)
            seen = listed([category for category, share in pairs if share > 0.0], 5)
            dtype = getattr(column, "dtype", "one-hot")
            words = f"in data of dtype {dtype} of {seen}"
            parts.append(f"column {column.name!r} ({words}): {cells}")
        return int(others.any(axis=1).sum()), "; ".join(parts)

    def missing(self, points: Points) -> NDArray[np.bool_]:
        """Which numbers and categories are missing, shape (n, D)."""
        columns = zip(self.columns, points.T, strict=True)
        return np.stack([column.missing(values) for column, values in columns], axis=1)

    def widened(self, points: Points) -> str | None:
        """Numeric columns whose dtype cannot hold the given numbers, or None."""
        wide = [
            f"{column.name!r} ({column.dtype})"
            for column, values in zip(self.columns, points.T, strict=True)
            if isinstance(column, Numeric) and not column.holds(values)
        ]
        return ", ".join(wide) or None

    def decode(self, points: Points, labels: Labels = NO_NAMES) -> Any:
        """The DataFrame that encodes to ``points``, with the columns of the schema.

        A numeric column has its dtype if that is exact, and float64 otherwise: integers
        stay integers if all values are whole. Missing values are those of the table of
        the schema: None, NaN, ``pandas.NA`` or null. The library of the table is the
        one that the schema was made with.

        Parameters
        ----------
        points : array (n, D)
            Numbers and codes.
        labels : Labels, optional
            Names, used for the rows if there are n of them.

        Returns
        -------
        DataFrame (n, C)
            The rows as a table, in the units of the data.

        Raises
        ------
        InvalidInput
            If a categorical column holds anything but codes of its categories.
        """
        if self._plain:
            frame = pd.DataFrame(np.asarray(points, np.float64), columns=self.header)
        else:
            series = {
                label: part
                for column, values in zip(self.columns, points.T, strict=True)
                for label, part in column.decode(values).items()
            }
            ordered = (series[label] for label in self.header)
            frame = pd.DataFrame(dict(enumerate(ordered)))
            frame.columns = self.header
        if self.kind is not None:
            return self.kind.table(frame)
        names = labels.points
        if names is None or len(names) != len(points):
            return frame
        return frame.set_axis(list(names), axis=0)

    @cached_property
    def _categorical(self) -> tuple[tuple[int, CategoricalColumn], ...]:
        """The categorical columns and their indices."""
        return tuple(
            (j, column)
            for j, column in enumerate(self.columns)
            if isinstance(column, CategoricalColumn)
        )

    @cached_property
    def is_numeric(self) -> bool:
        """Whether all columns are numeric and keep their order when encoded."""
        return not self._categorical and self.names == tuple(self.header)

    @cached_property
    def _plain(self) -> bool:
        """Whether tables have only numbers in float64, in the same order."""
        float64 = np.dtype(np.float64)
        dtypes = [x.dtype for x in self.columns if isinstance(x, Numeric)]
        return self.is_numeric and dtypes == [float64] * len(dtypes)

    @property
    def encoded_header(self) -> pd.Index:
        """The labels of tables of encoded columns, such as gradients, (D,).

        Columns that are grouped as one-hot features have the names of the features.
        """
        grouped = len(self.names) < len(self.header)
        return pd.Index(list(self.names)) if grouped else self.header

    def coordinates(self, X: Any, scale: ColumnScale = "std") -> Array:
        """Coordinates of rows, such that distances between rows are comparable.

        Numeric columns are divided by their scale; categories are one-hot vectors
        divided by √2 and their scale. With ``"std"`` two rows that differ in one
        category have distance 1 (Gower 1971, with squares). A missing number is NaN;
        graphs give it distance 1 to any number. Columns of scale 0, which are constant
        in the table of the schema, do not count in distances.

        Parameters
        ----------
        X : DataFrame (N, C)
            The rows.
        scale : "std", None, mapping or array (D,)
            As for :meth:`scales`.

        Returns
        -------
        array (N, M)
            For graphs such as :func:`propopt.graphs.gaussian_graph`. M counts each
            category.
        """
        return self.coordinates_of(self.encode(X)[0], self.scales(scale))

    def coordinates_of(self, points: Points, sizes: Array) -> Array:
        """Coordinates of encoded points, divided by the result of :meth:`scales`.

        Parameters
        ----------
        points : array (n, D)
            Numbers and codes, as :meth:`encode` returns them.
        sizes : array (D,)
            The scale of each encoded column, in its unit; 0 for constant columns.

        Returns
        -------
        array (n, M)
            Coordinates without units. M counts each category, among them the missing
            value of a categorical column; without categories M = D.

        Raises
        ------
        InvalidInput
            If a categorical column holds anything but codes of its categories.
        """
        if not self._categorical:
            return per_scale(points, sizes)
        columns = zip(self.columns, points.T, sizes, strict=True)
        parts = [
            per_scale(x.coordinates(v), np.asarray(size)) for x, v, size in columns
        ]
        return np.concatenate(parts, axis=1)

    def scales(self, scale: ColumnScale = "std") -> Array:
        """The scale of each of the D encoded columns for distances, shape (D,).

        Parameters
        ----------
        scale : "std", None, mapping or array (D,)
            Standard deviations of numeric columns (0 for constant ones) and 1 for
            categorical ones; ones; numbers for the named columns, and 1 for others; or
            the D numbers, 0 for constant columns.

        Raises
        ------
        InvalidInput
            If a number is negative or a named one 0, their count is not D, or a name is
            unknown.
        """
        deviations = partial(np.array, [column.spread for column in self.columns])
        return _read_scale(scale, deviations, len(self.columns), self.names)

    def difference(self, other: TableSchema) -> str | None:
        """How another schema encodes rows differently, in words; else None."""
        headers = tuple(self.header), tuple(other.header)
        for first, second in (headers, (self.names, other.names)):
            if first != second:
                return _difference("columns", first, second)
        for column, its in zip(self.columns, other.columns, strict=True):
            if type(column) is not type(its):
                return (
                    f"the kind of column {column.name!r}: numbers, categories or group"
                )
            if isinstance(column, CategoricalColumn) and isinstance(
                its, CategoricalColumn
            ):
                label = f"categories of column {column.name!r}"
                if column.present != its.present:
                    return _difference(label, column.present, its.present)
        return None

    def __repr__(self) -> str:
        n_categorical = int(self.categorical.sum())
        return (
            f"{type(self).__name__}({len(self.columns)} columns: "
            f"{len(self.columns) - n_categorical} numeric, {n_categorical} categorical)"
        )

    def validate(self) -> None:
        """Refuse a header of a file that is not that of the columns."""
        labels = [
            label
            for column in self.columns
            for label in getattr(column, "members", (column.name,))
        ]
        fits = are_all(pd.Index, self.header) and len(self.header) == len(labels)
        if not fits or set(labels) != set(self.header):
            raise InvalidInput("its columns and its header have different names")


def _difference(
    noun: str, first: tuple[Hashable, ...], second: tuple[Hashable, ...]
) -> str:
    """The items of only one of two sequences in words, or that their order differs."""
    sides = ("first", first, second), ("second", second, first)
    parts = [
        (side, [x for x in items if x not in other]) for side, items, other in sides
    ]
    only = [f"{listed(items)} only in the {side}" for side, items in parts if items]
    return f"{noun}: {'; '.join(only) or 'in another order'}"


def read_with_schema(
    X: Any,
    categorical: CategoricalChoice = "auto",
    groups: Groups | None = None,
    what: str = "data",
    read: Collection[Hashable] | None = None,
) -> tuple[TableSchema, Points, Labels]:
    """The schema of a table, and its encoding of the table, in one pass."""
    frame = _check_frame(X, what)
    table = frame.table
    groups = groups or {}
    declared = _read_declared(categorical, table.columns, what)
    feature_of = _read_groups(groups, table.columns, declared)
    names = dict.fromkeys([feature_of.get(label, label) for label in table.columns])
    pairs = [
        column_of(name, table, declared, groups, what, read is None or name in read)
        for name in names
    ]
    columns, values = zip(*pairs, strict=True)
    schema = TableSchema(table.columns, columns, frame.kind)
    points = read_only(np.stack(values, axis=1))
    return schema, points, frame.with_columns(schema.names)


def _same_labels(columns: pd.Index, header: pd.Index) -> bool:
    """Whether a table has these columns in the same order."""
    if columns is header or (columns.dtype == header.dtype and columns.equals(header)):
        return True
    return tuple(columns) == tuple(header)


def _check_frame(X: object, label: str) -> Frame:
    frame = as_frame(X, label)
    if frame is None:
        refuse_sparse(X, label)
        raise InvalidInput(
            f"{label}: expected a DataFrame, got {describe_type(X)}"
            f"{target_hint(label, X)}; "
            "pandas.DataFrame(array, columns=...) makes one, X.iloc[[0]] selects a row"
        )
    if 0 in frame.table.shape:
        raise InvalidInput(f"{label}: the table is empty, of shape {frame.table.shape}")
    return frame


def _read_declared(
    categorical: CategoricalChoice, columns: pd.Index, what: str
) -> frozenset[Hashable]:
    """The columns that are declared categorical."""
    refuse_repeated(columns, what)
    if isinstance(categorical, str):
        if categorical == "auto":
            return frozenset()
        raise InvalidInput(
            f"categorical: expected 'auto' or a list of columns, got {categorical!r}"
        )
    _refuse_unknown(categorical, columns, "categorical")
    return frozenset(categorical)


def _refuse_unknown(
    names: Iterable[Hashable], columns: Collection[Hashable], label: str
) -> None:
    """Refuse names of columns that the table does not have."""
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise InvalidInput(f"{label}: data has no column {listed(unknown)}")


def _read_groups(
    groups: Groups, columns: pd.Index, declared: frozenset[Hashable]
) -> dict[Hashable, Hashable]:
    """The feature of each column that belongs to a group."""
    feature_of = group_of_each(groups, list(columns))
    for name, members in groups.items():
        if len(members) < 2:
            raise InvalidInput(f"groups: {name!r} needs at least two columns")
        twice = [member for member in members if member in declared]
        if twice:
            raise InvalidInput(
                f"groups: {name!r}: {listed(twice)} is in categorical too"
            )
    return feature_of


Encoding: TypeAlias = TableSchema | TextSchema
"""Encodes tables or documents as points (N, D), and decodes them."""


def array_scales(points: Points, scale: ColumnScale) -> Array:
    """The scales of an array of numbers, as by :meth:`TableSchema.scales`, (D,)."""
    return _read_scale(scale, lambda: _deviations(points), points.shape[1])


def _read_scale(
    scale: ColumnScale,
    deviations: Callable[[], Array],
    count: int,
    names: tuple[Hashable, ...] | None = None,
) -> Array:
    """A positive number for each column, 0 for constant ones."""
    other = "'std', None" if names is None else "'std', None, a mapping"
    if scale is None:
        return np.ones(count)
    if isinstance(scale, str):
        if scale == "std":
            return deviations()
        raise InvalidInput(
            f"scale: expected {other} or an array of {count} numbers, got {scale!r}"
        )
    if isinstance(scale, Mapping):
        if names is None:
            raise InvalidInput(
                "scale: a mapping by column names needs data=, a DataFrame"
            )
        _refuse_unknown(scale, names, "scale")
        sizes_of = {x: read_positive(v, f"scale[{x!r}]") for x, v in scale.items()}
        return np.array([sizes_of.get(name, 1.0) for name in names])
    sizes = read_array(scale, "scale", ndim=1)
    if sizes.shape != (count,) or not (sizes >= 0).all():
        raise InvalidInput(
            f"scale: expected {other} or {count} positive numbers, one for each "
            f"column and 0 for constant ones, got {sizes.tolist()}"
        )
    return sizes


def _deviations(points: Points) -> Array:
    """Standard deviations of the columns without missing numbers; 0 if constant."""
    with warnings.catch_warnings():  # of columns without numbers, which are constant
        warnings.simplefilter("ignore", RuntimeWarning)
        return spreads(np.nanmean(points, axis=0), np.nanstd(points, axis=0))


def per_scale(values: Array, sizes: Array) -> Array:
    """Values divided by sizes; 0 if the size is 0, NaN if the value is missing."""
    return quotient(values, sizes, values * 0.0)
