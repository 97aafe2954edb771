"""Files of Parquet or Arrow as one table: all schemas are compared before any row.

Columns are found by name. If their types differ between files, the column has the type
that has the values of all of them, such as int64 of int32 and int64; else the file that
differs is refused by name. Nothing is taken from the first file alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations
from pathlib import Path
from typing import Any, Final, Self, final

import numpy as np

from propopt.base.errors import InvalidInput
from propopt.base.extras import require
from propopt.tables.frames import listed, refuse_repeated


ARROW_SUFFIXES: Final = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
}
"""The format of a file, as pyarrow names it, by suffix."""

_DESCRIPTIONS: Final = (".txt", ".md", ".json", ".yaml", ".html", ".pdf")
"""Suffixes of files that describe the table of their folder."""

_UNTYPED: Final = ("CsvFileFormat", "JsonFileFormat")
"""Formats in which cells have the types of the dataset."""

_BUFFER: Final = 2**16
"""Bytes that are read from a file at once."""


# ---- Paths


def is_arrow(path: Path) -> bool:
    """Whether a path names a file of Arrow by its suffix, or a folder."""
    return path.suffix.lower() in ARROW_SUFFIXES or os.path.isdir(path)


def files_of(path: Path) -> list[Path]:
    """The file, or the files of a folder in the order of their paths."""
    *others, last = ARROW_SUFFIXES
    suffixes = f"{', '.join(others)} or {last}"
    if not os.path.exists(path):  # also for impossible file names
        raise InvalidInput(f"there is no file or folder {path}")
    if not path.is_dir():
        if path.suffix.lower() not in ARROW_SUFFIXES:
            raise InvalidInput(f"{path}: expected a file {suffixes}, or a folder")
        return [path]
    seen = [  # without .part.crc, _temporary and the like
        file
        for file in sorted(path.rglob("*"))
        if file.is_file()
        and not any(name[0] in "._" for name in file.relative_to(path).parts)
        and file.suffix.lower() not in _DESCRIPTIONS
    ]
    strange = [file for file in seen if file.suffix.lower() not in ARROW_SUFFIXES]
    if strange or not seen:
        what = f"a file {strange[0].relative_to(path)}" if strange else "no file"
        raise InvalidInput(
            f"{path}: the folder has {what}; expected files {suffixes}, and others "
            "with names that begin with _"
        )
    formats = {ARROW_SUFFIXES[file.suffix.lower()]: file for file in seen}
    if len(formats) > 1:
        one, other = (file.relative_to(path) for file in formats.values())
        raise InvalidInput(
            f"{path}: the folder has files of two formats, such as {one} and {other}"
        )
    return seen


def parts_of(path: Path) -> list[Path]:
    """The files of a folder with a table; any other path by itself."""
    try:
        return files_of(path) if path.is_dir() else [path]
    except InvalidInput:  # raised where the table is read
        return [path]


@contextmanager
def reading(name: object) -> Iterator[None]:
    """Errors of pyarrow as errors of a file."""
    arrow = require("pyarrow")
    try:
        yield
    except MemoryError as error:
        raise MemoryError(f"{name}: {error}") from None
    except (ValueError, OSError, TypeError, arrow.ArrowException) as error:
        if isinstance(error, InvalidInput):
            raise
        problem = str(error).strip().partition("\n")[0]
        raise InvalidInput(f"{name}: cannot be read: {problem}") from None


# ---- One file


@final
@dataclass(frozen=True, eq=False)
class ArrowFile:
    """A file or a table in memory, with the values that the names of folders give."""

    fragment: Any  # of pyarrow
    schema: Any  # of its cells and of these values
    values: Mapping[str, Any]  # such as 2026 of a folder year=2026, by column

    @classmethod
    def of(cls, fragment: Any, dataset: Any) -> Self:
        """A fragment of a dataset, with its own schema."""
        values = require("pyarrow.dataset").get_partition_keys(
            fragment.partition_expression
        )
        name = _name_of(fragment)
        declared = dataset.schema
        with reading(name):
            physical = fragment.physical_schema
        refuse_repeated(physical.names, name)
        both = [column for column in values if column in physical.names]
        if both:
            raise InvalidInput(
                f"{name}: column {both[0]!r} is in the file and in the name of its "
                "folder; give pyarrow.dataset.dataset(folder), which reads the file"
            )
        fields = [*physical]
        if hasattr(fragment, "format"):
            is_typed = type(fragment.format).__name__ not in _UNTYPED
            fields = [
                x
                if is_typed or x.name not in declared.names
                else declared.field(x.name)
                for x in physical
            ]
        fields += [declared.field(x) for x in values if x in declared.names]
        schema = require("pyarrow").schema(fields, physical.metadata)
        return cls(fragment, schema, values)

    @property
    def name(self) -> str:
        """The path, for errors."""
        return _name_of(self.fragment)

    @cached_property
    def groups(self) -> list[tuple[Any, int]]:
        """Row groups of Parquet, or the file itself, with their numbers of rows."""
        with reading(self.name):
            if not hasattr(self.fragment, "split_by_row_group"):
                return [(self.fragment, self.fragment.count_rows())]
            each = self.fragment.split_by_row_group()
            return [(x, x.row_groups[0].num_rows) for x in each]

    def options(self, columns: Sequence[str], **scan: Any) -> dict[str, Any]:
        """Arguments to read some of its columns; damaged pages of Parquet raise."""
        stored = [name for name in columns if name not in self.values]
        options: dict[str, Any] = {"columns": stored, "schema": self.schema}
        if type(self.fragment).__name__ == "ParquetFileFragment":
            datasets = require("pyarrow.dataset")
            options["fragment_scan_options"] = datasets.ParquetFragmentScanOptions(
                page_checksum_verification=True, **scan
            )
        return options

    def converted(self, table: Any, schema: Any, first: int) -> Any:
        """Cells with the types of another schema, which has all their values."""
        arrow = require("pyarrow")
        columns = []
        for field in schema:
            if field.name in self.values:
                cell = arrow.scalar(self.values[field.name], field.type)
                columns.append(arrow.repeat(cell, len(table)))
                continue
            column = table.column(field.name)
            try:
                columns.append(column.cast(field.type))
            except arrow.ArrowException:
                row = next(
                    k for k, cell in enumerate(column) if not _fits(cell, field.type)
                )
                text = column.slice(row, 1).cast("string")[0]
                raise InvalidInput(
                    f"{self.name}: column {field.name!r}, row {first + row}: "
                    f"{text} is no {field.type}, and other files have this "
                    "type; store the column with one type in all files"
                ) from None
        return arrow.table(columns, schema)


def _name_of(fragment: Any) -> str:
    """The path of a fragment; tables in memory have none."""
    return getattr(fragment, "path", "the table")


def _fits(cell: Any, kind: Any) -> bool:
    """Whether a type has the value of a cell."""
    arrow = require("pyarrow")
    try:
        cell.cast(kind)
    except arrow.ArrowException:
        return False
    return True


# ---- All files


@final
@dataclass(frozen=True, eq=False)
class ArrowFiles:
    """Some columns of files, or of a table in memory, as one table."""

    files: tuple[ArrowFile, ...]
    schema: Any  # of these columns, common to all files
    index: tuple[str, ...]  # columns with names of rows, which pandas has written

    @classmethod
    def of(cls, X: Any, columns: Sequence[str] | None = None) -> Self:
        """Compare the schemas of a path, dataset or table, without reading cells.

        Parameters
        ----------
        X : path, or dataset or table of pyarrow
            A folder is a table if its files have the same columns. They are read in the
            order of their paths. Folders such as ``year=2026`` add a column, as Spark
            writes them.
        columns : sequence of str, optional
            The columns to read; by default all.
        """
        dataset = _dataset(X)
        refuse_repeated(dataset.schema.names, "the table")
        try:
            fragments = [*dataset.get_fragments()]
        except ValueError as error:  # a dataset with a filter
            raise InvalidInput(
                f"the files of the dataset are not known ({error}); write its rows to "
                "a file first, by pyarrow.dataset.write_dataset"
            ) from None
        files = tuple(ArrowFile.of(fragment, dataset) for fragment in fragments)
        if not files:
            raise InvalidInput("the table is empty")
        has = [*dict.fromkeys(name for file in files for name in file.schema.names)]
        missing = [name for name in columns or () if name not in has]
        if missing:
            raise InvalidInput(
                f"the table has no {listed(missing)}; its columns are {listed(has, 10)}"
            )
        names = has if columns is None else columns
        fields = [(name, _common_type(name, files)) for name in names]
        schema = require("pyarrow").schema(fields)
        return cls(files, schema, tuple(_index_of(files[0].schema)))

    @property
    def names(self) -> list[str]:
        """The columns without an index of pandas."""
        return [name for name in self.schema.names if name not in self.index]

    def select(self, columns: Sequence[str]) -> Self:
        """The same files with some of these columns, in this order."""
        fields = [self.schema.field(name) for name in columns]
        return replace(self, schema=require("pyarrow").schema(fields))

    @cached_property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(count for file in self.files for _, count in file.groups)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the columns, and of names and all bytes of files.

        A table in memory has the digest of its cells.
        """
        digest = hashlib.sha256(f"{self.n_rows} rows\n".encode())
        for field in self.schema:
            digest.update(f"{field.name!r} {field.type}\n".encode())
        paths = [file.name for file in self.files]
        if not all(hasattr(file.fragment, "path") for file in self.files):
            for table in self._tables(0, _BUFFER):
                sink = require("pyarrow").BufferOutputStream()
                with require("pyarrow").ipc.new_stream(sink, table.schema) as stream:
                    stream.write_table(table)  # with its categories
                digest.update(sink.getvalue())
            return digest.hexdigest()
        folder = posixpath.commonpath(map(posixpath.dirname, paths))
        for file in self.files:
            with reading(file.name), file.fragment.open() as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            values = sorted(file.values.items())
            name = file.name.removeprefix(folder)
            digest.update(f"{name!r} {values} {content}\n".encode())
        return digest.hexdigest()

    def table(self, columns: Sequence[str]) -> Any:
        """All rows of some columns."""
        schema = self.select(columns).schema
        tables = []
        for file in self.files:
            with reading(file.name):
                table = file.fragment.to_table(**file.options(columns))
                tables.append(file.converted(table, schema, 0))
        return require("pyarrow").concat_tables(tables)

    def blocks(self, first: int, sizes: Iterator[int], most: int) -> Iterator[Any]:
        """Tables of the given numbers of rows, at most ``most``, from a row on."""
        arrow = require("pyarrow")
        tables = self._tables(first, most)
        waiting = list[Any]()
        for size in sizes:
            while sum(map(len, waiting)) < size:
                waiting.append(next(tables))
            table = arrow.concat_tables(waiting)
            waiting = [table.slice(size)]
            yield table.slice(0, size)

    def _tables(self, first: int, size: int) -> Iterator[Any]:
        """Tables of at most ``size`` rows; row groups before ``first`` are not read."""
        arrow = require("pyarrow")
        for file in self.files:
            # read as it is decoded, whatever the size of row groups
            options = file.options(
                self.schema.names,
                use_buffered_stream=True,
                buffer_size=_BUFFER,
                pre_buffer=False,
            )
            options |= {"use_threads": False, "batch_size": size}
            options |= {"batch_readahead": 1, "fragment_readahead": 1}
            row = 0
            for group, count in file.groups:
                if first >= count:
                    first -= count
                    row += count
                    continue
                with reading(file.name):
                    for batch in group.to_batches(**options):
                        start = min(first, len(batch))
                        rows = arrow.Table.from_batches([batch.slice(start)])
                        if len(rows):
                            yield file.converted(rows, self.schema, row + start)
                        first -= start
                        row += len(batch)


