"""Functions that papers on LIME look at, as sums of products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq

from propopt.base.arrays import Array
from propopt.base.errors import InvalidInput
from propopt.functions.wrapping import wrap
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.families import Bumps, Powers
from propopt.structures.products.sums import SumOfProducts


def zero_between(f: Callable[[float], float], low: float, high: float) -> float:
    """Where a function is zero; NaN if its ends have one sign."""
    if not f(low) * f(high) < 0.0:
        return math.nan
    return float(brentq(f, low, high))


def products_of(model: Any, X: Any) -> SumOfProducts:
    """What a fitted model computes, read of it.

    Raises
    ------
    InvalidInput
        If it is no sum of products.
    """
    result = wrap(model, data=X).products
    if isinstance(result, SumOfProducts):
        return result
    raise InvalidInput(f"model: {result.reason}")


def linear_function(slopes: Array, base: float = 0.0) -> SumOfProducts:
    """F(x) = base + Σ_j slopes_j x_j."""
    n = len(slopes)
    return SumOfProducts.additive(base, slopes, Powers.first(np.arange(n)), n)


def gaussian_sum(
    centers: Array, weights: Array, width: float, n_columns: int | None = None
) -> SumOfProducts:
    """F(x) = Σ_i weights_i exp(−‖x − centers_i‖² / (2 width²)).

    Parameters
    ----------
    centers : array (M, D')
        One bump at each, in the first D' columns.
    weights : array (M,)
        Their heights.
    width : float
        That of all.
    n_columns : int, optional
        D, by default D'.
    """
    n, d = centers.shape
    bumps = Bumps(np.tile(np.arange(d), n), centers.ravel(), np.full(n * d, width))
    paths = np.arange(n * d).reshape(n, d)
    return SumOfProducts(0.0, weights, paths, (bumps,), n_columns or d)


def box_function(low: Array, high: Array) -> SumOfProducts:
    """F(x) = 1 where low_j < x_j ≤ high_j for all j, else 0."""
    d = len(low)
    sets = Sets.of_numbers(range(d), low, high, np.zeros(d, dtype=bool))
    paths = np.arange(d)[None, :]
    return SumOfProducts(0.0, np.ones(1), paths, (sets,), d)


def bilinear_function(
    first: int, second: int, offset: float, n_columns: int
) -> SumOfProducts:
    """F(x) = x_first (x_second + offset)."""
    powers = Powers.first(np.array([first, second]))
    paths = np.array([[0, 1], [0, -1]])
    weights = np.array([1.0, offset])
    return SumOfProducts(0.0, weights, paths, (powers,), n_columns)
