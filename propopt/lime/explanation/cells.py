"""Values of rows and their bins, as a reader has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from propopt._typing import Points
from propopt.lime.laws import LimeLaw
from propopt.tables.columns import Coded
from propopt.tables.schema import TableSchema


def cells_of(points: Points, schema: TableSchema | None) -> tuple[tuple[Any, ...], ...]:
    """Numbers, names of categories, and None for what is missing, (N, D)."""
    columns = [None] * points.shape[1] if schema is None else schema.columns
    shown = [
        [_cell(x, column) for x in values.tolist()]
        for values, column in zip(points.T, columns, strict=True)
    ]
    return tuple(zip(*shown, strict=True))


def bins_of(law: LimeLaw, points: Points) -> tuple[tuple[str, ...], ...]:
    """The bin of each value in words, (N, D)."""
    shown = [
        [str(column.bins[b]) for b in column.place(values).tolist()]
        for column, values in zip(law.columns, points.T, strict=True)
    ]
    return tuple(zip(*shown, strict=True))


def _cell(value: float, column: object) -> Any:
    if isinstance(column, Coded):
        category = column.categories[int(value)]
        return category if isinstance(category, bool | int | float) else str(category)
    return None if np.isnan(value) else value
