"""Words and numbers that users choose an inference by, checked once."""

from __future__ import annotations

from typing import Any, TypeVar, get_args

from propopt.checks import did_you_mean
from propopt.errors import InvalidInput


Choice = TypeVar("Choice", bound=str)


def known_word(given: Choice, kinds: Any, what: str) -> Choice:
    """The choice, if it is one of a Literal.

    Raises
    ------
    InvalidInput
        If it is not.
    """
    known = list(get_args(kinds))
    if given in known:
        return given
    raise InvalidInput(
        f"{what}: expected one of {', '.join(map(repr, known))}, got {given!r}"
        f"{did_you_mean(given, known)}"
    )


def read_alpha(level: object) -> float:
    """1 − level.

    Raises
    ------
    InvalidInput
        If the level is not between 0 and 1.
    """
    if isinstance(level, bool) or not isinstance(level, int | float):
        raise InvalidInput(f"level: expected a number, got {level!r}")
    if not 0.0 < level < 1.0:
        raise InvalidInput(
            f"level: expected a number between 0 and 1, such as 0.9, got {level!r}"
        )
    return 1.0 - float(level)
