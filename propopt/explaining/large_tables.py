"""Rows of tables larger than memory, explained into a folder of Parquet files.

A table of Parquet or Arrow files is read in blocks of a few megabytes, and explained in
parts of equally many rows (:mod:`propopt.results.explained_table`). The numbers of rows
and of parts follow from the table alone, so an interrupted run that continues, another
size of row groups and any number of workers give the same bytes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pandas as pd

from propopt.base.errors import InvalidInput
from propopt.base.extras import require
from propopt.base.files import writable_folder
from propopt.base.terminal import LoggedProgress, progress_bar
from propopt.explaining.out_of_sample import FittedReference, FittedRows
from propopt.explaining.row_tables import (
    free_name,
    row_cells,
    row_columns,
    row_numbers,
    row_table,
    rows_of_tables,
)
from propopt.explaining.saved_explainer import SavedExplainer
from propopt.proofs.target_error import TargetError
from propopt.results.explained_table import (
    MANIFEST,
    ExplainedTable,
    PartSums,
    TableHeader,
    path_of_part,
    write_manifest,
    write_part,
)
from propopt.tables.frames import listed


_PART_BYTES: Final = 2**26
_PART_ROWS: Final = 2**15
"""The largest parts. They are small, because a killed run loses unfinished ones."""

_BLOCK_BYTES: Final = 2**23
_BLOCK_ROWS: Final = 2**12
"""The largest blocks that are explained at once."""

_TAIL: Final = 2**16
"""Bytes at the end of a file that enter its digest: for Parquet the statistics."""


# ---- Tables: their rows in blocks, and what identifies them


@final
@dataclass(frozen=True, eq=False)
class TableSource:
    """Some columns of a table, in row groups that can be skipped."""

    dataset: Any  # of pyarrow
    columns: tuple[str, ...]  # to read

    @classmethod
    def of(
        cls, X: Any, header: Sequence[str] | None, copied: Sequence[str]
    ) -> TableSource:
        """The columns of a path, dataset or table; all of them without a header."""
        dataset = _dataset(X)
        names = dataset.schema.names
        columns = [*(names if header is None else header)]
        columns += [name for name in copied if name not in columns]
        missing = [name for name in columns if name not in names]
        if missing:
            raise InvalidInput(
                f"X: the table has no {listed(missing)}; its columns are "
                f"{listed(names, 10)}"
            )
        twice = [name for name in columns if names.count(name) > 1]
        if twice:
            raise InvalidInput(f"X: two columns of the table are named {twice[0]!r}")
        return cls(dataset, tuple(columns))

    @cached_property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(count for _, count in self._groups)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the columns with their types, and of names and ends of files.

        The end of a Parquet file has the statistics of all its columns. A table in
        memory has the digest of its cells.
        """
        digest = hashlib.sha256(f"{self.n_rows} rows\n".encode())
        for name in self.columns:
            digest.update(f"{name!r} {self.dataset.schema.field(name).type}\n".encode())
        for fragment in self._fragments:
            if hasattr(fragment, "path"):
                name = fragment.path.rpartition("/")[2]
                with fragment.filesystem.open_input_file(fragment.path) as file:
                    size = file.size()
                    file.seek(max(size - _TAIL, 0))
                    digest.update(f"{name!r} {size}\n".encode())
                    digest.update(file.read())
            else:
                for batch in fragment.to_batches(columns=list(self.columns)):
                    digest.update(batch.serialize())
        return digest.hexdigest()

    def blocks(self, first: int, sizes: Iterator[int]) -> Iterator[Any]:
        """Tables of the given numbers of rows, from the row ``first`` on."""
        pyarrow = require("pyarrow")
        batches, waiting = self._batches(first), list[Any]()
        for size in sizes:
            while sum(len(batch) for batch in waiting) < size:
                waiting.append(next(batches))
            table = pyarrow.Table.from_batches(waiting)
            waiting = table.slice(size).to_batches()
            yield table.slice(0, size)

    def _batches(self, first: int) -> Iterator[Any]:
        """Batches from the row ``first`` on; earlier row groups are not read."""
        parquet = require("pyarrow.dataset")
        options: dict[str, Any] = {"use_threads": False, "batch_size": _BLOCK_ROWS}
        options |= {"batch_readahead": 1, "fragment_readahead": 1}
        # read as it is decoded, whatever the size of row groups
        scan = parquet.ParquetFragmentScanOptions(
            use_buffered_stream=True, buffer_size=_TAIL, pre_buffer=False
        )
        schema, columns = self.dataset.schema, list(self.columns)
        for group, count in self._groups:
            if first >= count:
                first -= count
                continue
            if type(group).__name__ == "ParquetFileFragment":
                options["fragment_scan_options"] = scan
            for batch in group.to_batches(schema=schema, columns=columns, **options):
                if first >= len(batch):
                    first -= len(batch)
                    continue
                yield batch.slice(first)
                first = 0

    @cached_property
    def _fragments(self) -> list[Any]:
        """The files of the dataset, or its table in memory."""
        try:
            return [*self.dataset.get_fragments()]
        except ValueError as error:  # a dataset with a filter
            raise InvalidInput(
                f"X: the files of the dataset are not known ({error}); write its rows "
                "to a file first, by pyarrow.dataset.write_dataset"
            ) from None

    @cached_property
    def _groups(self) -> list[tuple[Any, int]]:
        """Row groups of Parquet, and other files, with their numbers of rows."""
        groups = list[tuple[Any, int]]()
        for fragment in self._fragments:
            if hasattr(fragment, "split_by_row_group"):
                each = fragment.split_by_row_group()
                groups += [(x, x.row_groups[0].num_rows) for x in each]
            else:
                groups.append((fragment, fragment.count_rows()))
        return groups


