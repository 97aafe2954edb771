"""Calls of a model: counted, and made in batches of bounded size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Points, Values
from propopt.batches import row_blocks
from propopt.tables.names import Labels


@final
@dataclass
class Calls:
    """How often a model was asked; not exact if several threads ask at once.

    Parameters
    ----------
    rows : int
        Rows given to the model.
    batches : int
        Tables that they were given in.
    trials : int
        Rows that it was given besides, when it was asked for the first time, to see
        how precise its answers are and whether they are the same twice.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> function = po.wrap(lambda X: X[:, 0] * X[:, 1])
    >>> _ = function.gradient(np.ones((10, 2)))
    >>> function.calls
    Calls(rows=40, batches=1, trials=6)
    """

    rows: int = 0
    batches: int = 0
    trials: int = 0

    def add(self, rows: int) -> None:
        """Count one table of so many rows."""
        self.rows += rows
        self.batches += 1

    def try_out(self, rows: int) -> None:
        """Count so many rows of a trial."""
        self.trials += rows


def in_batches(
    read: Callable[[Points, Labels], Values], points: Points, labels: Labels
) -> Values:
    """Values of all points, from calls of at most 32 MiB and 16,384 rows."""
    found = [
        read(points[rows], labels.of_rows(rows))
        for rows in row_blocks(len(points), points.shape[1])
    ]
    return np.concatenate(found)
