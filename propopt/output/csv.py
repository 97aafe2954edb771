"""Tables as CSV files: numbers read back exactly, and no name is a command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from propopt.output.files import written_whole


_COMMANDS = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


def write_csv(path: str | Path, table: pd.DataFrame, *, names_of_rows: bool) -> None:
    """Write a table, the whole file or none of it.

    Every number is written with the fewest digits that read back to the same value.
    Text that a spreadsheet would take for a formula has an apostrophe before it. Names
    of rows, where they are written, are a first column without a name.

    Raises
    ------
    InvalidInput
        If its folder is not there.
    Unwritten
        If the operating system refuses.
    """
    shown = table.copy(deep=False)
    for place in range(table.shape[1]):
        column = table.iloc[:, place]
        if column.map(_acts).any():
            shown.isetitem(place, column.astype(object).map(as_cell).array)
    shown.columns = [as_cell(name) for name in table.columns]
    if names_of_rows:
        shown.index = [as_cell(name) for name in table.index]
    with written_whole(path) as draft:
        shown.to_csv(draft, index=names_of_rows)


def as_cell(name: object) -> object:
    r"""A number as it is; anything else as text that no spreadsheet computes.

    Examples
    --------
    >>> as_cell("=1+1"), as_cell("age"), as_cell("-1.5"), as_cell(-1.5)
    ("'=1+1", 'age', '-1.5', -1.5)
    """
    if name is None or isinstance(name, int | float | np.number):
        return name
    return f"'{name}" if _acts(str(name)) else str(name)


def _acts(cell: object) -> bool:
    """Whether it is text that a spreadsheet takes for a formula."""
    return isinstance(cell, str) and cell.startswith(_COMMANDS) and not _is_number(cell)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
