"""How wrong a prediction is at a row: Err(y, ŷ)."""

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
    """An error of each row, and what is known of a prediction for it.

    That is averaged over patches before the error is taken: numbers, such as the
    probability of the class of the row.
    """

    name: str  # what files and tables call it
    units: str  # in words
    # Err of N rows and q predictors, (N, q), from y (N,) and known (N, q, R)
    of: Callable[[NDArray[Any], Array], Array]
    of_class: bool = False  # of a prediction the class of the row alone is known

    def known(self, predicted: Array, y: NDArray[Any]) -> Array:
        """What is kept of n predictions, (n, R): all, (n,) or (n, R); y (n,)."""
        if self.of_class:
            predicted = predicted[np.arange(len(y)), y.astype(np.intp)]
        return predicted.reshape(len(y), -1)


def _squared(y: NDArray[Any], known: Array) -> Array:
    return np.asarray((known[..., 0] - y[:, None]) ** 2)


def _absolute(y: NDArray[Any], known: Array) -> Array:
    return np.abs(known[..., 0] - y[:, None])


def _missing(y: NDArray[Any], known: Array) -> Array:
    del y
    return 1.0 - known[..., 0]


SQUARED: Final = RowError("squared", "squared units of the target", _squared)
"""(y − ŷ)², of regressions; what it means in the population is proved."""

ABSOLUTE: Final = RowError("absolute", "units of the target", _absolute)
"""|y − ŷ|, Lipschitz, as the proof of coverage wants it.

Important features have positive scores by it without any interaction: two normal
effects of sizes b and normal noise, all in deviations of the noise, one of
√(2/π) (2 √(1 + b²) − 1 − √(1 + 2b²)).
"""

PROBABILITY: Final = RowError("probability", "probability", _missing, of_class=True)
"""1 − p of the class of the row: with two classes |y − p|."""


def _given(
    function: Callable[[Any, Any], Any],
    classes: NDArray[Any] | None,  # (K,): what the targets of a classifier are
    y: NDArray[Any],
    known: Array,
) -> Array:
    """An error of the user, called once for many rows and predictors."""
    n_rows, n_sets, n_outputs = known.shape
    targets = y if classes is None else classes[y.astype(np.intp)]
    flat = known.reshape(n_rows * n_sets, n_outputs)
    predictions = flat[:, 0] if classes is None else flat
    result = function(np.repeat(targets, n_sets), predictions)
    errors: Values = as_floats(result, "error")
    if errors.shape != (n_rows * n_sets,):
        raise InvalidInput(
            f"error: {_name_of(function)}: expected one error for each of "
            f"{n_rows * n_sets} rows, got shape {errors.shape}; a mean over rows "
            "is none, lambda y, p: (y - p) ** 2 is one for each"
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
    """The error that is meant; by default squared, of classes (K,) 1 − p."""
    if callable(choice):
        formula = partial(_given, choice, classes)
        return RowError(_name_of(choice), "units of the error function", formula)
    if classes is None and choice in ("auto", "squared"):
        return SQUARED
    if classes is None and choice == "absolute":
        warnings.warn(
            "error: by absolute errors features that matter have positive scores "
            "without any interaction: two effects of one deviation of the noise each "
            "0.077 of it, of two deviations 0.38; by squared errors these are 0",
            AdditiveErrorWarning,
            stacklevel=4,
        )
        return ABSOLUTE
    if classes is not None and choice in ("auto", "probability"):
        return PROBABILITY
    fit = ["squared", "absolute"] if classes is None else ["probability"]
    label = "a regressor" if classes is None else "a classifier"
    near = did_you_mean(choice, ["auto", *fit])
    raise InvalidInput(
        f"error: of {label} expected 'auto', {listed(fit)} or a callable, got "
        f"{choice!r}{near}"
    )
