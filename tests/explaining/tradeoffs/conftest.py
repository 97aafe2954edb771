"""Objectives that the tests of sweeps share."""

import pytest

import propopt as po


@pytest.fixture
def X(rng):
    return rng.normal(size=(12, 3))


@pytest.fixture
def objective(X):
    return po.GradientMatching(3 * X**2) + po.PairwiseRobustness(
        po.graphs.knn_graph(X, 3)
    )


@pytest.fixture
def rough(X):
    """An objective that no closed form solves."""
    graph = po.graphs.knn_graph(X, 3)
    return po.GradientMatching(3 * X**2) + po.PairwiseRobustness(graph) + po.Sparsity()
