"""What laws know of sets: probabilities, and signed measures of total mass zero."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from propopt._typing import Array, Points, Positions, Truths
from propopt.structures.boxes import Measures, Sets


class Measure(NamedTuple):
    """Masses on finitely many values of one column."""

    values: Array
    """Numbers or codes, NaN where a number is missing, (m,)."""

    masses: Array
    """One for each, (m,)."""


class Known(Protocol):
    """What a law makes of some sets: those it tells apart, and their measures."""

    @property
    def places(self) -> Positions:
        """Where each set is among the V that are told apart; −1 if it is always 1."""

    @property
    def dropped(self) -> Truths:
        """Which of the sets have no probability in any row, (U,)."""

    @property
    def column(self) -> Positions:
        """The columns of those that are told apart, increasing, (V,)."""

    @property
    def row_bytes(self) -> int:
        """The memory that the measures of one row take."""

    def measures(self, points: Points) -> Measures:
        """Measures of all that are told apart at rows (N, D), each for itself."""


class Law(Protocol):
    """Independent columns around each row, and a contrast in each column."""

    def knows(self, sets: Sets) -> Known:
        """What the law makes of sets."""
