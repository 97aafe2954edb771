"""Names of points and features: read from DataFrames, written back to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Literal, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.checks import read_array, read_with_missing
from propopt.errors import InvalidInput
from propopt.tables.cells import plain_numbers
from propopt.tables.frames import Frame, Kind, as_frame


@dataclass(frozen=True)
class Labels:
    """Names of the N points and the D features of a table.

    Parameters
    ----------
    points, features : tuple or None
        The index and the columns of the DataFrame that the table came from, the latter
        as text; None where the input had no names (a NumPy array).
    columns : tuple or None
        The columns as the DataFrame has them, of any type; only a table needs them.
    kind : Kind or None
        The library of the table, if not pandas; only a table needs it.
    texts : tuple of str or None
        The N points themselves, where they are texts: of words in another order the
        numbers are the same.
    """

    points: tuple[Hashable, ...] | None = None
    features: tuple[str, ...] | None = None
    columns: tuple[Hashable, ...] | None = field(
        default=None, compare=False, repr=False
    )
    kind: Kind | None = field(default=None, compare=False, repr=False)
    texts: tuple[str, ...] | None = field(default=None, compare=False, repr=False)

    def table(self, values: NDArray[Any]) -> Any:
        """``values`` (any number of rows, D) in the form that the input had."""
        if self.features is None:
            return values
        index = self.points if self.names_rows_of(values) else None
        columns = self.features if self.columns is None else self.columns
        frame = pd.DataFrame(values, columns=list(columns), index=index)
        if self.kind is None:
            return frame
        return self.kind.table(frame.astype("Float64") if _misses(values) else frame)

    def frame(self, values: Array) -> pd.DataFrame:
        """A DataFrame of a copy, with ``x0, x1, ...`` for missing names of columns."""
        columns = list(self.feature_names(values.shape[1]))
        return pd.DataFrame(values, columns=columns, index=self.points, copy=True)

    def feature_names(self, count: int) -> tuple[str, ...]:
        """The names of D features, ``x0, x1, ...`` where there are none."""
        return self.features or tuple(f"x{j}" for j in range(count))

    def check(self, shape: tuple[int, ...], what: str) -> None:
        """Refuse names that are not one for each row and column of a table."""
        for names, noun, count in zip(
            (self.points, self.features), ("points", "features"), shape, strict=True
        ):
            if names is not None and len(names) != count:
                raise InvalidInput(
                    f"{what}: expected {count} names of {noun}, got {len(names)}"
                )

    def position(self, row: Hashable, n_points: int) -> int:
        """Where a row stands, by its name or, without names, by its number.

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
        """These names, with those of ``other`` where there are none."""
        return Labels(
            points=other.points if self.points is None else self.points,
            features=other.features if self.features is None else self.features,
            columns=other.columns if self.features is None else self.columns,
            kind=other.kind if self.features is None else self.kind,
            texts=other.texts if self.texts is None else self.texts,
        )

    def of_rows(self, rows: slice) -> Labels:
        """The names of some of the points."""
        points, texts = self.points, self.texts
        return replace(
            self, points=points and points[rows], texts=texts and texts[rows]
        )

    def of_positions(self, rows: NDArray[np.intp]) -> Labels:
        """The names of the points at these positions."""
        points, texts = self.points, self.texts
        return replace(
            self,
            points=points and tuple(points[n] for n in rows),
            texts=texts and tuple(texts[n] for n in rows),
        )

    def of_columns(self) -> Labels:
        """The names of the features alone, for other points."""
        return replace(self, points=None, texts=None)

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


def _misses(values: NDArray[Any]) -> bool:
    """Whether a number is missing, which other libraries write as null and not NaN."""
    return values.dtype.kind == "f" and bool(np.isnan(values).any())


def differ(names: object, others: object) -> bool:
    """Whether both tables have names, and not the same ones in the same order."""
    return names is not None and others is not None and names != others


def plain_name(name: object) -> int | float | str:
    """A name as a file has it: numbers stay numbers, anything else becomes text."""
    if isinstance(name, int | np.integer):
        return int(name)
    if not isinstance(name, float):
        return str(name)
    return np.nan if math.isnan(name) else float(name)  # one NaN, which is itself


def listed(names: Sequence[object], most: int = 8) -> str:
    """The first names in words, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:most])
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{shown}{more}" or "none"


def read_groups(
    groups: Mapping[str, Sequence[str]], features: tuple[str, ...]
) -> tuple[str, ...]:
    """For each feature the name of its group, or its own where it is in none.

    Raises
    ------
    InvalidInput
        If a feature is unknown or in two groups, a group is empty or has the name of
        a feature of no group, or two features have one name.
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
    return tuple(group_of.get(feature, feature) for feature in features)


def read_table(table: object, what: str) -> tuple[Array, Labels]:
    """A finite float64 array (N, D) and the names that came with it.

    Tables of pandas, and of whatever library narwhals knows, have names; arrays have
    none.

    Raises
    ------
    InvalidInput
        If the table is not two-dimensional, is empty, is not numeric, or holds a value
        that is not finite.
    """
    frame = table if isinstance(table, Frame) else as_frame(table, what)
    if frame is None:
        return read_array(table, what, ndim=2), Labels()
    return read_array(plain_numbers(frame.table), what, ndim=2), _labels_of(frame)


def read_points(table: object, what: str) -> tuple[Array, Labels]:
    """As :func:`read_table`, but a value may be missing, and is NaN then.

    Missing are NaN, None and ``pandas.NA``, and the nulls of other libraries.

    Raises
    ------
    InvalidInput
        If the table is not two-dimensional, is empty, is not numeric, or holds an
        infinite value.
    """
    frame = table if isinstance(table, Frame) else as_frame(table, what)
    if frame is None:
        return read_with_missing(_without_na(table), what, ndim=2), Labels()
    points = read_with_missing(plain_numbers(frame.table), what, ndim=2)
    return points, _labels_of(frame)


def _without_na(table: object) -> object:
    """An array of objects with NaN in place of ``pandas.NA``; all else as it is."""
    if not (isinstance(table, np.ndarray) and table.dtype == object):
        return table
    return np.where(pd.isna(table), np.nan, table)


def table_labels(table: object) -> Labels:
    """The names that come with a table; none where it is no DataFrame."""
    frame = as_frame(table, "X")
    return Labels() if frame is None else _labels_of(frame)


def _labels_of(frame: Frame) -> Labels:
    columns = tuple(frame.table.columns)
    return Labels(frame.points, tuple(map(str, columns)), columns, frame.kind)


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
