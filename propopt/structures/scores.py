"""Scores of points and what is read from them, as those that ask know them.

Kinds of both are in :mod:`propopt.structures.networks`, which is loaded when a model
has them: trees and tables need none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TypeAlias

from propopt.base.arrays import Array, Points, Values
from propopt.base.resources import BATCH_BUDGET


class Link(ABC):
    """A function of the K scores of a point, g: R^K → R, with its gradient."""

    @abstractmethod
    def value(self, scores: Array) -> Values:
        """Values g(z_n), shape (n,)."""

    @abstractmethod
    def cotangents(self, scores: Array) -> Array:
        """Gradients ∂g/∂z at z_n, shape (n, K)."""


Pullback: TypeAlias = Callable[[Array], Array]
"""Takes cotangents (n, k) to their products with the Jacobians, C_n ∂z/∂x_n (n, D)."""


class Network(ABC):
    """K scores of every point, z: R^D → R^K, and their vector-Jacobian products."""

    @property
    @abstractmethod
    def n_scores(self) -> int:
        """The number K of scores."""

    @property
    def width(self) -> int:
        """About how many numbers :meth:`linearized` holds for each point."""
        return self.n_scores

    def scores(self, points: Points) -> Array:
        """Scores z(x_n), shape (n, K)."""
        return self.linearized(points)[0]

    @abstractmethod
    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scores, and the pullback at the same points."""

    def blocks(self, points: Points) -> Iterator[slice]:
        """Consecutive rows, so many at once that they take about 32 MiB."""
        n_points, n_features = points.shape
        return BATCH_BUDGET.blocks(n_points, 8 * max(self.width, n_features))
