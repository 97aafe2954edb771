"""Files: whole or not at all, archives that are not trusted, CSV, SVG, Markdown.

Archives are arrays with one JSON header, and are not trusted. Members are stored
uncompressed, so none is larger than the file; a shape that needs more bytes is refused.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import platform
import re
import reprlib
import stat
import struct
import sys
import tempfile
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal

import numpy as np
import pandas as pd
import psutil
from numpy.typing import NDArray

from propopt.base.arrays import Array
from propopt.base.errors import InvalidInput, WriteFailure
from propopt.base.extras import require


# ---- Atomic writes: a file is the old one or the new one, never half of each


def writable_folder(folder: str | Path) -> Path:
    """Make a folder; refused before any work if nothing can be written there."""
    target = Path(folder)
    verb = "make"
    try:
        target.mkdir(parents=True, exist_ok=True)
        verb = "write to"
        _draft(target / "draft").unlink()
    except OSError as error:
        raise InvalidInput(
            f"output: cannot {verb} the folder {target}: {_reason(error)}"
        ) from None
    return target


def require_writable(path: str | Path, inputs: Iterable[Path] = ()) -> None:
    """Refuse, before any work, a path that cannot be written or is an input."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise InvalidInput(f"output: cannot write {path}: {_reason(error)}") from None
    if stat.S_ISDIR(mode):
        raise InvalidInput(f"output: cannot write {path}: it is a folder")
    if any(_is_same(path, other) for other in inputs):
        raise InvalidInput(
            f"output: cannot write {path}: it is an input; choose another folder"
        )


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Give a temporary path to write to; it is renamed to ``path`` on success."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InvalidInput(f"{target}: there is no folder {target.parent}")
    draft: Path | None = None
    try:
        draft = _draft(target)
        yield draft
        os.umask(mask := os.umask(0))
        draft.chmod(0o666 & ~mask)
        draft.replace(target)
    except OSError as error:
        raise WriteFailure(f"cannot write {target}: {_reason(error)}") from error
    finally:
        if draft is not None:
            with suppress(OSError):
                draft.unlink()


def _is_same(path: str | Path, other: Path) -> bool:
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):  # one of them does not exist
        return False


def remove_drafts(path: str | Path) -> None:
    """Remove temporary files that killed runs have left behind."""
    target = Path(path)
    for draft in target.parent.glob(f"{_draft_prefix(target)}*"):
        with suppress(OSError):
            draft.unlink()


def _draft(target: Path, prefix: str | None = None) -> Path:
    """An empty temporary file in the folder of the target, with its suffix."""
    prefix = prefix or _draft_prefix(target)
    handle, name = tempfile.mkstemp(
        prefix=prefix, dir=target.parent, suffix=target.suffix
    )
    os.close(handle)
    return Path(name)


_DRAFT: Final = ".draft-"


def _draft_prefix(target: Path) -> str:
    """The prefix of the temporary files of a target; short even for long names."""
    digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()
    return f"{_DRAFT}{digest[:8]}-"


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


# ---- One run at a time in a folder


_LOCK: Final = ".propopt-lock-"
_SAME_START: Final = 2.0
"""Seconds by which two readings of the start of one process may differ."""


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder, which is made if there is none.

    The name of a lock has its owner: process, its start, and machine. So anyone can
    remove the lock of an owner that was killed.
    """
    writable_folder(folder)
    this = psutil.Process()
    holder = f"{this.pid}-{this.create_time():.0f}-{platform.node()}"
    this_lock = _draft(folder / "lock", f"{_LOCK}{holder}-")
    try:
        for lock in folder.glob(f"{_LOCK}*"):
            if lock.name == this_lock.name:  # one of the paths may be relative
                continue
            if _is_held(lock):
                raise InvalidInput(
                    f"output: another run writes to {folder}; wait for it, or, if its "
                    f"process (number, start, machine) has ended, delete {lock}"
                )
            lock.unlink(missing_ok=True)
        yield
    finally:
        this_lock.unlink(missing_ok=True)


def is_unfinished(path: Path) -> bool:
    """Whether a file is a lock, or one that a killed run was writing."""
    return path.name.startswith((_LOCK, _DRAFT))


def _is_held(lock: Path) -> bool:
    """Whether the owner of a lock lives, as far as this machine knows."""
    pid, start, machine = lock.name.removeprefix(_LOCK).split("-", 2)
    if machine.rpartition("-")[0] != platform.node():
        return True
    try:
        owner = psutil.Process(int(pid))
        is_same = abs(owner.create_time() - int(start)) <= _SAME_START
        return is_same and owner.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# ---- Archives of arrays with one JSON header, which are not trusted


_BROKEN = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,  # such as too deep a nesting
    TypeError,
    ValueError,
    SyntaxError,
    UserWarning,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Errors of zipfile, json and NumPy for invalid bytes."""

OTHER_FILES = frozenset(
    {".csv", ".html", ".joblib", ".json", ".parquet", ".pickle", ".pkl", ".png"}
    | {".svg", ".tsv", ".txt", ".xlsx", ".yaml", ".yml"}
)
"""Suffixes of other kinds of files; other dots are part of a name."""

