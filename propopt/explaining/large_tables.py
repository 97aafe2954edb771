"""Rows of tables larger than memory, explained into a folder of Parquet files.

A table of Parquet or Arrow files is read in blocks of a few megabytes, and explained in
parts of equally many rows (:mod:`propopt.results.explained_table`). The numbers of rows
and of parts follow from the table alone, so an interrupted run that continues, another
size of row groups and any number of workers give the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pandas as pd

from propopt.base.checks import errors_of
from propopt.base.errors import InvalidInput
from propopt.base.extras import require
from propopt.base.files import is_unfinished, locked_folder
from propopt.base.terminal import counting
from propopt.base.text import repeated
from propopt.explaining.out_of_sample import FittedReference, FittedRows
from propopt.explaining.row_tables import (
    check_columns,
    free_name,
    is_dask,
    row_cells,
    row_columns,
    row_numbers,
    row_table,
    rows_of_tables,
)
from propopt.explaining.saved_explainer import SavedExplainer
from propopt.proofs.sampling_error import TargetError
from propopt.results.explained_table import (
    MANIFEST,
    ExplainedTable,
    PartSums,
    TableHeader,
    read_part,
    write_manifest,
    write_part,
)
from propopt.tables.arrow_files import ArrowFiles
from propopt.tables.frames import as_arrow, listed


_PART_BYTES: Final = 2**26
_PART_ROWS: Final = 2**15
"""The largest parts. They are small, because a killed run loses unfinished ones."""

_BLOCK_BYTES: Final = 2**23
_BLOCK_ROWS: Final = 2**12
"""The largest blocks that are explained at once."""

# ---- Parts: rows that are explained and written


@final
@dataclass(frozen=True, eq=False)
class PartWriter:
    """All that it takes to explain and write any part; also in another process."""

    fitted: FittedRows
    source: ArrowFiles
    header: TableHeader
    folder: Path
    labels: tuple[Hashable, ...]  # of the columns that the model takes

    def write(self, parts: Sequence[int]) -> Iterator[int]:
        """Write some parts, in ascending order; yields numbers of finished rows."""
        gaps = np.flatnonzero(np.diff(parts) > 1) + 1
        for run in np.split(np.array(parts, np.intp), gaps) if parts else ():
            yield from self._write_run(run.tolist())

    def _write_run(self, parts: Sequence[int]) -> Iterator[int]:
        """Write consecutive parts, reading their rows once."""
        sizes = [self._sizes(part) for part in parts]
        first = self.header.rows_of(parts[0]).start
        each = (size for some in sizes for size in some)
        blocks = self.source.blocks(first, each, _BLOCK_ROWS)
        for part, some in zip(parts, sizes, strict=True):
            numbers = []
            copied = []
            new = dict[str, int]()
            errors = list[TargetError]()
            start = self.header.rows_of(part).start
            for size in some:
                with errors_of("X"):
                    table = next(blocks)
                block = self._frame(table, start)
                explained = self.fitted.explain(block, progress=False)
                assert explained.target is not None, "each row has a target"
                errors.append(explained.target)
                row = [row_numbers(explained), row_cells(explained)]
                numbers.append(np.hstack(row))
                copied.append(table.select(list(self.header.copied)))
                if "new categories" in explained.parameters:
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
        pyarrow = require("pyarrow")
        header = self.header
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
        n = len(self.header.rows_of(part))
        count = len(self.source.schema) + len(self.header.columns)
        size = _rows_within(_BLOCK_BYTES, _BLOCK_ROWS, count)
        return [min(size, n - start) for start in range(0, n, size)]

    def _frame(self, table: Any, first: int) -> pd.DataFrame:
        """The explained rows, named by their positions in the table."""
        frame = table.select([*map(str, self.labels)]).to_pandas(ignore_metadata=True)
        frame.columns = pd.Index(list(self.labels))
        return frame.set_axis(pd.RangeIndex(first, first + len(frame)), axis=0)


def _rows_within(n_bytes: int, most: int, n_columns: int) -> int:
    """The rows that so many bytes hold, at most ``most``, as a power of two."""
    rows = min(max(n_bytes // (8 * n_columns), 1), most)
    return int(2 ** (rows.bit_length() - 1))


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
    copied = tuple(keep)
    twice = repeated(copied)
    if twice:
        raise InvalidInput(f"keep: {twice[0]!r} is named twice; name it once")
    schema = rows.function.schema
    labels: tuple[Hashable, ...] = () if schema is None else tuple(schema.header)
    table = _as_table(X)
    with errors_of("X"):
        names = [*dict.fromkeys([*map(str, labels), *copied])] if labels else None
        source = ArrowFiles.of(table, names)
        if names is None:  # a model of arrays takes all others
            labels = tuple(name for name in source.names if name not in copied)
            source = source.select([*map(str, labels), *copied])
        if source.n_rows == 0:
            raise InvalidInput("the table is empty")
    check_columns(rows, pd.Index(labels))
    writer = PartWriter(
        rows, source, _header(rows, source, labels, copied), Path(to), labels
    )
    with locked_folder(writer.folder):
        missing = _missing_parts(writer)
        if scheduler is None:
            with _counting(writer.header, missing, progress) as advance:
                for n_rows in writer.write(missing):
                    advance(n_rows)
        else:
            _write_on_cluster(writer, missing, scheduler, progress)
    return ExplainedTable.load(writer.folder)


def _as_table(X: Any) -> Any:
    """A DataFrame of any library as a table of Arrow; anything else as it is."""
    arrow = require("pyarrow")
    if isinstance(X, str | os.PathLike) or type(X).__module__.startswith("pyarrow."):
        return X
    try:
        table = as_arrow(X)
    except arrow.ArrowException as error:
        raise InvalidInput(f"X: no table of Arrow has its cells: {error}") from None
    return X if table is None else table


def _header(
    rows: FittedRows,
    source: ArrowFiles,
    labels: tuple[Hashable, ...],
    copied: tuple[str, ...],
) -> TableHeader:
    """What the folder of these rows contains."""
    reference = rows.reference
    columns = row_columns(rows, pd.Index(labels))
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
    with errors_of("X"):
        digest = source.digest
    return TableHeader(
        explainer=SavedExplainer.of(rows).digest,
        source=digest,
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
        together=reference.together,
        parameters=rows.row_parameters,
    )


def _missing_parts(writer: PartWriter) -> list[int]:
    """The unfinished parts of a folder; those with a digest of other bytes, too."""
    folder = writer.folder
    header = writer.header
    before = TableHeader.read(folder)
    if before is None:
        if not all(map(is_unfinished, folder.iterdir())):
            raise InvalidInput(
                f"to: the folder {folder} has other files; give a new or empty folder"
            )
    else:
        _refuse_other(before, header, folder)
    for draft in folder.glob(".draft-*"):  # of a run that was killed
        draft.unlink(missing_ok=True)
    if before is None:
        write_manifest(folder, header)
    return [n for n in range(header.n_parts) if read_part(folder, header, n) is None]


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


# ---- Work in this process, or by workers of Dask


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
    if read_part(writer.folder, writer.header, part) is None:
        return sum(writer.write([part]))
    return len(writer.header.rows_of(part))


def _counting(
    header: TableHeader, parts: Sequence[int], progress: bool | None
) -> AbstractContextManager[Callable[[int], None]]:
    """Show progress; rows of earlier runs are not timed, because they took no time."""
    done = header.n_rows - sum(len(header.rows_of(part)) for part in parts)
    return counting("explain", done, header.n_rows, progress)


# ---- DataFrames of Dask: explained lazily, by partitions


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
