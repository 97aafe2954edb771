"""Shares as a file, and back: JSON has no NaN, so what is not defined is null."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from propopt.output.archives import Format
from propopt.results.checked_file import CheckedFile
from propopt.results.header import Kinds, is_count, is_number, is_text


def write_shares(path: str | Path, fields: Mapping[str, Any]) -> None:
    """Write the fields of shares to an ``.npz`` file."""
    _FILE.write(path, with_nulls(fields))


def read_shares(path: str | Path) -> dict[str, Any]:
    """The fields that :func:`write_shares` wrote."""
    return {name: with_nan(value) for name, value in _FILE.read(path).items()}


def with_nulls(value: Any) -> Any:
    """Numbers and mappings of them, with None for what is not finite.

    Examples
    --------
    >>> with_nulls({"kept": {"a": float("-inf")}, "rms": 2.0})
    {'kept': {'a': None}, 'rms': 2.0}
    """
    if isinstance(value, Mapping):
        return {key: with_nulls(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def with_nan(value: Any) -> Any:
    """What :func:`with_nulls` took, with NaN for what is not defined."""
    if isinstance(value, dict):
        return {key: with_nan(item) for key, item in value.items()}
    return math.nan if value is None else value


def _defined(value: object) -> bool:
    return value is None or is_number(value)


def are_shares(value: object) -> bool:
    """True for finite numbers, or null, by name."""
    return isinstance(value, dict) and all(
        is_text(name) and _defined(item) for name, item in value.items()
    )


_Kind = tuple[Callable[[object], bool], str]
_MAPPING: _Kind = (are_shares, "numbers, or null, by name")
_NUMBER: _Kind = (_defined, "a finite number, or null")
_COUNT: _Kind = (is_count, "an integer >= 0")
_KINDS: Kinds = {
    "kept": _MAPPING,
    "removed": _MAPPING,
    "losses": _MAPPING,
    "differences": _MAPPING,
    "target_differences": _MAPPING,
    "rms": _NUMBER,
    "target_rms": _NUMBER,
    "n_zero": _COUNT,
    "size": _COUNT,
}
_FILE = CheckedFile(
    form=Format("propopt shares", "saved shares", version=1), kinds=_KINDS
)