def _dataset(X: Any) -> Any:
    """A path, a dataset or a table as a dataset."""
    datasets = require("pyarrow.dataset")
    if isinstance(X, datasets.Dataset):
        return X
    if not isinstance(X, str | os.PathLike):
        try:
            return datasets.dataset(X)
        except TypeError:
            raise InvalidInput(
                f"expected a path, a dataset or a table of pyarrow, or a DataFrame, "
                f"got {type(X).__name__}"
            ) from None
    path = Path(X)
    files = files_of(path)
    is_folder = path.is_dir()
    with reading(path):
        return datasets.dataset(
            [*map(str, files)],
            format=ARROW_SUFFIXES[files[0].suffix.lower()],
            partitioning="hive" if is_folder else None,
            partition_base_dir=str(path) if is_folder else None,
        )


# ---- Schemas


def _index_of(schema: Any) -> list[str]:
    """The columns that hold an index of pandas."""
    metadata = (schema.metadata or {}).get(b"pandas")
    if metadata is None:
        return []
    index = json.loads(metadata).get("index_columns", [])
    return [name for name in index if isinstance(name, str) and name in schema.names]


def _common_type(name: str, files: Sequence[ArrowFile]) -> Any:
    """The type that has the values of a column in all files."""
    kinds: dict[Any, ArrowFile] = {}
    for file in files:
        index = file.schema.get_field_index(name)
        kinds.setdefault(None if index < 0 else file.schema.field(index).type, file)
    lacks = kinds.pop(None, None)
    for (one, first), (other, file) in combinations(kinds.items(), 2):
        if wider_type(one, other) is None:
            raise InvalidInput(
                f"{file.name}: column {name!r} holds {other}, and {one} in "
                f"{posixpath.basename(first.name)}"
            )
    if lacks is not None:
        has = posixpath.basename(next(iter(kinds.values())).name)
        raise InvalidInput(f"{lacks.name}: has no column {name!r}, which {has} has")
    return reduce(wider_type, kinds)