_SUFFIXES: Final = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
}
"""The formats of files, by suffix."""


def _dataset(X: Any) -> Any:
    """A path, a dataset, a table of pyarrow or a DataFrame as a dataset."""
    datasets = require("pyarrow.dataset")
    if isinstance(X, datasets.Dataset):
        return X
    if isinstance(X, pd.DataFrame):
        pyarrow = require("pyarrow")
        try:
            X = pyarrow.Table.from_pandas(X, preserve_index=False)
        except pyarrow.ArrowException as error:
            raise InvalidInput(f"X: no table of Arrow has its cells: {error}") from None
    if not isinstance(X, str | os.PathLike):
        try:
            return datasets.dataset(X)
        except TypeError:
            raise InvalidInput(
                f"X: expected a path, a dataset or a table of pyarrow, or a DataFrame, "
                f"got {type(X).__name__}"
            ) from None
    path = Path(X)
    if not path.exists():
        raise InvalidInput(f"X: there is no file or folder {path}")
    files = [path]
    if path.is_dir():  # names that begin with "_" or "." are of no table
        files = sorted(
            file
            for file in path.rglob("*")
            if file.is_file()
            and not any(x[0] in "_." for x in file.relative_to(path).parts)
        )
    kinds = {_SUFFIXES.get(file.suffix.lower(), file.suffix) for file in files}
    if len(kinds) != 1 or not kinds <= set(_SUFFIXES.values()):
        kinds_in_words = listed(sorted(kinds)) if kinds else "no files"
        raise InvalidInput(
            f"X: expected files of one format, with the suffix {listed([*_SUFFIXES])}, "
            f"in {path}; got {kinds_in_words}"
        )
    pyarrow = require("pyarrow")
    try:
        return datasets.dataset(
            [*map(str, files)],
            format=kinds.pop(),
            partitioning="hive" if path.is_dir() else None,
            partition_base_dir=str(path) if path.is_dir() else None,
        )
    except (OSError, pyarrow.ArrowException) as error:
        raise InvalidInput(f"X: {path} cannot be read: {error}") from None


# ---- Parts: rows that are explained and written


