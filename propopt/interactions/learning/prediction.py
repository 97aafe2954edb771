"""A fitted model that is asked with tables of all columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.checks import refuse_overflow
from propopt.errors import InvalidInput
from propopt.interactions.learning.numbers import array_of
from propopt.interactions.learning.tables import taken


Predictor: TypeAlias = Callable[[Any], Array]
"""From a table of all columns to predictions (n,), or probabilities (n, K)."""


@final
@dataclass(frozen=True, eq=False)
class Prediction:
    """A fitted model, asked with a table of all columns.

    Parameters
    ----------
    model : estimator
        Fitted.
    columns : array of int
        Which it sees.
    places : array of int or None
        Of the classes that it knows, among all K.
    n_classes : int
        K.
    of_numbers : bool
        Whether it was fitted to an array, also of a table.
    """

    model: Any
    columns: NDArray[np.intp]
    places: NDArray[np.intp] | None
    n_classes: int
    of_numbers: bool = False

    def __call__(self, table: Any) -> Array:
        own = taken(table, None, self.columns)
        if self.of_numbers and not isinstance(own, np.ndarray):
            own = array_of(own)
        if self.places is None:
            predicted = np.asarray(self.model.predict(own), dtype=np.float64)
            return self._checked(predicted.reshape(len(predicted), -1), 1)[:, 0]
        found = np.asarray(self.model.predict_proba(own), dtype=np.float64)
        found = self._checked(found, len(self.places))
        probabilities = np.zeros((len(found), self.n_classes))
        probabilities[:, self.places] = found
        return probabilities

    def _checked(self, predicted: Array, n_outputs: int) -> Array:
        name = type(self.model).__name__
        if predicted.shape[1:] != (n_outputs,):
            raise InvalidInput(
                f"estimator: expected {n_outputs} numbers for each row from {name}, "
                f"got shape {predicted.shape}"
            )
        if not np.isfinite(predicted).all():
            raise InvalidInput(
                f"estimator: {name} predicts numbers that are not finite"
            )
        refuse_overflow(predicted, f"estimator: predictions of {name}")
        return predicted
