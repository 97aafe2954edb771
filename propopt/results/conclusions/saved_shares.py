"""Shares as a file, and back: JSON has no NaN, so what is not defined is null."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from propopt.errors import InvalidInput
from propopt.output.archives import Format, archive_path, as_json
from propopt.results.header import Kinds, check_header, is_number, is_text


_SHARES = Format("propopt shares", "saved shares", version=1)


def write_shares(path: str | Path, fields: Mapping[str, Any]) -> None:
    """Write the fields of shares to an ``.npz`` file.

    Raises
    ------
    InvalidInput
        If the folder is not there, or a field is not what can be loaded again.
    """
    target = archive_path(path)
    try:
        header = json.loads(as_json(with_nulls(fields)))
        check_header(header, _KINDS)
    except (TypeError, ValueError, RecursionError) as error:
        raise _SHARES.unsavable(target, error) from None
    _SHARES.write(target, header, {})


def read_shares(path: str | Path) -> dict[str, Any]:
    """The fields that :func:`write_shares` wrote.

    Raises
    ------
    InvalidInput
        If the file is another one, or holds what no such result has.
    FileNotFoundError
        If there is none.
    """
    source = archive_path(path)
    _, header, arrays = _SHARES.read(source)
    try:
        check_header(header, _KINDS)
        for name in arrays:
            raise InvalidInput(f"it also has the array {name!r}")
    except InvalidInput as error:
        raise _SHARES.refusal(source, str(error)) from None
    return {name: with_nan(value) for name, value in header.items()}


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


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_Kind = tuple[Callable[[object], bool], str]
_MAPPING: _Kind = (are_shares, "numbers, or null, by name")
_NUMBER: _Kind = (_defined, "a finite number, or null")
_COUNT: _Kind = (_is_count, "an integer >= 0")
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
