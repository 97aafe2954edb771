"""CSV files: a cell in each row for each header, or one sentence why not."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import pandas as pd

from propopt.errors import InvalidInput
from propopt.memory import require_memory
from propopt.tables.names import listed


MOST_OF_A_LINE: Final = 2**24
"""Bytes."""


@dataclass(frozen=True)
class CsvTable:
    """A table in a file, by its headers and the number of its rows.

    Parameters
    ----------
    path : Path
        The file: UTF-8 text with commas, perhaps packed (.gz, .bz2, .xz, .zip).
    columns : tuple of str
        The headers, each once.
    n_rows : int
        Rows below the headers that are not blank.
    n_characters : int
        In their cells.
    """

    path: Path
    columns: tuple[str, ...]
    n_rows: int
    n_characters: int

    @classmethod
    def of(cls, path: Path) -> CsvTable:
        """Go through a file once, without keeping its cells.

        Raises
        ------
        InvalidInput
            If it is not such a table; the line is named.
        """
        _require_file(path)
        with _unpacked(path) as file:
            reader = csv.reader(_lines(file, path))
            try:
                return cls._of_rows(path, reader)
            except csv.Error as error:
                problem = str(error).partition(" - ")[0]  # no advice on Python
                raise InvalidInput(
                    f"{path}:{reader.line_num}: is not a CSV table: {problem}"
                ) from None

    @classmethod
    def _of_rows(cls, path: Path, reader: Any) -> CsvTable:
        rows = (row for row in reader if len(row) > 1 or any(map(str.strip, row)))
        headers = next(rows, None)
        if headers is None:
            raise InvalidInput(f"{path}:1: is not a CSV table: there is no header")
        _check_headers(headers, f"{path}:{reader.line_num}")
        n_rows = n_characters = 0
        for row in rows:
            if len(row) != len(headers):
                raise InvalidInput(
                    f"{path}:{reader.line_num}: is not a CSV table: {len(row)} cells "
                    f"under {len(headers)} headers"
                )
            n_rows += 1
            n_characters += sum(map(len, row))
        if n_rows == 0:
            raise InvalidInput(f"{path}:{reader.line_num}: has no rows")
        return cls(path, tuple(headers), n_rows, n_characters)

    def read(
        self, columns: list[str] | None = None, n_rows: int | None = None
    ) -> pd.DataFrame:
        """Some columns and the first rows; all of them by default.

        Raises
        ------
        InvalidInput
            If the quotes do not match, or there is not enough memory.
        """
        asked = self.n_rows if n_rows is None else min(n_rows, self.n_rows)
        n_bytes = 64.0 * asked * len(columns or self.columns)
        require_memory(n_bytes, f"{self.path}", "leave rows out")
        frame = self._parsed(usecols=columns, nrows=n_rows)
        return self._of_length(frame, asked)

    def read_texts(self, column: str) -> pd.Series[str]:
        """A column as it is written, such as ``1e3`` or ``NA``.

        Raises
        ------
        InvalidInput
            If a cell is empty, with the number of its row; or as :meth:`read`.
        """
        require_memory(4.0 * self.n_characters, f"{self.path}", "leave rows out")
        frame = self._parsed(
            usecols=[column], dtype=str, keep_default_na=False, na_values=[""]
        )
        texts = self._of_length(frame, self.n_rows)[column]
        empty = texts.index[texts.isna()].tolist()
        if empty:
            others = f", and of {len(empty) - 1:,} more" if len(empty) > 1 else ""
            raise InvalidInput(
                f"{self.path.name}: {column} is empty in row {empty[0]} (the first is "
                f"row 0){others}; leave such rows out"
            )
        return texts

    def _parsed(self, **options: Any) -> pd.DataFrame:
        try:
            with _unpacked(self.path) as file:
                return pd.read_csv(
                    file,
                    encoding="utf-8-sig",
                    index_col=False,
                    low_memory=False,
                    **options,
                )
        except (ValueError, OverflowError) as error:
            raise InvalidInput(f"{self.path} is not a CSV table: {error}") from None

    def _of_length(self, frame: pd.DataFrame, asked: int) -> pd.DataFrame:
        """Refuse another number of rows than by commas alone."""
        if len(frame) != asked:
            raise InvalidInput(
                f"{self.path} is not a CSV table: {self.n_rows} rows by its commas and "
                f"{len(frame)} by its quotes"
            )
        return frame


def _require_file(path: Path) -> None:
    try:
        there = path.is_file()
    except OSError as error:  # such as a name that is too long
        raise InvalidInput(f"there is no file {path}: {error.strerror}") from None
    if not there:
        raise InvalidInput(f"there is no file {path}")


def _check_headers(headers: list[str], place: str) -> None:
    parted = [mark for mark in ";\t|" if len(headers) == 1 and mark in headers[0]]
    if parted:
        raise InvalidInput(
            f"{place}: is not a CSV table: columns are parted by {parted[0]!r}; write "
            "commas, and points in decimal numbers"
        )
    empty = [number for number, name in enumerate(headers, 1) if not name.strip()]
    if empty:
        raise InvalidInput(
            f"{place}: column {empty[0]} has no name; name it, or leave it out if it "
            "numbers the rows"
        )
    twice = [name for name, count in Counter(headers).items() if count > 1]
    if twice:
        raise InvalidInput(f"{place}: two columns have one name: {listed(twice)}")


def _lines(file: IO[bytes], path: Path) -> Iterator[str]:
    """The text, line by line; a line that is no text is refused with its number."""
    encoding = "utf-8-sig"  # a mark of byte order may open the first line
    for number, line in enumerate(iter(lambda: file.readline(MOST_OF_A_LINE), b""), 1):
        if len(line) == MOST_OF_A_LINE:
            raise InvalidInput(
                f"{path}:{number}: a line of more than {MOST_OF_A_LINE:,} bytes"
            )
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError:
            raise InvalidInput(f"{path}:{number}: is not UTF-8 text") from None
        if "\0" in text:
            raise InvalidInput(f"{path}:{number}: a NUL byte is no text")
        encoding = "utf-8"
        yield text


# ---- packed files

_BROKEN: Final = (
    EOFError,
    OSError,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,  # a method of packing that zipfile does not know
    RuntimeError,  # an encrypted member
)


@contextmanager
def _unpacked(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked by its suffix."""
    try:
        with _OPEN.get(path.suffix.lower(), _plain)(path) as file:
            yield file
    except _BROKEN as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise InvalidInput(f"{path} cannot be read: {reason or error}") from None


@contextmanager
def _member(path: Path) -> Iterator[IO[bytes]]:
    """The only file of a ZIP archive."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if len(names) != 1:
            raise InvalidInput(f"{path}: expected one file inside, got {len(names)}")
        with archive.open(names[0]) as file:
            yield file


def _plain(path: Path) -> IO[bytes]:
    return path.open("rb")


_OPEN: Final[dict[str, Callable[[Path], AbstractContextManager[Any]]]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zip": _member,
}
