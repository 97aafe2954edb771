"""Files: whole or not at all, archives that are not trusted, CSV, SVG, Markdown.

Archives of arrays with one JSON header: read without trust in what they claim. Members
are stored as they are, so that none is larger than the file: nothing is allocated that
the file does not hold.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import re
import reprlib
import stat
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt.base.arrays import Array
from propopt.base.errors import InvalidInput, WriteFailure


# ---- Files that are either the old ones or the new ones, never half of each


def writable_folder(folder: str | Path) -> Path:
    """The folder, made; refused before any work if nothing can be written there."""
    place, work = Path(folder), "make"
    try:
        place.mkdir(parents=True, exist_ok=True)
        work = "write to"
        _draft(place / "draft").unlink()
    except OSError as error:
        raise InvalidInput(
            f"output: cannot {work} the folder {place}: {_reason(error)}"
        ) from None
    return place


def require_writable(path: str | Path, read: Iterable[Path] = ()) -> None:
    """Refuse, before any work, a name that no file can take, or that none should."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise InvalidInput(f"output: cannot write {path}: {_reason(error)}") from None
    if stat.S_ISDIR(mode):
        raise InvalidInput(f"output: cannot write {path}: a folder is called so")
    if any(_is_same(path, other) for other in read):
        raise InvalidInput(
            f"output: cannot write {path}: it is read here; choose another folder"
        )


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Give a path to write to; it takes the name ``path`` only when all went well."""
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
    except (OSError, ValueError):  # one of them is not there
        return False


def remove_drafts(path: str | Path) -> None:
    """Remove what runs that were killed have left where they were writing a file."""
    target = Path(path)
    for draft in target.parent.glob(f"{_draft_prefix(target)}*"):
        with suppress(OSError):
            draft.unlink()


def _draft(target: Path) -> Path:
    """An empty file beside the target, with its suffix and a short name of its own."""
    handle, name = tempfile.mkstemp(
        dir=target.parent, prefix=_draft_prefix(target), suffix=target.suffix
    )
    os.close(handle)
    return Path(name)


def _draft_prefix(target: Path) -> str:
    """Short, as names may be as long as names can be, and of this target alone."""
    own = hashlib.sha256(os.fsencode(target.name)).hexdigest()
    return f".draft-{own[:8]}-"


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


# ---- Archives of arrays with one JSON header: read without trust in what they claim


_BROKEN = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,  # of which too deep a nesting is one
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What zipfile, json and NumPy raise at bytes that make no sense."""

OTHER_FILES = frozenset(
    {".csv", ".html", ".joblib", ".json", ".parquet", ".pickle", ".pkl", ".png"}
    | {".svg", ".tsv", ".txt", ".xlsx", ".yaml", ".yml"}
)
"""Endings that say that a file is something else; other dots are part of a name."""

_ENCRYPTED = 0x1
_PREAMBLE = {b"\x93NUMPY\x01\x00": "<H", b"\x93NUMPY\x02\x00": "<I"}
_DESCRIPTION = re.compile(
    r"\{'descr': '([<>|][fiubU]\d{1,18})', 'fortran_order': (True|False), "
    r"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \}\s*"
)
"""As NumPy writes it; arrays of objects and records have another description."""


