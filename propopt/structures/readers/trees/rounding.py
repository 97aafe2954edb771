"""Thresholds for numbers in float64 of models that compare them in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from propopt._typing import Array


def at_most_in_single(thresholds: ArrayLike) -> Array:
    """The largest float64 x with float32(x) ≤ t, for each threshold t.

    Numbers are rounded to the nearest float32, of two that are as near to the even one:
    with s the largest float32 ≤ t, x is the middle of s and the next float32, or the
    number before it where the middle is rounded up.

    Parameters
    ----------
    thresholds : array (n,)
        In any precision; infinite ones stay what they are.

    Examples
    --------
    >>> import numpy as np
    >>> x = at_most_in_single([1.0])
    >>> np.float32(x) <= 1.0, np.float32(np.nextafter(x, 2.0)) <= 1.0
    (array([ True]), array([False]))
    """
    exact = np.asarray(thresholds, dtype=np.float64)
    with np.errstate(over="ignore"):
        single = exact.astype(np.float32)
    single = np.where(single > exact, _before(single), single)
    middle = 0.5 * _widened(single) + 0.5 * _widened(_after(single))
    with np.errstate(over="ignore"):
        rounded_up = middle.astype(np.float32) > single
    cut = np.where(rounded_up, np.nextafter(middle, -np.inf), middle)
    return np.where(np.isinf(exact), exact, cut)


def below_in_single(thresholds: ArrayLike) -> Array:
    """The largest float64 x with float32(x) < float32(t), for each threshold t."""
    single = np.asarray(thresholds, dtype=np.float32)
    return at_most_in_single(_before(single))


def _before(single: Any) -> Any:
    """The float32 before each."""
    with np.errstate(over="ignore"):
        return np.nextafter(single, np.float32(-np.inf))


def _after(single: Any) -> Any:
    """The float32 after each."""
    with np.errstate(over="ignore"):
        return np.nextafter(single, np.float32(np.inf))


def _widened(single: Any) -> Array:
    """In float64, with 2^128 for infinity, as rounding to float32 takes it."""
    return np.clip(single.astype(np.float64), -(2.0**128), 2.0**128)
