"""Functions that are sums of products, written down by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from propopt.structures.products import Powers, Products, SumOfProducts


def linear(weights: Sequence[float], base: float = 0.0) -> SumOfProducts:
    """Base + Σ_j weights_j x_j."""
    a = np.asarray(weights, dtype=float)
    return SumOfProducts.additive(base, a, Powers.first(np.arange(len(a))), len(a))


def monomials(
    terms: Sequence[tuple[float, Sequence[int]]], n_columns: int
) -> SumOfProducts:
    """Σ_l v_l Π_{j in l} x_j."""
    width = max(len(columns) for _, columns in terms)
    paths = [[*columns, *[-1] * (width - len(columns))] for _, columns in terms]
    values = np.array([value for value, _ in terms], dtype=float)
    column = np.arange(n_columns)
    products = Products(0.0, values, np.array(paths), column, n_columns)
    return SumOfProducts(products, (Powers.first(column),))
