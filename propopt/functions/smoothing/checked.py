"""Boxes that a function is read as, believed once they are what it answers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np

from propopt._typing import Points
from propopt.errors import InexactBoxesWarning
from propopt.functions.base import Function
from propopt.structures.boxes import Boxes
from propopt.tables.names import Labels


EXACT_BOXES: Final = "exact (boxes)"
"""The source of what is computed of boxes."""

MOST_CHECKED: Final = 1000
"""Rows at which boxes are compared with the function."""


@final
@dataclass
class CheckedBoxes:
    """The boxes of a function, compared with it at the first rows that are at hand.

    Parameters
    ----------
    function : Function
        f.
    boxes : Boxes or None
        What it was read as; None if it was not, or if that was wrong.
    known : bool
        Whether they were compared.
    """

    function: Function
    boxes: Boxes | None = field(default=None)
    known: bool = False

    @classmethod
    def of(cls, function: Function) -> CheckedBoxes:
        """Those that the function says it is."""
        return cls(function, function.boxes)

    def at(self, points: Points, labels: Labels) -> Boxes | None:
        """The boxes, if they are right; compared at up to 1000 of these rows at first.

        Where they are not, a warning names the row of the largest difference.
        """
        if not self.known and self.boxes is not None:
            every = slice(None, None, -(-len(points) // MOST_CHECKED))
            some = labels.of_rows(every)
            if not _agree(self.boxes, self.function, points[every], some):
                self.boxes = None
        self.known = True
        return self.boxes


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
