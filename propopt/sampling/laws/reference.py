"""The rows that laws are made of."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from propopt._typing import Points
from propopt.checks import read_rng, sealed
from propopt.errors import InvalidInput
from propopt.tables.columns import Coded
from propopt.tables.names import Labels, read_points
from propopt.tables.schema import TableSchema


MOST_ROWS: Final = 10_000
"""Larger tables are thinned to so many rows."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Reference:
    """Rows of a table, such as that which a model was fitted on, as encoded points.

    Parameters
    ----------
    points : array (R, D)
        Numbers, NaN where they are missing, and codes.
    n_codes : tuple of int or None (D,)
        How many codes each column has; None for numbers.
    labels : Labels
        Names of rows and columns.
    n_rows : int
        Those of the table, before it was thinned.

    Examples
    --------
    >>> import numpy as np
    >>> reference = Reference.of(np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]))
    >>> reference, reference.digest[:8]
    (Reference(3 rows, 2 columns), '...')
    """

    points: Points
    n_codes: tuple[int | None, ...]
    labels: Labels
    n_rows: int

    @classmethod
    def of(
        cls,
        data: Any,
        schema: TableSchema | None = None,
        rng: int | np.random.Generator | None = 0,
    ) -> Reference:
        """The rows of a table; of more than 10,000 as many, drawn without replacement.

        Parameters
        ----------
        data : DataFrame or array (R, D)
            The table.
        schema : TableSchema, optional
            What its columns are, if some are categories.
        rng : int, Generator or None
            For the draw; None is seed 0.

        Raises
        ------
        InvalidInput
            If the table cannot be read.
        """
        if schema is None:
            points, labels = read_points(data, "data")
        else:
            points, labels = schema.encode(data, "data")
        return cls.of_points(points, labels, schema, rng)

    @classmethod
    def of_points(
        cls,
        points: Points,
        labels: Labels | None = None,
        schema: TableSchema | None = None,
        rng: int | np.random.Generator | None = 0,
    ) -> Reference:
        """As :meth:`of`, of points that are encoded."""
        names = Labels() if labels is None else labels
        n_rows, n_columns = points.shape
        columns = [None] * n_columns if schema is None else schema.columns
        n_codes = tuple(
            len(column.frequencies) if isinstance(column, Coded) else None
            for column in columns
        )
        if n_rows > MOST_ROWS:
            kept = np.sort(read_rng(rng).choice(n_rows, MOST_ROWS, replace=False))
            points, names = points[kept], names.of_positions(kept)
        return cls(sealed(points + 0.0), n_codes, names, n_rows)

    def refuse_equal_rows(self) -> None:
        """Refuse rows of which nothing varies: all slopes under their law are zero.

        Raises
        ------
        InvalidInput
            If there is one row, or all are equal.
        """
        first = self.points[:1]
        if ((self.points == first) | (np.isnan(self.points) & np.isnan(first))).all():
            count = "1 row" if len(self.points) == 1 else f"{self.n_rows:,} equal rows"
            raise InvalidInput(
                f"data: expected rows that differ, got {count}, which have no spread; "
                "give the table that the model was fitted on"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, for messages, (D,)."""
        return self.labels.feature_names(self.points.shape[1])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_words()})"

    def in_words(self) -> str:
        """Its size, and that it was thinned if it was."""
        rows, columns = self.points.shape
        size = f"{rows:,} rows, {columns} columns"
        drawn = "" if rows == self.n_rows else f", drawn from {self.n_rows:,}"
        return f"{size}{drawn}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the rows in float64: equal for equal rows in the same order."""
        rows = np.where(np.isnan(self.points), np.nan, self.points)
        content = hashlib.sha256(repr((rows.shape, self.n_codes)).encode())
        content.update(np.ascontiguousarray(rows, dtype="<f8").tobytes())
        return content.hexdigest()