_ENCRYPTED = 0x1


def archive_path(path: str | Path) -> Path:
    """The path with the suffix ``.npz``, added if it is missing."""
    file = Path(path)
    if file.name in ("", ".."):
        raise InvalidInput(f"path: expected the name of a file, got {str(path)!r}")
    if file.suffix.lower() in OTHER_FILES:
        raise InvalidInput(
            f"path: expected the name of an .npz file, which save writes and load "
            f"reads, got {str(path)!r}; to_csv and to_frame give tables"
        )
    return file if file.suffix == ".npz" else file.with_name(f"{file.name}.npz")


@dataclass(frozen=True)
class Format:
    """The kind of an archive and its version, which its header states."""

    name: str  # under format in its header
    noun: str  # what errors call it
    version: int  # the only one that is read

    def parsed(self, text: str) -> tuple[int, dict[str, Any]]:
        """The version of a header of this kind, and its other entries."""
        header = json.loads(text)
        if not isinstance(header, dict):
            raise InvalidInput("its header is no JSON object")
        version = header.pop("version", None)
        if header.pop("format", None) != self.name or type(version) is not int:
            raise InvalidInput("its header is that of something else")
        return version, header

    def write(self, path: Path, text: str, arrays: Mapping[str, Array]) -> None:
        """Write a header and arrays with their digest; the file is whole or absent.

        Parameters
        ----------
        path : Path
            The file.
        text : str
            The header in JSON, with format and version.
        arrays : mapping of str to array
            The members of the archive by name.
        """
        header = f'{text[:-1]}, "digest": "{digest_of(text, arrays)}"}}'
        with atomic_write(path) as draft:
            np.savez(draft, allow_pickle=False, header=np.array(header), **arrays)

    def read(self, path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
        """The header without version and digest, and the arrays, read-only."""
        try:
            text, arrays = _read(path)
            version, header = self.parsed(text)
            digest = header.pop("digest", None)
            rest = "".join(text.rsplit(f', "digest": "{digest}"', 1))
            is_sound = version != self.version or digest == digest_of(rest, arrays)
        except InvalidInput as error:
            raise self.refusal(path, str(error)) from None
        except MemoryError:  # also for a forged or broken size
            reason = "it does not fit into the memory that is free"
            raise self.refusal(path, reason) from None
        except _BROKEN:
            reason = "its contents are cut off or make no sense"
            raise self.refusal(path, reason) from None
        if version != self.version:
            raise InvalidInput(
                f"{path}: {self.noun} of format version {reprlib.repr(version)}; this "
                f"propopt reads version {self.version} only: make the file again"
            )
        if not is_sound:
            raise self.refusal(path, "its digest is not that of its contents")
        return header, arrays

    def refusal(self, path: Path, reason: str) -> InvalidInput:
        """The error for a file that cannot be loaded, with the reason."""
        return InvalidInput(f"{path}: not {self.noun}: {reason}")


def format_of(path: Path) -> str | None:
    """The kind that an archive states; None if it is no such archive."""
    try:
        return str(json.loads(_read(path)[0])["format"])
    except (InvalidInput, *_BROKEN):
        return None


def as_json(header: object) -> str:
    """The JSON text of a header; numbers of NumPy are written as numbers."""
    return json.dumps(header, default=_as_number)


def _as_number(value: object) -> object:
    """A number of NumPy as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"expected numbers and text, got {type(value).__name__}")


def digest_of(text: str, arrays: Mapping[str, Any]) -> str:
    """The SHA-256 of a header and of the names, types, shapes and bytes of arrays."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        heading = f"\n{name} {array.dtype.str} {array.shape}\n"
        digest.update(heading.encode("utf-8", "surrogatepass"))
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()


def _read(path: Path) -> tuple[str, dict[str, Array]]:
    """The text of the member ``header``, and the other members."""
    arrays: dict[str, Any] = {}
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            size = os.fstat(file.fileno()).st_size
            if len({member.filename for member in members}) < len(members):
                raise InvalidInput("two of its members have one name")
            for member in members:
                reason = _refusal(member)
                if reason is not None:
                    raise InvalidInput(f"its member {member.filename!r} {reason}")
            if sum(member.file_size for member in members) > size:
                raise InvalidInput(
                    "the arrays in it claim more bytes than the file has"
                )
            for member in members:
                with archive.open(member) as stream:
                    arrays[member.filename.removesuffix(".npy")] = _array(stream)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidInput(_reason(error)) from None
    return _text(arrays.pop("header")), arrays


def _refusal(member: zipfile.ZipInfo) -> str | None:
    if not member.filename.endswith(".npy"):
        return "is no array"
    if member.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if member.compress_type != zipfile.ZIP_STORED:
        return "is compressed, which save does not do"
    return None


def _array(stream: IO[bytes]) -> NDArray[Any]:
    """An array of numbers or text, from an ``.npy`` file."""
    version = np.lib.format.read_magic(stream)
    with warnings.catch_warnings():  # NumPy mends headers of Python 2
        warnings.simplefilter("error")
        shape, is_fortran, dtype = _HEADERS[version](stream)
    data = stream.read()  # at the end zipfile compares the checksum
    if dtype.kind not in "fiubU" or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError("no numbers or text, or not as many as the shape needs")
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if is_fortran else "C")
    return np.asarray(array, dtype.newbyteorder("="))


