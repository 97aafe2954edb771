"""Errors Err(y, ŷ) of predictions, one for each row."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Values
from propopt.base.checks import as_floats, did_you_mean
from propopt.base.errors import AdditiveErrorWarning, InvalidInput
from propopt.tables.frames import listed


@final
@dataclass(frozen=True)
class RowError:
    """An error of each row, and the outputs of a prediction that it depends on.

    These outputs, such as the probability of the class of the row, are averaged over
    patches before the error is computed.
    """

    name: str  # in files and tables
    units: str  # in words
    # Err of N rows and q predictors, (N, q), from y (N,) and outputs (N, q, R)
    compute: Callable[[NDArray[Any], Array], Array]
    true_class_only: bool = False  # the only output is the probability of the class

    def relevant_outputs(self, predicted: Array, y: NDArray[Any]) -> Array:
        """Outputs (n, R) of n predictions that the error depends on; y (n,)."""
        if self.true_class_only:
            predicted = predicted[np.arange(len(y)), y.astype(np.intp)]
        return predicted.reshape(len(y), -1)


def _squared(y: NDArray[Any], outputs: Array) -> Array:
    return np.asarray((outputs[..., 0] - y[:, None]) ** 2)


def _absolute(y: NDArray[Any], outputs: Array) -> Array:
    return np.abs(outputs[..., 0] - y[:, None])


def _missing(y: NDArray[Any], outputs: Array) -> Array:
    del y
    return 1.0 - outputs[..., 0]


SQUARED: Final = RowError("squared", "squared units of the target", _squared)
"""(y − ŷ)² for regressions; scores by it have a proved meaning in the population."""

ABSOLUTE: Final = RowError("absolute", "units of the target", _absolute)
"""|y − ŷ|, which is Lipschitz, as the proof of coverage requires.

It gives important features positive scores without any interaction. Two normal effects
of standard deviation b, in units of that of normal noise, have the score
√(2/π) (2 √(1 + b²) − 1 − √(1 + 2b²)).
"""

PROBABILITY: Final = RowError(
    "probability", "probability", _missing, true_class_only=True
)
"""1 − p with p the probability of the class of the row."""


def _given(
    function: Callable[[Any, Any], Any],
    classes: NDArray[Any] | None,  # (K,): labels of a classifier
    y: NDArray[Any],
    outputs: Array,
) -> Array:
    """Errors by a function of the user, called once for many rows and predictors."""
    n_rows, n_sets, n_outputs = outputs.shape
    targets = y if classes is None else classes[y.astype(np.intp)]
    flat = outputs.reshape(n_rows * n_sets, n_outputs)
    predictions = flat[:, 0] if classes is None else flat
    result = function(np.repeat(targets, n_sets), predictions)
    errors: Values = as_floats(result, "error")
    if errors.shape != (n_rows * n_sets,):
        raise InvalidInput(
            f"error: {_name_of(function)}: expected one error for each of "
            f"{n_rows * n_sets} rows, got shape {errors.shape}; do not "
            "average over rows: lambda y, p: (y - p) ** 2"
        )
    if not np.isfinite(errors).all():
        wrong = int((~np.isfinite(errors)).sum())
        raise InvalidInput(
            f"error: {_name_of(function)}: {wrong} of {len(errors)} errors are not "
            "finite"
        )
    return errors.reshape(n_rows, n_sets)


def _name_of(function: Callable[[Any, Any], Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


ErrorChoice: TypeAlias = (
    Literal["auto", "squared", "absolute", "probability"] | Callable[[Any, Any], Any]
)


def read_error(choice: ErrorChoice, classes: NDArray[Any] | None) -> RowError:
    """The error of that name; by default squared, for classes (K,) 1 − p."""
    if callable(choice):
        formula = partial(_given, choice, classes)
        return RowError(_name_of(choice), "units of the error function", formula)
    if classes is None and choice in ("auto", "squared"):
        return SQUARED
    if classes is None and choice == "absolute":
        warnings.warn(
            "error: absolute errors give important features positive scores without "
            "any interaction (0.077 for two effects as large as the noise, 0.38 for "
            "two effects twice as large, in standard deviations of the noise); squared "
            "errors give 0",
            AdditiveErrorWarning,
            stacklevel=4,
        )
        return ABSOLUTE
    if classes is not None and choice in ("auto", "probability"):
        return PROBABILITY
    choices = ["squared", "absolute"] if classes is None else ["probability"]
    estimator = "a regressor" if classes is None else "a classifier"
    hint = did_you_mean(choice, ["auto", *choices])
    raise InvalidInput(
        f"error: for {estimator} expected 'auto', {listed(choices)} or a callable, got "
        f"{choice!r}{hint}"
    )
