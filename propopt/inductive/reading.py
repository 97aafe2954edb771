"""What the explainer is given, read once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from propopt._typing import Attributions
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.functions import Function
from propopt.labels import read_table


def one_of(gradients: object, function: object) -> object:
    """The one of the two that was given."""
    if (gradients is None) == (function is None):
        raise InvalidInput("fit: give either gradients or function=, one of the two")
    if function is not None and not isinstance(function, Function):
        raise InvalidInput(
            f"function: expected a propopt Function, got {type(function).__name__}; "
            "propopt.wrap makes one of a model or a callable"
        )
    return gradients if function is None else function


def read_gradients(source: object, X: Any, shape: tuple[int, ...]) -> Attributions:
    """Gradients at X, given or from a function."""
    given = source
    if isinstance(source, Function):
        given = source.gradient(X if isinstance(X, pd.DataFrame) else np.asarray(X))
    gradients, _ = read_table(given, "gradients")
    if gradients.shape != shape:
        raise InvalidInput(
            f"gradients: expected shape {shape} as X, got {gradients.shape}"
        )
    return gradients


def read_restarts(n_restarts: object) -> int:
    """At least zero."""
    return 0 if n_restarts == 0 else read_count(n_restarts, "n_restarts")
