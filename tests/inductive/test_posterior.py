"""Explanations of inputs that come later, against dense algebra and other solvers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from inductive_cases import (
    MEANS,
    Case,
    cases,
    close,
    dense_posterior,
    prior_precision,
    solve_case,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import propopt as po
from propopt.inductive import GaussianProcessExplainer


@given(cases())
def test_explanation_is_the_row_of_the_transductive_optimum(case):
    result = case.fitted.explain(case.new).attributions
    for x, row in zip(case.new, result, strict=True):
        assert close(row, dense_posterior(case, x)[0])


@given(cases())
def test_deviation_is_that_of_dense_conditioning(case):
    result = case.fitted.explain(case.new, return_std=True)
    for x, row in zip(case.new, result.details["standard_deviation"], strict=True):
        assert close(row, np.sqrt(np.diag(dense_posterior(case, x)[1])))


@given(cases())
def test_gradient_at_a_new_input_is_one_more_observation(case):
    gradients = np.cos(case.new)
    result = case.fitted.explain(case.new, True, gradients)
    for n, x in enumerate(case.new):
        row, covariance = dense_posterior(case, x, gradients[n])
        assert close(result.attributions[n], row)
        deviation = result.details["standard_deviation"][n]
        assert close(deviation, np.sqrt(np.diag(covariance)))


@given(cases())
def test_together_is_the_program_with_all_new_inputs_appended(case):
    result = case.fitted.explain_together(case.new).attributions
    n, D = case.G.shape
    K = case.kernel_matrix(np.vstack([case.X, case.new]))
    observed = np.diag([1.0] * n + [0.0] * len(case.new))
    precision = prior_precision(K, case.smoothing, case.explainer)
    precision += np.kron(observed, np.eye(D))
    right = np.concatenate([case.G.ravel(), np.zeros(case.new.size)])
    expected = np.linalg.solve(precision, right)[n * D :].reshape(case.new.shape)
    assert close(result, expected)


@pytest.mark.parametrize("mean", MEANS)
def test_together_is_one_by_one_where_features_are_independent(mean, rng):
    X, G = rng.normal(size=(2, 9, 3))
    new = rng.normal(size=(4, 3))
    for inducing in [None, X[:5]]:
        fitted = GaussianProcessExplainer(0.2, mean=mean, inducing=inducing).fit(X, G)
        joint = fitted.explain_together(new).attributions
        assert close(joint, fitted.explain(new).attributions, 1e-12)


@pytest.mark.parametrize("mean", MEANS)
def test_one_new_input_together_is_that_input_alone(mean, rng):
    X, G = rng.normal(size=(2, 9, 3))
    new = rng.normal(size=(1, 3))
    for inducing in [None, X[:5]]:
        fitted = GaussianProcessExplainer(
            0.2, 0.7, features=po.chain_graph(3), mean=mean, inducing=inducing
        ).fit(X, G)
        joint = fitted.explain_together(new).attributions
        assert close(joint, fitted.explain(new).attributions, 1e-9)


def solved(case: Case, gradient: np.ndarray) -> np.ndarray:
    K = case.kernel_matrix(np.vstack([case.X, case.new]))
    objective = (
        po.GradientMatching(np.vstack([case.G, gradient]))
        + case.explainer.robustness * po.KernelRobustness(K, mean=case.explainer.mean)
        + case.explainer.smoothness * po.Smoothness(case.explainer.features)
    )
    return po.solve(objective).attributions[-1]


@pytest.mark.parametrize("mean", ["none", "per_feature"])
def test_with_a_gradient_it_is_what_solve_gives(mean, rng):
    case = solve_case(rng, mean)
    gradient = rng.normal(size=(1, 4))
    result = case.fitted.explain(case.new, gradients=gradient).attributions[0]
    assert close(result, solved(case, gradient))


@pytest.mark.parametrize("mean", ["none", "per_feature"])
def test_without_a_gradient_solve_agrees_once_it_is_told_the_explanation(mean, rng):
    # a gradient equal to the optimal row costs nothing, so it does not move the optimum
    case = solve_case(rng, mean)
    result = case.fitted.explain(case.new).attributions
    assert close(result[0], solved(case, result))


@pytest.mark.parametrize("kernel", [RBF(1.2), Matern(0.8, nu=1.5)])
def test_without_smoothness_and_mean_it_is_scikit_learns_regression(kernel, rng):
    X, G = rng.normal(size=(2, 40, 3))
    new = rng.normal(size=(9, 3))
    explainer = GaussianProcessExplainer(0.35, kernel=kernel, mean="none").fit(X, G)
    result = explainer.explain(new, return_std=True)
    scaled = ConstantKernel(1 / 0.7) * kernel
    peer = GaussianProcessRegressor(scaled, alpha=1.0, optimizer=None).fit(X, G)
    mean, deviation = peer.predict(new, return_std=True)
    np.testing.assert_allclose(result.attributions, mean, rtol=0, atol=1e-10)
    deviations = result.details["standard_deviation"]
    np.testing.assert_allclose(deviations, deviation, rtol=0, atol=1e-10)
