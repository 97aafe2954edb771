"""Explainers of single rows: models of several kinds, fitted to one small table."""

from copy import deepcopy
from functools import cache

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import propopt as po


N, D, N_NEW = 60, 5, 100
NAMES = [f"f{j}" for j in range(D)]


def numbers(seed, n):
    points = np.random.default_rng(seed).normal(size=(n, D)) * [1, 3, 0.1, 10, 1]
    return pd.DataFrame(points, columns=NAMES)


X, X_NEW = numbers(0, N), numbers(1, N_NEW)
OUTPUT = X["f0"] ** 2 + np.sin(X["f1"]) + 5 * X["f2"] + 0.1 * X["f3"]


def mixed(seed, n):
    rng = np.random.default_rng(seed)
    colours = rng.choice(["blue", "green", "red"], n)
    return numbers(seed, n)[["f0", "f1"]].assign(colour=colours)


MIXED = mixed(0, N)


def forest():
    return RandomForestRegressor(n_estimators=5, random_state=0).fit(X, OUTPUT)


@cache
def fitted_network():
    model = MLPRegressor(hidden_layer_sizes=(8,), max_iter=2000, random_state=0)
    return make_pipeline(StandardScaler(), model).fit(X, OUTPUT)


def perceptron():
    return deepcopy(fitted_network())  # which nobody has asked anything


def mixed_model():
    columns = make_column_transformer(
        (OneHotEncoder(), ["colour"]), remainder="passthrough"
    )
    target = (MIXED["f0"] + (MIXED["colour"] == "red") > 0.3).astype(int)
    return make_pipeline(columns, LogisticRegression()).fit(MIXED, target)


def black_box(table):
    points = np.asarray(table, dtype=float)
    return np.tanh(points @ np.arange(1.0, D + 1.0)) + points[:, 0] ** 2


EXPLAINERS = {
    "network": lambda: po.Explainer(perceptron(), data=X, kind="slopes"),
    "network, without names": lambda: po.Explainer(
        po.wrap(perceptron().predict), data=X.to_numpy(), kind="slopes"
    ),
    "forest": lambda: po.Explainer(
        forest(), data=X, graph=po.graphs.Nearest(n_reference=20), kind="slopes"
    ),
    "callable": lambda: po.Explainer(black_box, data=X, kind="slopes"),
    "categories": lambda: po.Explainer(mixed_model(), data=MIXED, kind="slopes"),
}

IN_PARTS = {
    "forest": lambda: po.Explainer(
        forest(), data=X, offset=None, graph=po.graphs.Nearest(n_reference=25)
    ),
    "forest, by effects": lambda: po.Explainer(
        forest(), data=X, offset=None, metric="effects"
    ),
    "sampled": lambda: po.Explainer(
        black_box,
        data=X,
        offset=None,
        graph=po.graphs.Nearest(n_reference=15),
        robustness=0.1,
        sampling=po.Sampling(rng=3),
    ),
    "categories": lambda: po.Explainer(
        mixed_model(), data=MIXED, offset=None, graph=po.graphs.Nearest(n_reference=15)
    ),
    "slopes": lambda: po.Explainer(
        perceptron(),
        data=X,
        offset=None,
        contributions="slopes",
        graph=po.graphs.Nearest(n_reference=20),
    ),
}
"""Rows in units of the output, which add up."""


def taken(table, indices):
    return table.iloc[indices] if isinstance(table, pd.DataFrame) else table[indices]


def same(one, other, indices):
    assert one.attributions.tobytes() == other.attributions[indices].tobytes()
    for name, array in one.details.items():
        assert array.tobytes() == other.details[name][indices].tobytes(), name
    if one.standard_errors is not None:
        errors = other.standard_errors[indices]
        assert one.standard_errors.tobytes() == errors.tobytes()
