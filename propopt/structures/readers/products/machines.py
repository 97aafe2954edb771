"""Kernel machines as sums of products, where their kernels are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from math import comb
from typing import Final

import numpy as np
from scipy.special import gammaln

from propopt._typing import Array
from propopt.structures.kernels import KernelMachine
from propopt.structures.products import Bumps, NoProducts, SumOfProducts
from propopt.structures.products.products import Products
from propopt.structures.readers.products.polynomials import monomial_sum
from propopt.structures.readers.products.terms import KernelTerm, kernel_terms


MOST_MONOMIALS: Final = 20_000
"""Polynomial kernels with more are not expanded."""


def machine_products(
    machine: KernelMachine, row: Array, base: float
) -> SumOfProducts | NoProducts:
    """Base + row · z, of the scores z of a kernel machine.

    Parameters
    ----------
    machine : KernelMachine
        The machine.
    row : array (K,)
        Weights of its scores.
    base : float
        The constant.
    """
    D = machine.centers.shape[1]
    terms = kernel_terms(machine.kernel, D)
    if isinstance(terms, NoProducts):
        return terms
    weights = row @ machine.weights
    some = np.flatnonzero(weights)
    centers, weights = machine.centers[some], weights[some]
    polynomial = _polynomial(terms, centers, weights)
    if isinstance(polynomial, NoProducts):
        return polynomial
    gaussians = [term for term in terms if term.precision.any()]
    parts = [_bumps(term, centers, weights) for term in gaussians]
    constant = base + float(row @ machine.intercepts)
    return SumOfProducts.sum_of([polynomial, *parts]).plus(constant)


def _bumps(term: KernelTerm, centers: Array, weights: Array) -> SumOfProducts:
    """Scale · Σ_m weights_m exp(−½ Σ_d precision_d (x_d − z_md)²)."""
    n_centers, n_columns = centers.shape
    used = np.flatnonzero(term.precision)
    bumps = Bumps(
        np.tile(used, n_centers),
        centers[:, used].ravel(),
        np.tile(1.0 / np.sqrt(term.precision[used]), n_centers),
    )
    paths = np.arange(len(bumps)).reshape(n_centers, len(used))
    products = Products(0.0, term.scale * weights, paths, bumps.column, n_columns)
    return SumOfProducts(products, (bumps,))


def _polynomial(
    terms: Sequence[KernelTerm], centers: Array, weights: Array
) -> SumOfProducts | NoProducts:
    """Σ_m weights_m Σ_k scale_k (xᵀz_m)^k, of the terms that have no gaussian."""
    D = centers.shape[1]
    flat = [term for term in terms if not term.precision.any()]
    degrees = sorted({term.degree for term in flat})
    n_monomials = sum(comb(D + k - 1, k) for k in degrees)
    if n_monomials > MOST_MONOMIALS:
        return NoProducts(
            f"its polynomial kernel has {n_monomials:,} monomials of {D} columns, and "
            f"more than {MOST_MONOMIALS:,} are not expanded"
        )
    exponents, coefficients = [np.zeros((0, D), np.intp)], [np.zeros(0)]
    for k in degrees:
        scale = sum(term.scale for term in flat if term.degree == k)
        powers = _exponents(D, k)
        exponents.append(powers)
        coefficients.append(scale * _coefficients(powers, centers, weights))
    return monomial_sum(np.concatenate(exponents), np.concatenate(coefficients), 0.0)


def _exponents(n_columns: int, degree: int) -> np.ndarray:
    """Those of all monomials of a degree, (F, D)."""
    chosen = np.array([*combinations_with_replacement(range(n_columns), degree)], int)
    powers = np.zeros((len(chosen), n_columns), np.intp)
    for columns in chosen.T:
        powers[np.arange(len(chosen)), columns] += 1
    return powers


def _coefficients(powers: np.ndarray, centers: Array, weights: Array) -> Array:
    """K! / Π p_d! · Σ_m weights_m Π_d z_md^p_d of each monomial, (F,)."""
    degree = powers[0].sum()
    ways = np.rint(np.exp(gammaln(degree + 1) - gammaln(powers + 1).sum(axis=1)))
    sums = [weights @ np.prod(centers**p, axis=1) for p in powers]
    return np.asarray(ways * np.array(sums))
