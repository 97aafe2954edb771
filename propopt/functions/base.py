"""What a function under explanation is: values and gradients at points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import overload

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt._typing import Array, Attributions, Points, Values
from propopt.errors import InvalidInput
from propopt.labels import Labels, read_table


EXACT = "exact"


class Function(ABC):
    """A real function of D features, f: R^D → R, with its gradient.

    Subclasses give ``_value``, ``_gradient`` and :attr:`gradient_method`; what they are
    given has been checked, and what they return is checked here.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.functions import Power
    >>> cube = Power(degree=3)
    >>> X = np.array([[1.0, 2.0], [0.0, -1.0]])
    >>> cube.value(X)
    array([ 9., -1.])
    >>> cube.gradient(X)
    array([[ 3., 12.],
           [ 0.,  3.]])
    """

    def value(self, X: ArrayLike | pd.DataFrame) -> Values:
        """Values f(x_n), shape (N,).

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The points.

        Raises
        ------
        InvalidInput
            If X is not a finite table, if its columns are not those of the function, or
            if a value is not finite; the first such row is named.
        """
        points, labels = read_table(X, "X")
        values = self._value(points, labels)
        self._check(values, points.shape[:1], "value", labels)
        return values

    @overload
    def gradient(self, X: pd.DataFrame) -> pd.DataFrame: ...

    @overload
    def gradient(self, X: ArrayLike) -> Attributions: ...

    def gradient(self, X: ArrayLike | pd.DataFrame) -> Attributions | pd.DataFrame:
        """Gradients G with G_nd = ∂f/∂x_d at x_n, shape (N, D).

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The points.

        Returns
        -------
        array or DataFrame (N, D)
            A DataFrame, with the index and the columns of X, where X is one.

        Raises
        ------
        InvalidInput
            As :meth:`value` does.
        """
        points, labels = read_table(X, "X")
        gradients = self._gradient(points, labels)
        self._check(gradients, points.shape, "gradient", labels)
        return named_like(gradients, X)

    @property
    @abstractmethod
    def gradient_method(self) -> str:
        """How gradients are computed: ``"exact"``, or the numerical rule in words."""

    @abstractmethod
    def _value(self, points: Points, labels: Labels, /) -> Values:
        """Values at checked points."""

    @abstractmethod
    def _gradient(self, points: Points, labels: Labels, /) -> Attributions:
        """Gradients at checked points."""

    def _check(
        self, found: Array, shape: tuple[int, ...], what: str, labels: Labels
    ) -> None:
        if found.shape != shape:
            raise InvalidInput(
                f"{self!r}: expected a {what} of shape {shape}, got {found.shape}"
            )
        good = np.asarray(np.isfinite(found).reshape(len(found), -1).all(axis=1))
        if not good.all():
            first = int(np.argmin(good))
            name = first if labels.points is None else labels.points[first]
            raise InvalidInput(
                f"{self!r}: the {what} is not finite in {len(good) - int(good.sum())} "
                f"of {len(good)} rows of X; the first is row {name!r}"
            )


def named_like(values: Array, X: object) -> Array | pd.DataFrame:
    """``values``, with the index and the columns of X where X is a DataFrame."""
    if isinstance(X, pd.DataFrame):
        return pd.DataFrame(values, index=X.index, columns=X.columns)
    return values
