"""Small functions and laws whose limits of LIME are known."""

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import propopt as po
from propopt.lime import limits


def grid(n_columns, low=0.0, high=1.0):
    """Even numbers in each column, in orders that go together as little as can be."""
    even = low + (high - low) * (np.arange(400) + 0.5) / 400
    rng = np.random.default_rng(7)
    return np.stack([rng.permutation(even) for _ in range(n_columns)], axis=1)


def linear(slopes, X):
    return LinearRegression().fit(X, X @ slopes)


def product(X):
    """x1 (x2 − 0.3)."""
    terms = PolynomialFeatures(2, interaction_only=True)
    return make_pipeline(terms, LinearRegression()).fit(X, X[:, 0] * (X[:, 1] - 0.3))


def explained(model, row, X, law=None, **settings):
    return limits(model, np.array([row]), law, data=X, **settings)


def tabular(X, **settings):
    return po.lime.TabularLaw.from_data(X, **settings)
