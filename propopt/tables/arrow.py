"""Tables in Parquet, Arrow and Feather files, or in folders of them, by pyarrow."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd

from propopt.base.errors import InvalidInput
from propopt.base.extras import require
from propopt.base.resources import require_memory
from propopt.tables.frames import listed


ARROW_SUFFIXES: Final = {
    ".parquet": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
}
"""The format of a file, as pyarrow names it, by suffix."""

_AT_ONCE: Final = 2**26
"""Bytes of the columns that are decoded at once, in addition to those of the table."""


# ---- Files and columns, checked by their metadata


@dataclass(frozen=True)
class ArrowTable:
    """A table in files of Arrow: its columns and its number of rows.

    A folder is a table if its files have the same columns. Files are read in the order
    of their paths. Folders such as ``year=2026`` add a column, as Spark writes them.
    """

    path: Path
    columns: tuple[str, ...]
    n_rows: int
    categories: tuple[str, ...]  # columns with categories by their type
    index: tuple[str, ...]  # columns with names of rows, which pandas has written
    dataset: Any = field(repr=False)  # of pyarrow

    @property
    def notes(self) -> str:
        """A sentence on columns that are left out; empty if there are none."""
        if not self.index:
            return ""
        return f"{self.path.name}: left out the index of pandas, {listed(self.index)}"

    @classmethod
    def of(cls, path: Path) -> ArrowTable:
        """Check files by their metadata, without reading their cells."""
        files = files_of(path)
        ds = require("pyarrow.dataset")
        is_folder = path.is_dir()
        with _reading(path):
            dataset = ds.dataset(
                [str(file) for file in files],
                format=ARROW_SUFFIXES[files[0].suffix.lower()],
                partitioning="hive" if is_folder else None,
                partition_base_dir=str(path) if is_folder else None,
            )
            fragments = [*dataset.get_fragments()] if len(files) > 1 else []
            schemas = [fragment.physical_schema for fragment in fragments]
            n_rows = dataset.count_rows()
        for file, schema in zip(files, schemas, strict=bool(schemas)):
            _require_same(schema, schemas[0], file, files[0])
        schema = dataset.schema
        index = _index_of(schema)
        names = [name for name in schema.names if name not in index]
        _check_names(names, path)
        for name in names:
            _check_type(schema.field(name).type, name, path)
        if n_rows == 0:
            raise InvalidInput(f"{path}: has no rows")
        coded = [name for name in names if _is_coded(schema.field(name).type)]
        return cls(path, tuple(names), n_rows, tuple(coded), tuple(index), dataset)

    # ---- Cells, some columns at a time

    def read(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Read some columns; all by default.

        Numbers keep their dtype, or become float64 if some are missing. Categories are
        sorted, as pandas makes them of text.
        """
        names = [*(columns or self.columns)]
        n_bytes = 16.0 * self.n_rows * len(names)
        require_memory(n_bytes, f"{self.path}", "leave rows out")
        count = max(1, _AT_ONCE // (8 * self.n_rows))
        series: dict[str, pd.Series[Any]] = {}
        with _reading(self.path):
            for start in range(0, len(names), count):
                block = names[start : start + count]
                table = self.dataset.to_table(block)
                series |= {name: _series_of(table.column(name)) for name in block}
                del table
        require("pyarrow").default_memory_pool().release_unused()
        return pd.DataFrame(series, columns=names, copy=False)

    def read_texts(self, column: str) -> pd.Series[str]:
        """A column as text."""
        texts = self.read([column])[column]
        kind = self.dataset.schema.field(column).type
        if not _is_text(kind):
            raise InvalidInput(
                f"{self.path.name}: column {column!r} holds {kind}; expected text"
            )
        return require_texts(texts.where(texts != ""), self.path)


def is_arrow(path: Path) -> bool:
    """Whether a path names a file of Arrow by its suffix, or a folder."""
    return path.suffix.lower() in ARROW_SUFFIXES or os.path.isdir(path)


def files_of(path: Path) -> list[Path]:
    """The file, or the files of a folder in the order of their paths."""
    suffixes = listed_suffixes()
    if not os.path.exists(path):  # also for impossible file names
        raise InvalidInput(f"there is no file {path}")
    if not path.is_dir():
        if path.suffix.lower() not in ARROW_SUFFIXES:
            raise InvalidInput(f"{path}: expected a file {suffixes}, or a folder")
        return [path]
    files = sorted(
        file
        for file in path.rglob("*")
        if file.suffix.lower() in ARROW_SUFFIXES
        # such as .part.crc and _temporary, which are no parts of the table
        and not any(name[0] in "._" for name in file.relative_to(path).parts)
    )
    if not files:
        raise InvalidInput(f"{path}: the folder has no file {suffixes}")
    formats = {ARROW_SUFFIXES[file.suffix.lower()] for file in files}
    if len(formats) > 1:
        raise InvalidInput(f"{path}: the folder has files of two formats")
    return files


def parts_of(path: Path) -> list[Path]:
    """The files of a folder with a table; any other path by itself."""
    try:
        return files_of(path) if path.is_dir() else [path]
    except InvalidInput:  # raised where the table is read
        return [path]


def listed_suffixes() -> str:
    """The suffixes in a sentence."""
    *others, last = ARROW_SUFFIXES
    return f"{', '.join(others)} or {last}"


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


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Errors of pyarrow as errors of the file."""
    arrow = require("pyarrow")
    try:
        yield
    except MemoryError as error:
        raise MemoryError(f"{path}: {error}") from None
    except (ValueError, OSError, TypeError, arrow.ArrowException) as error:
        if isinstance(error, InvalidInput):
            raise
        problem = str(error).strip().partition("\n")[0]
        raise InvalidInput(f"{path}: cannot be read: {problem}") from None


def _require_same(schema: Any, first: Any, file: Path, other: Path) -> None:
    """Refuse a file with other columns than the first of its folder."""
    for one, two, has, lacks in (
        (schema, first, file, other),
        (first, schema, other, file),
    ):
        more = [name for name in one.names if name not in two.names]
        if more:
            raise InvalidInput(
                f"{lacks}: has no column {more[0]!r}, which {has.name} has"
            )
    for name in first.names:
        kinds = [_values_of(x.field(name).type) for x in (schema, first)]
        if kinds[0] != kinds[1]:
            raise InvalidInput(
                f"{file}: column {name!r} holds {kinds[0]}, and {kinds[1]} in "
                f"{other.name}"
            )


def _index_of(schema: Any) -> list[str]:
    """The columns that hold an index of pandas."""
    metadata = (schema.metadata or {}).get(b"pandas")
    if metadata is None:
        return []
    index = json.loads(metadata).get("index_columns", [])
    return [name for name in index if isinstance(name, str) and name in schema.names]


def _check_names(names: Sequence[str], path: Path) -> None:
    empty = [number for number, name in enumerate(names, 1) if not name.strip()]
    if empty:
        raise InvalidInput(f"{path}: column {empty[0]} has no name; name it")


# ---- Types of columns


def _values_of(kind: Any) -> Any:
    """The type of the values, without their codes."""
    return kind.value_type if _is_coded(kind) else kind


def _is_coded(kind: Any) -> bool:
    return bool(require("pyarrow").types.is_dictionary(kind))


def _is_text(kind: Any) -> bool:
    types = require("pyarrow").types
    kind = _values_of(kind)
    return bool(
        types.is_string(kind) or types.is_large_string(kind)
    ) or types.is_string_view(kind)


def _is_number(kind: Any) -> bool:
    types = require("pyarrow").types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
    )


def _check_type(kind: Any, name: str, path: Path) -> None:
    """Refuse times, bytes, lists and the like."""
    if not (_is_text(kind) or _is_number(_values_of(kind))):
        raise InvalidInput(
            f"{path}: column {name!r} holds {kind}; expected numbers, text or "
            "categories: convert it, or leave it out"
        )


def _series_of(column: Any) -> pd.Series[Any]:
    """A column of Arrow as one of pandas; NaN is missing."""
    kind, types = column.type, require("pyarrow").types
    if _is_coded(kind):
        categories = column.to_pandas().cat.as_unordered()
        categories = categories.cat.remove_unused_categories()
        return categories.cat.reorder_categories(sorted(categories.cat.categories))
    if _is_text(kind):
        return column.cast("large_string").to_pandas()
    is_missing = column.null_count and not types.is_floating(kind)
    if is_missing or types.is_decimal(kind):
        column = column.cast("float64", safe=False)
    return pd.Series(column.to_numpy(), copy=False)
