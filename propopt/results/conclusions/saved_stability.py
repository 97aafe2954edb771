"""Stability as a file, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from propopt.errors import InvalidInput
from propopt.output.archives import Format, archive_path, as_json
from propopt.results.conclusions.agreement import MEASURES
from propopt.results.header import Kinds, check_header, is_number, is_text


_STABILITY = Format("propopt stability", "a saved stability", version=1)


def write_stability(path: str | Path, fields: Mapping[str, Any]) -> None:
    """Write the fields of a stability to an ``.npz`` file.

    Raises
    ------
    InvalidInput
        If the folder is not there, or a field is not what can be loaded again.
    """
    target = archive_path(path)
    try:
        check_header(json.loads(as_json(fields)), _KINDS)
    except (TypeError, ValueError, RecursionError) as error:
        raise _STABILITY.unsavable(target, error) from None
    _STABILITY.write(target, fields, {})


def read_stability(path: str | Path) -> dict[str, Any]:
    """The fields that :func:`write_stability` wrote.

    Raises
    ------
    InvalidInput
        If the file is another one, or holds what no such result has.
    FileNotFoundError
        If there is none.
    """
    source = archive_path(path)
    _, header, arrays = _STABILITY.read(source)
    try:
        check_header(header, _KINDS)
        for name in arrays:
            raise InvalidInput(f"it also has the array {name!r}")
    except InvalidInput as error:
        raise _STABILITY.refusal(source, str(error)) from None
    return header


def _are_agreements(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_agreement, value))


def _is_agreement(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != {"varied", "worst", *MEASURES}:
        return False
    worst = value["worst"]
    return (
        is_text(value["varied"])
        and all(is_number(value[m]) and 0.0 <= value[m] <= 1.0 for m in MEASURES)
        and isinstance(worst, dict)
        and worst.keys() == set(MEASURES)
        and all(map(is_text, worst.values()))
    )


def _is_positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


_KINDS: Kinds = {
    "agreements": (
        lambda value: (
            isinstance(value, list)
            and len(value) > 0
            and all(map(_is_agreement, value))
        ),
        "a list of agreements",
    ),
    "k": (_is_positive, "an integer >= 1"),
}
