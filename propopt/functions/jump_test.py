"""The jump test, of any function."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from propopt._typing import Points, Values
from propopt.checks import read_rng
from propopt.errors import InvalidInput
from propopt.functions.base import Function, read_function
from propopt.functions.jumps import Jumps, Segments, jumps_along
from propopt.tables.names import Labels


def jump_test(
    function: Function,
    X: ArrayLike | pd.DataFrame,
    rng: int | np.random.Generator | None = 0,
) -> Jumps:
    """Whether a function jumps, so that its gradient misses much of its change.

    Along 64 segments between rows, φ(τ) = f(x + τd),

    J = Σ |φ(1) − φ(0) − ∫ φ'(τ) dτ| / Σ |φ(1) − φ(0)|

    is the share of its change that local slopes do not explain. A function is smooth if
    J ≤ 0.05 with 8 nodes of the integral, strongly curved if that takes 32, and jumps
    otherwise. Smooth functions take 1152 evaluations, others 5376 at most, whatever the
    number of features; they are counted as ``calls.trials``. :func:`propopt.wrap` makes
    this test by itself before it differentiates a model that it does not know.

    Parameters
    ----------
    function : Function
        f.
    X : array or DataFrame (N, D)
        Rows, from which segments go a quarter of the way to others; there must be a
        numeric column of three values or more.
    rng : int, Generator or None
        What rows are drawn by; None is seed 0.

    Returns
    -------
    Jumps
        ``kind``, ``J`` and ``evaluations``.

    Raises
    ------
    InvalidInput
        If no rows of X can be moved, if a value between rows is not finite, or if the
        function answers the same question differently.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> po.functions.jump_test(po.wrap(lambda X: np.sin(X).sum(axis=1)), X).kind
    'smooth'
    >>> po.functions.jump_test(po.wrap(lambda X: np.round(X).sum(axis=1)), X).kind
    'jumps'
    """
    function = read_function(function)
    points, labels = function.read(X)
    names = labels.of_columns()
    numeric = numeric_columns(function, points)
    segments = Segments.between(points, numeric, read_rng(rng))
    if segments is None:
        raise InvalidInput(
            "X: the jump test moves rows towards one another in numeric columns of at "
            f"least three values; there is none among these {len(points)} rows"
        )
    with function.calls.trying_out():
        return jumps_along(
            lambda between: _values(function, between, names), segments, repr(function)
        )


def numeric_columns(function: Function, points: Points) -> NDArray[np.bool_]:
    """Which encoded columns are numbers, (D,)."""
    if function.schema is None:
        return np.full(points.shape[1], function.encoding is None)  # words are none
    return ~function.schema.categorical


def _values(function: Function, points: Points, names: Labels) -> Values:
    try:
        return function.value_at(points, names)
    except InvalidInput as error:
        raise InvalidInput(f"between rows of X: {error}") from error