@final
@dataclass(frozen=True, eq=False)
class PartWriter:
    """All that it takes to explain and write any part; also in another process."""

    fitted: FittedRows
    source: TableSource
    header: TableHeader
    folder: Path
    labels: tuple[Hashable, ...] | None  # of the columns that the model takes

    def write(self, parts: Sequence[int]) -> Iterator[int]:
        """Write some parts, in ascending order; yields numbers of finished rows."""
        for run in _runs(parts):
            yield from self._write_run(run)

    def _write_run(self, parts: range) -> Iterator[int]:
        """Write consecutive parts, reading their rows once."""
        sizes = [self._sizes(part) for part in parts]
        first = self.header.rows_of(parts[0]).start
        blocks = self.source.blocks(first, (size for some in sizes for size in some))
        for part, some in zip(parts, sizes, strict=True):
            numbers, copied, new = [], [], dict[str, int]()
            errors = list[TargetError]()
            start = self.header.rows_of(part).start
            for size in some:
                table = next(blocks)
                block = self._frame(table, start)
                explained = self.fitted.explain(block, progress=False)
                assert explained.target is not None, "each row has a target"
                errors.append(explained.target)
                row = [row_numbers(explained), row_cells(explained)]
                numbers.append(np.hstack(row))
                copied.append(table.select(list(self.header.copied)))
                if "notes" in explained.parameters:
                    count, words = self.fitted.new_categories(block)
                    new |= {words: new.get(words, 0) + count} if count else {}
                start += size
                yield size
            every = np.concatenate(numbers)
            count = len(self.header.features) + len(self.header.numbers)
            sums = PartSums.of(every[:, :count], len(self.header.features), new, errors)
            self._finish(part, np.split(every, [count], axis=1), copied, sums)

    def _finish(
        self, part: int, numbers: Sequence[Any], copied: Any, sums: PartSums
    ) -> None:
        """Write the numbers and the cells of a part."""
        pyarrow, header = require("pyarrow"), self.header
        names = (*header.features, *header.numbers)
        columns: dict[str, Any] = dict(zip(names, numbers[0].T, strict=True))
        for name, cells in zip(
            header.cells, np.split(numbers[1], 2, axis=1), strict=True
        ):
            columns[name] = pyarrow.FixedSizeListArray.from_arrays(
                cells.ravel(), len(header.features)
            )
        rest = pyarrow.concat_tables(copied)
        before = {name: rest.column(name) for name in header.copied}
        write_part(self.folder, header, part, {**before, **columns}, sums)

    def _sizes(self, part: int) -> list[int]:
        """The numbers of rows of the blocks of a part."""
        n, size = len(self.header.rows_of(part)), self._block_rows
        return [min(size, n - start) for start in range(0, n, size)]

    @cached_property
    def _block_rows(self) -> int:
        count = len(self.source.columns) + len(self.header.columns)
        return _rows_within(_BLOCK_BYTES, _BLOCK_ROWS, count)

    def _frame(self, table: Any, first: int) -> pd.DataFrame:
        """The rows that are explained, whose names are their positions in the table."""
        count = len(self.source.columns) if self.labels is None else len(self.labels)
        frame = table.select(range(count)).to_pandas(ignore_metadata=True)
        if self.labels is not None:
            frame.columns = pd.Index(list(self.labels))
        return frame.set_axis(pd.RangeIndex(first, first + len(frame)), axis=0)


