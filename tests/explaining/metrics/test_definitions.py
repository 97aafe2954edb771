"""Metrics against loops over rows and samples."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from metric_cases import (
    EXACT,
    FUNCTION,
    S,
    attribution,
    distances,
    explain,
    f,
    noise,
    norm,
    value,
)
from scipy.stats import entropy, pearsonr

import propopt as po
from propopt.explaining.metrics import (
    PGI,
    PGU,
    AvgSensitivity,
    CompletenessGap,
    Complexity,
    EffectiveComplexity,
    FaithfulnessCorrelation,
    Infidelity,
    LocalLipschitz,
    MaxSensitivity,
    RelativeInputStability,
    RelativeOutputStability,
    Sparseness,
)
from propopt.explaining.metrics.metric import metric_rng


@pytest.mark.parametrize(
    ("kind", "reduce"),
    [(MaxSensitivity, max), (AvgSensitivity, np.mean)],
    ids=["max", "mean"],
)
@pytest.mark.parametrize("distribution", ["uniform", "gaussian", "ball"])
def test_sensitivity_is_a_loop_over_samples(kind, reduce, distribution, X):
    metric = kind(n_samples=S, distribution=distribution)
    absolute = np.array([reduce(row) for row in distances(metric, X)])
    sizes = np.array([norm(attribution(x)) for x in X])
    np.testing.assert_allclose(metric(explain, X), absolute / sizes, **EXACT)
    same = dataclasses.replace(metric, units="absolute")
    np.testing.assert_allclose(same(explain, X), absolute, **EXACT)


def test_local_lipschitz_is_a_loop_over_samples(X):
    metric = LocalLipschitz(n_samples=S)
    expected = [
        max(d / norm(e) for d, e in zip(row, draws, strict=True))
        for row, draws in zip(distances(metric, X), noise(metric, X.shape), strict=True)
    ]
    # x + ε − x is not ε to the last digit
    np.testing.assert_allclose(metric(explain, X), expected, rtol=1e-10)


def test_relative_input_stability_is_a_loop_over_samples(X):
    metric = RelativeInputStability(n_samples=S)

    def ratio(x: np.ndarray, e: np.ndarray) -> float:
        change = norm((attribution(x) - attribution(x + e)) / attribution(x))
        return change / max(norm((x - (x + e)) / x), 1e-6)

    expected = [
        max(ratio(x, e) for e in draws)
        for x, draws in zip(X, noise(metric, X.shape), strict=True)
    ]
    np.testing.assert_allclose(metric(explain, X), expected, **EXACT)


def test_relative_output_stability_is_a_loop_over_samples(X):
    metric = RelativeOutputStability(n_samples=S, floor=0.05)

    def ratio(x: np.ndarray, e: np.ndarray) -> float:
        change = norm((attribution(x) - attribution(x + e)) / attribution(x))
        return change / max(abs(value(x) - value(x + e)), 0.05)

    expected = [
        max(ratio(x, e) for e in draws)
        for x, draws in zip(X, noise(metric, X.shape), strict=True)
    ]
    np.testing.assert_allclose(metric(explain, FUNCTION, X), expected, **EXACT)


def test_infidelity_is_a_loop_over_samples(X):
    metric = Infidelity(n_samples=S)
    expected = [
        np.mean([(e @ attribution(x) - (value(x) - value(x - e))) ** 2 for e in draws])
        for x, draws in zip(X, noise(metric, X.shape), strict=True)
    ]
    np.testing.assert_allclose(metric(explain(X), FUNCTION, X), expected, rtol=1e-11)


def test_scale_free_infidelity_is_that_of_a_least_squares_fit(X):
    metric = Infidelity(n_samples=S, rescaling="best")
    parts = metric.parts(explain(X), FUNCTION, X)
    for row, (x, draws) in enumerate(zip(X, noise(metric, X.shape), strict=True)):
        forecast = draws @ attribution(x)
        change = np.array([value(x) - value(x - e) for e in draws])
        fit, residual, *_ = np.linalg.lstsq(forecast[:, None], change)
        np.testing.assert_allclose(parts.factor[row], fit[0], rtol=1e-10)
        np.testing.assert_allclose(parts.scale_free[row], residual[0] / S, rtol=1e-10)
    np.testing.assert_array_equal(parts.scale_free, metric(explain(X), FUNCTION, X))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_faithfulness_correlation_is_a_loop_over_subsets(k, X):
    baseline = np.array([0.5, -1.0, 2.0, 0.1])
    metric = FaithfulnessCorrelation(k=k, n_samples=S, baseline=baseline)
    keys = metric_rng(0).uniform(-1, 1, (len(X), S, 4))
    expected = []
    for x, draws in zip(X, keys, strict=True):
        subsets = [np.argsort(key)[:k] for key in draws]
        sums = [attribution(x)[subset].sum() for subset in subsets]
        effects = []
        for subset in subsets:
            removed = x.copy()
            removed[subset] = baseline[subset]
            effects.append(value(x) - value(removed))
        expected.append(pearsonr(sums, effects).statistic)
    np.testing.assert_allclose(metric(explain(X), FUNCTION, X), expected, rtol=1e-10)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_prediction_gaps_are_loops_over_samples(k, X):
    important, other = PGI(k=k, n_samples=S), PGU(k=k, n_samples=S)
    W = explain(X)
    gaps = {PGI: [], PGU: []}
    for x, w, draws in zip(X, W, noise(important, X.shape), strict=True):
        top = sorted(range(4), key=lambda d: -abs(w[d]))[:k]
        mask = np.array([d in top for d in range(4)])
        for kind, chosen in [(PGI, mask), (PGU, ~mask)]:
            moved = [value(x + chosen * e) for e in draws]
            gaps[kind].append(np.mean([abs(value(x) - there) for there in moved]))
    np.testing.assert_allclose(important(W, FUNCTION, X), gaps[PGI], rtol=1e-11)
    np.testing.assert_allclose(other(W, FUNCTION, X), gaps[PGU], **EXACT)


def test_completeness_gap_is_what_is_missing(X, rng):
    background = rng.normal(size=(3, 4))
    change = f(X) - f(background).mean()
    gap = np.abs(explain(X).sum(axis=1) - change)
    metric = CompletenessGap(background=background)
    np.testing.assert_allclose(metric(explain(X), FUNCTION, X), gap, **EXACT)
    metric = CompletenessGap(background=background, units="relative")
    np.testing.assert_allclose(
        metric(explain(X), FUNCTION, X), gap / np.abs(change), **EXACT
    )


def test_shapley_values_are_complete(X):
    """Of Σ x_j³ they are x_j³ less its mean over the background."""
    values = X**3 - (X**3).mean(axis=0)
    gap = CompletenessGap(background=X)(values, po.functions.Power(3), X)
    assert gap.max() < 1e-12


def test_sparseness_is_the_mean_absolute_difference():
    """Gini = Σ_ij ||w_i| − |w_j|| / (2 D Σ_i |w_i|)."""
    W = np.random.default_rng(1).normal(size=(5, 7))
    expected = [
        sum(abs(abs(a) - abs(b)) for a, b in itertools.product(w, w))
        / (2 * 7 * np.abs(w).sum())
        for w in W
    ]
    np.testing.assert_allclose(Sparseness()(W), expected, **EXACT)


def test_complexity_is_the_entropy_of_scipy():
    W = np.random.default_rng(2).normal(size=(5, 7))
    np.testing.assert_allclose(Complexity()(W), entropy(np.abs(W), axis=1), **EXACT)


@pytest.mark.parametrize("n_features", [1, 2, 10])
def test_one_attribution_and_equal_ones_are_the_extremes(n_features):
    W = np.stack([3.0 * np.eye(n_features)[0], np.full(n_features, -0.1)])
    np.testing.assert_allclose(Sparseness()(W), [1 - 1 / n_features, 0], atol=1e-15)
    np.testing.assert_allclose(Complexity()(W), [0, np.log(n_features)], atol=1e-14)
    np.testing.assert_array_equal(EffectiveComplexity()(W), [1, n_features])


def test_effective_complexity_counts_above_the_threshold():
    W = [[0.5, -0.5, 0.51, -2.0]]
    np.testing.assert_array_equal(EffectiveComplexity(threshold=0.5)(W), [2])
