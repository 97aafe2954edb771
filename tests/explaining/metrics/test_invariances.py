"""What metrics do not depend on: order, scale and sign."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from metric_cases import COMPLEXITIES, FUNCTION, ROBUST, S, explain

from propopt.explaining.metrics import (
    AvgSensitivity,
    FaithfulnessCorrelation,
    Infidelity,
    LocalLipschitz,
    MaxSensitivity,
    UndefinedRowsWarning,
)


ATTRIBUTIONS = arrays(
    float, (3, 5), elements=st.floats(-10, 10).map(lambda w: round(w, 3))
).filter(lambda W: (W != 0).any(axis=1).all())


@given(W=ATTRIBUTIONS, order=st.permutations(range(5)))
@pytest.mark.parametrize("metric", COMPLEXITIES, ids=lambda m: m.name)
def test_the_order_of_features_does_not_matter(metric, W, order):
    np.testing.assert_allclose(metric(W[:, order]), metric(W), atol=1e-14)


@given(W=ATTRIBUTIONS, exponent=st.integers(-250, 250), sign=st.sampled_from([-1, 1]))
@pytest.mark.parametrize("metric", COMPLEXITIES[:2], ids=lambda m: m.name)
def test_the_scale_of_attributions_does_not_matter(metric, W, exponent, sign):
    np.testing.assert_allclose(metric(sign * 10.0**exponent * W), metric(W), atol=1e-13)


@given(W=ATTRIBUTIONS, exponent=st.integers(-150, 150), sign=st.sampled_from([-1, 1]))
def test_scale_free_infidelity_does_not_depend_on_the_scale(W, exponent, sign):
    factor = sign * 10.0**exponent
    X = np.random.default_rng(0).normal(size=(3, 5))
    metric = Infidelity(n_samples=20)
    once = metric.parts(W, FUNCTION, X)
    parts = metric.parts(factor * W, FUNCTION, X)
    np.testing.assert_allclose(parts.scale_free, once.scale_free, rtol=1e-9)
    np.testing.assert_allclose(parts.factor * factor, once.factor, rtol=1e-9)
    assert (once.scale_free <= once.raw * (1 + 1e-12)).all()


@given(W=ATTRIBUTIONS, factor=st.floats(1e-6, 1e6))
def test_correlation_is_scale_free_and_odd(W, factor):
    X = np.random.default_rng(0).normal(size=(3, 5))
    metric = FaithfulnessCorrelation(n_samples=20, k=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedRowsWarning)  # equal attributions
        once = metric(W, FUNCTION, X)
        np.testing.assert_allclose(metric(factor * W, FUNCTION, X), once, atol=1e-9)
        np.testing.assert_allclose(metric(-W, FUNCTION, X), -once, atol=1e-9)
    assert (np.abs(once[~np.isnan(once)]) <= 1).all()


@given(factor=st.floats(1e-6, 1e6))
def test_relative_robustness_is_scale_free_and_absolute_is_not(factor):
    X = np.random.default_rng(0).normal(size=(3, 4))

    def scaled(points: np.ndarray) -> np.ndarray:
        return factor * explain(points)

    for metric in (*ROBUST[:2], ROBUST[3]):
        np.testing.assert_allclose(metric(scaled, X), metric(explain, X), rtol=1e-9)
    for metric in (
        MaxSensitivity(n_samples=S, units="absolute"),
        AvgSensitivity(n_samples=S, units="absolute"),
        LocalLipschitz(n_samples=S),
    ):
        expected = factor * metric(explain, X)
        np.testing.assert_allclose(metric(scaled, X), expected, rtol=1e-9)
