"""What a part of a model sees of a table: each of its columns comes from one of ours.

The map of a column is never written down: the steps of the model themselves are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from propopt._typing import Array, Points
from propopt.structures.boxes import SameColumn
from propopt.tables.columns import Coded, Numeric, OneHot
from propopt.tables.frames import as_frame
from propopt.tables.names import Labels
from propopt.tables.schema import TableSchema


@final
@dataclass(frozen=True)
class Same:
    """A column of numbers that are seen as they are; missing ones may be imputed.

    Parameters
    ----------
    column : int
        The column of the table, as in all sources.
    """

    column: int


@final
@dataclass(frozen=True)
class Rising:
    """Numbers of one column through a nondecreasing map, as scalers are.

    Parameters
    ----------
    column : int
        The column of the table.
    straight : bool
        Whether it is an affine map, as most scalers are, or constant.
    """

    column: int
    straight: bool = False


@final
@dataclass(frozen=True)
class Steps:
    """Numbers of one column through a map that is made for a few values, as encoders.

    Parameters
    ----------
    column : int
        The column of the table.
    values : tuple of float
        The values, increasing.
    elsewhere : bool
        Whether other numbers are taken, too; all of them are seen alike.
    """

    column: int
    values: tuple[float, ...]
    elsewhere: bool


@final
@dataclass(frozen=True)
class CodedColumn:
    """Codes of a category of the table through any map."""

    column: int


@final
@dataclass(frozen=True)
class Curved:
    """Numbers of one column through any map, as powers and splines are.

    Parameters
    ----------
    column : int
        The column of the table.
    knots : tuple of float
        Numbers of the table at which the map has a kink, where they are known.
    """

    column: int
    knots: tuple[float, ...] = ()


FARTHEST_SINGLE: Final = 1e30
"""Steps that compute in float32 are asked for no larger numbers."""

ColumnSource: TypeAlias = Same | Rising | Steps | Curved | CodedColumn
"""Where a column comes from that a model sees."""


@final
@dataclass(frozen=True, eq=False)
class View:
    """What a part of a model is given.

    Parameters
    ----------
    table : tuple of SameColumn (D,)
        The encoded columns of the table.
    start : array (D,)
        A row that the model takes.
    sees : callable
        From rows of the table (n, D) to what the part is given.
    sources : tuple of ColumnSource (M,)
        Where each column comes from of what the part is given.
    plain : bool
        Whether it is given the numbers of the table as they are.
    """

    table: tuple[SameColumn, ...]
    start: Array
    sees: Callable[[Points], Any]
    sources: tuple[ColumnSource, ...]
    plain: bool

    @classmethod
    def of_numbers(cls, n_columns: int, table: Callable[[Points], Any]) -> View:
        """A table of numbers, given to a model by ``table``."""
        sources = tuple(map(Same, range(n_columns)))
        columns = tuple(map(SameColumn, range(n_columns)))
        return cls(columns, np.zeros(n_columns), table, sources, plain=True)

    @classmethod
    def of_schema(cls, schema: TableSchema) -> View:
        """A table with categories, given to a model as the DataFrame it was."""
        source_of: dict[Any, ColumnSource] = {}
        for j, column in enumerate(schema.columns):
            source = CodedColumn(j) if isinstance(column, Coded) else Same(j)
            labels = column.members if isinstance(column, OneHot) else (column.name,)
            source_of.update(dict.fromkeys(labels, source))
        counts = [
            len(column.frequencies) if isinstance(column, Coded) else None
            for column in schema.columns
        ]
        start = [
            float(np.argmax(column.frequencies)) if isinstance(column, Coded) else 0.0
            for column in schema.columns
        ]
        return cls(
            tuple(SameColumn(j, count) for j, count in enumerate(counts)),
            np.array(start),
            lambda points: schema.decode(_in_their_precision(points, schema), Labels()),
            tuple(source_of[label] for label in schema.header),
            plain=not schema.categorical.any(),
        )

    @property
    def n_columns(self) -> int:
        """D."""
        return len(self.table)

    @property
    def labels(self) -> list[Any] | None:
        """The labels of what is given; None of an array."""
        frame = as_frame(self.sees(self.start[None, :]), "X")
        return None if frame is None else frame.table.columns.tolist()

    def through(
        self, step: Callable[[Any], Any], sources: Sequence[ColumnSource]
    ) -> View:
        """The view behind a step, whose columns have these sources."""
        start = self.start.copy()
        for source in sources:
            if isinstance(source, Steps):  # others may be refused
                start[source.column] = source.values[0]
        before = self.sees
        return replace(
            self,
            start=start,
            sees=lambda points: step(before(points)),
            sources=tuple(sources),
            plain=False,
        )

    def chosen(self, columns: NDArray[np.intp]) -> View:
        """The view of some columns."""
        before, sources = self.sees, tuple(self.sources[k] for k in columns)
        return replace(
            self, sees=lambda points: _taken(before(points), columns), sources=sources
        )

    def in_array(self) -> View:
        """The view of a part that is given an array, without the names of columns."""
        before = self.sees
        return replace(self, sees=lambda points: as_array(before(points)))

    def ask(
        self,
        numbers: Callable[[Any], Array],
        seen: NDArray[np.intp],
        values: Array,
    ) -> Array:
        """What is seen in column ``seen[e]`` where its source is ``values[e]``, (E,).

        All are asked in one table: rows differ in all columns, as each column is seen
        by itself.
        """
        column = np.array([self.sources[k].column for k in seen], dtype=np.intp)
        row = _places_among_equals(column)
        points = np.tile(self.start, (int(row.max(initial=-1)) + 1, 1))
        points[row, column] = values
        return numbers(self.sees(points))[row, seen]


def as_array(table: Any) -> NDArray[Any]:
    """What steps of scikit-learn return, as a dense array."""
    return table.toarray() if sp.issparse(table) else np.asarray(table)


def table_numbers(table: Any) -> Array:
    """The same in float64, with NaN for what is missing, (n, M)."""
    frame = as_frame(table, "X")
    if frame is not None:
        return frame.table.to_numpy(dtype=np.float64, na_value=np.nan)
    return as_array(table).astype(np.float64)


def _in_their_precision(points: Points, schema: TableSchema) -> Points:
    """Numbers of columns of float32 as these hold them, so that steps see float32."""
    rounded = np.array(points)
    for j, column in enumerate(schema.columns):
        if isinstance(column, Numeric) and column.plain == np.float32:
            near = np.clip(points[:, j], -FARTHEST_SINGLE, FARTHEST_SINGLE)
            rounded[:, j] = near.astype(np.float32)
    return rounded


def _taken(table: Any, columns: NDArray[np.intp]) -> Any:
    frame = as_frame(table, "X")
    if frame is not None:
        return frame.table.iloc[:, columns]
    return as_array(table)[:, columns]


def _places_among_equals(keys: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many equal ones stand before each, (E,)."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    place = np.arange(len(keys)) - np.repeat(starts, np.diff([*starts, len(keys)]))
    places = np.empty(len(keys), dtype=np.intp)
    places[order] = place
    return places
