"""A function whose gradient the user knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from propopt._typing import Array, Attributions, Points, Values
from propopt.errors import InvalidInput
from propopt.functions.base import Function
from propopt.functions.calls import in_batches
from propopt.labels import Labels


@dataclass(frozen=True, eq=False, repr=False)
class GivenGradient(Function):
    """A model, and a callable for its gradient; central differences can check it.

    Parameters
    ----------
    name : str
        For messages.
    readout : callable
        Points and labels to values (n,).
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

    name: str
    readout: Callable[[Points, Labels], Values]
    slopes: Callable[[Any], object]
    table: Callable[[Points, Labels], Array | pd.DataFrame]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    @property
    def gradient_method(self) -> str:
        """Always ``"given"``."""
        return "given"

    def _value(self, points: Points, labels: Labels, /) -> Values:
        return in_batches(self._read, points, labels)

    def _read(self, points: Points, labels: Labels) -> Values:
        self.calls.add(len(points))
        return self.readout(points, labels)

    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        self.calls.add(len(points))
        found = self.slopes(self.table(points, labels))
        try:
            return np.array(found, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"gradient: expected numbers, got {error}") from None
