"""Interfaces of differentiable scores of points, and of functions of scores.

Their classes are in :mod:`propopt.structures.networks`, which is loaded only for models
that have them: trees and tables need none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from propopt.base.arrays import Array, Points, Values
from propopt.base.resources import BATCH_BUDGET


class Link(ABC):
    """A function of the K scores of a point, g: R^K → R, with its gradient."""

    @abstractmethod
    def value(self, scores: Array) -> Values:
        """Values g(z_n) of scores (n, K), shape (n,)."""

    @abstractmethod
    def cotangents(self, scores: Array) -> Array:
        """Gradients ∂g/∂z at scores (n, K), shape (n, K)."""


Pullback: TypeAlias = Callable[[Array], Array]
"""From cotangents (n, k) to products with the Jacobians, C_n ∂z/∂x_n (n, D)."""


class Network(ABC):
    """K scores of every point, z: R^D → R^K, with vector-Jacobian products."""

    @property
    @abstractmethod
    def n_scores(self) -> int:
        """The number K of scores of each point."""

    @property
    def width(self) -> int:
        """Approximate count of numbers that :meth:`linearized` holds for each point."""
        return self.n_scores

    def scores(self, points: Points) -> Array:
        """Scores z(x_n) of points (n, D), shape (n, K)."""
        return self.linearized(points)[0]

    @abstractmethod
    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scores of points (n, D), and the pullback at these points."""

    def blocks(self, points: Points) -> list[slice]:
        """Consecutive blocks of rows that take about 32 MiB each."""
        n_points, n_features = points.shape
        return BATCH_BUDGET.blocks(n_points, 8 * max(self.width, n_features))
