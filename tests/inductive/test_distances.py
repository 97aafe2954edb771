"""Distances of points, and the kernels that are made of them."""

from __future__ import annotations

import numpy as np
import pytest
from inductive_cases import close
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF, Matern

import propopt as po
from propopt.inductive import GaussianProcessExplainer
from propopt.inductive.inputs import cross_distances


@pytest.mark.parametrize("n_features", [3, 80, 1000])
def test_distances_of_far_near_and_equal_points_are_right(n_features, rng):
    X = 100.0 + rng.normal(size=(30, n_features))
    Z = np.vstack([X[:5], X[5:10] + 1e-9, X[10:15] + 1e-3, X[15:] + 1.0])
    expected = cdist(X, Z)
    result = cross_distances(X, Z)
    np.testing.assert_allclose(result, expected, rtol=1e-11)
    assert (np.diag(result)[:5] == 0).all()


def test_lengthscale_of_many_features_is_the_rule_of_gaussian_graph(rng):
    X = np.repeat(rng.normal(size=(20, 100)), 2, axis=0)
    explainer = GaussianProcessExplainer().fit(X, X)
    graph = po.gaussian_graph(X)
    scale = explainer.kernel_.length_scale
    np.testing.assert_allclose(scale, graph.parameters["lengthscale"], rtol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "matern"])
def test_kernels_by_name_are_those_of_scikit_learn(name, rng):
    X, new = rng.normal(size=(20, 90)), rng.normal(size=(5, 90))
    named = GaussianProcessExplainer(0.1, kernel=name, lengthscale=9.0).fit(X, X)
    given = {"gaussian": RBF(9.0), "matern": Matern(9.0, nu=2.5)}[name]
    peer = GaussianProcessExplainer(0.1, kernel=given).fit(X, X)
    assert close(named.explain(new).attributions, peer.explain(new).attributions, 1e-11)
