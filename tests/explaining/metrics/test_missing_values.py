"""Metrics of rows with missing numbers: nothing moves them, and they stay missing."""

from __future__ import annotations

import numpy as np
import pytest

import propopt as po
from propopt.explaining import metrics
from propopt.explaining.explainers import Gradient


RNG = np.random.default_rng(2)
X = RNG.normal(size=(12, 3))
X[RNG.random(X.shape) < 0.25] = np.nan
X[0] = [1.0, np.nan, 2.0]
ABSENT = np.isnan(X)
SLOPES = np.array([2.0, -1.0, 0.5])


def linear(table):
    return np.where(np.isnan(table), 4.0, table * SLOPES).sum(axis=1)


FUNCTION = po.wrap(linear, data=X)


def test_noise_leaves_what_is_missing():
    W = Gradient().explain(FUNCTION, X)
    infidelity = metrics.Infidelity(n_samples=20)(W, FUNCTION, X)
    np.testing.assert_allclose(infidelity, 0.0, atol=1e-14)
    shifted = W.attributions + 7.0 * ABSENT  # effects of what does not move are free
    np.testing.assert_allclose(
        metrics.Infidelity(n_samples=20)(shifted, FUNCTION, X), infidelity, atol=1e-14
    )


def constant(table):
    return np.where(np.isnan(table), 9.0, SLOPES)


def growing(table):
    """A method whose attributions are proportional to the input."""
    return np.where(np.isnan(table), 3.0, 3.0 * table)


def test_methods_are_asked_about_rows_that_miss_the_same():
    def watched(table):
        observed.append(np.isnan(table).sum() / len(table))
        return constant(table)

    observed = []
    np.testing.assert_array_equal(metrics.MaxSensitivity()(watched, X), 0.0)
    assert max(observed) <= ABSENT.sum(axis=1).max()
    np.testing.assert_array_equal(metrics.AvgSensitivity()(constant, X), 0.0)


def test_ratios_of_changes_are_those_of_the_numbers_that_are_there():
    partly = X[ABSENT.sum(axis=1) < 3]
    result = metrics.LocalLipschitz(n_samples=20)(growing, partly)
    np.testing.assert_allclose(result, 3.0, rtol=1e-9)
    relative = metrics.RelativeInputStability(n_samples=20)(growing, partly)
    np.testing.assert_allclose(relative, 1.0, rtol=1e-9)


def test_removing_features_takes_missing_ones_too():
    W = FUNCTION.value(X)[:, None] * 0 + np.nan_to_num(X * SLOPES) + 4.0 * ABSENT
    metric = metrics.FaithfulnessCorrelation(baseline=np.zeros(3), k=1)
    result = metric(W, FUNCTION, X)
    np.testing.assert_allclose(result[~np.isnan(result)], 1.0, rtol=1e-9)


@pytest.mark.parametrize("metric", [metrics.Sparseness(), metrics.Complexity()])
def test_metrics_of_attributions_alone_do_not_see_X(metric):
    W = Gradient().explain(FUNCTION, X)
    np.testing.assert_array_equal(metric(W), metric(W.attributions))
