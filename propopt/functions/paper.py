"""The functions that the experiments of the paper explain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from propopt._typing import Array, Attributions, Points, Positions, Values
from propopt.checks import read_count
from propopt.functions.base import EXACT, Function
from propopt.functions.separable import (
    Separable,
    SmoothableSeparable,
    any_number_of_columns,
)
from propopt.structures.products import NoProducts, Powers, SumOfProducts
from propopt.structures.readers.products.polynomials import quadratic_sum
from propopt.tables.names import Labels


@dataclass(frozen=True)
class Power(SmoothableSeparable):
    """A power of every feature, f(x) = Σ_d x_d^K.

    Parameters
    ----------
    degree : int
        The exponent K, at least 1.

    Examples
    --------
    >>> from propopt.functions import Power
    >>> Power(degree=2).gradient([[3.0, -1.0]])
    array([[ 6., -2.]])
    """

    degree: int

    def __post_init__(self) -> None:
        read_count(self.degree, "degree")

    def _factors(self, columns: Positions) -> Powers:
        degrees = np.full(len(columns), self.degree, np.intp)
        return Powers(columns, degrees, np.zeros(len(columns)))

    def _term(self, x: Array) -> Array:
        powers: Array = x**self.degree
        return powers

    def _slope(self, x: Array) -> Array:
        slopes: Array = self.degree * x ** (self.degree - 1)
        return slopes

    def _smoothed_slope(self, x: Array, scale: float) -> Array:
        # E(x + δε)^k = Σ_{even m} C(k, m) (m − 1)!! δ^m x^(k − m),  k = K − 1
        k = self.degree - 1
        smoothed = np.zeros_like(x)
        for m in range(0, k + 1, 2):
            moment = math.prod(range(m - 1, 0, -2)) * scale**m
            smoothed += math.comb(k, m) * moment * x ** (k - m)
        smoothed *= self.degree
        return smoothed


@dataclass(frozen=True)
class Interactions(Function):
    """Squares and all products, f(x) = Σ_d x_d² + Σ_{d,d'} x_d x_d'.

    The second sum runs over all ordered pairs, d = d' among them, so it is (Σ_d x_d)².

    Examples
    --------
    >>> from propopt.functions import Interactions
    >>> Interactions().value([[1.0, 2.0]])
    array([14.])
    >>> Interactions().gradient([[1.0, 2.0]])
    array([[ 8., 10.]])
    """

    @property
    def gradient_method(self) -> str:
        """Always ``"exact"``."""
        return EXACT

    @property
    def products(self) -> NoProducts:
        """None, until the number of columns is known: see :meth:`products_in`."""
        return any_number_of_columns(self)

    def products_in(self, n_columns: int) -> SumOfProducts:
        """Monomials of degree two.

        Parameters
        ----------
        n_columns : int
            D.

        Returns
        -------
        SumOfProducts
        """
        forms = [np.ones((n_columns, n_columns)) + np.eye(n_columns)]
        means = np.zeros((1, n_columns))
        return quadratic_sum(means, forms, np.ones(1), 0.0)

    def _value(self, points: Points, _: Labels, /) -> Values:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((points**2).sum(axis=1) + points.sum(axis=1) ** 2)

    def _gradient(self, points: Points, _: Labels, /) -> Attributions:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(2.0 * (points + points.sum(axis=1, keepdims=True)))


@dataclass(frozen=True)
class Sine(SmoothableSeparable):
    """A sine of every feature, f(x) = Σ_d sin x_d.

    Examples
    --------
    >>> from propopt.functions import Sine
    >>> Sine().gradient([[0.0, 0.0]])
    array([[1., 1.]])
    """

    def _term(self, x: Array) -> Array:
        return np.sin(x)

    def _slope(self, x: Array) -> Array:
        return np.cos(x)

    def _smoothed_slope(self, x: Array, scale: float) -> Array:
        return np.cos(x) * math.exp(-(scale**2) / 2)


@dataclass(frozen=True)
class SineOfExponential(Separable):
    """A sine that oscillates faster and faster, f(x) = Σ_d sin(e^x_d).

    Examples
    --------
    >>> from propopt.functions import SineOfExponential
    >>> SineOfExponential().value([[0.0]]).round(6)
    array([0.841471])
    """

    def _term(self, x: Array) -> Array:
        return np.sin(np.exp(x))

    def _slope(self, x: Array) -> Array:
        return np.exp(x) * np.cos(np.exp(x))


@dataclass(frozen=True)
class LinearPlusSineOfExponential(Separable):
    """A line with growing oscillations, f(x) = Σ_d x_d + sin(e^x_d).

    Examples
    --------
    >>> from propopt.functions import LinearPlusSineOfExponential
    >>> LinearPlusSineOfExponential().value([[0.0, 1.0]]).round(6)
    array([2.252252])
    """

    def _term(self, x: Array) -> Array:
        return x + np.sin(np.exp(x))

    def _slope(self, x: Array) -> Array:
        return 1.0 + np.exp(x) * np.cos(np.exp(x))


@dataclass(frozen=True)
class LinearPlusSine(SmoothableSeparable):
    """A line with ripples, f(x) = Σ_d x_d + sin(3x_d).

    Examples
    --------
    >>> from propopt.functions import LinearPlusSine
    >>> LinearPlusSine().gradient([[0.0]])
    array([[4.]])
    """

    def _term(self, x: Array) -> Array:
        return x + np.sin(3.0 * x)

    def _slope(self, x: Array) -> Array:
        return 1.0 + 3.0 * np.cos(3.0 * x)

    def _smoothed_slope(self, x: Array, scale: float) -> Array:
        return 1.0 + 3.0 * np.cos(3.0 * x) * math.exp(-9.0 * scale**2 / 2)


@dataclass(frozen=True)
class QuadraticPlusSine(SmoothableSeparable):
    """A parabola with ripples, f(x) = Σ_d x_d²/10 + sin(3x_d).

    Examples
    --------
    >>> from propopt.functions import QuadraticPlusSine
    >>> QuadraticPlusSine().gradient([[0.0]])
    array([[3.]])
    """

    def _term(self, x: Array) -> Array:
        return x**2 / 10.0 + np.sin(3.0 * x)

    def _slope(self, x: Array) -> Array:
        return x / 5.0 + 3.0 * np.cos(3.0 * x)

    def _smoothed_slope(self, x: Array, scale: float) -> Array:
        return x / 5.0 + 3.0 * np.cos(3.0 * x) * math.exp(-9.0 * scale**2 / 2)


@dataclass(frozen=True)
class Exponential(SmoothableSeparable):
    """An exponential of every feature, f(x) = Σ_d e^x_d.

    Examples
    --------
    >>> from propopt.functions import Exponential
    >>> Exponential().value([[0.0, 0.0]])
    array([2.])
    """

    def _term(self, x: Array) -> Array:
        return np.exp(x)

    def _slope(self, x: Array) -> Array:
        return np.exp(x)

    def _smoothed_slope(self, x: Array, scale: float) -> Array:
        return np.exp(x + scale**2 / 2)


PAPER_FUNCTIONS: Final[Mapping[str, type[Function]]] = {
    "power": Power,
    "interactions": Interactions,
    "sine": Sine,
    "sine_of_exponential": SineOfExponential,
    "linear_plus_sine_of_exponential": LinearPlusSineOfExponential,
    "linear_plus_sine": LinearPlusSine,
    "quadratic_plus_sine": QuadraticPlusSine,
    "exponential": Exponential,
}
"""Each function of the paper by the name that problem files use; ``power`` alone takes
a parameter, ``degree``."""
