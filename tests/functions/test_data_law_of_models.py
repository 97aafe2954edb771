"""The data law of fitted models of every library that is read."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from quiet_boosters import booster
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)

import propopt as po
from propopt.laws.data_law import DataLaw, Means, Reference


N, D = 600, 13
RNG = np.random.default_rng(0)


def make_table():
    """Numbers; column 3 is binary, 7 constant, 9 of integers, 11 skewed."""
    X = RNG.normal(size=(N, D))
    X[:, 3] = RNG.random(N) < 0.3
    X[:, 7] = 4.0
    X[:, 9] = RNG.integers(0, 6, N)
    X[:, 11] = np.exp(X[:, 11])
    return X


X = make_table()
y = (
    X[:, 0] * X[:, 1]
    + 2.0 * X[:, 3] * (X[:, 2] > 0)
    + np.sin(2.0 * X[:, 4])
    + 0.5 * X[:, 9]
    + np.log(X[:, 11])
    + 0.2 * RNG.normal(size=N)
)
GAPS = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
GAPS[:, 12] = X[:, 12]


MODELS = {
    "lightgbm": partial(booster, "lightgbm", n_estimators=30),
    "xgboost": partial(booster, "xgboost", n_estimators=30),
    "catboost": partial(booster, "catboost", n_estimators=30, depth=4),
    "hist gradient boosting": lambda: HistGradientBoostingRegressor(max_iter=30),
    "forest": lambda: RandomForestRegressor(20, max_depth=6, random_state=0),
    "extra trees": lambda: ExtraTreesRegressor(20, max_depth=6, random_state=0),
    "gradient boosting": lambda: GradientBoostingRegressor(n_estimators=30),
}
KEPT = {}


def fitted(name, table):
    """The model, fitted on all columns but the last, which it does not use."""
    kind = (name, np.isnan(table).any())
    if kind not in KEPT:
        unused = table.copy()
        unused[:, 12] = 0.0  # nothing to split
        KEPT[kind] = po.wrap(MODELS[name]().fit(unused, y))
    return KEPT[kind]


CASES = [
    pytest.param(name, table, id=f"{name}{' with gaps' * (table is GAPS)}")
    for name in MODELS
    for table in (X, GAPS)
    if table is X or name != "gradient boosting"
]


def moved(boxes, law, rng):
    """The boxes with every threshold anywhere between the values beside it."""
    sets = boxes.sets
    ends = [sets.low.copy(), sets.high.copy()]
    for j, column in enumerate(law.columns):
        values = column.values
        for end in ends:
            at = np.searchsorted(values, end, side="right")
            inner = (sets.column == j) & (at > 0) & (at < len(values))
            below, above = values[at[inner] - 1], values[at[inner]]
            part = rng.uniform(0.01, 0.99, int(inner.sum()))
            end[inner] = below + part * (above - below)
    return replace(boxes, factors=(replace(sets, low=ends[0], high=ends[1]),))


@pytest.mark.parametrize(("name", "table"), CASES)
def test_what_no_threshold_between_values_changes_stays(name, table):
    """Unused and constant columns are zero, and moved thresholds change no bit."""
    function = fitted(name, table)
    estimate = po.smoothed(function, law="data", data=table).estimate(table[:40])
    assert estimate.exact
    present = ~np.isnan(table[:40, 7])
    assert (estimate.values[present, 7] == 0.0).all()
    assert (estimate.values[:, 12] == 0.0).all()
    assert (np.abs(estimate.values[:, 0]) > 0.0).all()
    boxes, law = function.boxes, DataLaw(Reference.of(table))
    other = moved(boxes, law, np.random.default_rng(1))
    assert (other.sets.low != boxes.sets.low).mean() > 0.3
    expected, got = Means(boxes, law).of(table[:20]), Means(other, law).of(table[:20])
    np.testing.assert_array_equal(got[0], expected[0])
    np.testing.assert_array_equal(got[1], expected[1])


def test_the_slope_of_a_rare_binary_column_is_that_of_the_model_not_of_the_library():
    """Largest over smallest mean |slope · sd| of three boosters."""
    rng = np.random.default_rng(3)
    table = rng.normal(size=(1500, 6))
    table[:, 2] = rng.random(1500) < 0.08
    target = table[:, 0] + 3.0 * table[:, 2] + np.sin(table[:, 1])
    target += 0.3 * rng.normal(size=1500)
    sizes = table.std(axis=0)
    by_data, by_noise = [], []
    for name in ("lightgbm", "xgboost", "hist gradient boosting"):
        function = po.wrap(MODELS[name]().fit(table, target))
        data = po.smoothed(function, law="data", data=table).gradient(table[:40])
        noise = po.smoothed(function, 0.5 * sizes).gradient(table[:40])
        by_data.append(np.abs(data[:, 2]).mean() * sizes[2])
        by_noise.append(np.abs(noise[:, 2]).mean() * sizes[2])
    assert max(by_data) / min(by_data) <= 1.5
    assert abs(np.mean(by_data) / sizes[2] - 3.0) < 0.6
    # under noise it is where each library puts its split in an empty gap
    assert max(by_noise) / min(by_noise) > max(by_data) / min(by_data)


@pytest.mark.slow
def test_a_hundred_trees_of_31_leaves_take_five_milliseconds_a_row():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(3000, D))
    target = table[:, 0] * table[:, 1] + table[:, 2:] @ rng.normal(size=D - 2)
    model = booster("lightgbm", n_estimators=100, num_leaves=31)
    smooth = po.smoothed(po.wrap(model.fit(table, target)), law="data", data=table)
    smooth.gradient(table[:1])
    began = time.process_time()
    smooth.gradient(table[:100])
    assert time.process_time() - began < 0.5
