"""What each key of a saved explanation's header may hold: checked, not trusted."""

from __future__ import annotations

import math
import reprlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeAlias, get_args

from propopt.errors import InvalidInput
from propopt.quantity import Quantity, QuantityKind


def is_text(value: object) -> bool:
    """True for text that can be written; half a surrogate pair cannot."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def is_number(value: object) -> bool:
    """True for a finite number."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max  # type: ignore[arg-type]


def is_size(value: object) -> bool:
    """True for a finite number >= 0."""
    return is_number(value) and value >= 0  # type: ignore[operator]


def _is_price(value: object) -> bool:
    """True for a multiplier; that of a limit of zero is infinite."""
    return is_size(value) or value == math.inf


def is_count(value: object) -> bool:
    """True for an integer >= 0."""
    return is_size(value) and isinstance(value, int)


def is_positive(value: object) -> bool:
    """True for an integer >= 1."""
    return is_count(value) and value != 0


def are_texts(value: object) -> bool:
    """True for a list of text."""
    return isinstance(value, list) and all(map(is_text, value))


def _is_setting(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float) or is_text(value)


def _is_row_name(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number or is_text(value)


def _named(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    """Whether a value is a mapping from text to what fits."""

    def named(value: object) -> bool:
        return isinstance(value, dict) and all(
            is_text(name) and fits(item) for name, item in value.items()
        )

    return named


def _listed(value: object, fits: Callable[[object], bool]) -> bool:
    return value is None or (isinstance(value, list) and all(map(fits, value)))


def are_labels(value: object) -> bool:
    """True for names of points and of features, or null where there are none."""
    return (
        isinstance(value, dict)
        and value.keys() == {"points", "features"}
        and _listed(value["points"], _is_row_name)
        and _listed(value["features"], is_text)
    )


def _is_certificate(value: object) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict):
        return False
    rest = {"violation": 0.0, "distance": 0.0, **value}
    kind, distance = rest.pop("kind", None), rest.pop("distance")
    return (
        rest.keys() == {"value", "lower_bound", "scale", "violation"}
        and all(map(is_size, rest.values()))
        and is_text(kind)
        and (distance is None or is_size(distance))
    )


def _is_target(value: object) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict):
        return False
    rest = dict(value)
    source, n_blocks, relation = (rest.pop(key, None) for key in _WORDS_OF_TARGET)
    return (
        rest.keys() == {"value", "scale", "spread", "degrees"}
        and all(is_size(size) or size is None for size in rest.values())  # None: NaN
        and is_text(source)
        and is_count(n_blocks)
        and relation in ("about", "at most")
    )


_WORDS_OF_TARGET = ("source", "n_blocks", "relation")


def _is_solver(value: object) -> bool:
    return value is None or is_text(value)


def _is_unit(value: object) -> bool:
    return isinstance(value, str) and value in ("gradient", "output", "scaled")


def is_quantity(value: object) -> bool:
    """True for the fields of a quantity, or null."""
    if value is None:
        return True
    if not isinstance(value, dict) or value.keys() != _QUANTITY:
        return False
    label, position, outcome = value["label"], value["position"], value["outcome"]
    return (
        is_text(value["model"])
        and value["kind"] in get_args(QuantityKind)
        and (label is None or is_text(label) or isinstance(label, bool | int | float))
        and (position is None or is_count(position))
        and (outcome is None or is_text(outcome))
    )


_QUANTITY = {field.name for field in fields(Quantity)}


Kinds: TypeAlias = Mapping[str, tuple[Callable[[object], bool], str]]
"""What each key of a header holds, and how that is said."""

KINDS: Kinds = {
    "method": (is_text, "text"),
    "labels": (are_labels, "names of points and features, or null"),
    "parameters": (_named(_is_setting), "settings by name"),
    "weights": (_named(is_size), "finite numbers >= 0 by name"),
    "losses": (_named(is_number), "finite numbers by name"),
    "certificate": (_is_certificate, "the numbers of a certificate, or null"),
    "multipliers": (_named(_is_price), "numbers >= 0 by name"),
    "solver": (_is_solver, "text or null"),
    "seconds": (is_size, "a finite number >= 0"),
    "units": (_is_unit, "'gradient', 'output' or 'scaled'"),
    "evaluations": (is_count, "an integer >= 0"),
    "target": (_is_target, "the numbers of a target error, or null"),
    "quantity": (is_quantity, "what is explained, or null"),
}
"""Of an explanation."""


def check_header(header: Mapping[str, Any], kinds: Kinds) -> None:
    """Refuse a header with other keys, or with values that no key of its holds.

    Raises
    ------
    InvalidInput
        Naming the first key.
    """
    for key in sorted(header.keys() ^ kinds.keys()):
        raise InvalidInput(f"its header has {'no' if key in kinds else 'also'} {key}")
    for key, (fits, expected) in kinds.items():
        if not fits(header[key]):
            got = reprlib.repr(header[key])
            raise InvalidInput(f"{key}: expected {expected}, got {got}")
