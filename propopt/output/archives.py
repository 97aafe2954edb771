"""Archives of arrays with one JSON header: read without trust in what they claim.

Members are stored as they are, so that none is larger than the file: nothing is
allocated that the file does not hold.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
import struct
import sys
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.output.files import written_whole


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
    """The path with ``.npz`` at its end; dots in the name stay.

    Raises
    ------
    InvalidInput
        If it names no file.
    """
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
    """What an archive says that it is.

    Parameters
    ----------
    name : str
        Under ``format`` in its header.
    noun : str
        What errors call it.
    version : int
        The latest; earlier ones are read too.
    """

    name: str
    noun: str
    version: int

    def write(
        self, path: Path, header: Mapping[str, Any], arrays: Mapping[str, Array]
    ) -> None:
        """Write a header and arrays, the whole file or none of it.

        Raises
        ------
        InvalidInput
            If the folder is not there, or the header is more than text and numbers.
        """
        try:
            kind = {"format": self.name, "version": self.version}
            text = as_json({**kind, **header})
        except (TypeError, ValueError, RecursionError) as error:
            raise self.unsavable(path, error) from None
        with written_whole(path) as draft:
            np.savez(draft, allow_pickle=False, header=np.array(text), **arrays)

    def read(self, path: Path) -> tuple[int, dict[str, Any], dict[str, Array]]:
        """Version, header without it, and arrays, read-only.

        Raises
        ------
        InvalidInput
            If the file is no such archive, was written by a later version, or cannot be
            read.
        FileNotFoundError
            If there is none.
        """
        try:
            header, arrays = _read(path)
        except InvalidInput as error:
            raise self.refusal(path, str(error)) from None
        version = header.pop("version", None)
        if header.pop("format", None) != self.name or not isinstance(version, int):
            raise self.refusal(path, "its header is that of something else")
        if not 1 <= version <= self.version:
            raise InvalidInput(
                f"{path}: written in format version {reprlib.repr(version)}; this "
                f"propopt reads version {self.version}"
            )
        return version, header, arrays

    def refusal(self, path: Path, reason: str) -> InvalidInput:
        """The one error of a file that cannot be loaded."""
        return InvalidInput(f"{path}: not {self.noun}: {reason}")

    def unsavable(self, path: Path, reason: object) -> InvalidInput:
        """The one error of what could not be loaded again."""
        return InvalidInput(f"{path}: cannot be saved: {reason}")


def as_json(header: object) -> str:
    """The text of a header; numbers of NumPy are numbers."""
    return json.dumps(header, default=_as_number)


def _as_number(value: object) -> object:
    """What JSON takes of a NumPy number."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"expected numbers and text, got {type(value).__name__}")


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """The JSON object of the member ``header``, and the other members."""
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = _arrays(archive, path)
        header = json.loads(_text(arrays.pop("header")))
    except (InvalidInput, FileNotFoundError):
        raise
    except OSError as error:
        raise InvalidInput(error.strerror or str(error)) from None
    except _BROKEN:
        raise InvalidInput("its contents are cut off or make no sense") from None
    if not isinstance(header, dict):
        raise InvalidInput("its header is no JSON object")
    return header, arrays


def _arrays(archive: zipfile.ZipFile, path: Path) -> dict[str, Array]:
    members = archive.infolist()
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise InvalidInput("two of its members have one name")
    for member in members:
        reason = _refusal(member)
        if reason is not None:
            raise InvalidInput(f"its member {member.filename!r} {reason}")
    if sum(member.file_size for member in members) > path.stat().st_size:
        raise InvalidInput("its members claim more bytes than the file has")
    return {
        member.filename.removesuffix(".npy"): _array(archive.read(member))
        for member in members
    }


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
