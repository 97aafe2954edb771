"""Which part of a problem an error is of, in Python as in a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from propopt.errors import Infeasible, InvalidInput, MissingExtra, Refused


Location: TypeAlias = tuple[str | int, ...]
"""Keys and positions on the way, such as ``("baselines", 0, "scale")``."""

OF_INPUT: Final = (InvalidInput, Refused, Infeasible, MissingExtra)
"""What is wrong with a problem, not with a solver."""


@contextmanager
def part(*location: str | int) -> Iterator[None]:
    """Errors of input raised inside know that they are of this part of the problem."""
    try:
        yield
    except OF_INPUT as error:
        error.part = (*location, *error.part)
        raise
