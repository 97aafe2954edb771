"""Smoothed functions of rows with missing numbers: no noise on them, and effects."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor

import propopt as po
from propopt.base.errors import InvalidInput


pytestmark = pytest.mark.filterwarnings("ignore::propopt.base.errors.JumpsWarning")

RNG = np.random.default_rng(5)
X = pd.DataFrame(RNG.normal(size=(60, 2)), columns=["age", "dose"])
X["age"] = X["age"].clip(-0.9, 0.9)  # beyond, few draws reach the step
X["dose"] = X["dose"].round(1).mask(RNG.random(60) < 0.2)
SCALE = 0.4


def step(table):
    """1[age > 0] (2 where the dose is missing, else the dose)."""
    values = np.asarray(table, float)
    return (values[:, 0] > 0) * np.where(np.isnan(values[:, 1]), 2.0, values[:, 1])


def expected(table):
    """Of the mean of the step under gaussian noise."""
    age, dose = table.to_numpy().T
    absent = np.isnan(dose)
    size, slope = norm.cdf(age / SCALE), norm.pdf(age / SCALE) / SCALE
    first = slope * np.where(absent, 2.0, dose)
    effect = size * (2.0 - X["dose"].mean())
    return np.column_stack([first, np.where(absent, effect, size)])


@pytest.mark.parametrize("form", [lambda t: t, lambda t: t.to_numpy()], ids=["df", "a"])
def test_slopes_and_effects_are_those_of_the_mean_under_noise(form):
    function = po.wrap(step, data=form(X))
    smooth = po.smoothed(function, SCALE, n_samples=4000)
    result = np.asarray(smooth.gradient(form(X)))
    error = np.asarray(smooth.gradient_error(form(X)))
    scores = (result - expected(X)) / np.maximum(error, 1e-12)
    assert np.abs(scores).max() <= 5.0  # false alarm 7e-5 over 120 scores


def test_boxes_have_the_same_effects_without_sampling():
    y = step(X) + 0.3 * X["age"]
    model = HistGradientBoostingRegressor(max_iter=8, min_samples_leaf=5).fit(X, y)
    function = po.wrap(model, data=X)
    exact = po.smoothed(function, SCALE)
    assert exact.estimate(X).exact
    sampled = po.smoothed(
        po.wrap(lambda t: model.predict(t), data=X), SCALE, n_samples=4000
    )
    error = sampled.gradient_error(X)
    scores = (sampled.gradient(X) - exact.gradient(X)) / np.maximum(error, 1e-12)
    assert np.abs(scores.to_numpy()).max() <= 5.0  # false alarm 7e-5 over 120 scores
    absent = X["dose"].isna()
    assert (exact.gradient(X)["dose"][absent] != 0).any()


def test_effects_are_told_from_slopes():
    function = po.wrap(step, data=X)
    for estimate in (function.estimate(X), po.smoothed(function, SCALE).estimate(X)):
        np.testing.assert_array_equal(estimate.effects, X.isna())
        scaled = estimate.scaled(np.array([1.0, 10.0]))
        absent = X.isna().to_numpy()
        np.testing.assert_array_equal(scaled.values[absent], estimate.values[absent])
        np.testing.assert_array_equal(
            scaled.values[:, 1][~absent[:, 1]],
            10 * estimate.values[:, 1][~absent[:, 1]],
        )
    assert po.wrap(step).estimate(X.dropna()).effects is None


def test_without_a_table_missing_numbers_are_refused_with_the_cure():
    smooth = po.smoothed(po.wrap(step), SCALE)
    with pytest.raises(InvalidInput, match=r"'dose', .* wrap\(model, data=X_train\)"):
        smooth.gradient(X)
    assert np.isfinite(smooth.value(X)).all()


def test_a_column_without_values_has_no_effect():
    table = X.assign(dose=np.nan)
    smooth = po.smoothed(po.wrap(step, data=table), SCALE)
    np.testing.assert_array_equal(smooth.gradient(table)["dose"], 0.0)
