"""Functions that are sums over features, f(x) = Σ_d φ(x_d)."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt._typing import Array, Attributions, Points, Positions, Values
from propopt.checks import read_nonnegative
from propopt.functions.base import EXACT, Function, named_like
from propopt.structures.products import Curves, Factors, NoProducts, SumOfProducts
from propopt.tables.names import Labels, read_table


class Separable(Function):
    """A sum over features of one function of one variable, f(x) = Σ_d φ(x_d).

    Subclasses give φ (``_term``) and its derivative (``_slope``), entry by entry.
    """

    @property
    def gradient_method(self) -> str:
        """Always ``"exact"``."""
        return EXACT

    @property
    def products(self) -> NoProducts:
        """None, until the number of columns is known: see :meth:`products_in`."""
        return any_number_of_columns(self)

    def products_in(self, n_columns: int) -> SumOfProducts | NoProducts:
        """Σ_d φ(x_d) of D columns.

        Parameters
        ----------
        n_columns : int
            D.

        Returns
        -------
        SumOfProducts
        """
        terms = self._factors(np.arange(n_columns))
        return SumOfProducts.additive(0.0, np.ones(n_columns), terms, n_columns)

    def _factors(self, columns: Positions) -> Factors:
        """φ of columns."""
        n = len(columns)
        return Curves(columns, (self._quiet_term,) * n, (np.zeros(0),) * n)

    def _quiet_term(self, x: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._term(x)

    def _value(self, points: Points, _: Labels, /) -> Values:
        with np.errstate(over="ignore", invalid="ignore"):  # reported by row, as errors
            return np.asarray(self._term(points).sum(axis=1))

    def _gradient(self, points: Points, _: Labels, /) -> Attributions:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._slope(points)

    @abstractmethod
    def _term(self, x: Array) -> Array:
        """φ(x), entry by entry."""

    @abstractmethod
    def _slope(self, x: Array) -> Array:
        """φ′(x), entry by entry."""


def any_number_of_columns(function: Function) -> NoProducts:
    """What a formula of any table says before it is given one."""
    return NoProducts(
        f"{function!r} takes any number of columns; products_in(n) tells of n of them"
    )


class SmoothableSeparable(Separable):
    """A separable function whose gaussian-smoothed gradient has a closed form."""

    def smoothed_gradient(
        self, X: ArrayLike | pd.DataFrame, scale: float
    ) -> Attributions | pd.DataFrame:
        """Mean gradient under gaussian noise, E ∇f(x_n + scale · ε), ε ~ N(0, I).

        This is what SmoothGrad converges to as its samples grow in number, and what
        LIME with an intercept and gaussian perturbations converges to (Stein's lemma).

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The points.
        scale : float
            The standard deviation of the noise, in every feature.

        Returns
        -------
        array or DataFrame (N, D)
            As :meth:`gradient` returns.

        Examples
        --------
        >>> import numpy as np
        >>> from propopt.functions import Power
        >>> Power(degree=3).smoothed_gradient(np.array([[1.0]]), scale=2.0)
        array([[15.]])
        """
        points, labels = read_table(X, "X")
        width = np.float64(read_nonnegative(scale, "scale"))  # its powers may reach ∞
        with np.errstate(over="ignore", invalid="ignore"):
            smoothed = self._smoothed_slope(points, width)
        self._check(smoothed, points.shape, "smoothed gradient", labels, points)
        return named_like(smoothed, X, labels)

    @abstractmethod
    def _smoothed_slope(self, x: Array, scale: float) -> Array:
        """E φ′(x + scale · ε), entry by entry."""
