"""Central differences of any vectorised function, in batches."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from propopt._typing import Attributions, Points, Values
from propopt.batches import row_blocks
from propopt.checks import read_positive
from propopt.errors import FlatFunctionWarning, InvalidInput, JumpsWarning
from propopt.functions.answers import DOUBLE, SINGLE, as_numbers
from propopt.functions.jumps import Jumps
from propopt.tables.names import read_table


DEFAULT_STEP = math.cbrt(DOUBLE)
"""Balances the truncation error, ~ step², against the rounding error, ~ ε / step."""

FLAT = (
    "every central difference is exactly zero: the function is piecewise constant here "
    "(as trees and forests are), computes in single precision, or ignores its inputs; "
    "such gradients say nothing about it. Give a larger `step`, smooth it with "
    "po.smoothed(function, scale=...), or explain its values instead of its gradients"
)


def central_differences(
    evaluate: Callable[[Points], Values],
    X: ArrayLike | pd.DataFrame,
    step: float | None = None,
) -> Attributions:
    """Central differences of a function, (f(x + h e_d) − f(x − h e_d)) / 2h.

    The step is h = ``step`` · max(1, |x_d|), and 2h is the distance between the two
    shifted points as they are represented, so that rounding them costs nothing. The
    2·N·D evaluations are made in batches of at most 32 MiB and 16,384 rows.

    Parameters
    ----------
    evaluate : callable
        Takes an array (m, D), returns an array (m,).
    X : array or DataFrame (N, D)
        The points.
    step : float, optional
        The relative step; ε^(1/3) ≈ 6.1e-06 by default.

    Returns
    -------
    array (N, D)
        The approximate gradients.

    Raises
    ------
    InvalidInput
        If X is not a finite table, the step is below ε or not finite, or ``evaluate``
        does not return one value for each row.

    Warns
    -----
    FlatFunctionWarning
        If every difference is exactly zero.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.functions import central_differences
    >>> X = np.array([[0.0, 1.0]])
    >>> central_differences(lambda X: np.exp(X).sum(axis=1), X).round(6)
    array([[1.      , 2.718282]])
    """
    points, _ = read_table(X, "X")
    gradients = differences(evaluate, points, read_step(step))
    if not gradients.any():
        warnings.warn(FLAT, FlatFunctionWarning, stacklevel=2)
    return gradients


def differences(
    evaluate: Callable[[Points], Values], points: Points, step: float
) -> Attributions:
    """Central differences at checked points, flat or not; zero where one is missing."""
    gradients = np.zeros(points.size)
    present = np.flatnonzero(~np.isnan(points))
    for block in row_blocks(len(present), points.shape[1], copies=2):
        entries = present[block]
        gradients[entries] = slopes_of(evaluate, points, entries, step)
    return gradients.reshape(points.shape)


def warn_flat(name: str) -> None:
    """Say that differences of a model known to be piecewise constant say nothing."""
    warnings.warn(
        f"{name}: the model is piecewise constant, so its gradient is 0 almost "
        "everywhere and differences see at most a few jumps. Smooth it with "
        "po.smoothed(function, scale=...), or match its values around each point: "
        "po.FunctionMatching of what changes(X) of the smoothed function gives",
        FlatFunctionWarning,
        stacklevel=2,
    )


def warn_jumps(name: str, jumps: Jumps) -> None:
    """Say that a model was found to jump, and what would do."""
    warnings.warn(
        f"{name}: the model {jumps.in_words()}, and central differences miss them; "
        'po.smoothed(function, law="data", data=X) has slopes that see jumps',
        JumpsWarning,
        stacklevel=2,
    )


def read_step(step: float | None) -> float:
    """The relative step: the default one for None, else checked."""
    if step is None:
        return DEFAULT_STEP
    relative = read_positive(step, "step")
    if relative < DOUBLE:
        raise InvalidInput(
            f"step: {relative:.2g} is lost in rounding; expected at least {DOUBLE:.2g}"
        )
    return relative


def step_for(epsilon: float, name: str) -> float:
    """The best relative step for values of relative rounding ε, ε^(1/3)."""
    if epsilon > SINGLE:
        digits = math.floor(-math.log10(epsilon))
        raise InvalidInput(
            f"{name}: the model computes in half precision, {digits} digits, of which "
            "differences keep one at most; let it compute in single precision, or "
            f"give a `step` of about {math.cbrt(epsilon):.1g} all the same"
        )
    return math.cbrt(max(epsilon, DOUBLE))


def describe_step(step: float) -> str:
    """The rule in words, with its step."""
    return f"central differences, step {step:.2g} · max(1, |x|)"


def slopes_of(
    evaluate: Callable[[Points], Values],
    points: Points,
    entries: NDArray[np.intp],
    step: float,
) -> Values:
    """∂f/∂x_d at x_n for entries at flat positions, from one call for both sides."""
    rows, columns = np.divmod(entries, points.shape[1])
    h = step * np.maximum(1.0, np.abs(points[rows, columns]))
    shifted = points[np.tile(rows, 2)]
    moved = np.arange(len(shifted)), np.tile(columns, 2)
    shifted[moved] += np.concatenate([h, -h])
    ahead, behind = np.split(shifted[moved], 2)
    values = as_numbers(evaluate(shifted))
    if values.shape != (2 * len(entries),):
        raise InvalidInput(
            f"the function returned shape {values.shape} for {2 * len(entries)} "
            "points; expected one value for each"
        )
    above, below = np.split(values, 2)
    with np.errstate(invalid="ignore"):  # ∞ − ∞ is a NaN, which is reported by its row
        slopes: Values = (above - below) / (ahead - behind)
    return slopes
