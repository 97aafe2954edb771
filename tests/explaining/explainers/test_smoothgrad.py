"""SmoothGrad: its limit, its standard error, its blocks."""

from __future__ import annotations

import numpy as np
import pytest
from baseline_checks import Recorded, Z, worst_z
from smoothed_formulas import LIMITS

from propopt.explaining.explainers import SmoothGrad
from propopt.functions import Power, Sine


@pytest.mark.usefixtures("small_blocks")
def test_blocks_stay_within_their_budget(X):
    function = Recorded()
    SmoothGrad(scale=0.1, n_samples=40).explain(function, X)
    assert max(rows for rows, _ in function.shapes) == 13
    assert sum(rows for rows, _ in function.shapes) == 6 * 40


@pytest.mark.parametrize(("function", "limit"), LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("scale", [0.1, 0.7])
def test_smoothgrad_tends_to_the_smoothed_gradient(function, limit, scale, X):
    result = SmoothGrad(scale=scale, n_samples=4000).explain(function, X)
    assert worst_z(result, limit(X, scale)) < Z


def test_smoothgrad_of_a_cube_is_3x2_plus_3_delta2(X):
    result = SmoothGrad(scale=0.5, n_samples=4000).explain(Power(3), X)
    assert worst_z(result, 3 * X**2 + 3 * 0.5**2) < Z


@pytest.mark.parametrize(
    ("distribution", "variance"), [("uniform", 1 / 3), ("ball", 1 / 5)]
)
def test_uniform_smoothgrad_of_a_cube_has_the_variance_of_its_law(
    distribution, variance, X
):
    smooth = SmoothGrad(scale=0.5, n_samples=4000, distribution=distribution)
    truth = 3 * X**2 + 3 * 0.25 * variance
    assert worst_z(smooth.explain(Power(3), X), truth) < Z


def test_smoothgrad_of_a_linear_function_is_exact(X):
    result = SmoothGrad(scale=3.0, n_samples=5).explain(Power(1), X)
    np.testing.assert_allclose(result.attributions, 1.0)
    np.testing.assert_allclose(result.standard_errors, 0.0, atol=1e-15)


def test_smoothgrad_and_its_error_are_the_mean_and_its_error(X):
    result = SmoothGrad(scale=0.5, n_samples=50).explain(Sine(), X, rng=3)
    draws = 0.5 * np.random.default_rng(3).standard_normal((6, 50, 3))
    gradients = np.cos(X[:, None] + draws)
    np.testing.assert_allclose(result.attributions, gradients.mean(axis=1))
    np.testing.assert_allclose(
        result.standard_errors,
        gradients.std(axis=1, ddof=1) / np.sqrt(50),
    )


@pytest.mark.usefixtures("small_blocks")
def test_smoothgrad_does_not_depend_on_the_block_size(X, monkeypatch):
    smooth = SmoothGrad(scale=0.5, n_samples=40)
    blocked = smooth.explain(Sine(), X)
    monkeypatch.undo()
    whole = smooth.explain(Sine(), X)
    np.testing.assert_allclose(blocked.attributions, whole.attributions, rtol=1e-12)
    np.testing.assert_allclose(
        blocked.standard_errors, whole.standard_errors, rtol=1e-12
    )
