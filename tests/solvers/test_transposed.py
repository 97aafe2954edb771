"""Few points with very many features: the same optimum, without their eigenbasis."""

from __future__ import annotations

import numpy as np
import pytest

import propopt as po
from propopt.solvers.centred import Transposed


IMAGE = po.ImageShape(1, 36, 36)
N = 5


@pytest.fixture
def objective(rng):
    X, G = rng.normal(size=(2, N, IMAGE.n_features))
    return (
        po.GradientMatching(G)
        + 0.5 * po.PairwiseRobustness(po.knn_graph(X, 2))
        + 0.3 * po.Smoothness(IMAGE.pixel_graph())
    )


def test_wide_programs_are_exchanged_by_themselves(objective):
    assert po.solve(objective).solver == "factored, transposed"
    assert po.solve(objective + 0.1 * po.Sparsity()).solver == "lasso, transposed"


def test_the_curve_is_that_of_the_eigenbasis(objective):
    weights = {"smoothness": [0.01, 1.0, 100.0]}
    result = po.sweep(objective, weights)
    exact = po.sweep(objective, weights, solver="spectral")
    np.testing.assert_allclose(result.values, exact.values, rtol=1e-6)
    assert result.certified(1e-6)


def test_attributions_are_those_of_the_eigenbasis(objective):
    result, exact = po.solve(objective), po.solve(objective, solver="spectral")
    # strongly convex with modulus 1: ‖W − W*‖² is at most the excess
    assert result.gap < 1e-6
    distance = np.linalg.norm(result.attributions - exact.attributions)
    assert distance**2 <= 1e-6 * result.objective


def test_what_treats_points_and_features_differently_is_refused(objective):
    loss = po.MaxDifferenceRobustness(po.chain_graph(N))
    with pytest.raises(po.errors.Refused, match="treats points and features diff"):
        po.solve(objective + loss, Transposed(po.solvers.Auto()))


def test_no_matrix_over_features_is_formed(rng):
    image = po.ImageShape(3, 112, 112)  # 37,632 features: their square is 11 GiB
    G = rng.normal(size=(2, image.n_features))
    objective = (
        po.GradientMatching(G)
        + po.PairwiseRobustness(po.complete_graph(2))
        + po.Smoothness(image.pixel_graph())
    )
    assert po.solve(objective).gap < 1e-6
