"""Functions of one column that are lines of straight pieces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from propopt._typing import Array
from propopt.checks import read_array
from propopt.errors import InvalidInput


@final
@dataclass(frozen=True, eq=False)
class Polyline:
    """τ: values at knots, straight between them, and on beyond the first and the last.

    Parameters
    ----------
    knots : array (K,)
        Increasing, at least two.
    values : array (K,)
        τ there.

    Examples
    --------
    >>> import numpy as np
    >>> root = Polyline.of(np.sqrt, 0.0, 4.0, n_pieces=4)
    >>> root.at(np.array([0.0, 0.5, 4.0, 5.0])).round(3)
    array([0.   , 0.5  , 2.   , 2.268])
    """

    knots: Array
    values: Array

    @classmethod
    def identity(cls) -> Polyline:
        """τ(x) = x."""
        return cls(np.array([0.0, 1.0]), np.array([0.0, 1.0]))

    @classmethod
    def of(
        cls, tau: Callable[[Array], Array], low: float, high: float, n_pieces: int = 128
    ) -> Polyline:
        """A function between two numbers, by as many straight pieces.

        Parameters
        ----------
        tau : callable
            From an array to an array of the same shape.
        low, high : float
            Where the pieces begin and end.
        n_pieces : int
            Of equal lengths h: τ is met up to h² max|τ″| / 8.

        Raises
        ------
        InvalidInput
            If τ is not finite there, or has another shape.
        """
        knots = np.linspace(low, high, n_pieces + 1)
        values = read_array(tau(knots), "tau", ndim=1)
        if values.shape != knots.shape:
            raise InvalidInput(
                f"tau: expected {len(knots)} values at {len(knots)} numbers, got "
                f"{len(values)}"
            )
        return cls(knots, values)

    @property
    def slopes(self) -> Array:
        """Those of the straight pieces, (K − 1,)."""
        return np.asarray(np.diff(self.values) / np.diff(self.knots))

    def piece(self, x: Array) -> Array:
        """The straight piece that each number is on; the end ones go on forever."""
        inner = self.knots[1:-1]
        return np.asarray(np.searchsorted(inner, x, side="left"))

    def at(self, x: Array) -> Array:
        """τ(x), of the shape of x."""
        k = self.piece(x)
        return np.asarray(self.values[k] + self.slopes[k] * (x - self.knots[k]))
