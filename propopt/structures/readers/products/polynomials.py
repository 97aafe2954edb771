"""Polynomials as sums of products of powers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.structures.products import Powers, SumOfProducts
from propopt.structures.products.paths import padded_paths
from propopt.structures.products.products import Products


def monomial_sum(
    exponents: NDArray[np.intp], weights: Array, base: float
) -> SumOfProducts:
    """Base + Σ_f weights_f Π_d x_d^p_fd.

    Parameters
    ----------
    exponents : array (F, D)
        p.
    weights : array (F,)
        Of the monomials.
    base : float
        The constant.
    """
    n_columns = exponents.shape[1]
    kept = np.flatnonzero(weights)
    product, column = np.nonzero(exponents[kept])
    degree = exponents[kept][product, column]
    pairs, factor = np.unique([column, degree], axis=1, return_inverse=True)
    paths = padded_paths(product, factor.ravel(), len(kept))
    powers = Powers(pairs[0], pairs[1], np.zeros(len(pairs[0])))
    products = Products(float(base), weights[kept], paths, powers.column, n_columns)
    return SumOfProducts(products, (powers,))


def quadratic_sum(
    means: Array, forms: Sequence[Array], weights: Array, base: float
) -> SumOfProducts:
    """Base + Σ_k weights_k (x − μ_k)ᵀ P_k (x − μ_k).

    Parameters
    ----------
    means : array (K, D)
        μ_k.
    forms : sequence of arrays (D, D)
        P_k, symmetric.
    weights : array (K,)
        Of the forms.
    base : float
        The constant.
    """
    n_columns = means.shape[1]
    constant = np.zeros((0, n_columns), np.intp)
    parts = [monomial_sum(constant, np.zeros(0), base)]
    for mean, form, weight in zip(means, forms, weights, strict=True):
        i, j = np.nonzero(np.triu(form))
        unit = np.eye(n_columns, dtype=np.intp)
        # off the diagonal an entry stands for two
        doubled = np.where(i == j, 1.0, 2.0) * form[i, j]
        part = monomial_sum(unit[i] + unit[j], weight * doubled, 0.0)
        parts.append(_around(part, mean))
    return SumOfProducts.sum_of(parts)


def _around(function: SumOfProducts, center: Array) -> SumOfProducts:
    """The same function of x − center."""
    families = tuple(
        replace(family, center=center[family.column])
        for family in function.factors
        if isinstance(family, Powers)
    )
    return replace(function, factors=families)
