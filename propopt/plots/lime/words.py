"""Titles and names in pictures of LIME."""

from __future__ import annotations

from typing import Any, Final

from propopt.lime.explanation.result import LimeExplanation
from propopt.output.text import drawn


LONGEST: Final = 42
"""Characters of a name that have room beside a picture."""


def shortened(name: str, most: int = LONGEST) -> str:
    """A name with its middle left out where it is too long: the bin is at its end.

    Examples
    --------
    >>> shortened("a long name of a column > 2.5", 16)
    'a long…umn > 2.5'
    """
    if len(name) <= most:
        return name
    ahead = (most - 1) * 2 // 5
    return f"{name[:ahead]}…{name[len(name) - (most - 1 - ahead) :]}"


def row_title(explanation: LimeExplanation, n: int) -> str:
    """What is explained, of which row; what it is there and what LIME makes of it."""
    names = explanation.labels.points
    return lime_title(explanation, f"row {n if names is None else names[n]}", n)


def lime_title(explanation: Any, where: str, n: int) -> str:
    """Two lines, of a row or a document."""
    what = f"{explanation.explained_in_words}, {where}"
    return (
        f"{drawn(shortened(what, 60))}\nit is {explanation.values[n]:.4g}, LIME's sum "
        f"{explanation.at_row[n]:.4g}"
    )
