"""Columns of a table: numbers, or categories where declared; some may be missing."""

from __future__ import annotations

import numpy as np
import pandas as pd

from propopt.checks import did_you_mean
from propopt.errors import InvalidInput
from propopt.problems.parts import Location
from propopt.problems.sources.base import Source
from propopt.problems.subject.data import Data


_LARGEST = 1e100
"""Of the numbers of a table: their squares do not overflow."""


def read_columns(table: pd.DataFrame, data: Data, source: Source) -> pd.DataFrame:
    """The columns as numbers, NaN where missing, or categories where declared."""
    _check_declared(table, data, source)
    if data.standardize and not data.numeric(table):
        raise source.error(("data", "standardize"), "there is no numeric column")
    numbers = [c for c in table if c not in data.categorical]
    with source.blaming("data", "csv"):
        _check_numeric(table[numbers])
        floats, categories = table[numbers].astype(float), table[data.categorical]
        cells = np.abs(np.nan_to_num(floats.to_numpy(dtype=float), posinf=np.inf))
        sizes = cells.max(axis=0, initial=0)
        infinite = floats.columns[np.isinf(sizes)]
        if len(infinite):
            raise InvalidInput(
                "numbers must be finite, and in these columns some are infinite: "
                f"{', '.join(infinite)}"
            )
        large = floats.columns[sizes > _LARGEST]
        if len(large):
            raise InvalidInput(
                f"numbers must lie within ±{_LARGEST:g}, and in these columns some are "
                f"larger: {', '.join(large)}"
            )
    return joined(floats, categories.astype("category"))[list(table)]


def _check_numeric(table: pd.DataFrame) -> None:
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes]
    text = table.columns[~np.array(numeric, dtype=bool)]
    if len(text):
        column = table[text[0]]
        strange = column[pd.to_numeric(column, errors="coerce").isna() & column.notna()]
        example = f"; {text[0]} holds {strange.iloc[0]!r:.60}" if len(strange) else ""
        raise InvalidInput(
            "columns must be numeric, or be named in data.categorical, and these are "
            f"not: {', '.join(text)}{example}"
        )


def joined(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """The columns of both; far faster than column by column where there are many."""
    return pd.concat([one, other], axis=1)


def missing_numbers(table: pd.DataFrame) -> list[str]:
    """The columns of numbers in which some are missing."""
    numbers = table.select_dtypes("number")
    return [str(column) for column in numbers.columns[numbers.isna().any()]]


def _check_declared(table: pd.DataFrame, data: Data, source: Source) -> None:
    """Refuse categories and groups of columns that are not there."""
    known = [str(column) for column in table]
    declared: list[tuple[Location, list[str]]] = [
        (("data", "categorical"), data.categorical),
        *((("data", "groups", name), group) for name, group in data.groups.items()),
    ]
    for location, columns in declared:
        for column in columns:
            if column not in known:
                raise source.error(
                    location,
                    f"there is no column {column!r}{did_you_mean(column, known)}; "
                    f"there are {', '.join(known)}",
                )