_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def _text(array: NDArray[Any]) -> str:
    """The text of a scalar array; refuses invalid code points, unlike NumPy."""
    if array.dtype.kind != "U" or array.ndim:
        raise ValueError("no text")
    return array.tobytes().decode(f"utf-32-{sys.byteorder[0]}e").rstrip("\0")


# ---- Tables as CSV files: numbers are exact, and no cell is a formula


_BREAKS = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_COMMAND = re.compile(f"(^|[{_BREAKS}])('*)(?=[-=+@＝＋－＠\\t{_BREAKS}])")
"""The start of a line that a spreadsheet would evaluate as a formula."""


def write_csv(path: str | Path, table: pd.DataFrame, *, names_of_rows: bool) -> None:
    """Write a table as CSV: numbers with the fewest digits that are exact.

    Text that a spreadsheet would evaluate as a formula gets an apostrophe, in each line
    of a cell. :func:`unescape_cell` removes it.
    """
    shown = table.copy(deep=False)
    shown.columns = [escape_cell(name) for name in table.columns]
    texts: list[object] = [*shown.columns]
    for j, dtype in enumerate(table.dtypes):
        if not pd.api.types.is_numeric_dtype(dtype):
            column = table.iloc[:, j]
            if column.map(_is_formula).any():
                column = column.astype(object).map(escape_cell)
                shown.isetitem(j, column.array)
            texts += column.tolist()
    if names_of_rows and pd.api.types.is_numeric_dtype(table.index):
        shown.index = table.index.rename(None)
    elif names_of_rows:
        shown.index = [escape_cell(name) for name in table.index]
        texts += shown.index.tolist()
    has_returns = any(isinstance(text, str) and "\r" in text for text in texts)
    # csv quotes "\r" itself only since Python 3.13
    quoting: Literal[0, 1] = csv.QUOTE_ALL if has_returns else csv.QUOTE_MINIMAL
    with atomic_write(path) as draft:
        shown.to_csv(draft, index=names_of_rows, quoting=quoting)


def escape_cell(name: object) -> object:
    r"""A number unchanged; anything else as text that no spreadsheet evaluates."""
    if name is None or isinstance(name, int | float | np.number):
        return name
    text = str(name)
    return _COMMAND.sub(r"\1'\2", text) if _is_formula(text) else text


def unescape_cell(cell: str) -> str:
    """The name from which :func:`escape_cell` made a cell."""
    return _WITH_APOSTROPHE.sub(r"\1\2", cell)


_WITH_APOSTROPHE = re.compile(_COMMAND.pattern.replace("('*)", "'('*)"))


def _is_formula(cell: object) -> bool:
    """Whether it is text that a spreadsheet would evaluate as a formula."""
    return (
        isinstance(cell, str)
        and _COMMAND.search(cell) is not None
        and not _is_number(cell)
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip() == text  # float accepts line breaks around it


# ---- Tables as Parquet files


_ROW_GROUP = 2**17
"""Rows that are converted and written at once."""


def write_parquet(
    path: str | Path, table: pd.DataFrame, *, names_of_rows: bool
) -> None:
    """Write a table as Parquet; names of rows are a column, ``row`` unless named.

    A column whose cells have several types is written as text.
    """
    arrow = require("pyarrow")
    parquet = require("pyarrow.parquet")
    shown = table.set_axis([str(name) for name in table.columns], axis=1)
    if names_of_rows:
        shown.index = _as_one_type(shown.index.to_series()).rename(None)
        shown.index.name = "row" if table.index.name is None else table.index.name
    for j in range(shown.shape[1]):
        shown.isetitem(j, _as_one_type(shown.iloc[:, j]).array)
    schema = arrow.Schema.from_pandas(shown, preserve_index=names_of_rows)
    with atomic_write(path) as draft, parquet.ParquetWriter(draft, schema) as writer:
        for start in range(0, max(len(shown), 1), _ROW_GROUP):
            rows = shown.iloc[start : start + _ROW_GROUP]
            writer.write_table(
                arrow.Table.from_pandas(
                    rows, schema=schema, preserve_index=names_of_rows
                )
            )


def _as_one_type(cells: pd.Series[Any]) -> pd.Series[Any]:
    """The cells, as text if Arrow has no common type for them; missing ones stay."""
    if cells.dtype != object:
        return cells
    try:
        require("pyarrow").array(cells, from_pandas=True)
    except (TypeError, ValueError):
        return cells.map(str, na_action="ignore")
    return cells


# ---- Figures as SVG files, identical for identical runs


def write_svg(figure: Any, path: str | Path, *, salt: str) -> None:
    """Write a figure of matplotlib as SVG, without a date."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": salt}), atomic_write(path) as draft:
        figure.savefig(draft, format="svg", metadata={"Date": None})
