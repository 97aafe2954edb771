"""What a baseline is asked: a function, the points, and a source of randomness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from propopt._typing import Array, Points
from propopt.errors import InvalidInput
from propopt.functions import Function
from propopt.tables.names import Labels


def _silently(n_points: float) -> None:
    del n_points


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """A function, the points at which to explain it, and a source of randomness.

    Parameters
    ----------
    function : Function
        f, as the user gave it.
    points : array (N, D)
        X; in a categorical column the codes of the function's schema.
    labels : Labels
        The names that came with X.
    rng : numpy.random.Generator
        Where every draw comes from.
    advance : callable
        Is told how many points were finished; may be a fraction.
    """

    function: Function
    points: Points
    labels: Labels
    rng: np.random.Generator
    advance: Callable[[float], None] = _silently

    @cached_property
    def categorical(self) -> NDArray[np.bool_]:
        """Which columns hold codes of categories, shape (D,)."""
        schema = self.function.schema
        if schema is None:
            return np.zeros(self.points.shape[1], dtype=bool)
        return schema.categorical

    @property
    def fixed(self) -> NDArray[np.bool_]:
        """Codes of categories and missing numbers: what no noise moves, (N, D)."""
        return np.isnan(self.points) | self.categorical

    def value(self, points: Array) -> Array:
        """Values of f at points (..., D), as an array of shape (...)."""
        rows = points.reshape(-1, points.shape[-1])
        return self.function.value_at(rows, self._names).reshape(points.shape[:-1])

    def gradient(self, points: Array) -> Array:
        """Gradients of f at points (..., D), as an array of the same shape."""
        rows = points.reshape(-1, points.shape[-1])
        return self.function.gradient_at(rows, self._names).reshape(points.shape)

    def feature_units(self, relative: bool) -> Array:
        """What a method perturbs by, (D,): deviations, 0 if constant; or ones."""
        if not relative:
            return np.ones(self.points.shape[1])
        if self.function.schema is None:
            raise InvalidInput(
                "relative: standard deviations are those of a schema, and the function "
                "has none; wrap(model, data=X) makes one that does"
            )
        return self.function.schema.scales("std")

    def noise_units(self, relative: bool) -> Array:
        """As :meth:`feature_units`, but 0 for categories, which get no noise."""
        return np.where(self.categorical, 0.0, self.feature_units(relative))

    def row_seeds(self) -> list[int]:
        """One seed per point, for packages that take a 32-bit integer.

        That of point n depends on the generator and on n alone.
        """
        return [int(seed) for seed in self.rng.integers(2**32, size=len(self.points))]

    @property
    def _names(self) -> Labels:
        # Only the columns are named: a perturbed point is no longer a row of X.
        return self.labels.of_columns()
