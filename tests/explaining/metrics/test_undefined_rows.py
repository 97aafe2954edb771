"""Rows in which a metric divides by zero."""

from __future__ import annotations

import numpy as np
import pytest
from metric_cases import COMPLEXITIES, FUNCTION

import propopt as po
from propopt.explaining.metrics import (
    CompletenessGap,
    FaithfulnessCorrelation,
    Infidelity,
    LocalLipschitz,
    MaxSensitivity,
    UndefinedRowsWarning,
)


@pytest.mark.parametrize("metric", COMPLEXITIES[:2], ids=lambda m: m.name)
def test_zero_over_zero_is_nan_and_counted(metric):
    with pytest.warns(UndefinedRowsWarning, match="1 of 2 rows"):
        result = metric([[0.0, 0.0], [1.0, 2.0]])
    assert np.isnan(result[0])
    assert np.isfinite(result[1])


def test_relative_sensitivity_at_zero_is_nan_or_infinite(X):
    def jumps(points: np.ndarray) -> np.ndarray:
        moved = ~np.isin(points[:, 0], X[:, 0]) & (points[:, 1] > X[:, 1].mean())
        return moved[:, None] * np.ones(4)

    with pytest.warns(UndefinedRowsWarning, match="6 of 6 rows"):
        result = MaxSensitivity(scale=1e-3)(jumps, X)
    above = X[:, 1] > X[:, 1].mean()
    assert np.isnan(result[~above]).all()
    assert (result[above] == np.inf).all()


def test_steps_that_rounding_makes_zero_are_left_out():
    with pytest.warns(UndefinedRowsWarning, match="1 of 2 rows"):
        result = LocalLipschitz(scale=1e-3)(lambda X: 2 * X, [[1e20], [1.0]])
    assert np.isnan(result[0])
    np.testing.assert_allclose(result[1], 2)
    # steps of less than 1 vanish beside 1e16, and those above do not
    result = LocalLipschitz(scale=1.0)(lambda X: 2 * X, [[1e16]])
    np.testing.assert_array_equal(result, [2])


@pytest.mark.parametrize(
    ("W", "function"),
    [
        (np.full((2, 3), 0.1), po.wrap(lambda X: X @ [1.0, 2.0, 3.0])),
        (np.zeros((2, 3)), po.wrap(lambda X: X @ [1.0, 2.0, 3.0])),
        ([[1.0, 2.0, 3.0]] * 2, po.wrap(lambda X: np.full(len(X), 0.7))),
    ],
    ids=["equal attributions", "zeros", "constant function"],
)
def test_correlation_with_a_constant_is_undefined(W, function):
    X = np.array([[1.0, 2.0, 0.3], [3.0, 1.1, 2.0]])
    metric = FaithfulnessCorrelation(k=2, baseline=np.zeros(3))
    with pytest.warns(UndefinedRowsWarning, match="2 of 2 rows"):
        assert np.isnan(metric(W, function, X)).all()


def test_infidelity_of_zeros_is_defined(X):
    parts = Infidelity().parts(np.zeros_like(X), FUNCTION, X)
    np.testing.assert_array_equal(parts.factor, 0)
    np.testing.assert_array_equal(parts.raw, parts.scale_free)


def test_relative_completeness_at_the_baseline_is_undefined():
    metric = CompletenessGap(background=[[1.0, 1.0]], units="relative")
    with pytest.warns(UndefinedRowsWarning, match="2 of 3 rows"):
        result = metric(
            [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]],
            po.functions.Power(2),
            [[1.0, 1.0], [1.0, 1.0], [2.0, 1.0]],
        )
    np.testing.assert_array_equal(result, [np.nan, np.inf, 1 / 3])
