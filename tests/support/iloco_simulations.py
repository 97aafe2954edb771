"""Simulations of Little, Zheng & Allen, with ten features unless said otherwise."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from propopt.interactions import ILOCO, InteractionScores
from propopt.interactions.left_out import set_scores


Table = tuple[np.ndarray, np.ndarray]


class Simulation:
    """f = snr Π_{j < order} x_j + Xβ, β_j ~ N(2, 0.5) for j < 5, and noise N(0, 1).

    Parameters
    ----------
    rng : Generator
        Draws β, and later the rows.
    snr : float
        Of the product.
    order : int
        How many features it has.
    n_features : int
        M.
    correlation : float
        Of the first two features.
    """

    def __init__(
        self,
        rng: Generator,
        snr: float = 0.0,
        *,
        order: int = 2,
        n_features: int = 10,
        correlation: float = 0.0,
    ) -> None:
        self.rng, self.snr, self.order, self.correlation = rng, snr, order, correlation
        own = np.arange(n_features) < 5
        self.slopes = np.where(own, rng.normal(2.0, 0.5, n_features), 0.0)

    def mean(self, X: np.ndarray) -> np.ndarray:
        """f of rows."""
        return self.snr * X[:, : self.order].prod(axis=1) + X @ self.slopes

    def rows(self, n: int) -> Table:
        X, f = self.rows_without_noise(n)
        return X, f + self.rng.normal(size=n)

    def rows_without_noise(self, n: int) -> Table:
        """X and f: of squared errors noise adds nothing to the mean of a score."""
        X = self.rng.normal(size=(n, len(self.slopes)))
        rho = self.correlation
        X[:, 1] = rho * X[:, 0] + np.sqrt(1.0 - rho**2) * X[:, 1]
        return X, self.mean(X)


def covers(model: ILOCO, new: Table) -> np.ndarray:
    """Whether 90 % intervals of the result have what its predictors score anew."""
    result = model.result_
    target = set_scores(model.left_out_.judged_on(*new), result.sets)["estimates"]
    return has(result, target)


def has(result: InteractionScores, target: np.ndarray) -> np.ndarray:
    """Whether intervals, as the paper has them, contain a target: at 90 %, (Q,)."""
    low, high = result.intervals(level=0.9, adjust="none", errors="rows").T
    return (low <= target) & (target <= high)


def largest(result: InteractionScores) -> tuple[int, ...]:
    """The set with the highest score."""
    return tuple(result.sets[result.estimates.argmax()].tolist())


def smallest(result: InteractionScores) -> tuple[int, ...]:
    """The set with the lowest score."""
    return tuple(result.sets[result.estimates.argmin()].tolist())
