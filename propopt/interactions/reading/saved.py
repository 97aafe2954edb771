"""Scores as a file, and back: one header and arrays, checked alike on both ways."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from propopt._typing import Array
from propopt.errors import InvalidInput
from propopt.interactions.inference.equal_rows import ErrorRange
from propopt.output.archives import Format
from propopt.quantity import Quantity
from propopt.results.checked_file import Arrays, CheckedFile, Header
from propopt.results.header import (
    Kinds,
    are_texts,
    check_header,
    is_count,
    is_number,
    is_positive,
    is_quantity,
    is_text,
)
from propopt.tables.names import plain_name


if TYPE_CHECKING:
    from propopt.interactions.result import InteractionScores


_OF_MAIN = "main_"
"""Before the names of arrays of the main effects."""


def write_scores(path: str | Path, scores: InteractionScores) -> None:
    """Write to an ``.npz`` file.

    Raises
    ------
    InvalidInput
        If the folder is not there, or a field is not what can be loaded again.
    """
    header, arrays, main = _header(scores), _arrays(scores), scores.main
    if main is not None:
        header["main"] = _header(main)
        arrays |= {_OF_MAIN + name: array for name, array in _arrays(main).items()}
    _FILE.write(path, header, arrays)


def read_scores(path: str | Path) -> dict[str, Any]:
    """The fields that :func:`write_scores` wrote; ``main`` is fields, too, or None.

    Raises
    ------
    InvalidInput
        If the file is another one, or holds what no scores have.
    FileNotFoundError
        If there is none.
    """
    return _FILE.read(path)


def _header(scores: InteractionScores) -> dict[str, Any]:
    bound = scores.error_range
    return {
        "names": [plain_name(name) for name in scores.names],
        "columns": [[plain_name(name) for name in own] for own in scores.columns],
        **{name: getattr(scores, name) for name in (*_TEXTS, *_COUNTS)},
        "notes": list(scores.notes),
        "not_used": list(scores.not_used),
        "quantity": None if (own := scores.quantity) is None else own.as_fields(),
        "error_range": [bound.low, bound.high, bound.proved],
        "main": None,
    }


def _arrays(scores: InteractionScores) -> dict[str, Array]:
    return {name: getattr(scores, name) for name in ("sets", *_NUMBERS)}


def _fields(header: Header, arrays: Arrays) -> dict[str, Any]:
    own = {k: a for k, a in arrays.items() if not k.startswith(_OF_MAIN)}
    rest = {k[len(_OF_MAIN) :]: a for k, a in arrays.items() if k not in own}
    fields = _checked(header, own)
    if header["main"] is None:
        for name in rest:
            raise InvalidInput(f"it also has the array {_OF_MAIN + name!r}")
        return fields
    check_header(header["main"], {**_KINDS, "main": (_is_none, "null")})
    return {**fields, "main": _checked(header["main"], rest)}


def _checked(header: Header, arrays: Arrays) -> dict[str, Any]:
    _refuse_odd_arrays(arrays, len(header["names"]))
    if header["n_candidates"] < len(arrays["sets"]):
        raise InvalidInput("n_candidates: expected at least the number of sets")
    if len(header["columns"]) != len(header["names"]):
        raise InvalidInput("columns: expected those of each feature")
    if any(place >= len(header["names"]) for place in header["not_used"]):
        raise InvalidInput("not_used: expected places of features")
    low, high, proved = header["error_range"]
    return {
        **header,
        **arrays,
        "names": tuple(header["names"]),
        "columns": tuple(map(tuple, header["columns"])),
        "notes": tuple(header["notes"]),
        "not_used": tuple(header["not_used"]),
        "quantity": None if (own := header["quantity"]) is None else Quantity(**own),
        "error_range": ErrorRange(float(low), float(high), proved),
    }


def _refuse_odd_arrays(arrays: Mapping[str, Array], n_features: int) -> None:
    for name in sorted(arrays.keys() ^ {"sets", *_NUMBERS}):
        has = "also" if name in arrays else "no"
        raise InvalidInput(f"it has {has} {name}")
    sets = arrays["sets"]
    if sets.ndim != 2 or sets.dtype.kind != "i" or sets.shape[1] == 0:
        raise InvalidInput("sets: expected integers of shape (Q, r)")
    if ((sets < 0) | (sets >= n_features)).any() or (np.diff(sets, axis=1) <= 0).any():
        raise InvalidInput(
            f"sets: expected ascending places from 0 to {n_features - 1}"
        )
    for name in _NUMBERS:
        if arrays[name].shape != (len(sets),) or arrays[name].dtype.kind != "f":
            raise InvalidInput(f"{name}: expected {len(sets)} numbers")
        if name in _SIZES and (arrays[name] < 0.0).any():
            raise InvalidInput(f"{name}: expected numbers >= 0")


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(is_text(x) or is_number(x) for x in value)


def _are_places(value: object) -> bool:
    return (
        isinstance(value, list)
        and all(map(is_count, value))
        and len(set(value)) == len(value)
    )


def _are_groups(value: object) -> bool:
    return isinstance(value, list) and all(_are_names(own) and own for own in value)


def _is_range(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and is_number(value[0])
        and is_number(value[1])
        and bool(value[0] <= value[1])
        and isinstance(value[2], bool)
    )


def _is_none(value: object) -> bool:
    return value is None


def _is_main(value: object) -> bool:
    return value is None or isinstance(value, dict)


_TEXTS: Final = ("method", "error", "units")
_COUNTS: Final = (
    "n_rows",
    "n_candidates",
    "n_groups",
    "n_patches",
    "n_row_groups",
)
_SIZES: Final = ("standard_errors", "monte_carlo", "counts", "effective_rows")
_NUMBERS: Final = (*_SIZES, "estimates", "leak")
_KINDS: Final[Kinds] = {
    "names": (_are_names, "a list of text and numbers"),
    "columns": (_are_groups, "a list of lists of text and numbers"),
    **dict.fromkeys(_TEXTS, (is_text, "text")),
    **dict.fromkeys(_COUNTS, (is_count, "an integer >= 0")),
    "n_rows": (is_positive, "an integer >= 1"),
    "quantity": (is_quantity, "what is predicted, or null"),
    "not_used": (_are_places, "a list of integers >= 0, each once"),
    "notes": (are_texts, "a list of text"),
    "error_range": (_is_range, "two numbers, in order, and whether they are proved"),
    "main": (_is_main, "the header of main effects, or null"),
}
_FILE: Final = CheckedFile(
    form=Format("propopt interactions", "saved interactions", version=1),
    kinds=_KINDS,
    fields=_fields,
)
