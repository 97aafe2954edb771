"""The ends of trade-offs as part of a header: null stands for what is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from propopt.results.conclusions.ends import Ends
from propopt.results.conclusions.saved_shares import are_shares, with_nan, with_nulls
from propopt.results.header import is_text


_NUMBERS = ("at_target", "far", "sizes")
_NAMES = ("faithful", "roots")


def plain_ends(ends: Ends) -> dict[str, Any]:
    """The ends in values that JSON has."""
    return {key: with_nulls(value) for key, value in vars(ends).items()}


def ends_of(plain: Mapping[str, Any] | None) -> Ends | None:
    """The ends that :func:`plain_ends` made plain."""
    if plain is None:
        return None
    numbers: dict[str, Any] = {key: with_nan(plain[key]) for key in _NUMBERS}
    names: dict[str, Any] = {key: tuple(plain[key]) for key in _NAMES}
    return Ends(**numbers, **names)


def are_ends(value: object) -> bool:
    """True for plain ends, or null where there are none."""
    if value is None:
        return True
    if not isinstance(value, dict) or value.keys() != {*_NUMBERS, *_NAMES}:
        return False
    names = [name for key in _NAMES for name in _listed(value[key])]
    numbers = [value[key] for key in _NUMBERS]
    return (
        all(isinstance(value[key], list | tuple) for key in _NAMES)
        and all(map(are_shares, numbers))
        and all(is_text(name) and all(name in n for n in numbers[:2]) for name in names)
        and all(name in value["sizes"] for name in value["faithful"])
        and value["at_target"].keys() == value["far"].keys()
    )


def _listed(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
