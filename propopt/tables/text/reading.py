"""Texts as people have them: lists, arrays and Series; and what is none of these."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from propopt.errors import InvalidInput
from propopt.tables.frames import as_frame


def is_documents(X: object) -> bool:
    """Whether X are documents: strings in a sequence, a Series or an array.

    One string among them is enough, or bytes that were to be strings: the others are
    then asked for.
    """
    if isinstance(X, pd.DataFrame) or _is_numeric(X):
        return False
    texts = _sequence(X)
    return texts is not None and any(isinstance(text, str | bytes) for text in texts)


def read_texts(X: object, what: str) -> tuple[list[str], tuple[Hashable, ...] | None]:
    """The texts, and their names where they are a Series.

    Raises
    ------
    InvalidInput
        If they are no texts; the first that is none is named.
    """
    texts = _sequence(X)
    if texts is None:
        raise InvalidInput(
            f"{what}: expected a list or Series of texts, got {_kind(X, what)}"
        )
    names = tuple(X.index) if isinstance(X, pd.Series) else None
    for n, text in enumerate(texts):
        if not isinstance(text, str):
            place = f"number {n}" if names is None else f"row {names[n]!r}"
            raise InvalidInput(f"{what}: expected texts, and {place} is {_other(text)}")
    if not texts:
        raise InvalidInput(f"{what}: there is no document")
    return [str(text) for text in texts], names


def _sequence(X: Any) -> list[Any] | None:
    """What X holds, in order; None where it is no sequence."""
    if isinstance(X, str | bytes | Mapping | pd.DataFrame):
        return None
    if isinstance(X, np.ndarray):
        return X.tolist() if X.ndim == 1 else None
    if isinstance(X, pd.Series | pd.Index | Sequence):
        return list(X)
    return _of_other_library(X)


def _of_other_library(X: Any) -> list[Any] | None:
    """A column of polars, pyarrow or any library that narwhals knows."""
    import narwhals.stable.v2 as nw

    if not nw.dependencies.is_into_series(X):
        return None
    column: list[Any] = nw.from_native(X, series_only=True).to_list()
    return column


def _is_numeric(X: object) -> bool:
    """Whether a type says so, before any value is looked at."""
    return isinstance(X, np.ndarray | pd.Series) and X.dtype.kind in "biufcmM"


def _kind(X: object, what: str) -> str:
    """What came, and what would do."""
    if isinstance(X, str):
        return "one str; for a single text give [text]"
    if isinstance(X, np.ndarray):
        shape = f"an array of shape {X.shape}"
        return f"{shape}; its ravel() would do" if 1 in X.shape else shape
    frame = None if X is None else as_frame(X, what)
    if frame is not None:
        names = frame.table.columns.tolist()
        if len(names) == 1:
            return f"a table; give its column, {what}[{names[0]!r}]"
        return f"a table of {len(names)} columns; give the one that holds texts"
    if isinstance(X, Sequence | Mapping | np.ndarray):
        return type(X).__name__
    return f"{type(X).__name__}; list(...) makes one of what can be iterated"


def _other(text: object) -> str:
    """What stands where a text should, and what would do."""
    if isinstance(text, bytes):
        return "bytes; decode them, text.decode('utf-8')"
    if text is None or text is pd.NA or (isinstance(text, float) and np.isnan(text)):
        return f"missing ({text!r}); leave it out, or give '' for an empty text"
    return f"{type(text).__name__} ({text!r:.40})"
