"""Background tables: the points that stand for "feature unknown"."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt._typing import Array, Points
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.explainers.request import Request
from propopt.tables.cells import text_in
from propopt.tables.frames import as_frame
from propopt.tables.names import read_points


Background: TypeAlias = Array | pd.DataFrame | int | Literal["mean"]
"""Rows; how many rows of X to draw; or one row of means."""


N_ROWS: Final = 100
"""Rows of X, where nothing else is said."""


NO_WORDS: Final = "the text without any word"
"""The background of documents."""


def read_background(background: object) -> Background:
    """A background, checked as far as it can be without a request.

    Raises
    ------
    InvalidInput
        If it is no table, no number of rows above zero and not ``"mean"``.
    """
    if isinstance(background, str):
        if background == "mean":
            return "mean"
        raise InvalidInput(
            "background: expected a table, a number of rows or 'mean', got "
            f"{background!r}"
        )
    if isinstance(background, int | np.integer):
        return read_count(background, "background")
    return checked_background(background)


def background_refusal(background: Background) -> str | None:
    """Why it has no meaning for documents; None where it is that by default."""
    if isinstance(background, int) and background == N_ROWS:
        return None
    return f"background: of documents it is {NO_WORDS}; leave it out"


def background_rows(background: Background, request: Request) -> Points:
    """The rows (B, D) that a background stands for, of the columns of X."""
    if isinstance(background, str):
        return typical_row(request.points, request.categorical)
    if isinstance(background, int):
        n_rows = min(background, len(request.points))
        drawn = request.rng.choice(len(request.points), n_rows, replace=False)
        return request.points[np.sort(drawn)]
    return same_columns(background, request)


def n_background_rows(background: Background, n_points: int) -> int:
    """The number B of rows that a background stands for."""
    if isinstance(background, str):
        return 1
    if isinstance(background, int):
        return min(background, n_points)
    return len(background)


def typical_row(points: Points, categorical: NDArray[np.bool_]) -> Array:
    """The column means, and the mode of categories (the first one of several).

    Of the values that are there; where a column has none, one is missing here too.
    """
    there = ~np.isnan(points)
    counts = np.maximum(there.sum(axis=0), 1)
    row: Array = np.where(there, points, 0.0).sum(axis=0, keepdims=True) / counts
    row[:, ~there.any(axis=0)] = np.nan
    for j in np.flatnonzero(categorical):
        row[0, j] = np.bincount(points[:, j].astype(np.intp)).argmax()
    return row


def checked_background(background: object) -> Array | pd.DataFrame:
    """A checked copy of a table, which later changes of the original do not reach.

    A table with text is read only where a function's schema says how.
    """
    frame = as_frame(background, "background")
    if frame is None:
        array, _ = read_points(background, "background")
        return array
    if text_in(frame.table) is not None:
        return frame.table.copy(deep=True)
    array, labels = read_points(frame.table, "background")
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
