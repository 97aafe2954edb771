"""Kernel machines and polynomials as sums of products of functions of one column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from math import comb
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from propopt.base.arrays import Array
from propopt.base.text import Reason
from propopt.structures import kernels
from propopt.structures.products.families import Bumps, Powers
from propopt.structures.products.sums import SumOfProducts, padded_paths


# ---- Kernel machines as sums of products


Terms: TypeAlias = Sequence[tuple[float, Array, int]]
"""Kernels scale · exp(−½ Σ_d precision_d (x_d − z_d)²) · (xᵀz)^degree, each by its
scale, its precisions 1/ℓ² (D,), 0 for columns outside the gaussian, and its degree."""


def kernel_terms(kernel: kernels.Kernel, n_columns: int) -> Terms | Reason:
    """The terms that add up to a kernel; the reason if there are none."""
    terms = _terms(kernel, n_columns)
    if isinstance(terms, Reason):
        return terms
    nonzero = [term for term in terms if term[0] != 0.0]
    if any(degree > 0 and precision.any() for _, precision, degree in nonzero):
        return Reason(
            "its kernel multiplies a gaussian by an inner product; sums of such "
            "kernels are exact, and gaussians times constants"
        )
    return nonzero


def _terms(kernel: kernels.Kernel, D: int) -> Terms | Reason:
    none = np.zeros(D)
    match kernel:
        case kernels.Radial("gaussian", lengthscale):
            return [(1.0, np.broadcast_to(1.0 / lengthscale**2, (D,)), 0)]
        case kernels.InnerProduct("constant", (constant,)):
            return [(constant, none, 0)]
        case kernels.InnerProduct("polynomial", (gamma, offset, degree)) if float(
            degree
        ).is_integer():
            d = int(degree)
            scales = [comb(d, k) * gamma**k * offset ** (d - k) for k in range(d + 1)]
            return [(scale, none, k) for k, scale in enumerate(scales)]
        case kernels.KernelPair(first, second, is_product):
            one = _terms(first, D)
            other = _terms(second, D)
            if isinstance(one, Reason):
                return one
            if isinstance(other, Reason):
                return other
            return _product(one, other) if is_product else [*one, *other]
        case kernels.Radial(shape) | kernels.InnerProduct(shape):
            return Reason(
                f"a {shape} kernel is no product of functions of one column each; the "
                "gaussian (RBF) kernel is"
            )
        case _:
            raise TypeError(type(kernel))


def _product(one: Terms, other: Terms) -> Terms:
    return [(a * b, p + q, d + e) for a, p, d in one for b, q, e in other]


# ---- Polynomials as sums of products of powers


def monomial_sum(
    exponents: NDArray[np.integer], weights: Array, base: float
) -> SumOfProducts:
    """The polynomial base + Σ_f weights_f Π_d x_d^p_fd; exponents (F, D)."""
    n_columns = exponents.shape[1]
    nonzero = np.flatnonzero(weights)
    product, column = np.nonzero(exponents[nonzero])
    degree = exponents[nonzero][product, column]
    pairs, factor = np.unique([column, degree], axis=1, return_inverse=True)
    paths = padded_paths(product, factor.ravel(), len(nonzero))
    powers = Powers(pairs[0], pairs[1], np.zeros(len(pairs[0])))
    return SumOfProducts(float(base), weights[nonzero], paths, (powers,), n_columns)


def quadratic_sum(
    means: Array, forms: Sequence[Array], weights: Array, base: float
) -> SumOfProducts:
    """A sum of quadratic forms, base + Σ_k weights_k (x − μ_k)ᵀ P_k (x − μ_k)."""
    n_columns = means.shape[1]
    parts = [monomial_sum(np.zeros((0, n_columns), np.intp), np.zeros(0), base)]
    for mean, form, weight in zip(means, forms, weights, strict=True):
        i, j = np.nonzero(np.triu(form))
        unit = np.eye(n_columns, dtype=np.intp)
        # off the diagonal an entry stands for two
        doubled = np.where(i == j, 1.0, 2.0) * form[i, j]
        part = monomial_sum(unit[i] + unit[j], weight * doubled, 0.0)
        families = tuple(
            replace(family, center=mean[family.column])
            for family in part.factors
            if isinstance(family, Powers)
        )
        parts.append(replace(part, factors=families))
    return SumOfProducts.sum_of(parts)


MOST_MONOMIALS: Final = 20_000
"""The most monomials of an expanded polynomial kernel."""


def kernel_sum(
    features: kernels.KernelFeatures, weights: Array, base: float
) -> SumOfProducts | Reason:
    """A kernel machine, base + Σ_m weights_m k(x, z_m); weights (M,)."""
    terms = kernel_terms(features.kernel, features.centers.shape[1])
    if isinstance(terms, Reason):
        return terms
    nonzero = np.flatnonzero(weights)
    centers = features.centers[nonzero]
    weights = weights[nonzero]
    polynomial = _polynomial(terms, centers, weights)
    if isinstance(polynomial, Reason):
        return polynomial
    parts = [
        _bumps(precision, centers, scale * weights)
        for scale, precision, _ in terms
        if precision.any()
    ]
    return SumOfProducts.sum_of([polynomial, *parts]).plus(base)


def _bumps(precision: Array, centers: Array, weights: Array) -> SumOfProducts:
    """A sum of gaussians, Σ_m weights_m exp(−½ Σ_d precision_d r_md²)."""
    n_centers, n_columns = centers.shape
    used = np.flatnonzero(precision)
    bumps = Bumps(
        np.tile(used, n_centers),
        centers[:, used].ravel(),
        np.tile(1.0 / np.sqrt(precision[used]), n_centers),
    )
    paths = np.arange(len(bumps)).reshape(n_centers, len(used))
    return SumOfProducts(0.0, weights, paths, (bumps,), n_columns)


def _polynomial(terms: Terms, centers: Array, weights: Array) -> SumOfProducts | Reason:
    """The terms without gaussian, Σ_m weights_m Σ_k scale_k (xᵀz_m)^k."""
    D = centers.shape[1]
    scale_of: dict[int, float] = {}
    for scale, precision, degree in terms:
        if not precision.any():
            scale_of[degree] = scale_of.get(degree, 0.0) + scale
    n_monomials = sum(comb(D + k - 1, k) for k in scale_of)
    if n_monomials > MOST_MONOMIALS:
        return Reason(
            f"its polynomial kernel has {n_monomials:,} monomials of {D} columns; "
            f"at most {MOST_MONOMIALS:,} are supported"
        )
    exponents = [np.zeros((0, D), np.intp)]
    coefficients = [np.zeros(0)]
    for k, scale in sorted(scale_of.items()):
        # the exponents of all monomials of degree k, shape (F, D)
        chosen = np.array([*combinations_with_replacement(range(D), k)], int)
        powers = (chosen[:, :, None] == np.arange(D)).sum(axis=1)
        exponents.append(powers)
        coefficients.append(scale * _coefficients(powers, centers, weights))
    return monomial_sum(np.concatenate(exponents), np.concatenate(coefficients), 0.0)


def _coefficients(powers: np.ndarray, centers: Array, weights: Array) -> Array:
    """Multinomial coefficients times Σ_m weights_m Π_d z_md^p_d, by monomial, (F,)."""
    degree = powers[0].sum()
    ways = np.rint(np.exp(gammaln(degree + 1) - gammaln(powers + 1).sum(axis=1)))
    sums = [weights @ np.prod(centers**p, axis=1) for p in powers]
    return ways * np.array(sums)
