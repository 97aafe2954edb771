"""What the explainer is given, read once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from propopt._typing import Attributions
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.functions import Function
from propopt.functions.base import read_function
from propopt.labels import Labels, differ, read_table


def one_of(gradients: object, function: object) -> object:
    """The one of the two that was given."""
    if (gradients is None) == (function is None):
        raise InvalidInput("fit: give either gradients or function=, one of the two")
    return gradients if function is None else read_function(function)


def read_gradients(
    source: object, X: Any, labels: Labels, shape: tuple[int, ...]
) -> Attributions:
    """Gradients at X, given or from a function; their names are those of X, or none."""
    given = source
    if isinstance(source, Function):
        given = source.gradient(X if isinstance(X, pd.DataFrame) else np.asarray(X))
    gradients, found = read_table(given, "gradients")
    if gradients.shape != shape:
        raise InvalidInput(
            f"gradients: expected shape {shape} as X, got {gradients.shape}"
        )
    _check_same(found.features, labels.features, "columns")
    _check_same(found.points, labels.points, "rows")
    return gradients


def _check_same(
    found: tuple[Hashable, ...] | None, names: tuple[Hashable, ...] | None, what: str
) -> None:
    if differ(found, names):
        raise InvalidInput(f"gradients: their {what} are not those of X, in that order")


def read_restarts(n_restarts: object) -> int:
    """At least zero."""
    if n_restarts == 0:
        return 0
    try:
        return read_count(n_restarts, "n_restarts")
    except InvalidInput:
        raise InvalidInput(
            f"n_restarts: expected an integer >= 0, got {n_restarts!r}"
        ) from None
