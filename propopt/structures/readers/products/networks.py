"""Networks as sums of products of what they see, where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.structures.densities import GaussianClasses, IndependentGaussians
from propopt.structures.feature_maps import Cosines, Monomials
from propopt.structures.kernels import KernelMachine
from propopt.structures.links import (
    Exponentiated,
    Link,
    LogOdds,
    Score,
    Sigmoid,
    Softmax,
)
from propopt.structures.networks import Affine, Chain, Layers, Network, Scaling
from propopt.structures.products import (
    Exponentials,
    NoProducts,
    Powers,
    Products,
    SumOfProducts,
)
from propopt.structures.products.seen.columns import Line, SeenColumn, constant
from propopt.structures.products.seen.pulling import by_table
from propopt.structures.readers.products.machines import machine_products
from propopt.structures.readers.products.polynomials import monomial_sum, quadratic_sum
from propopt.structures.readers.products.reasons import (
    COSINES,
    EXPONENTIAL,
    LOG_ODDS_OF_MANY,
    MIXED,
    SIGMOID,
    SOFTMAX,
    UNITS,
    UNKNOWN,
)


@final
@dataclass(frozen=True, eq=False)
class Combination:
    """row · z + base, a number made of K scores z.

    Parameters
    ----------
    row : array (K,)
        The weights.
    base : float
        The constant.
    """

    row: Array
    base: float = 0.0

    def of_affine(self, A: Array, b: Array) -> Combination:
        """The same of what an affine map A x + b is of."""
        return Combination(self.row @ A, self.base + float(self.row @ b))


def network_products(
    network: Network, link: Link, n_columns: int
) -> SumOfProducts | NoProducts:
    """What is read from the scores of a network, by the columns that it sees.

    Parameters
    ----------
    network : Network
        The scores.
    link : Link
        What is made of them.
    n_columns : int
        The number of columns.

    Returns
    -------
    SumOfProducts or NoProducts
        The latter where a score is no sum of products, or the link bends it.
    """
    combination = _linear(link, network.n_scores)
    if isinstance(combination, NoProducts):
        return combination
    steps = _steps(network)
    while steps and _is_affine(steps[-1]) and not all(map(_is_scaling, steps)):
        combination = _before(steps.pop(), combination)
    core = None if all(map(_is_scaling, steps)) else steps.pop()
    match core, link:
        case None, Exponentiated():
            function: SumOfProducts | NoProducts = _multiplicative(
                combination, n_columns
            )
        case None, _:
            function = _additive(combination, n_columns)
        case _, Exponentiated():
            function = NoProducts(EXPONENTIAL)
        case step, _:
            function = _of_last(step, combination)
    return _behind(steps, function, n_columns)


def _behind(
    scalings: Sequence[Network], function: SumOfProducts | NoProducts, n_columns: int
) -> SumOfProducts | NoProducts:
    """The function of what is scaled, the innermost scaling first."""
    for step in reversed(scalings):
        match function, step:
            case SumOfProducts(), Scaling():
                function = by_table(function, _lines(step), n_columns)
            case SumOfProducts(), _:
                return NoProducts(MIXED)
            case _:
                return function
    return function


def _lines(scaling: Scaling) -> Sequence[SeenColumn]:
    """(x − center) factor + offset = factor (x − root)."""
    parts = zip(scaling.center, scaling.factor, scaling.offset, strict=True)
    return [
        Line(j, factor, center - offset / factor)
        if factor != 0
        else constant(j, offset)
        for j, (center, factor, offset) in enumerate(parts)
    ]


def _steps(network: Network) -> list[Network]:
    """The networks of a chain, the innermost first; layers that do not bend apart."""
    match network:
        case Chain(inner, outer):
            return [*_steps(inner), *_steps(outer)]
        case Layers(weights, biases, activation) if (
            activation == "identity" or len(weights) == 1
        ):
            return [Affine(A.T, b) for A, b in zip(weights, biases, strict=True)]
        case _:
            return [network]


def _is_affine(step: Network) -> bool:
    return isinstance(step, Affine | Scaling)


def _is_scaling(step: Network) -> bool:
    return isinstance(step, Scaling)


def _before(step: Network, combination: Combination) -> Combination:
    """The combination of what an affine step is of."""
    match step:
        case Affine(A, b):
            return combination.of_affine(A, b)
        case Scaling(center, factor, offset):
            shift = float(combination.row @ (offset - center * factor))
            return Combination(combination.row * factor, combination.base + shift)
        case _:
            raise TypeError(type(step))


def _linear(link: Link, n_scores: int) -> Combination | NoProducts:
    """The scores that a link adds; those of a logarithmic link before it."""
    unit = np.eye(n_scores)
    match link:
        case Score(index, sign):
            return Combination(sign * unit[index])
        case Exponentiated(index):
            return Combination(unit[index])
        case LogOdds(index) if n_scores == 2:
            return Combination(unit[index] - unit[1 - index])
        case LogOdds():
            return NoProducts(LOG_ODDS_OF_MANY)
        case Sigmoid():
            return NoProducts(SIGMOID)
        case Softmax():
            return NoProducts(SOFTMAX)
        case _:
            return NoProducts(UNKNOWN)


def _of_last(step: Network, combination: Combination) -> SumOfProducts | NoProducts:
    row, base = combination.row, combination.base
    match step:
        case KernelMachine():
            return machine_products(step, row, base)
        case Monomials():
            return monomial_sum(step.exponents, row, base)
        case IndependentGaussians(means, precisions, offsets):
            forms = [np.diag(precision) for precision in precisions]
            return quadratic_sum(means, forms, -0.5 * row, base + float(row @ offsets))
        case GaussianClasses(means, whitenings, offsets):
            forms = [B @ B.T for B in whitenings]
            return quadratic_sum(means, forms, -0.5 * row, base + float(row @ offsets))
        case Layers():
            return NoProducts(UNITS.format(step.activation))
        case Cosines():
            return NoProducts(COSINES)
        case _:
            return NoProducts(UNKNOWN)


def _additive(combination: Combination, n_columns: int) -> SumOfProducts:
    """Weights of the columns themselves."""
    used = np.flatnonzero(combination.row)
    return SumOfProducts.additive(
        combination.base, combination.row[used], Powers.first(used), n_columns
    )


def _multiplicative(combination: Combination, n_columns: int) -> SumOfProducts:
    """The exponential of a sum over columns."""
    used = np.flatnonzero(combination.row)
    rate = combination.row[used]
    center = np.zeros(len(used))
    value = np.exp(combination.base) if len(used) == 0 else 1.0
    if len(used) > 0:  # the constant alone may have no exponential in float64
        steepest = np.abs(rate).argmax()
        center[steepest] = -combination.base / rate[steepest]
    products = Products(
        0.0, np.array([value]), np.arange(len(used))[None, :], used, n_columns
    )
    return SumOfProducts(products, (Exponentials(used, rate, center),))
