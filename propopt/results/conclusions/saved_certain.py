"""Certain statements as a file, and back: checked alike on both ways."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np

from propopt._typing import Array
from propopt.checks import read_array
from propopt.errors import InvalidInput
from propopt.output.archives import Format
from propopt.results.checked_file import CheckedFile
from propopt.results.conclusions.orders import OrderBy
from propopt.results.header import Kinds, are_labels, are_texts, is_size
from propopt.results.saving import labels_of, plain_labels


_NUMBERS = ("attributions", "half_widths", "prices", "order_prices")
_RANKS = ("best_ranks", "worst_ranks")
_SIGNS = "signs"
_PRESENT = "present"
"""Which features rows have: not in version 1, nor where all have all."""


def write_certain(path: str | Path, fields: Mapping[str, Any]) -> None:
    """Write the fields of certain statements to an ``.npz`` file.

    Raises
    ------
    InvalidInput
        If the folder is not there, or a field is not what can be loaded again.
    """
    header = {key: fields[key] for key in _KINDS}
    header["labels"] = plain_labels(fields["labels"])
    arrays = {name: fields[name] for name in (*_NUMBERS, *_RANKS, _SIGNS)}
    if fields[_PRESENT] is not None:
        arrays[_PRESENT] = fields[_PRESENT]
    _FILE.write(path, header, arrays)


def read_certain(path: str | Path) -> dict[str, Any]:
    """The fields that :func:`write_certain` wrote.

    Raises
    ------
    InvalidInput
        If the file is another one, or holds what no such result has.
    FileNotFoundError
        If there is none.
    """
    return _FILE.read(path)


def _fields(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> dict[str, Any]:
    names = {*_NUMBERS, *_RANKS, _SIGNS}
    for name in sorted((arrays.keys() - {_PRESENT}) ^ names):
        raise InvalidInput(f"it has {'no' if name in names else 'also'} {name}")
    W = read_array(arrays["attributions"], "attributions", ndim=2)
    _check_arrays(arrays, (W.shape[0], W.shape[1]))
    return {
        **header,
        **arrays,
        "notes": tuple(header["notes"]),
        "labels": labels_of(header["labels"], W.shape),
    }


def _check_arrays(arrays: Mapping[str, Array], shape: tuple[int, int]) -> None:
    """Refuse arrays of other shapes or kinds, or with values that mean nothing."""
    N, D = shape
    for name in (*_NUMBERS, *_RANKS, _SIGNS):
        expected = (N, D - 1) if name == "order_prices" else shape
        kind = "f" if name in _NUMBERS else "i"
        array = arrays[name]
        if array.shape != expected or array.dtype.kind != kind:
            raise InvalidInput(f"{name}: expected numbers of shape {expected}")
    for name in _NUMBERS[1:]:  # prices may be infinite
        if not (arrays[name] >= 0.0).all():
            raise InvalidInput(f"{name}: expected numbers >= 0")
    best, worst = (arrays[name] for name in _RANKS)
    if not ((best >= 1) & (best <= worst) & (worst <= D)).all():
        raise InvalidInput(f"ranks: expected numbers from 1 to {D}, the best first")
    if not np.isin(arrays[_SIGNS], (-1, 0, 1)).all():
        raise InvalidInput("signs: expected -1, 0 or 1")
    present = arrays.get(_PRESENT)
    if present is None:
        return
    if present.shape != shape or present.dtype.kind != "b":
        raise InvalidInput(f"present: expected truth values of shape {shape}")
    absent = present == 0.0
    if arrays[_SIGNS][absent].any() or arrays["attributions"][absent].any():
        raise InvalidInput("present: a feature that is not has a sign")


_KINDS: Kinds = {
    "labels": (are_labels, "names of points and features, or null"),
    "order": (lambda value: value in get_args(OrderBy), "'size' or 'value'"),
    "budget": (is_size, "a finite number >= 0"),
    "optimum": (is_size, "a finite number >= 0"),
    "notes": (are_texts, "a list of text"),
}
_FILE: Final = CheckedFile(
    form=Format("propopt certain", "saved certain statements", version=2),
    kinds=_KINDS,
    fields=_fields,
)