def wider_type(one: Any, other: Any) -> Any:
    """The type that has the values of both, exactly or else refused by row; or None."""
    arrow = require("pyarrow")
    types = arrow.types
    pair = (one, other)
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if any(map(types.is_dictionary, pair)):
        values = wider_type(*map(values_of, pair))
        is_coded = values is not None and all(map(types.is_dictionary, pair))
        return arrow.dictionary(arrow.int32(), values) if is_coded else values
    if all(map(holds_text, pair)):
        return arrow.large_string()
    if all(types.is_integer(x) or types.is_floating(x) for x in pair):
        numbers = np.result_type(*(x.to_pandas_dtype() for x in pair))
        return arrow.from_numpy_dtype(numbers)
    if all(map(types.is_temporal, pair)):
        schemas = [arrow.schema([("", x)]) for x in pair]
        try:  # such as the finer one of two units of time
            common = arrow.unify_schemas(schemas, promote_options="permissive")
        except arrow.ArrowTypeError:
            return None
        return common.field(0).type
    return None


def values_of(kind: Any) -> Any:
    """The type of the values, without their codes."""
    return kind.value_type if is_coded(kind) else kind


def is_coded(kind: Any) -> bool:
    """Whether cells are codes of categories."""
    return bool(require("pyarrow").types.is_dictionary(kind))


def holds_text(kind: Any) -> bool:
    """Whether cells, or categories, are text."""
    types = require("pyarrow").types
    kind = values_of(kind)
    tests = (types.is_string, types.is_large_string, types.is_string_view)
    return any(test(kind) for test in tests)
