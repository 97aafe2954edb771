"""Columns of a table: numbers, or categories where declared; some may be missing."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd

from propopt.checks import did_you_mean
from propopt.errors import InvalidInput
from propopt.problems.parts import Location
from propopt.problems.sources.base import Faults, Source
from propopt.problems.subject.data import Data


_LARGEST = 1e100
"""Of the numbers of a table: their squares do not overflow."""


def read_columns(table: pd.DataFrame, data: Data, source: Source) -> pd.DataFrame:
    """The columns as numbers, NaN where missing, or categories where declared."""
    check_declared(list(table), data, source)
    if data.standardize and not data.numeric(table):
        raise source.error(("data", "standardize"), "there is no numeric column")
    numbers, faults = [c for c in table if c not in data.categorical], Faults()
    numeric = [c for c in numbers if pd.api.types.is_numeric_dtype(table[c].dtype)]
    floats, categories = table[numeric].astype(float), table[data.categorical]
    cells = np.abs(np.nan_to_num(floats.to_numpy(dtype=float), posinf=np.inf))
    sizes = cells.max(axis=0, initial=0)
    infinite = floats.columns[np.isinf(sizes)]
    large = floats.columns[np.isfinite(sizes) & (sizes > _LARGEST)]
    with faults.noted(), source.blaming("data", "csv"):
        _refuse_text(table[[c for c in numbers if c not in numeric]])
    with faults.noted(), source.blaming("data", "csv"):
        _refuse_sizes(infinite, "be finite", "infinite")
    with faults.noted(), source.blaming("data", "csv"):
        _refuse_sizes(large, f"lie within ±{_LARGEST:g}", "larger")
    faults.refuse()
    return joined(floats, categories.astype("category"))[list(table)]


def _refuse_sizes(columns: pd.Index, must: str, some: str) -> None:
    if len(columns):
        raise InvalidInput(
            f"numbers must {must}, and in these columns some are {some}: "
            f"{', '.join(columns)}"
        )


def _refuse_text(table: pd.DataFrame) -> None:
    if table.columns.empty:
        return
    column = table.iloc[:, 0]
    strange = column[pd.to_numeric(column, errors="coerce").isna() & column.notna()]
    example = f"; {column.name} holds {strange.iloc[0]!r:.60}" if len(strange) else ""
    raise InvalidInput(
        "columns must be numeric, or be named in data.categorical, and these are "
        f"not: {', '.join(table.columns)}{example}"
    )


def joined(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """The columns of both; far faster than column by column where there are many."""
    return pd.concat([one, other], axis=1)


def missing_numbers(table: pd.DataFrame) -> list[str]:
    """The columns of numbers in which some are missing."""
    numbers = table.select_dtypes("number")
    return [str(column) for column in numbers.columns[numbers.isna().any()]]


def check_declared(columns: Sequence[Hashable], data: Data, source: Source) -> None:
    """Refuse categories and groups of columns that are not there."""
    known, faults = [str(column) for column in columns], Faults()
    declared: list[tuple[Location, str]] = [
        (("data", "categorical"), column) for column in data.categorical
    ]
    for name, group in data.groups.items():
        declared += [(("data", "groups", name), column) for column in group]
    for location, column in declared:
        with faults.noted():
            if column not in known:
                raise source.error(
                    location,
                    f"there is no column {column!r}{did_you_mean(column, known)}; "
                    f"there are {', '.join(known)}",
                )
    faults.refuse()
