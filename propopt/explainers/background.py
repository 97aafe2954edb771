"""Background tables: the points that stand for "feature unknown"."""

from __future__ import annotations

import pandas as pd

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.explainers.request import Request
from propopt.tables.cells import text_in
from propopt.tables.frames import as_frame
from propopt.tables.names import read_table


def checked_background(background: object) -> Array | pd.DataFrame:
    """A checked copy of a table, which later changes of the original do not reach.

    A table with text is read only where a function's schema says how.
    """
    frame = as_frame(background, "background")
    if frame is None:
        array, _ = read_table(background, "background")
        return array
    if text_in(frame.table) is not None:
        return frame.table.copy(deep=True)
    array, labels = read_table(frame.table, "background")
    return labels.table(array)


def same_columns(background: Array | pd.DataFrame, request: Request) -> Array:
    """The background as an array (B, D), refused if its columns are not those of X."""
    n_features, labels = request.points.shape[1], request.labels
    array, own = request.function.read(background, "background")
    if array.shape[1] != n_features:
        raise InvalidInput(
            f"background: expected {n_features} features as in X, got {array.shape[1]}"
        )
    if None not in (own.features, labels.features) and own.features != labels.features:
        raise InvalidInput(
            f"background: expected the columns of X, {labels.features}, in that order; "
            f"got {own.features}"
        )
    return array
