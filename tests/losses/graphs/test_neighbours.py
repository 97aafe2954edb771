"""Distances, neighbours and similarities of points far off, tiny, huge and doubled."""

from __future__ import annotations

import numpy as np
import pytest

import propopt as po
from propopt.losses.graphs.points import median_distance, nearest_neighbours


SCALES = {"tiny": 2.0**-1000, "one": 1.0, "huge": 2.0**1000}
BUILDERS = {
    "gaussian": lambda X, size: po.gaussian_graph(X, 1.5 * size),
    "gaussian, own": lambda X, _: po.gaussian_graph(X),
    "gaussian, cut": lambda X, size: po.gaussian_graph(X, 2.0 * size, cutoff=0.2),
    "knn": lambda X, _: po.knn_graph(X, 3),
    "knn, gaussian": lambda X, _: po.knn_graph(X, 3, weights="gaussian"),
    "correlation": lambda X, _: po.correlation_graph(X),
}
each_builder = pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)


def points(rng: np.random.Generator, n_features: int) -> np.ndarray:
    """Multiples of 2⁻¹⁰, to which 2²⁷ = 1.3e8 can be added exactly."""
    return np.round(rng.normal(size=(40, n_features)) * 2**10) / 2**10


@each_builder
@pytest.mark.parametrize("size", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("n_features", [2, 20])
def test_graphs_do_not_know_the_scale_of_points(build, size, n_features, rng):
    X = points(rng, n_features)
    expected = build(X, 1.0).similarities.toarray()
    result = build(size * X, size).similarities.toarray()
    np.testing.assert_allclose(result, expected, rtol=1e-13)


@each_builder
@pytest.mark.parametrize("n_features", [2, 20])
def test_graphs_do_not_know_how_far_off_points_are(build, n_features, rng):
    X = points(rng, n_features)
    expected = build(X, 1.0).similarities.toarray()
    result = build(X + 2.0**27, 1.0).similarities.toarray()
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n_features", [3, 30])
def test_neighbours_are_found_in_each_of_two_groups_far_apart(n_features, rng):
    group = points(rng, n_features)
    X = np.concatenate([group, group + 2.0**27])
    distances = ((group[:, None] - group[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    near = np.argsort(distances, axis=1)[:, :4]
    result = nearest_neighbours(X, 4).toarray()
    for n in range(40):
        assert set(np.flatnonzero(result[n])) == set(near[n])
        assert set(np.flatnonzero(result[40 + n])) == set(40 + near[n])


@pytest.mark.parametrize("n_features", [3, 30])
@pytest.mark.parametrize("offset", [0.0, 0.1, 1e8])
def test_doubled_points_are_neighbours_of_each_other(n_features, offset, rng):
    X = np.repeat(rng.normal(size=(30, n_features)), 2, axis=0) + offset
    result = nearest_neighbours(X, 1).toarray()
    np.testing.assert_array_equal(result, np.kron(np.eye(30), [[0, 1], [1, 0]]))


@pytest.mark.parametrize("size", SCALES.values(), ids=SCALES)
def test_threshold_graph_at_every_scale(size, rng):
    X = points(rng, 3)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    result = po.threshold_graph(2.0**500 * X, 2.0 * 2.0**1000).similarities.toarray()
    np.testing.assert_array_equal(result, (squares <= 2.0) & ~np.eye(40, dtype=bool))
    everything = po.threshold_graph(X / 2.0**1000, size * 1e4)
    assert everything.n_edges == 40 * 39 // 2


@pytest.mark.parametrize("size", SCALES.values(), ids=SCALES)
def test_median_distance_has_the_scale_of_the_points(size, rng):
    X = points(rng, 3)
    assert median_distance(size * X) == size * median_distance(X)


@pytest.mark.parametrize("lengthscale", [1e-300, 1e-20, 1e20, 1e300])
def test_similarities_at_extreme_lengthscales_are_zero_or_one(lengthscale, rng):
    X = points(rng, 2)
    graphs = (
        po.gaussian_graph(X, lengthscale),
        po.gaussian_graph(X, lengthscale, cutoff=0.5),
        po.knn_graph(X, 39, weights="gaussian", lengthscale=lengthscale),
    )
    for graph in graphs:
        expected = 0 if lengthscale < 1 else 40 * 39 // 2
        assert graph.n_edges == expected
        assert (graph.similarities.data == 1.0).all()


def test_correlation_of_columns_with_a_large_mean_and_a_small_spread(rng):
    small = points(rng, 4) * 2.0**-15
    expected = np.abs(np.corrcoef(small.T))
    np.fill_diagonal(expected, 0.0)
    result = po.correlation_graph(small + 2.0**27).similarities.toarray()
    np.testing.assert_allclose(result, expected, rtol=1e-10)


def test_the_last_digits_of_a_constant_column_are_no_spread(rng):
    X = points(rng, 3)
    X[:, 1] = 0.3
    X[::2, 1] = 0.1 + 0.2
    assert not po.correlation_graph(X).similarities.toarray()[1].any()
