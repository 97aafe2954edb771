"""A function whose gradient the user knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from propopt._typing import Array, Attributions, Points
from propopt.batches import call_blocks
from propopt.errors import InvalidInput
from propopt.functions.answers import as_numbers
from propopt.functions.models.called import CalledModel
from propopt.tables.names import Labels


@dataclass(frozen=True, eq=False, repr=False)
class GivenGradient(CalledModel):
    """A model, and a callable for its gradient; central differences can check it.

    Parameters
    ----------
    slopes : callable
        The gradient: a table (n, D) to numbers (n, D).
    table : callable
        Makes the table that ``slopes`` is given from points and labels.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> function = po.wrap(lambda X: (X**2).sum(axis=1), gradient=lambda X: 2 * X)
    >>> X = np.array([[1.0, -3.0]])
    >>> function.gradient(X)
    array([[ 2., -6.]])
    >>> po.functions.central_differences(function.value, X).round(6)
    array([[ 2., -6.]])
    """

    slopes: Callable[[Any], object]
    table: Callable[[Points, Labels], Array | pd.DataFrame]

    @property
    def gradient_method(self) -> str:
        """Always ``"given"``."""
        return "given"

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        parts = []
        for rows in call_blocks(points.shape, self.batch_rows):
            self.calls.add(len(points[rows]))
            answer = self.slopes(self.table(points[rows], labels.of_rows(rows)))
            part = as_numbers(answer, "gradient: expected numbers; the callable")
            self._check_slopes(part, points[rows])
            parts.append(part)
        return np.concatenate(parts)

    def _check_slopes(self, slopes: Array, points: Points) -> None:
        if slopes.shape != points.shape:
            raise InvalidInput(
                f"{self!r}: expected a gradient of shape {points.shape}, got "
                f"{slopes.shape}"
            )
