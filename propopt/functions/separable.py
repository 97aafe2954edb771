"""Functions that are sums over features, f(x) = Σ_d φ(x_d)."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt._typing import Array, Attributions, Points, Values
from propopt.checks import read_nonnegative
from propopt.functions.base import EXACT, Function, named_like
from propopt.tables.names import Labels, read_table


class Separable(Function):
    """A sum over features of one function of one variable, f(x) = Σ_d φ(x_d).

    Subclasses give φ (``_term``) and its derivative (``_slope``), entry by entry.
    """

    @property
    def gradient_method(self) -> str:
        """Always ``"exact"``."""
        return EXACT

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
