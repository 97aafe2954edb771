"""Small functions and laws whose limits of LIME are known."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import propopt as po
from propopt.lime import LimeExplanation, limits


def grid(n_columns: int, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Even numbers in each column, in orders that go together as little as can be."""
    even = low + (high - low) * (np.arange(400) + 0.5) / 400
    rng = np.random.default_rng(7)
    return np.stack([rng.permutation(even) for _ in range(n_columns)], axis=1)


def linear(slopes: list[float], X: np.ndarray) -> LinearRegression:
    return LinearRegression().fit(X, X @ slopes)


def product(X: np.ndarray) -> Any:
    """x1 (x2 − 0.3)."""
    terms = PolynomialFeatures(2, interaction_only=True)
    return make_pipeline(terms, LinearRegression()).fit(X, X[:, 0] * (X[:, 1] - 0.3))


def explained(
    model: Any, row: list[float], X: np.ndarray, law: Any = None, **settings: Any
) -> LimeExplanation:
    return limits(model, np.array([row]), law, data=X, **settings)


def tabular(X: np.ndarray, **settings: Any) -> Any:
    return po.lime.TabularLaw.from_data(X, **settings)
