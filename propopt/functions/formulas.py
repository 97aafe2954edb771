"""Functions given by formulas: separable ones, and those of the paper."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Indices, Points, Values
from propopt.base.checks import read_count
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Reason
from propopt.functions.function import EXACT, Function
from propopt.structures.products.families import CurveRule, Curves, Factors, Powers
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.readers.kernel_products import quadratic_sum
from propopt.tables.frames import Labels


class ExactFormula(Function):
    """A formula for any number of columns, with its exact gradient."""

    @property
    def gradient_method(self) -> str:
        """The method of gradients, always ``"exact"``."""
        return EXACT

    @property
    def products(self) -> Reason:
        """The reason for no sum of products: the number of columns is not known."""
        return Reason(
            f"{self!r} takes any number of columns; products_in(n) is for n of them"
        )

    def _value(self, points: Points, _: Labels, /) -> Values:
        with np.errstate(over="ignore", invalid="ignore"):  # reported by row, as errors
            return self._at(points)

    def _gradient(self, points: Points, _: Labels, /) -> Attributions:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._slope(points)

    @abstractmethod
    def _at(self, points: Points) -> Values:
        """Values at points (N, D), shape (N,)."""

    @abstractmethod
    def _slope(self, x: Array) -> Array:
        """The gradient; for a sum over features φ′(x), entry by entry."""


class Separable(ExactFormula):
    """A sum over features of one function of one variable, f(x) = Σ_d φ(x_d)."""

    def products_in(self, n_columns: int) -> SumOfProducts | Reason:
        """The function as a sum Σ_d φ(x_d) over D columns."""
        terms = self._factors(np.arange(n_columns))
        return SumOfProducts.additive(0.0, np.ones(n_columns), terms, n_columns)

    def _factors(self, columns: Indices) -> Factors:
        """The function φ of each of the columns."""
        n = len(columns)
        return Curves(columns, (self._quiet_term,) * n, (np.zeros(0),) * n)

    def _quiet_term(self, x: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._term(x)

    def _at(self, points: Points) -> Values:
        return self._term(points).sum(axis=1)

    @abstractmethod
    def _term(self, x: Array) -> Array:
        """The function φ(x), entry by entry."""


# ---- The functions that the experiments of the paper explain


@suggests_arguments
@dataclass(frozen=True)
class Power(Separable):
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

    def _factors(self, columns: Indices) -> Powers:
        degrees = np.full(len(columns), self.degree, np.intp)
        return Powers(columns, degrees, np.zeros(len(columns)))

    def _term(self, x: Array) -> Array:
        return x**self.degree

    def _slope(self, x: Array) -> Array:
        return self.degree * x ** (self.degree - 1)


@dataclass(frozen=True)
class SquaresAndProducts(ExactFormula):
    """Squares and all products, f(x) = Σ_d x_d² + (Σ_d x_d)²."""

    def products_in(self, n_columns: int) -> SumOfProducts:
        """The sum of monomials of degree two, for D columns."""
        forms = [np.ones((n_columns, n_columns)) + np.eye(n_columns)]
        means = np.zeros((1, n_columns))
        return quadratic_sum(means, forms, np.ones(1), 0.0)

    def _at(self, points: Points) -> Values:
        return (points**2).sum(axis=1) + points.sum(axis=1) ** 2

    def _slope(self, x: Array) -> Array:
        return 2.0 * (x + x.sum(axis=1, keepdims=True))


@suggests_arguments
@dataclass(frozen=True)
class Sine(Separable):
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


@final
@dataclass(frozen=True)
class PaperFormula(Separable):
    """A sum over features of one of :data:`FORMULAS`, by its name."""

    name: str

    def __repr__(self) -> str:
        return f"PAPER_FUNCTIONS[{self.name!r}]()"

    def _term(self, x: Array) -> Array:
        return FORMULAS[self.name][0](x)

    def _slope(self, x: Array) -> Array:
        return FORMULAS[self.name][1](x)


FORMULAS: Final[Mapping[str, tuple[CurveRule, CurveRule]]] = {
    # oscillates faster and faster
    "sine_of_exponential": (
        lambda x: np.sin(np.exp(x)),
        lambda x: np.exp(x) * np.cos(np.exp(x)),
    ),
    # a line with growing oscillations
    "linear_plus_sine_of_exponential": (
        lambda x: x + np.sin(np.exp(x)),
        lambda x: 1.0 + np.exp(x) * np.cos(np.exp(x)),
    ),
    # a line, and a parabola, with ripples
    "linear_plus_sine": (
        lambda x: x + np.sin(3.0 * x),
        lambda x: 1.0 + 3.0 * np.cos(3.0 * x),
    ),
    "quadratic_plus_sine": (
        lambda x: x**2 / 10.0 + np.sin(3.0 * x),
        lambda x: x / 5.0 + 3.0 * np.cos(3.0 * x),
    ),
    "exponential": (np.exp, np.exp),
}
"""Functions φ(x) and φ′(x), entry by entry."""

PAPER_FUNCTIONS: Final[Mapping[str, Callable[..., Function]]] = {
    "power": Power,
    "interactions": SquaresAndProducts,
    "sine": Sine,
    **{name: partial(PaperFormula, name) for name in FORMULAS},
}
"""Each function of the paper by its name in problem files; only ``power`` takes a
parameter, ``degree``."""
