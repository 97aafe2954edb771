"""Tables in Parquet, Arrow and Feather files, or in folders of them, by pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd

from propopt.base.errors import InvalidInput
from propopt.base.extras import require
from propopt.base.resources import require_memory
from propopt.tables.arrow_files import (
    ArrowFiles,
    holds_text,
    is_coded,
    reading,
    values_of,
)
from propopt.tables.frames import listed


_AT_ONCE: Final = 2**26
"""Bytes of the columns that are decoded at once, in addition to those of the table."""


# ---- Files and columns, checked by their metadata


@dataclass(frozen=True)
class ArrowTable:
    """A table in files of Arrow: its columns and its number of rows."""

    path: Path
    columns: tuple[str, ...]
    n_rows: int
    categories: tuple[str, ...]  # columns with categories by their type
    files: ArrowFiles = field(repr=False)

    @property
    def notes(self) -> str:
        """A sentence on columns that are left out; empty if there are none."""
        if not self.files.index:
            return ""
        index = listed(self.files.index)
        return f"{self.path.name}: left out the index of pandas, {index}"

    @classmethod
    def of(cls, path: Path) -> ArrowTable:
        """Check files by their metadata, without reading their cells."""
        files = ArrowFiles.of(path)
        names = files.names
        empty = [number for number, name in enumerate(names, 1) if not name.strip()]
        if empty:
            raise InvalidInput(f"{path}: column {empty[0]} has no name; name it")
        if files.n_rows == 0:
            raise InvalidInput(f"{path}: has no rows")
        coded = [name for name in names if is_coded(files.schema.field(name).type)]
        return cls(path, tuple(names), files.n_rows, tuple(coded), files)

    # ---- Cells, some columns at a time

    def read(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Read some columns; all by default. Others may have any type.

        Numbers keep their dtype, or become float64 if some are missing. Categories are
        sorted, as pandas makes them of text.
        """
        names = [*(columns or self.columns)]
        for name in names:
            if name not in self.files.index:  # names of rows may be dates
                kind = self.files.schema.field(name).type
                if not (holds_text(kind) or _is_number(values_of(kind))):
                    raise InvalidInput(
                        f"{self.path}: column {name!r} holds {kind}; expected numbers, "
                        "text or categories: convert it, or leave it out"
                    )
        n_bytes = 16.0 * self.n_rows * len(names)
        require_memory(n_bytes, f"{self.path}", "leave rows out")
        count = max(1, _AT_ONCE // (8 * self.n_rows))
        series: dict[str, pd.Series[Any]] = {}
        with reading(self.path):
            for start in range(0, len(names), count):
                block = names[start : start + count]
                table = self.files.table(block)
                series |= {name: _series_of(table.column(name)) for name in block}
                del table
        require("pyarrow").default_memory_pool().release_unused()
        return pd.DataFrame(series, columns=names, copy=False)

    def read_texts(self, column: str) -> pd.Series[str]:
        """A column as text."""
        texts = self.read([column])[column]
        kind = self.files.schema.field(column).type
        if not holds_text(kind):
            raise InvalidInput(
                f"{self.path.name}: column {column!r} holds {kind}; expected text"
            )
        return require_texts(texts.where(texts != ""), self.path)


def require_texts(texts: pd.Series[str], path: Path) -> pd.Series[str]:
    """The documents of a file; refuses empty ones."""
    empty = texts.index[texts.isna()].tolist()
    if empty:
        others = f", and of {len(empty) - 1:,} more" if len(empty) > 1 else ""
        raise InvalidInput(
            f"{path.name}: {texts.name} is empty in row {empty[0]} (the first is "
            f"row 0){others}; remove such rows"
        )
    return texts


# ---- Types of columns


def _is_number(kind: Any) -> bool:
    types = require("pyarrow").types
    tests = (
        types.is_integer,
        types.is_floating,
        types.is_decimal,
        types.is_boolean,
        types.is_null,
    )
    return any(test(kind) for test in tests)


def _series_of(column: Any) -> pd.Series[Any]:
    """A column of Arrow as one of pandas; NaN is missing."""
    kind = column.type
    types = require("pyarrow").types
    if is_coded(kind):
        categories = column.to_pandas().cat.as_unordered()
        categories = categories.cat.remove_unused_categories()
        return categories.cat.reorder_categories(sorted(categories.cat.categories))
    if holds_text(kind):
        return column.cast("large_string").to_pandas()
    is_missing = column.null_count and not types.is_floating(kind)
    if is_missing or types.is_decimal(kind):
        column = column.cast("float64", safe=False)
    return pd.Series(column.to_numpy(), copy=False)
