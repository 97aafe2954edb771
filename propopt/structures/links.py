"""What is read from scores: one number per point, and how it moves with each score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp, softmax

from propopt._typing import Array, Values


class Link(ABC):
    """A function of the K scores of a point, g: R^K → R, with its gradient."""

    @abstractmethod
    def value(self, scores: Array) -> Values:
        """Values g(z_n), shape (n,)."""

    @abstractmethod
    def cotangents(self, scores: Array) -> Array:
        """Gradients ∂g/∂z at z_n, shape (n, K)."""


@dataclass(frozen=True)
class Score(Link):
    """One score with a sign, g(z) = ± z_t."""

    index: int
    sign: float = 1.0

    def value(self, scores: Array) -> Values:
        """Values, shape (n,)."""
        return self.sign * scores[:, self.index]

    def cotangents(self, scores: Array) -> Array:
        """Gradients ± e_t, shape (n, K)."""
        return self.sign * _unit(scores, self.index)


@dataclass(frozen=True)
class Sigmoid(Link):
    """The probability of one of two classes, g(z) = 1 / (1 + exp(∓ z))."""

    sign: float

    def value(self, scores: Array) -> Values:
        """Values, shape (n,)."""
        return np.asarray(expit(self.sign * scores[:, 0]))

    def cotangents(self, scores: Array) -> Array:
        """Gradients ± p (1 − p), shape (n, 1)."""
        return np.asarray(self.sign * expit(scores) * expit(-scores))


@dataclass(frozen=True)
class Softmax(Link):
    """The probability of one of K classes, g(z) = exp z_t / Σ_k exp z_k."""

    index: int

    def value(self, scores: Array) -> Values:
        """Values, shape (n,)."""
        return np.asarray(softmax(scores, axis=1)[:, self.index])

    def cotangents(self, scores: Array) -> Array:
        """Gradients p_t (e_t − p), shape (n, K)."""
        p = softmax(scores, axis=1)
        return np.asarray(p[:, [self.index]] * (_unit(scores, self.index) - p))


@dataclass(frozen=True)
class LogOdds(Link):
    """The log-odds of one of K classes, g(z) = z_t − log Σ_{k≠t} exp z_k."""

    index: int

    def value(self, scores: Array) -> Values:
        """Values, shape (n,)."""
        return np.asarray(scores[:, self.index] - logsumexp(self._others(scores), 1))

    def cotangents(self, scores: Array) -> Array:
        """Gradients e_t − softmax of the other scores, shape (n, K)."""
        return _unit(scores, self.index) - softmax(self._others(scores), axis=1)

    def _others(self, scores: Array) -> Array:
        """Scores with −∞ for the class itself, which exp takes to 0."""
        return np.where(_unit(scores, self.index) == 1.0, -np.inf, scores)


@dataclass(frozen=True)
class Exponentiated(Link):
    """A positive output, g(z) = exp z_t."""

    index: int

    def value(self, scores: Array) -> Values:
        """Values, shape (n,)."""
        return np.exp(scores[:, self.index])

    def cotangents(self, scores: Array) -> Array:
        """Gradients exp(z_t) e_t, shape (n, K)."""
        return np.exp(scores[:, [self.index]]) * _unit(scores, self.index)


def class_link(output: str, index: int, n_scores: int) -> Link:
    """What gives ``output`` for class ``index`` from logits.

    Two classes share one score, which is the log-odds of the second.
    """
    sign = 1.0 if index == 1 else -1.0
    match output, n_scores:
        case "probability", 1:
            return Sigmoid(sign)
        case _, 1:
            return Score(0, sign)
        case "probability", _:
            return Softmax(index)
        case "log_odds", _:
            return LogOdds(index)
        case _:
            return Score(index)


def _unit(scores: Array, index: int) -> Array:
    """The unit vector e_t for every row, shape (n, K)."""
    unit = np.zeros(scores.shape)
    unit[:, index] = 1.0
    return unit
