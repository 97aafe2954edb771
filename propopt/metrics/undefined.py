"""Division where the divisor may be zero, and the count of rows where it was."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike

from propopt._typing import Array
from propopt.errors import PropoptWarning


class UndefinedRowsWarning(PropoptWarning):
    """A metric divides by zero in some rows; the message counts them."""


def quotient(numerator: ArrayLike, denominator: ArrayLike) -> Array:
    """The quotient as IEEE 754 has it: 0/0 is NaN, anything else over zero is ±∞."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found: Array = np.divide(numerator, denominator)
    return found


def warn_undefined(values: Array, name: str) -> Array:
    """``values`` (N,), after a warning if some are NaN or infinite."""
    undefined = int((~np.isfinite(values)).sum())
    if undefined:
        warnings.warn(
            f"{name}: {undefined} of {len(values)} rows divide by zero; they are NaN "
            "where the numerator is zero too, and infinite elsewhere",
            UndefinedRowsWarning,
            stacklevel=3,
        )
    return values
