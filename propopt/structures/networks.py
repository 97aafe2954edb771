"""Differentiable scores z(x), feature maps before them, and links after them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, softmax

from propopt.base.arrays import Array, Indices, Points, Sparse, Values
from propopt.structures.scores import Link, Network, Pullback


# ---- Links: one number for each point, with its gradient in the scores


_Curve: TypeAlias = Callable[[Array], Any]

CURVES: Final[Mapping[str, tuple[_Curve, _Curve]]] = {
    "identity": (lambda z: z, np.ones_like),
    "logistic": (expit, lambda z: expit(z) * expit(-z)),  # the probability of a class
    "exp": (np.exp, np.exp),  # a positive output
    # the log-odds of a score that is a probability
    "logit": (lambda z: np.log(z) - np.log1p(-z), lambda z: 1.0 / (z * (1.0 - z))),
}
"""A link function of one score, and its derivative."""


@dataclass(frozen=True)
class ScoreLink(Link):
    """A link function of one signed score, g(z) = h(± z_t)."""

    curve: str  # h, a key of CURVES
    index: int = 0  # t
    sign: float = 1.0

    def value(self, scores: Array) -> Values:
        """Values h(± z_t), shape (n,)."""
        return CURVES[self.curve][0](self.sign * scores[:, self.index])

    def cotangents(self, scores: Array) -> Array:
        """Gradients ± h′ e_t, shape (n, K)."""
        slopes = CURVES[self.curve][1](self.sign * scores[:, self.index])
        return self.sign * slopes[:, None] * _unit(scores, self.index)


@dataclass(frozen=True)
class Softmax(Link):
    """The probability of one of K classes, g(z) = exp z_t / Σ_k exp z_k."""

    index: int

    def value(self, scores: Array) -> Values:
        """Probabilities of class t, shape (n,)."""
        return softmax(scores, axis=1)[:, self.index]

    def cotangents(self, scores: Array) -> Array:
        """Gradients p_t (e_t − p), shape (n, K)."""
        p = softmax(scores, axis=1)
        return p[:, [self.index]] * (_unit(scores, self.index) - p)


@dataclass(frozen=True)
class LogOdds(Link):
    """The log-odds of one of K classes, g(z) = z_t − log Σ_{k≠t} exp z_k."""

    index: int

    def value(self, scores: Array) -> Values:
        """Log-odds of class t, shape (n,)."""
        return scores[:, self.index] - logsumexp(self._others(scores), 1)

    def cotangents(self, scores: Array) -> Array:
        """Gradients e_t − softmax of the other scores, shape (n, K)."""
        return _unit(scores, self.index) - softmax(self._others(scores), axis=1)

    def _others(self, scores: Array) -> Array:
        """Scores with −∞ for class t, which exp maps to 0."""
        return np.where(_unit(scores, self.index) == 1.0, -np.inf, scores)


def class_link(output: str, index: int, n_scores: int) -> Link:
    """Link of an output of a class from logits; one logit is for the second class."""
    sign = 1.0 if index == 1 else -1.0
    match output, n_scores:
        case "probability", 1:
            return ScoreLink("logistic", 0, sign)
        case _, 1:
            return ScoreLink("identity", 0, sign)
        case "probability", _:
            return Softmax(index)
        case "log_odds", _:
            return LogOdds(index)
        case _:
            return ScoreLink("identity", index)


def _unit(scores: Array, index: int) -> Array:
    """The unit vector e_t for every row, shape (n, K)."""
    unit = np.zeros(scores.shape)
    unit[:, index] = 1.0
    return unit


# ---- Differentiable scores z(x): affine maps, layers and chains, with their pullbacks


@dataclass(frozen=True)
class Affine(Network):
    """Affine scores A x + b of the points."""

    coefficients: Array  # (K, D): the matrix A
    intercepts: Array  # (K,): the vector b

    @property
    def n_scores(self) -> int:
        return len(self.coefficients)

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scores, and the pullback C ↦ C A."""
        scores = points @ self.coefficients.T + self.intercepts
        return scores, lambda cotangents: cotangents @ self.coefficients


