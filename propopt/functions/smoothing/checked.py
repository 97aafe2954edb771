"""Boxes that a function is read as, believed once they are what it answers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np

from propopt._typing import Points, Positions, Truths
from propopt.errors import InexactBoxesWarning
from propopt.functions.base import Function
from propopt.structures.boxes import Boxes
from propopt.tables.names import Labels


EXACT_BOXES: Final = "exact (boxes)"
"""The source of what is computed of boxes."""

MOST_CHECKED: Final = 1000
"""Rows at which boxes are compared with the function."""

EACH_MISSING: Final = 20
"""More of them for each column that is missing nowhere else."""


@final
@dataclass
class CheckedBoxes:
    """The boxes of a function, compared with it at the first rows that are at hand.

    And at some of the first rows in which a column is missing that was there before:
    what a function makes of missing values is its own, and may be an error.

    Parameters
    ----------
    function : Function
        f.
    boxes : Boxes or None
        What it was read as; None if it was not, or if that was wrong.
    known_missing : array of bool (D,) or None
        Columns that were missing in rows at which they were compared; None before
        they were compared at all.
    """

    function: Function
    boxes: Boxes | None = field(default=None)
    known_missing: Truths | None = None

    @classmethod
    def of(cls, function: Function) -> CheckedBoxes:
        """Those that the function says it is."""
        return cls(function, function.boxes)

    def at(self, points: Points, labels: Labels) -> Boxes | None:
        """The boxes, if they are right; compared at up to 1000 of these rows at first.

        Where they are not, a warning names the row of the largest difference.

        Raises
        ------
        InvalidInput
            If the function has no value there, as where it takes no missing values.
        """
        if self.boxes is None:
            return None
        rows = self._not_compared(points)
        if len(rows) == 0:
            return self.boxes
        some = points[rows]
        if not _agree(self.boxes, self.function, some, labels.of_positions(rows)):
            self.boxes = None
        here = np.isnan(some).any(axis=0)
        known = self.known_missing
        self.known_missing = np.asarray(here if known is None else known | here)
        return self.boxes

    def _not_compared(self, points: Points) -> Positions:
        """Positions of rows that would tell something new."""
        absent = np.isnan(points)
        if self.known_missing is None:
            every = -(-len(points) // MOST_CHECKED)
            first = np.arange(0, len(points), every)
            absent &= ~absent[first].any(axis=0)
        else:
            first = np.zeros(0, np.intp)
            absent &= ~self.known_missing
        new = [np.flatnonzero(absent[:, j])[:EACH_MISSING] for j in _any(absent)]
        return np.unique(np.concatenate([first, *new]))


def _any(absent: Truths) -> Positions:
    return np.flatnonzero(absent.any(axis=0))


def _agree(boxes: Boxes, function: Function, points: Points, labels: Labels) -> bool:
    """Whether boxes are f to their tolerance, over max(1, |f|), at all rows."""
    with function.calls.trying_out():
        values = function.value_at(points, labels)
    errors = np.abs(boxes.value(points) - values) / np.maximum(1.0, np.abs(values))
    worst = int(errors.argmax())
    if errors[worst] <= boxes.tolerance:
        return True
    name = worst if labels.points is None else labels.points[worst]
    warnings.warn(
        f"{function!r}: its trees were read, and their sum differs from its answer by "
        f"{errors[worst]:.2g} of max(1, |f|) in row {name!r} of those compared, where "
        f"{boxes.tolerance:.0e} is allowed; it is sampled instead",
        InexactBoxesWarning,
        stacklevel=2,
    )
    return False
