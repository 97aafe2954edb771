"""Limits of LIME as a file, and back: checked alike on both ways."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from propopt._typing import Array
from propopt.checks import sealed
from propopt.errors import InvalidInput
from propopt.lime.explanation.scatter import RunScatter
from propopt.output.archives import Format
from propopt.results.checked_file import Arrays, CheckedFile, Header
from propopt.results.header import (
    Kinds,
    are_labels,
    are_texts,
    is_count,
    is_positive,
    is_size,
    is_text,
)
from propopt.results.saving import labels_of, plain_labels


if TYPE_CHECKING:
    from propopt.lime.explanation.result import LimeExplanation


_TABLES: Final = ("coefficients", "alpha", "points")
_COLUMNS: Final = ("intercept", "log_weight", "effective_share", "values")
_MAYBE: Final = ("standard_errors", "deviations", "variance")


def write_lime(path: str | Path, explanation: LimeExplanation) -> None:
    """Write to an ``.npz`` file what tables need.

    Raises
    ------
    InvalidInput
        If the folder is not there, or a field is not what can be loaded again.
    """
    arrays = {name: getattr(explanation, name) for name in (*_TABLES, *_COLUMNS)}
    if explanation.standard_errors is not None:
        arrays["standard_errors"] = explanation.standard_errors
    header = {name: getattr(explanation, name) for name in _PLAIN}
    header["labels"] = plain_labels(explanation.labels)
    header["cells"] = [list(map(_plain_cell, row)) for row in explanation.cells]
    header["n_draws"] = None
    if explanation.scatter is not None or explanation.subject is not None:
        runs = explanation.runs
        arrays["deviations"], arrays["variance"] = runs.deviations, runs.variance
        header["n_draws"] = runs.n_draws
    _FILE.write(path, header, arrays)


def read_lime(path: str | Path) -> dict[str, Any]:
    """The fields that :func:`write_lime` wrote.

    Raises
    ------
    InvalidInput
        If the file is another one, or holds what no such result has.
    FileNotFoundError
        If there is none.
    """
    return _FILE.read(path)


def _fields(header: Header, arrays: Arrays) -> dict[str, Any]:
    for name in sorted(arrays.keys() - {*_TABLES, *_COLUMNS, *_MAYBE}):
        raise InvalidInput(f"it also has the array {name!r}")
    shape = _shape(arrays)
    known = {
        name: _numbers(arrays, name, shape[: 2 - (name in _COLUMNS)])
        for name in (*_TABLES, *_COLUMNS)
    }
    errors = None
    if "standard_errors" in arrays:
        errors = _numbers(arrays, "standard_errors", shape)
    return {
        **known,
        **{name: header[name] for name in _PLAIN},
        "labels": labels_of(header["labels"], shape),
        "cells": _table(header["cells"], shape, "cells"),
        "bins": _table(header["bins"], shape, "bins"),
        "notes": tuple(header["notes"]),
        "standard_errors": errors,
        "scatter": _scatter(header["n_draws"], header["n_samples"], arrays, shape),
    }


def _scatter(
    n_draws: int | None,
    n_samples: int,
    arrays: Arrays,
    shape: tuple[int, int],
) -> RunScatter | None:
    if n_draws is None:
        return None
    deviations = _numbers(arrays, "deviations", shape)
    variance = _numbers(arrays, "variance", shape[:1])
    return RunScatter(deviations, variance, n_samples, n_draws)


def _shape(arrays: Arrays) -> tuple[int, int]:
    if "coefficients" not in arrays or arrays["coefficients"].ndim != 2:
        raise InvalidInput("it has no table of coefficients")
    N, D = arrays["coefficients"].shape
    if N == 0 or D == 0:
        raise InvalidInput("its coefficients are empty")
    return N, D


def _numbers(arrays: Arrays, name: str, shape: tuple[int, ...]) -> Array:
    """Numbers of a shape; only values of columns may be missing."""
    if name not in arrays:
        raise InvalidInput(f"it has no {name}")
    array = arrays[name]
    if array.dtype != np.float64 or array.shape != shape:
        raise InvalidInput(f"{name}: expected numbers of shape {shape}")
    if name not in ("points", "log_weight") and not np.isfinite(array).all():
        raise InvalidInput(f"{name}: expected finite numbers")
    return sealed(array.copy())


def _table(
    rows: list[list[Any]], shape: tuple[int, int], what: str
) -> tuple[tuple[Any, ...], ...]:
    if len(rows) != shape[0] or any(len(row) != shape[1] for row in rows):
        raise InvalidInput(f"{what}: expected a table of shape {shape}")
    return tuple(map(tuple, rows))


def _plain_cell(cell: object) -> object:
    """JSON has no NaN: what is missing is null; names of any type are text."""
    value = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(value, float) and math.isnan(value):
        return None
    return (
        value if value is None or isinstance(value, bool | int | float) else str(value)
    )


def _is_rows(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    def rows(value: object) -> bool:
        return isinstance(value, list) and all(
            isinstance(row, list) and all(map(fits, row)) for row in value
        )

    return rows


def _is_cell(value: object) -> bool:
    return value is None or isinstance(value, int | float) or is_text(value)


def _is_draws(value: object) -> bool:
    return value is None or is_count(value)


_PLAIN: Final = (
    "source",
    "reason",
    "bins",
    "law_in_words",
    "n_samples",
    "ridge",
    "first_row",
    "evaluations",
    "notes",
)
_KINDS: Final[Kinds] = {
    "source": (is_text, "text"),
    "reason": (is_text, "text"),
    "labels": (are_labels, "names of points and features, or null"),
    "cells": (_is_rows(_is_cell), "rows of numbers, text or null"),
    "bins": (_is_rows(is_text), "rows of text"),
    "law_in_words": (is_text, "text"),
    "n_samples": (is_positive, "an integer >= 1"),
    "ridge": (is_size, "a finite number >= 0"),
    "first_row": (lambda value: isinstance(value, bool), "true or false"),
    "evaluations": (is_count, "an integer >= 0"),
    "notes": (are_texts, "a list of sentences"),
    "n_draws": (_is_draws, "an integer >= 0, or null"),
}
_FILE: Final = CheckedFile(
    form=Format("propopt lime", "saved limits of LIME", version=1),
    kinds=_KINDS,
    fields=_fields,
)
