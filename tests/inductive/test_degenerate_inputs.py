"""Doubled inputs, singular kernels and weights that rounding swallows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as la
from inductive_cases import MEANS
from sklearn.gaussian_process.kernels import DotProduct

from propopt.base.errors import InvalidInput
from propopt.inductive import GaussianProcessExplainer


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("lengthscale", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("jitter", [0.0, 1e-12])
def test_doubled_inputs_count_as_two_observations(mean, lengthscale, jitter, rng):
    X, G = rng.normal(size=(2, 6, 2))
    new = rng.normal(size=(3, 2))
    settings = {"mean": mean, "lengthscale": lengthscale, "jitter": jitter}
    twice = GaussianProcessExplainer(0.5, **settings).fit(
        np.vstack([X, X]), np.vstack([G, G])
    )
    # two observations of variance one are one of variance 1/2: half the weight
    once = GaussianProcessExplainer(0.25, **settings).fit(X, G)
    expected, result = once.explain(new, True), twice.explain(new, True)
    np.testing.assert_allclose(result.attributions, expected.attributions, atol=1e-6)
    np.testing.assert_allclose(
        result.details["standard_deviation"] * np.sqrt(2.0),
        expected.details["standard_deviation"],
        rtol=1e-6,
    )


def test_singular_kernels_are_welcome(rng):
    # a linear kernel of rank two, against ridge regression of the gradients
    X, G = rng.normal(size=(2, 30, 2))
    new = rng.normal(size=(4, 2))
    explainer = GaussianProcessExplainer(
        0.5, kernel=DotProduct(0.0, "fixed"), mean="none"
    ).fit(X, G)
    ridge = new @ la.solve(X.T @ X + np.eye(2), X.T @ G)
    np.testing.assert_allclose(explainer.explain(new).attributions, ridge, atol=1e-12)


def test_at_an_input_of_little_robustness_the_gradient_is_found(rng):
    X, G = rng.uniform(-3, 3, size=(8, 2)), rng.normal(size=(8, 2))
    result = GaussianProcessExplainer(1e-9, lengthscale=0.5).fit(X, G).explain(X, True)
    np.testing.assert_allclose(result.attributions, G, atol=1e-5)
    np.testing.assert_allclose(result.details["standard_deviation"], 1.0, atol=1e-4)


def test_weights_lost_to_rounding_are_refused(rng):
    X = rng.normal(size=(50, 2))
    explainer = GaussianProcessExplainer(1e-15, lengthscale=3.0)
    with pytest.raises(InvalidInput, match=r"lost to rounding.*jitter"):
        explainer.fit(X, X)


def test_one_input_and_one_feature_will_do():
    explainer = GaussianProcessExplainer(lengthscale=1.0).fit([[0.0]], [[3.0]])
    np.testing.assert_allclose(explainer.explain([[9.0]]).attributions, 3.0)
