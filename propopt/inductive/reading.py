"""What the explainer is given, read once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from propopt._typing import Attributions, Points
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.functions import Function
from propopt.labels import Labels, read_table


def read_new(
    X_new: object, n_features: int, fitted: tuple[str, ...] | None
) -> tuple[Points, Labels]:
    """New inputs; columns without names have those of the fit."""
    points, labels = read_table(X_new, "X_new")
    if points.shape[1] != n_features:
        raise InvalidInput(
            f"X_new: expected {n_features} features as in fit, got {points.shape[1]}"
        )
    if None not in (labels.features, fitted) and labels.features != fitted:
        raise InvalidInput("X_new: its columns are not those of fit, in that order")
    return points, Labels(points=labels.points, features=labels.features or fitted)


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
