"""Kernels as sums of gaussians and of powers of the inner product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import comb
from typing import Final, TypeAlias, final

import numpy as np

from propopt._typing import Array
from propopt.structures.kernels import (
    Constant,
    Gaussian,
    Kernel,
    KernelPower,
    KernelProduct,
    KernelSum,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Tanh,
)
from propopt.structures.products import NoProducts


MOST_FACTORS: Final = 4
"""Sums of kernels are raised to no higher powers."""

KERNELS: Final[Mapping[type[Kernel], str]] = {
    Matern32: "a Matérn",
    Matern52: "a Matérn",
    Periodic: "a periodic",
    Polynomial: "a polynomial",  # of a broken degree
    RationalQuadratic: "a rational quadratic",
    Tanh: "a sigmoid",
}
"""What kernels are called that are no sums of products."""


@final
@dataclass(frozen=True, eq=False)
class KernelTerm:
    """scale · exp(−½ Σ_d precision_d (x_d − z_d)²) · (xᵀz)^degree.

    Parameters
    ----------
    scale : float
        The weight.
    precision : array (D,)
        1/ℓ² of each column, 0 where the gaussian does not depend on it.
    degree : int
        That of the inner product.
    """

    scale: float
    precision: Array
    degree: int

    def times(self, other: KernelTerm) -> KernelTerm:
        """The product of two."""
        return KernelTerm(
            self.scale * other.scale,
            self.precision + other.precision,
            self.degree + other.degree,
        )


Terms: TypeAlias = Sequence[KernelTerm]


def kernel_terms(kernel: Kernel, n_columns: int) -> Terms | NoProducts:
    """The terms that a kernel is the sum of.

    Parameters
    ----------
    kernel : Kernel
        Any.
    n_columns : int
        D.

    Returns
    -------
    sequence of KernelTerm, or NoProducts
        The latter where it is another kernel, or a gaussian times a linear one.
    """
    terms = _terms(kernel, n_columns)
    if isinstance(terms, NoProducts):
        return terms
    kept = [term for term in terms if term.scale != 0.0]
    if any(term.degree > 0 and term.precision.any() for term in kept):
        return NoProducts(
            "its kernel multiplies a gaussian by an inner product; sums of them are "
            "read, and gaussians times constants"
        )
    return kept


def _terms(kernel: Kernel, D: int) -> Terms | NoProducts:
    none = np.zeros(D)
    match kernel:
        case Gaussian(lengthscale):
            return [KernelTerm(1.0, np.broadcast_to(1.0 / lengthscale**2, (D,)), 0)]
        case Constant(constant):
            return [KernelTerm(constant, none, 0)]
        case Linear(offset):
            return [KernelTerm(1.0, none, 1), KernelTerm(offset, none, 0)]
        case Polynomial(gamma, offset, degree) if float(degree).is_integer():
            d = int(degree)
            scales = [comb(d, k) * gamma**k * offset ** (d - k) for k in range(d + 1)]
            return [KernelTerm(scale, none, k) for k, scale in enumerate(scales)]
        case KernelSum(first, second):
            return _both(first, second, D, product=False)
        case KernelProduct(first, second):
            return _both(first, second, D, product=True)
        case KernelPower(base, exponent):
            return _power(_terms(base, D), exponent)
        case _:
            name = KERNELS.get(type(kernel), "its")
            return NoProducts(
                f"{name} kernel is no product of functions of one column each; the "
                "gaussian (RBF) kernel is"
            )


def _both(
    first: Kernel, second: Kernel, D: int, *, product: bool
) -> Terms | NoProducts:
    one, other = _terms(first, D), _terms(second, D)
    if isinstance(one, NoProducts):
        return one
    if isinstance(other, NoProducts):
        return other
    return _product(one, other) if product else [*one, *other]


def _product(one: Terms, other: Terms) -> Terms:
    return [a.times(b) for a in one for b in other]


def _power(terms: Terms | NoProducts, exponent: float) -> Terms | NoProducts:
    if isinstance(terms, NoProducts):
        return terms
    if len(terms) == 1 and terms[0].degree == 0 and terms[0].scale >= 0.0:
        term = terms[0]
        return [KernelTerm(term.scale**exponent, exponent * term.precision, 0)]
    if not float(exponent).is_integer() or not 1 <= exponent <= MOST_FACTORS:
        return NoProducts(
            f"its kernel is a sum of kernels to the power {exponent:g}; whole powers "
            f"up to {MOST_FACTORS} are expanded"
        )
    return reduce(_product, [terms] * int(exponent))
