"""What the explainer is given, read once."""

from __future__ import annotations

from typing import Any

import numpy as np

from propopt._typing import Attributions
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.functions import Function
from propopt.functions.base import read_function
from propopt.tables.alignment import aligned
from propopt.tables.frames import is_frame
from propopt.tables.names import Labels


def one_of(gradients: object, function: object) -> object:
    """The one of the two that was given."""
    if (gradients is None) == (function is None):
        raise InvalidInput("fit: give either gradients or function=, one of the two")
    return gradients if function is None else read_function(function)


def read_gradients(
    source: object, X: Any, labels: Labels, shape: tuple[int, ...]
) -> Attributions:
    """Gradients at X, given or from a function; names are put in the order of X."""
    given = source
    if isinstance(source, Function):
        given = source.gradient(X if is_frame(X, "X") else np.asarray(X))
    gradients = aligned(given, labels, "gradients", "X")
    if gradients.shape != shape:
        raise InvalidInput(
            f"gradients: expected shape {shape} as X, got {gradients.shape}"
        )
    return gradients


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
