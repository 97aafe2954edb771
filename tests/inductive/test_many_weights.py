"""Many weights, many inputs and many draws: paths, blocks, samples, limits."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.linalg as la
from inductive_cases import (
    MEANS,
    Case,
    Z,
    close,
    dense_posterior,
    prior_precision,
    similar_features,
    solve_case,
)
from scipy.stats import norm

import propopt as po
from propopt.base.resources import Budget
from propopt.inductive import GaussianProcessExplainer, posterior


@pytest.mark.parametrize("mean", MEANS)
def test_path_equals_single_fits(mean, rng):
    graph = po.chain_graph(3)
    X, G = rng.normal(size=(2, 15, 3))
    new = rng.normal(size=(4, 3))
    explainer = GaussianProcessExplainer(features=graph, mean=mean).fit(X, G)
    pairs = [(0.01, 0.0), (1.0, 0.5), (30.0, 7.0)]
    for pair, result in zip(
        pairs, explainer.explain_path(new, pairs, True), strict=True
    ):
        single = GaussianProcessExplainer(*pair, features=graph, mean=mean).fit(X, G)
        expected = single.explain(new, return_std=True)
        np.testing.assert_array_equal(result.attributions, expected.attributions)
        np.testing.assert_array_equal(
            result.details["standard_deviation"], expected.details["standard_deviation"]
        )
        assert result.parameters == expected.parameters


@pytest.mark.parametrize("mean", MEANS)
def test_blocks_change_nothing_but_rounding(mean, rng, monkeypatch):
    X, G = rng.normal(size=(2, 9, 4))
    new = rng.normal(size=(7, 4))
    explainer = GaussianProcessExplainer(
        0.1, 0.3, features=po.chain_graph(4), mean=mean
    ).fit(X, G)
    whole, draws = explainer.explain(new, True), explainer.sample(new, 3)
    for tables in ("AT_ONCE", "CACHED_TABLES"):
        monkeypatch.setattr(posterior, tables, Budget(150))
    parts = explainer.explain(new, True)
    assert close(parts.attributions, whole.attributions, 1e-13)
    assert close(explainer.sample(new, 3), draws, 1e-12)
    assert close(
        parts.details["standard_deviation"],
        whole.details["standard_deviation"],
        1e-13,
    )


@pytest.mark.parametrize("mean", MEANS)
def test_samples_have_the_mean_and_covariance_of_the_posterior(mean, rng):
    # 3 + 9 numbers for each mean, each within Z standard errors
    graph, P = similar_features("chain", 3, rng)
    explainer = GaussianProcessExplainer(
        0.3, 0.4, features=graph, lengthscale=1.0, mean=mean, jitter=1e-6
    )
    X, G = rng.normal(size=(2, 6, 3))
    new = rng.normal(size=(1, 3))
    case = Case(X, G, new, explainer, P)
    samples = case.fitted.sample(new, 20_000, random_state=5)[:, 0]
    expected, covariance = dense_posterior(case, new[0])
    variance = np.diag(covariance)
    error = np.abs(samples.mean(axis=0) - expected)
    assert (error <= Z * np.sqrt(variance / len(samples))).all()
    # var of a sample covariance of gaussians: (c_ij² + c_ii c_jj)/S
    spread = np.sqrt((covariance**2 + np.outer(variance, variance)) / len(samples))
    assert (np.abs(np.cov(samples.T) - covariance) <= Z * spread).all()


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_cover_as_often_as_they_say(level, rng):
    # one input and one feature from each of 400 draws of the prior: a binomial count
    graph, P = similar_features("chain", 3, rng)
    explainer = GaussianProcessExplainer(
        0.1, 0.2, features=graph, lengthscale=1.0, mean="none", jitter=1e-6
    )
    X = rng.normal(size=(9, 3))
    case = Case(X[:-1], np.zeros((8, 3)), X[-1:], explainer, P)
    covariance = np.linalg.inv(prior_precision(case.kernel_matrix(X), P, explainer))
    W = rng.multivariate_normal(np.zeros(27), covariance, size=400).reshape(-1, 9, 3)
    G = W[:, :-1] + rng.normal(size=(400, 8, 3))
    half = norm.ppf(0.5 + level / 2)
    inside = sum(_covered(case, w, g, half) for w, g in zip(W, G, strict=True))
    assert abs(inside - 400 * level) <= Z * np.sqrt(400 * level * (1 - level))


def _covered(case: Case, W: np.ndarray, G: np.ndarray, half: float) -> bool:
    fitted = dataclasses.replace(case, G=G).fitted
    result = fitted.explain(case.new, return_std=True)
    error = abs(W[-1, 1] - result.attributions[0, 1])
    return bool(error <= half * result.details["standard_deviation"][0, 1])


@pytest.mark.parametrize("mean", MEANS)
def test_no_new_row_gives_a_lower_objective(mean, rng):
    """The law of optimality, for the program with the new row appended."""
    case = solve_case(rng, mean)
    best = case.fitted.explain(case.new).attributions[0]
    K = case.kernel_matrix(np.vstack([case.X, case.new]))
    R = prior_precision(K, case.smoothing, case.explainer)
    observed = np.kron(np.diag([1.0] * 12 + [0.0]), np.eye(4))
    target = np.concatenate([case.G.ravel(), np.zeros(4)])

    def least(row: np.ndarray) -> float:
        H = R + observed
        rest = la.solve(H[:48, :48], target[:48] - H[:48, 48:] @ row, assume_a="pos")
        W = np.concatenate([rest, row])
        return float(W @ R @ W + observed.diagonal() @ (W - target) ** 2)

    floor = least(best)
    for _ in range(20):
        assert least(best + 0.1 * rng.normal(size=4)) > floor


def test_common_constant_pools_features(rng):
    # far from all inputs only the constant is left: the same for all features
    X, G = rng.normal(size=(20, 3)), rng.normal((0.0, 1.0, 5.0), size=(20, 3))
    far = np.full((1, 3), 1e3)
    rows = {
        mean: GaussianProcessExplainer(0.5, mean=mean, lengthscale=1.0)
        .fit(X, G)
        .explain(far)
        .attributions[0]
        for mean in MEANS
    }
    np.testing.assert_allclose(rows["none"], 0.0, atol=1e-12)
    np.testing.assert_allclose(rows["common"], rows["common"][0], rtol=1e-12)
    assert np.ptp(rows["per_feature"]) > 3


def test_strong_robustness_gives_the_mean_gradient(rng):
    X, G = rng.normal(size=(20, 3)), rng.normal(size=(20, 3))
    result = GaussianProcessExplainer(1e9).fit(X, G).explain(X[:2] + 0.1)
    np.testing.assert_allclose(result.attributions, [G.mean(axis=0)] * 2, atol=1e-6)


def test_strong_smoothness_gives_equal_features(rng):
    X, G = rng.normal(size=(2, 20, 3))
    new = rng.normal(size=(2, 3))
    chain = po.chain_graph(3)
    result = GaussianProcessExplainer(0.1, 1e10, features=chain).fit(X, G).explain(new)
    assert np.ptp(result.attributions, axis=1).max() < 1e-6
    assert np.isfinite(result.attributions).all()
