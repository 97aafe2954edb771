"""Learners that know each term of f* = Σ_u g_u whose columns they are shown."""

import itertools

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


Terms = dict[tuple[int, ...], float]
"""Coefficients of products of columns; of ``()`` the constant."""


def sum_of_terms(terms: Terms, X: np.ndarray, shown: set[int] | None = None):
    """Σ a_u Π_{j ∈ u} x_j over the u whose columns are all shown."""
    total = np.zeros(len(X))
    for own, coefficient in terms.items():
        if shown is None or shown >= set(own):
            total += coefficient * X[:, list(own)].prod(axis=1)
    return total


def variances(terms: Terms) -> Terms:
    """V_u where the columns are independent, with mean zero and variance one."""
    return {own: a**2 for own, a in terms.items() if own}


def named(X: np.ndarray) -> pd.DataFrame:
    """A table whose columns are called by their places, so that they stay known."""
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def corners(n_columns: int) -> np.ndarray:
    """All rows of −1 and 1: columns are independent, with mean 0 and variance 1."""
    return np.array(list(itertools.product([-1.0, 1.0], repeat=n_columns)))


class _Oracle(BaseEstimator):
    def __init__(self, terms: Terms | None = None) -> None:
        self.terms = terms

    def _sum(self, table: pd.DataFrame) -> np.ndarray:
        shown = [int(name[1:]) for name in table.columns]
        X = np.zeros((len(table), max(shown) + 1))
        X[:, shown] = table.to_numpy()
        return sum_of_terms(self.terms, X, set(shown))


class OracleRegressor(RegressorMixin, _Oracle):
    """Predicts Σ_{u ⊆ F} g_u, whatever it is fitted to."""

    def fit(self, table: pd.DataFrame, y: np.ndarray):
        del y
        self.n_features_in_ = table.shape[1]
        return self

    def predict(self, table: pd.DataFrame) -> np.ndarray:
        return self._sum(table)


class OracleClassifier(ClassifierMixin, _Oracle):
    """Two classes; the probability of the second is Σ_{u ⊆ F} g_u."""

    def fit(self, table: pd.DataFrame, y: np.ndarray):
        self.n_features_in_ = table.shape[1]
        self.classes_ = np.unique(y)
        return self

    def predict(self, table: pd.DataFrame) -> np.ndarray:
        return self.classes_[(self._sum(table) > 0.5).astype(int)]

    def predict_proba(self, table: pd.DataFrame) -> np.ndarray:
        second = self._sum(table)
        return np.stack([1.0 - second, second], axis=1)
