"""Differentiable scores z(x): affine maps, layers and chains, with their pullbacks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from scipy.special import expit

from propopt._typing import Array, Points
from propopt.batches import Budget


Pullback: TypeAlias = Callable[[Array], Array]
"""Takes cotangents (n, k) to their products with the Jacobians, C_n ∂z/∂x_n (n, D)."""


NETWORK_BLOCKS: Final = Budget(2**25)
"""What a network may hold at once: longer tables are taken in blocks of rows."""


class Network(ABC):
    """K scores of every point, z: R^D → R^K, and their vector-Jacobian products."""

    @property
    @abstractmethod
    def n_scores(self) -> int:
        """The number K of scores."""

    @property
    @abstractmethod
    def width(self) -> int:
        """About how many numbers :meth:`linearized` holds for each point."""

    @abstractmethod
    def scores(self, points: Points) -> Array:
        """Scores z(x_n), shape (n, K)."""

    @abstractmethod
    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scores, and the pullback at the same points."""

    def blocks(self, points: Points) -> Iterator[slice]:
        """Consecutive rows, so many at once that they take about 32 MiB."""
        n_points, n_features = points.shape
        return NETWORK_BLOCKS.blocks(n_points, 8 * max(self.width, n_features))


@dataclass(frozen=True)
class Affine(Network):
    """Scores A x + b.

    Parameters
    ----------
    coefficients : array (K, D)
        The matrix A.
    intercepts : array (K,)
        The vector b.
    """

    coefficients: Array
    intercepts: Array

    @property
    def n_scores(self) -> int:
        """The number K of scores."""
        return len(self.coefficients)

    @property
    def width(self) -> int:
        """The scores."""
        return self.n_scores

    def scores(self, points: Points) -> Array:
        """Scores, shape (n, K)."""
        return points @ self.coefficients.T + self.intercepts

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scores, and the map C ↦ C A."""
        return self.scores(points), self._pullback

    def _pullback(self, cotangents: Array) -> Array:
        return cotangents @ self.coefficients


@dataclass(frozen=True)
class Activation:
    """A hidden unit: a(z), and its slope a′(z) as a function of a itself."""

    of: Callable[[Array], Array]
    slope: Callable[[Array], Array]


ACTIVATIONS: Final[Mapping[str, Activation]] = {
    "identity": Activation(lambda z: z, lambda a: np.ones(a.shape)),
    "logistic": Activation(lambda z: np.asarray(expit(z)), lambda a: a * (1.0 - a)),
    "tanh": Activation(np.tanh, lambda a: 1.0 - a * a),
    "relu": Activation(
        lambda z: np.maximum(z, 0.0), lambda a: np.where(a > 0.0, 1.0, 0.0)
    ),
}
"""Hidden units by scikit-learn's names; the slope of ``relu`` at its kink is 0."""


@dataclass(frozen=True)
class Layers(Network):
    """Scores of a feed-forward network, a_(l+1) = φ(a_l A_l + b_l), the last linear.

    Parameters
    ----------
    weights : tuple of arrays
        The matrices A_l, one column for each unit of the next layer.
    biases : tuple of arrays
        The vectors b_l.
    activation : str
        The name of φ, a key of :data:`ACTIVATIONS`.
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    activation: str

    @property
    def n_scores(self) -> int:
        """The number K of scores."""
        return len(self.biases[-1])

    @property
    def width(self) -> int:
        """All units."""
        return sum(len(biases) for biases in self.biases)

    def scores(self, points: Points) -> Array:
        """Scores, shape (n, K)."""
        hidden = points
        for layer in self._layers(points):  # one layer is in memory at a time
            hidden = layer
        return self._last(hidden)

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scores, and back-propagation."""
        layers = list(self._layers(points))
        slope = ACTIVATIONS[self.activation].slope

        def pullback(cotangents: Array) -> Array:
            # C_l = (C_(l+1) A_lᵀ) ∘ φ′,  from the scores down to the inputs
            flowing = cotangents @ self.weights[-1].T
            for layer, weights in zip(layers[::-1], self.weights[-2::-1], strict=True):
                flowing = (flowing * slope(layer)) @ weights.T
            return flowing

        return self._last(layers[-1] if layers else points), pullback

    def _layers(self, points: Points) -> Iterator[Array]:
        """The hidden layers, from the inputs on."""
        activation = ACTIVATIONS[self.activation].of
        hidden = points
        for weights, biases in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = activation(hidden @ weights + biases)
            yield hidden

    def _last(self, hidden: Array) -> Array:
        return hidden @ self.weights[-1] + self.biases[-1]


@dataclass(frozen=True)
class Scaling(Network):
    """Every feature shifted and scaled by itself, (x − center) ∘ factor + offset.

    Parameters
    ----------
    center, factor, offset : array (D,)
        The scaler, feature by feature.
    """

    center: Array
    factor: Array
    offset: Array

    @property
    def n_scores(self) -> int:
        """The number D of features."""
        return len(self.factor)

    @property
    def width(self) -> int:
        """The scaled point."""
        return self.n_scores

    def scores(self, points: Points) -> Array:
        """Scaled points, shape (n, D)."""
        return (points - self.center) * self.factor + self.offset

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scaled points, and the map C ↦ C ∘ factor."""
        return self.scores(points), lambda cotangents: cotangents * self.factor


@dataclass(frozen=True)
class Chain(Network):
    """One network behind another, outer(inner(x)).

    Parameters
    ----------
    inner, outer : Network
        The one that sees the points, and the one that sees its scores.
    """

    inner: Network
    outer: Network

    @property
    def n_scores(self) -> int:
        """The number K of scores of the outer network."""
        return self.outer.n_scores

    @property
    def width(self) -> int:
        """What both hold."""
        return self.inner.width + self.outer.width

    def scores(self, points: Points) -> Array:
        """Scores, shape (n, K)."""
        return self.outer.scores(self.inner.scores(points))

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scores, and the chain rule: the outer pullback first."""
        hidden, through_inner = self.inner.linearized(points)
        scores, through_outer = self.outer.linearized(hidden)
        return scores, lambda cotangents: through_inner(through_outer(cotangents))
