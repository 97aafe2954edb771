"""What an explanation of a model aims at: its slopes, or those of its local mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from propopt._typing import Array
from propopt.estimates import Estimate
from propopt.functions import Function, smoothed


_FLAT_SAMPLES = 500
"""Pairs of draws for piecewise-constant models; at least two for each feature."""

_FLAT_SCALE = 0.5
"""Noise for piecewise-constant models, in standard deviations of each feature."""


def target_of(
    function: Function,
    X: Any,
    sizes: Array,
    *,
    rng: int | np.random.Generator | None = None,
) -> Estimate:
    """Slopes per ``sizes`` at the rows of X, with what is known of their error.

    Parameters
    ----------
    function : Function
        The model.
    X : array or DataFrame (N, D)
        The points.
    sizes : array (D,)
        The scale of each feature, such as its standard deviation.
    rng : int, numpy.random.Generator or None
        For what is sampled; None is seed 0.
    """
    return _differentiable(function, sizes, rng).estimate(X).scaled(sizes)


def _differentiable(
    function: Function, sizes: Array, rng: int | np.random.Generator | None
) -> Function:
    """The function, or its mean over noise where its own gradient says nothing."""
    if not function.piecewise_constant:
        return function
    n_samples = max(_FLAT_SAMPLES, 2 * len(sizes))
    return smoothed(function, _FLAT_SCALE * sizes, n_samples, rng)
