"""With weights by bits a linear function has the same coefficients at any width."""

from __future__ import annotations

import numpy as np
import pytest
from linear_sums import linear
from normal_samples import weighted_fit, with_intercept
from sklearn.linear_model import LinearRegression

from papers.lime.gaussian_theory import gains
from papers.lime.linear_limits import linear_limits
from propopt.lime import GaussianLaw, TabularLaw
from propopt.lime.expectations import ExactLimits


SLOPES = np.array([10.0, -10.0, 3.0, 0.0])
ROW = np.array([0.9607, 0.0892, -0.3, 1.0])
WIDTHS = np.array([0.53, 1.5, 10.0])


def table():
    return np.random.default_rng(7).normal(size=(20_000, 4))


def test_bits_hide_no_column_where_distances_do():
    """(16.95, −4.33, −1.30, 0) at any width; (4.91, −3.99, −.46, 0) at ν = .3."""
    f = linear(SLOPES)
    expected = [16.95, -4.33, -1.30, 0.0]
    normal = GaussianLaw.of(np.zeros(4), 1.0, 0.3)
    of_distances = linear_limits(gains(normal, ROW[None]), SLOPES).coefficients[0]
    np.testing.assert_allclose(of_distances, [4.91, -3.99, -0.46, 0.0], atol=5.1e-3)
    at = gains(normal.with_width(10.0), ROW[None])
    wide = linear_limits(at, SLOPES).coefficients[0]
    np.testing.assert_allclose(wide, [16.85, -4.32, -1.29, 0.0], atol=5.1e-3)
    at = gains(normal.with_width(1e6), ROW[None])
    free = linear_limits(at, SLOPES).coefficients[0]
    np.testing.assert_allclose(free, expected, atol=5.1e-3)
    law = TabularLaw.from_data(table())
    rows = np.repeat(ROW[None], 3, axis=0)
    by_bits = ExactLimits(f, law).of(rows, WIDTHS).coefficients
    np.testing.assert_allclose(by_bits, by_bits[[0, 0, 0]], rtol=0, atol=1e-12)
    # in outer bins the package draws other samples, up to the largest number of all
    np.testing.assert_allclose(by_bits[0, 0], 18.5, atol=0.5)
    np.testing.assert_allclose(by_bits[0, 1:], [-4.47, -1.32, 0.0], atol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_the_package_without_ridge_is_at_its_limit(width):
    """Four runs of 20,000 samples: 4 z-scores below 5, or 1e-5 for all widths."""
    lime_tabular = pytest.importorskip("lime.lime_tabular")
    X, f = table(), linear(SLOPES)
    law = TabularLaw.from_data(X, kernel_width=width)
    expected = with_intercept(ExactLimits(f, law).of(ROW[None]))[1:]
    draws = law.draw(ROW[None], 20_000, np.random.default_rng(0))
    values = draws.samples[0] @ SLOPES
    errors = weighted_fit(draws.bits[0], draws.weights[0], values)[1][1:]
    result = []
    for seed in range(4):
        explainer = lime_tabular.LimeTabularExplainer(
            X,
            mode="regression",
            kernel_width=width,
            feature_selection="none",
            random_state=seed,
        )
        explained = explainer.explain_instance(
            ROW,
            lambda X: X @ SLOPES,
            num_samples=20_000,
            model_regressor=LinearRegression(),
        )
        weights = dict(explained.as_map()[1])
        result.append([weights[j] for j in range(4)])
    z = (np.mean(result, axis=0) - expected) / (errors / 2.0)
    assert np.abs(z).max() < 5.0