ACTIVATIONS: Final[Mapping[str, tuple[_Curve, Callable[[Array], Array]]]] = {
    "logistic": (expit, lambda a: a * (1.0 - a)),
    "tanh": (np.tanh, lambda a: 1.0 - a * a),
    "relu": (lambda z: np.maximum(z, 0.0), lambda a: np.where(a > 0.0, 1.0, 0.0)),
}
"""Activation functions a(z), with a′ as a function of a(z); names of scikit-learn.

The slope of ``relu`` at its kink is 0.
"""


@dataclass(frozen=True)
class Activation(Network):
    """An activation function applied to every unit, a(z)."""

    name: str  # a key of ACTIVATIONS
    n_units: int

    @property
    def n_scores(self) -> int:
        return self.n_units

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Activations, and the pullback C ↦ C ∘ a′."""
        bend, slope = ACTIVATIONS[self.name]
        bent = np.asarray(bend(points))
        return bent, lambda cotangents: cotangents * slope(bent)


@dataclass(frozen=True)
class Scaling(Network):
    """An affine map of every feature by itself, (x − center) ∘ factor + offset."""

    center: Array  # shape (D,)
    factor: Array  # shape (D,)
    offset: Array  # shape (D,)

    @property
    def n_scores(self) -> int:
        return len(self.factor)

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scaled points, and the pullback C ↦ C ∘ factor."""
        scaled = (points - self.center) * self.factor + self.offset
        return scaled, lambda cotangents: cotangents * self.factor


@dataclass(frozen=True)
class Chain(Network):
    """The composition of two networks, outer(inner(x))."""

    inner: Network  # applied to the points; outer is applied to its scores
    outer: Network

    @property
    def n_scores(self) -> int:
        return self.outer.n_scores

    @property
    def width(self) -> int:
        return self.inner.width + self.outer.width

    def scores(self, points: Points) -> Array:
        return self.outer.scores(self.inner.scores(points))

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Scores, and the chain rule: the outer pullback first."""
        hidden, through_inner = self.inner.linearized(points)
        scores, through_outer = self.outer.linearized(hidden)
        return scores, lambda cotangents: through_inner(through_outer(cotangents))


# ---- Differentiable maps from features to more features: monomials


@dataclass(frozen=True)
class Monomials(Network):
    """Monomials m_j(x) = Π_d x_d^p_jd of the features."""

    exponents: NDArray[np.integer]  # (F, D): p

    @cached_property
    def features(self) -> Indices:
        """The features that each monomial multiplies, padded with D, (K, F)."""
        powers = self.exponents
        n_monomials, n_features = powers.shape
        monomial = np.repeat(np.arange(n_monomials), powers.sum(axis=1))
        feature = np.repeat(np.tile(np.arange(n_features), n_monomials), powers.ravel())
        position = np.arange(len(monomial)) - np.searchsorted(monomial, monomial)
        features = np.full((int(position.max(initial=-1)) + 1, n_monomials), n_features)
        features[position, monomial] = feature
        return features

    @property
    def n_scores(self) -> int:
        return len(self.exponents)

    @property
    def width(self) -> int:
        """The factors, and the products before and after each of them."""
        return 2 * self.features.size + 2 * self.n_scores

    def linearized(self, points: Points) -> tuple[Array, Pullback]:
        """Monomials, and the pullback C ↦ Σ_j C_nj ∂m_j/∂x_n, factor by factor."""
        ones = np.ones((1, len(points)))
        factors = np.concatenate([points.T, ones])[self.features]  # (K, F, n)
        # the products of the last factors: one, two, ..., all
        last = list(accumulate(factors[::-1], np.multiply))
        last = last or [np.ones((self.n_scores, len(points)))]

        def pullback(cotangents: Array) -> Array:
            pulled = np.zeros(points.T.shape)
            before = np.ascontiguousarray(cotangents.T)
            steps = zip(self._to_features, factors, last[-2::-1], strict=False)
            for to_feature, factor, others in steps:
                pulled += to_feature @ (before * others)
                before = before * factor
            for to_feature in self._to_features[-1:]:  # the last factor
                pulled += to_feature @ before
            return pulled.T

        return last[-1].T, pullback

    @cached_property
    def _to_features(self) -> list[Sparse]:
        """Matrices (D, F) that sum over the monomials with a feature as k-th factor."""
        shape = self.exponents.shape[::-1]
        used = [np.flatnonzero(row < shape[0]) for row in self.features]
        return [
            sp.csr_array((np.ones(len(m)), (row[m], m)), shape=shape)
            for row, m in zip(self.features, used, strict=True)
        ]
