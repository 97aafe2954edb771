"""Compiled inner loops, and their fallback to NumPy.

``kernels.c`` in this folder is compiled when propopt is installed, if there is a C
compiler. Otherwise NumPy computes the same, more slowly. The environment variable
``PROPOPT_KERNELS`` selects ``numpy`` or ``c``; the default is ``c`` if available.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.errors import InvalidInput, Refused


_CHOSEN_BY: Final = "PROPOPT_KERNELS"
_CHOICES: Final = ("c", "numpy")

KERNEL_SOURCE: Final = Path(__file__).with_suffix(".c")
LIBRARY: Final = KERNEL_SOURCE.with_name(
    "libkernels." + ("dll" if sys.platform == "win32" else "so")
)


@final
@dataclass(frozen=True)
class _Contiguous:
    """An argument that is the address of a contiguous array.

    ``numpy.ctypeslib.ndpointer`` checks the same, and takes four times as long: for one
    row of a small model half as long as the kernel.
    """

    dtype: np.dtype[Any]
    is_written: bool = False

    def from_param(self, array: NDArray[Any]) -> ctypes.c_void_p:
        """The address; arrays of another type or order are refused."""
        flags = array.flags
        if not flags.c_contiguous or array.dtype != self.dtype:
            raise TypeError(f"expected a contiguous array of {self.dtype}")
        if self.is_written and not flags.writeable:
            raise TypeError("expected an array that can be written")
        return ctypes.c_void_p(array.ctypes.data)


_SIZE: Final = ctypes.c_ssize_t
_NUMBERS: Final = _Contiguous(np.dtype(np.float64))
_INDICES: Final = _Contiguous(np.dtype(np.intp))
_BYTES: Final = _Contiguous(np.dtype(np.uint8))
_WHOLE: Final = _Contiguous(np.dtype(np.int32))
_SHORT: Final = _Contiguous(np.dtype(np.uint16))
_OUT: Final = _Contiguous(np.dtype(np.float64), is_written=True)
_PATTERNS: Final = _Contiguous(np.dtype(np.uint64), is_written=True)

_NODES: Final = (*(_WHOLE,) * 3, _NUMBERS, _BYTES, _BYTES)
_TREES: Final = (
    *(_SIZE,) * 8,
    _INDICES,
    *_NODES,
    _WHOLE,
    _SHORT,
    _SHORT,
    _NUMBERS,
    _NUMBERS,
    ctypes.c_double,
)
"""Nodes of trees, and with them sizes, players and rows."""

_SIGNATURES: Final[Mapping[str, tuple[Any, ...]]] = {
    "contrasts": (
        *(_SIZE,) * 4,
        _NUMBERS,
        _INDICES,
        _INDICES,
        _NUMBERS,
        _NUMBERS,
        *(_OUT,) * 4,
    ),
    "tree_contrasts": (
        *(_SIZE,) * 4,
        _INDICES,
        *_NODES,
        _WHOLE,
        _INDICES,
        _INDICES,
        _NUMBERS,
        _NUMBERS,
        _OUT,
        _OUT,
        _PATTERNS,
    ),
    "walk": (*(_SIZE,) * 4, _INDICES, *_NODES, _NUMBERS, _OUT),
    "shapley": (*_TREES, _SIZE, _SIZE, _NUMBERS, _INDICES, _OUT, _OUT, _PATTERNS),
    "effects": (*_TREES, _SIZE, _WHOLE, _INDICES, _OUT, _OUT, _OUT, _PATTERNS),
    "path_dependent": (
        *_TREES,
        _SIZE,
        _NUMBERS,
        _SIZE,
        _NUMBERS,
        _OUT,
        _OUT,
        _PATTERNS,
    ),
    "path_sets": (
        *(*(_SIZE,) * 4, _INDICES, _WHOLE, _WHOLE, _WHOLE, _NUMBERS, _INDICES),
        *(_INDICES, _WHOLE, _BYTES, _OUT, _WHOLE, _PATTERNS),
    ),
    "path_row": (
        *(*(_SIZE,) * 5, _WHOLE, _WHOLE, _NUMBERS, _BYTES, _BYTES, _WHOLE, _BYTES),
        *(_INDICES, _NUMBERS, _INDICES, _INDICES, _NUMBERS, _WHOLE, _NUMBERS),
        *(_SIZE, _NUMBERS, _OUT, _PATTERNS),
    ),
    "panels": (
        *(_SIZE,) * 3,
        _INDICES,
        _NUMBERS,
        _NUMBERS,
        _INDICES,
        _INDICES,
        _NUMBERS,
        *(_INDICES,) * 4,
        *(_OUT,) * 3,
    ),
}
"""The arguments of each kernel, in the order of ``kernels.c``."""


def kernel(name: str) -> Callable[..., None] | None:
    """A compiled kernel by name; None if NumPy is used instead.

    Raises
    ------
    InvalidInput
        ``PROPOPT_KERNELS`` is neither ``c`` nor ``numpy``.
    Refused
        ``PROPOPT_KERNELS`` is ``c``, and no kernels were compiled.

    Notes
    -----
    Kernels accept numbers and contiguous arrays of the declared types, and no others.
    """
    return kernels_of(os.environ.get(_CHOSEN_BY, "")).get(name)


def why_no_kernels() -> str | None:
    """Why there are no compiled kernels; None if there are."""
    kernels = load_kernels()
    return kernels if isinstance(kernels, str) else None


def describe_kernels() -> str:
    """Which kernels are used, and why not the compiled ones, in words."""
    choice = os.environ.get(_CHOSEN_BY, "")
    if kernels_of(choice):
        return "kernels: C"
    return f"kernels: NumPy; {f'{_CHOSEN_BY}={choice}' if choice else why_no_kernels()}"


@cache
def kernels_of(choice: str) -> Mapping[str, Callable[..., None]]:
    """The compiled kernels by name; empty if NumPy is used instead."""
    if choice not in ("", *_CHOICES):
        raise InvalidInput(
            f"{_CHOSEN_BY}: expected 'c' or 'numpy', got {choice!r}; without this "
            "variable the fastest available is used"
        )
    if choice == "numpy":
        return {}
    kernels = load_kernels()
    if isinstance(kernels, Mapping):
        return kernels
    if choice == "c":
        raise Refused(
            f"{_CHOSEN_BY}=c: {kernels}; install propopt again where there is a C "
            f"compiler, or set {_CHOSEN_BY}=numpy"
        )
    if LIBRARY.exists():
        warnings.warn(
            f"{kernels}, so NumPy is used; install propopt again, or set "
            f"{_CHOSEN_BY}=numpy",
            RuntimeWarning,
            stacklevel=3,
        )
    return {}


@cache
def load_kernels() -> Mapping[str, Callable[..., None]] | str:
    """The compiled kernels by name, or the reason why there are none."""
    if not LIBRARY.exists():
        return "no kernels were compiled when propopt was installed"
    try:
        library = ctypes.CDLL(str(LIBRARY))
        library.propopt_source.restype = ctypes.c_char_p
        source = library.propopt_source().decode()
    except (OSError, AttributeError) as error:
        return f"{LIBRARY.name} cannot be loaded ({error})"
    if source != hashlib.sha256(KERNEL_SOURCE.read_bytes()).hexdigest():
        return (
            f"{LIBRARY.name} was compiled from another version of {KERNEL_SOURCE.name}"
        )
    kernels = {}
    for name, arguments in _SIGNATURES.items():
        kernels[name] = function = getattr(library, f"propopt_{name}")
        function.argtypes = arguments
        function.restype = None
    return kernels