def _rows_within(n_bytes: int, most: int, n_columns: int) -> int:
    """The rows that so many bytes hold, at most ``most``, as a power of two."""
    rows = min(max(n_bytes // (8 * n_columns), 1), most)
    return int(2 ** (rows.bit_length() - 1))


def _runs(parts: Sequence[int]) -> Iterator[range]:
    """Consecutive numbers among ascending ones."""
    first = 0
    for k in range(1, len(parts) + 1):
        if k == len(parts) or parts[k] != parts[k - 1] + 1:
            yield range(parts[first], parts[k - 1] + 1)
            first = k


# ---- A folder of explained rows: started, continued or finished


def explain_large(
    fitted: FittedReference,
    X: Any,
    to: str | os.PathLike[str] | None,
    *,
    keep: Sequence[str] = (),
    scheduler: Any = None,
    progress: bool | None = None,
) -> Any:
    """Explain all rows of a table into a folder, or lazily for one of Dask."""
    rows = rows_of_tables(fitted)
    rows.problem.settings.refuse_joint_settings()
    if is_dask(X):
        if to is not None or keep or scheduler is not None:
            raise InvalidInput(
                "to, keep, scheduler: expected none for a DataFrame of Dask; its "
                "explained rows are lazy, and their to_parquet(folder) writes them"
            )
        return explain_partitions(rows, X)
    if to is None:
        what = f"the path {X!s}" if isinstance(X, str | os.PathLike) else "a dataset"
        raise InvalidInput(f"X: got {what}; give to=, a folder for its explained rows")
    schema = rows.function.schema
    labels = None if schema is None else tuple(schema.header)
    names = None if labels is None else [*map(str, labels)]
    source = TableSource.of(X, names, tuple(keep))
    if source.n_rows == 0:
        raise InvalidInput("X: the table is empty")
    header = _header(rows, source, tuple(keep))
    writer = PartWriter(rows, source, header, Path(to), labels)
    missing = _missing_parts(writer)
    if scheduler is None:
        _write_here(writer, missing, progress)
    else:
        _write_on_cluster(writer, missing, scheduler, progress)
    return ExplainedTable.load(writer.folder)


def _header(
    rows: FittedRows, source: TableSource, copied: tuple[str, ...]
) -> TableHeader:
    """What the folder of these rows contains."""
    reference = rows.reference
    columns = row_columns(rows, pd.Index(source.columns))
    features = columns[: reference.shape[1]]
    twice = [name for name in copied if name in columns]
    if twice:
        raise InvalidInput(
            f"keep: {twice[0]!r} is also the name of a column of attributions; rename "
            "it in the table, or leave it out"
        )
    before = "gradient" if reference.base_value is None else "contributions"
    taken = (*copied, *columns)
    n_columns = len(taken) + 2 * len(features)
    return TableHeader(
        explainer=SavedExplainer.of(rows).digest,
        source=source.digest,
        version=version("propopt"),
        n_rows=source.n_rows,
        part_rows=_rows_within(_PART_BYTES, _PART_ROWS, n_columns),
        copied=copied,
        features=tuple(features),
        numbers=tuple(columns[len(features) :]),
        cells=(free_name(before, taken), free_name("standard_errors", taken)),
        row_size=rows.row_size,
        units=reference.units,
        quantity=rows.function.quantity,
        background=reference.background,
        parameters=rows.row_parameters,
    )


def _missing_parts(writer: PartWriter) -> list[int]:
    """The unfinished parts of a folder, which is made if there is none."""
    folder, header = writer.folder, writer.header
    before = TableHeader.read(folder)
    if before is None:
        writable_folder(folder)
        if any(folder.iterdir()):
            raise InvalidInput(
                f"to: the folder {folder} has other files; give a new or empty folder"
            )
        write_manifest(folder, header)
        return [*range(header.n_parts)]
    _refuse_other(before, header, folder)
    for draft in folder.glob(".draft-*"):  # of a run that was killed
        draft.unlink(missing_ok=True)
    parts = range(header.n_parts)
    return [n for n in parts if PartSums.read(folder, header, n) is None]


def _refuse_other(before: TableHeader, header: TableHeader, folder: Path) -> None:
    """Refuse to continue a folder of other rows."""
    causes = {
        "explainer": "another explainer: its model, data or settings differ",
        "copied": f"other columns to keep: {listed(before.copied) or 'none'}",
        "source": "another table: its files, columns or number of rows differ",
        "version": f"propopt {before.version}, and this is {header.version}",
    }
    for name, cause in causes.items():
        if getattr(before, name) != getattr(header, name):
            raise InvalidInput(
                f"to: the rows in {folder} are of {cause}; give another folder, or "
                "delete this one to start over"
            )
    if before.digest != header.digest:
        raise InvalidInput(
            f"to: {folder / MANIFEST} has been changed; give another folder, or delete "
            "this one to start over"
        )


def start_over(folder: Path) -> None:
    """Remove the explained rows of a folder, if it has any; other files stay."""
    header = TableHeader.read(folder)
    if header is None:
        return
    for part in range(header.n_parts):
        path_of_part(folder, part).unlink(missing_ok=True)
    (folder / MANIFEST).unlink()


# ---- Work in this process, or by workers of Dask


def _write_here(writer: PartWriter, parts: list[int], progress: bool | None) -> None:
    """Write parts in this process."""
    with _counting(writer.header, parts, progress) as advance:
        for n_rows in writer.write(parts):
            advance(n_rows)


def _write_on_cluster(
    writer: PartWriter, parts: list[int], scheduler: Any, progress: bool | None
) -> None:
    """Write parts by workers of Dask, which read and write the same files.

    The writer is the result of a task, so it is sent once to each worker, and again if
    all workers that had it are gone.
    """
    distributed = require("distributed")
    with ExitStack() as stack:
        client = scheduler
        if not isinstance(client, distributed.Client):
            client = stack.enter_context(distributed.Client(scheduler))
        shared = client.submit(_unchanged, writer, pure=False)
        advance = stack.enter_context(_counting(writer.header, parts, progress))
        # finished futures are not retained, so they are not computed again
        for future in distributed.as_completed(
            [client.submit(_write_part, shared, n, pure=False) for n in parts]
        ):
            advance(future.result())


def _unchanged(writer: PartWriter) -> PartWriter:
    return writer


def _write_part(writer: PartWriter, part: int) -> int:
    """Write one part, unless a worker that was killed has; the number of its rows."""
    if PartSums.read(writer.folder, writer.header, part) is None:
        return sum(writer.write([part]))
    return len(writer.header.rows_of(part))


@contextmanager
def _counting(
    header: TableHeader, parts: Sequence[int], progress: bool | None
) -> Iterator[Callable[[int], None]]:
    """Show how many rows are done, and how long the rest will take.

    The time of the first rows is not counted, because it includes preparations, and
    rows of earlier runs are not, because they took none.
    """
    done = header.n_rows - sum(len(header.rows_of(part)) for part in parts)
    log: LoggedProgress | None = None
    with progress_bar("explain", header.n_rows, progress) as bar:
        bar.tasks[0].completed = done

        def advance(count: int) -> None:
            nonlocal done, log
            done += count
            bar.advance(bar.task_ids[0], count)
            if log is None:
                log = LoggedProgress("explain", done, header.n_rows, progress)
            else:
                log.advance(count)

        yield advance


# ---- DataFrames of Dask: explained lazily, by partitions


def is_dask(X: Any) -> bool:
    """Whether X is a DataFrame of Dask; Dask is not imported for it."""
    is_of_dask = type(X).__module__.partition(".")[0] == "dask"
    return is_of_dask and hasattr(X, "map_partitions")


def explain_partitions(rows: FittedRows, frame: Any) -> Any:
    """A DataFrame of Dask with the explained rows of each partition."""
    dask = require("dask")
    # one task, which all partitions need; its name differs for each explainer
    name = f"explainer-{SavedExplainer.of(rows).digest}"
    shared = dask.delayed(rows, name=name, traverse=False)
    meta = row_table(rows, frame._meta, None)  # noqa: SLF001  # a table without rows
    return frame.map_partitions(_explain_partition, shared, meta=meta)


def _explain_partition(block: pd.DataFrame, rows: FittedRows) -> pd.DataFrame:
    """The explained rows of a partition."""
    return row_table(rows, block, None)
