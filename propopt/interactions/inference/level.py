"""The level of intervals, checked once."""

from __future__ import annotations

from propopt.errors import InvalidInput


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
