"""One thing that a reader of coefficients has to know, and one that was looked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final


NOTE: Final = 0.25
"""Severities from here on mislead; what has less is a note."""


@final
@dataclass(frozen=True, kw_only=True)
class LimeFinding:
    """Where a rule found something, with its number.

    Parameters
    ----------
    rule : str
        Its name.
    row, column : int or None
        Positions; None where it is about all of them.
    number, threshold : float
        What was measured, and from where on it is told.
    sentence : str
        What it means here.
    remedy : str
        What would do.
    severity : float
        From 0 to 1: how much it misleads; below 0.25 it is a note.
    """

    rule: str
    row: int | None
    column: int | None
    number: float
    threshold: float
    sentence: str
    remedy: str
    severity: float

    @property
    def is_note(self) -> bool:
        """Whether it misleads hardly anybody."""
        return self.severity < NOTE


@final
@dataclass(frozen=True, kw_only=True)
class QuietRule:
    """A rule that found nothing, and how near it came.

    Parameters
    ----------
    rule : str
        Its name.
    row, column : int or None
        Where it was nearest to its threshold.
    number, threshold : float
        What was measured there; NaN where the rule does not apply.
    sentence : str
        That nothing was found, or why it was not looked for.
    """

    rule: str
    row: int | None
    column: int | None
    number: float
    threshold: float
    sentence: str
