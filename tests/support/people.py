"""A table of people: numbers, text, codes and categories, and models of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


# Bound on |error| / standard error: one entry in 5e8 fails by chance, and the seeds are
# fixed, hence a test that passes keeps passing.
Z = 6.0

N = 120
RNG = np.random.default_rng(5)
X = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N),
        "bmi": RNG.normal(25.0, 4.0, N),
        "colour": RNG.choice(["red", "green", "blue"], N, p=[0.5, 0.3, 0.2]),
        "job": RNG.choice([1, 2, 7], N),
        "size": pd.Categorical(RNG.choice(list("sl"), N), categories=list("sml")),
        "smokes": RNG.random(N) < 0.3,
    },
    index=[f"p{n}" for n in range(N)],
)
Y = (X["bmi"] + 3 * (X["colour"] == "red") + X["job"] + 4 * X["smokes"] > 28).to_numpy()
NUMBERS = ["age", "bmi"]
CATEGORIES = ["colour", "job", "size", "smokes"]


def one_hot_logistic():
    encoder = OneHotEncoder(handle_unknown="ignore")
    columns = ColumnTransformer(
        [("n", StandardScaler(), NUMBERS), ("c", encoder, CATEGORIES)]
    )
    return make_pipeline(columns, LogisticRegression())


@dataclass(eq=False)
class Spy(ClassifierMixin, BaseEstimator):
    """A classifier that refuses tables of other columns or dtypes, and counts rows."""

    model: object = None
    sizes: list[int] = field(default_factory=list)

    def fit(self, X, y):
        self.like_ = X.iloc[:0]
        self.fitted_ = self.model.fit(X, y)
        self.classes_ = self.fitted_.classes_
        return self

    def predict_proba(self, X):
        assert isinstance(X, pd.DataFrame)
        assert list(X.columns) == list(self.like_.columns)
        for label, dtype in self.like_.dtypes.items():
            # a shifted or average age is no whole number
            assert X[label].dtype == dtype or (
                label == "age" and X[label].dtype == float
            )
        self.sizes.append(len(X))
        return self.fitted_.predict_proba(X)


def contributions(model, label):
    """β_c of every category of a column, in the units of the log-odds."""
    names = model[0].get_feature_names_out()
    coefficients = dict(zip(names, model[1].coef_[0], strict=True))
    return {c: coefficients.get(f"c__{label}_{c}", 0.0) for c in X[label].unique()}


def closed_form(model):
    """Slopes of numbers, Σ_c β_c (1[x = c] − p_c) of categories: (N, 6)."""
    expected = pd.DataFrame(index=X.index, columns=X.columns, dtype=float)
    scaler = model[0].named_transformers_["n"]
    for j, label in enumerate(NUMBERS):
        expected[label] = model[1].coef_[0][j] / scaler.scale_[j]
    for label in CATEGORIES:
        parts = X[label].map(contributions(model, label)).astype(float)
        expected[label] = parts - parts.mean()
    return expected


def additive(frame):
    """A function of a DataFrame that is linear in indicators, and in age."""
    parts = {"red": 1.0, "green": -2.0, "blue": 0.5}
    jobs = {1: 0.0, 2: 3.0, 7: -1.0}
    return (
        0.5 * frame["age"]
        + frame["colour"].map(parts).astype(float)
        + frame["job"].map(jobs).astype(float)
    ).to_numpy()


SMALL = X[["age", "colour", "job"]]


def interacting(frame):
    return frame["age"] * (frame["colour"] == "red") + (frame["job"] == 2) * 3.0


def n_rows_of_gradient(table, n_numbers, categories):
    """2·N·D shifted rows, N at the points, and every other category that occurs."""
    others = sum(table[label].nunique() - 1 for label in categories)
    return len(table) * (2 * n_numbers + 1 + others)