def archive_path(path: str | Path) -> Path:
    """The path with ``.npz`` at its end; dots in the name stay."""
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
    """What an archive says that it is."""

    name: str  # under format in its header
    noun: str  # what errors call it
    version: int  # the only one that is read

    def parsed(self, text: str) -> tuple[int, dict[str, Any]]:
        """The version and the rest of such a header."""
        header = json.loads(text)
        if not isinstance(header, dict):
            raise InvalidInput("its header is no JSON object")
        version = header.pop("version", None)
        if header.pop("format", None) != self.name or type(version) is not int:
            raise InvalidInput("its header is that of something else")
        return version, header

    def write(self, path: Path, text: str, arrays: Mapping[str, Array]) -> None:
        """Write a header and arrays with their digest, the whole file or none of it."""
        told = f'{text[:-1]}, "digest": "{digest_of(text, arrays)}"}}'
        with atomic_write(path) as draft:
            np.savez(draft, allow_pickle=False, header=np.array(told), **arrays)

    def read(self, path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
        """The header without version and digest, and the arrays, read-only."""
        try:
            text, arrays = _read(path)
            version, header = self.parsed(text)
            told = header.pop("digest", None)
            own = "".join(text.rsplit(f', "digest": "{told}"', 1))
            sound = version != self.version or told == digest_of(own, arrays)
        except InvalidInput as error:
            raise self.refusal(path, str(error)) from None
        except MemoryError:  # a crafted or broken size asks for as much, too
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
        if not sound:
            raise self.refusal(path, "its digest is not that of what it holds")
        return header, arrays

    def refusal(self, path: Path, reason: str) -> InvalidInput:
        """The one error of a file that cannot be loaded."""
        return InvalidInput(f"{path}: not {self.noun}: {reason}")


def format_of(path: Path) -> str | None:
    """What an archive says that it is; None where it says nothing that is read."""
    try:
        return str(json.loads(_read(path)[0])["format"])
    except (InvalidInput, *_BROKEN):
        return None


def as_json(header: object) -> str:
    """The text of a header; numbers of NumPy are numbers."""
    return json.dumps(header, default=_as_number)


def _as_number(value: object) -> object:
    """What JSON takes of a NumPy number."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"expected numbers and text, got {type(value).__name__}")


def digest_of(text: str, arrays: Mapping[str, Any]) -> str:
    """SHA-256 of a header and arrays: of names, types, shapes and bytes, in order."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        said = f"\n{name} {array.dtype.str} {array.shape}\n"
        digest.update(said.encode("utf-8", "surrogatepass"))
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()


def _read(path: Path) -> tuple[str, dict[str, Array]]:
    """The text of the member ``header``, and the other members."""
    arrays: dict[str, Any] = {}
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            members, room = archive.infolist(), os.fstat(file.fileno()).st_size
            if len({member.filename for member in members}) < len(members):
                raise InvalidInput("two of its members have one name")
            for member in members:
                reason = _refusal(member)
                if reason is not None:
                    raise InvalidInput(f"its member {member.filename!r} {reason}")
            if sum(member.file_size for member in members) > room:
                raise InvalidInput("its members claim more bytes than the file has")
            for member in members:
                name = member.filename.removesuffix(".npy")
                arrays[name] = _array(_data(file, member))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidInput(_reason(error)) from None
    return _text(arrays.pop("header")), arrays


def _data(file: BinaryIO, member: zipfile.ZipInfo) -> bytes:
    """The bytes of a member that is stored as it is; of a few, quicker than zipfile."""
    file.seek(member.header_offset)
    start, name, extra = struct.unpack("<4s22x2H", file.read(30))
    file.seek(name + extra, os.SEEK_CUR)
    data = file.read(member.file_size)
    if start != b"PK\3\4" or zlib.crc32(data) != member.CRC:
        raise zipfile.BadZipFile
    return data


def _refusal(member: zipfile.ZipInfo) -> str | None:
    if not member.filename.endswith(".npy"):
        return "is no array"
    if member.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if member.compress_type != zipfile.ZIP_STORED:
        return "is compressed, which save does not do"
    return None


def _array(data: bytes) -> NDArray[Any]:
    """An array of numbers or text, from the bytes of an ``.npy`` file."""
    size = _PREAMBLE[data[:8]]
    start = 8 + struct.calcsize(size)
    end = start + struct.unpack(size, data[8:start])[0]
    header = _DESCRIPTION.fullmatch(data[start:end].decode("latin-1"))
    if header is None:
        raise ValueError("neither numbers nor text")
    dtype = np.dtype(header[1])
    shape = tuple(int(length) for length in re.findall(r"\d+", header[3]))
    if math.prod(shape) * dtype.itemsize != len(data) - end:
        raise ValueError("another number of bytes than the shape asks for")
    order = "F" if header[2] == "True" else "C"
    array = np.frombuffer(data, dtype, offset=end).reshape(shape, order=order)  # type: ignore[call-overload]
    return np.asarray(array, dtype.newbyteorder("="))


def _text(array: NDArray[Any]) -> str:
    """The one text of an array; NumPy itself does not look at its code points."""
    if array.dtype.kind != "U" or array.ndim:
        raise ValueError("no text")
    return array.tobytes().decode(f"utf-32-{sys.byteorder[0]}e").rstrip("\0")


# ---- Tables as CSV files: numbers read back exactly, and no name is a command


_BREAKS = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_COMMAND = re.compile(f"(^|[{_BREAKS}])('*)(?=[-=+@＝＋－＠\\t{_BREAKS}])")
"""Before what a spreadsheet takes for a formula, at the start of a line of a cell."""


def write_csv(path: str | Path, table: pd.DataFrame, *, names_of_rows: bool) -> None:
    """Write a table: numbers with the fewest digits that read back to the same value.

    Text that a spreadsheet would take for a formula has an apostrophe before it, in
    each line of a cell. :func:`unescape_cell` takes it away again.
    """
    shown = table.copy(deep=False)
    for place in range(table.shape[1]):
        column = table.iloc[:, place]
        if column.map(_acts).any():
            shown.isetitem(place, column.astype(object).map(escape_cell).array)
    shown.columns = [escape_cell(name) for name in table.columns]
    if names_of_rows:
        shown.index = [escape_cell(name) for name in table.index]
    texts = [*shown.columns, *(shown.index if names_of_rows else ())]
    texts += [cell for _, column in shown.items() for cell in column]
    has_returns = any(isinstance(text, str) and "\r" in text for text in texts)
    # csv itself quotes "\r" from Python 3.13 on alone
    quoting: Literal[0, 1] = csv.QUOTE_ALL if has_returns else csv.QUOTE_MINIMAL
    with atomic_write(path) as draft:
        shown.to_csv(draft, index=names_of_rows, quoting=quoting)


def escape_cell(name: object) -> object:
    r"""A number as it is; anything else as text that no spreadsheet computes."""
    if name is None or isinstance(name, int | float | np.number):
        return name
    text = str(name)
    return _COMMAND.sub(r"\1'\2", text) if _acts(text) else text


def unescape_cell(cell: str) -> str:
    """The name that :func:`escape_cell` has made a cell of."""
    return _WITH_APOSTROPHE.sub(r"\1\2", cell)


_WITH_APOSTROPHE = re.compile(_COMMAND.pattern.replace("('*)", "'('*)"))


def _acts(cell: object) -> bool:
    """Whether it is text that a spreadsheet takes for a formula."""
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
    return text.strip() == text  # float takes lines around it


# ---- Pictures as SVG: whole files, the same for the same run


def write_svg(figure: Any, path: str | Path, *, salt: str) -> None:
    """Write a figure of matplotlib as SVG, without a date, whole or not at all."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": salt}), atomic_write(path) as draft:
        figure.savefig(draft, format="svg", metadata={"Date": None})
