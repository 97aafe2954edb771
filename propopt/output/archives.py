"""Archives of arrays with one JSON header: read without trust in what they claim.

Members are stored as they are, so that none is larger than the file: nothing is
allocated that the file does not hold.
"""

from __future__ import annotations

import json
import math
import re
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.errors import InvalidInput


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
    given = Path(path)
    if given.name in ("", ".."):
        raise InvalidInput(f"path: expected the name of a file, got {str(path)!r}")
    return given if given.suffix == ".npz" else given.with_name(f"{given.name}.npz")


def not_saved(path: Path, reason: str) -> InvalidInput:
    """The one error of a file that cannot be loaded."""
    return InvalidInput(f"{path}: not a saved explanation: {reason}")


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """The JSON object of the member ``header``, and the other members, read-only.

    Raises
    ------
    InvalidInput
        If the file is no such archive, or cannot be read.
    FileNotFoundError
        If there is none.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = _arrays(archive, path)
        header = json.loads(_text(arrays.pop("header")))
    except (InvalidInput, FileNotFoundError):
        raise
    except OSError as error:
        raise not_saved(path, error.strerror or str(error)) from None
    except _BROKEN:
        raise not_saved(path, "its contents are cut off or make no sense") from None
    if not isinstance(header, dict):
        raise not_saved(path, "its header is no JSON object")
    return header, arrays


def _arrays(archive: zipfile.ZipFile, path: Path) -> dict[str, Array]:
    members = archive.infolist()
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise not_saved(path, "two of its members have one name")
    for member in members:
        reason = _refusal(member)
        if reason is not None:
            raise not_saved(path, f"its member {member.filename!r} {reason}")
    if sum(member.file_size for member in members) > path.stat().st_size:
        raise not_saved(path, "its members claim more bytes than the file has")
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
    found = _DESCRIPTION.fullmatch(data[start:end].decode("latin-1"))
    if found is None:
        raise ValueError("neither numbers nor text")
    dtype = np.dtype(found[1])
    shape = tuple(int(length) for length in re.findall(r"\d+", found[3]))
    if math.prod(shape) * dtype.itemsize != len(data) - end:
        raise ValueError("another number of bytes than the shape asks for")
    order = "F" if found[2] == "True" else "C"
    array = np.frombuffer(data, dtype, offset=end).reshape(shape, order=order)  # type: ignore[call-overload]
    return np.asarray(array, dtype.newbyteorder("="))


def _text(array: NDArray[Any]) -> str:
    """The one text of an array; NumPy itself does not look at its code points."""
    if array.dtype.kind != "U" or array.ndim:
        raise ValueError("no text")
    return array.tobytes().decode(f"utf-32-{sys.byteorder[0]}e").rstrip("\0")
