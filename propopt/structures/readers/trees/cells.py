"""What boosters make of tables with categories of pandas: positions of known ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from propopt._typing import Array
from propopt.structures.readers.trees.pipelines.views import table_numbers
from propopt.tables.frames import as_frame


def coded_numbers(table: Any, categories: Sequence[Sequence[Any] | None]) -> Array:
    """Numbers, and codes of categories; NaN for missing and unknown ones.

    Parameters
    ----------
    table : array or DataFrame (n, M)
        What a booster is given.
    categories : sequence
        Of each column that has a category dtype the categories that are known; None
        where the positions in the dtype itself count.
    """
    frame = as_frame(table, "X")
    if frame is None:
        return table_numbers(table)
    known = iter(categories)
    columns = [
        _codes(column, next(known, None))
        if isinstance(column.dtype, pd.CategoricalDtype)
        else column.to_numpy(dtype=np.float64, na_value=np.nan)
        for _, column in frame.table.items()
    ]
    return np.stack(columns, axis=1)


def _codes(column: pd.Series[Any], categories: Sequence[Any] | None) -> Array:
    if categories is not None:
        column = column.cat.set_categories(categories)
    codes = column.cat.codes.to_numpy(dtype=np.float64)
    return np.where(codes < 0, np.nan, codes)
