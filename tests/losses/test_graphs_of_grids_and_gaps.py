"""Graphs of grids, whose energies are exact, and of rows with missing numbers."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

import propopt as po
from propopt.losses.graphs.distances import (
    all_distances,
    distances_between,
    median_distance,
    pair_distances,
)
from propopt.losses.graphs.grids import GridGaussianGraph, LatticeGraph
from propopt.losses.graphs.nearest import nearest_rows
from propopt.losses.graphs.points import within_patterns


GRIDS = {
    "neighbours vanish": ([np.arange(20.0) * 3], 0.1),
    "all vanish": ([np.arange(5.0) * 10], 0.1),
    "two groups": ([np.array([0.0, 0.1, 9.0, 9.1, 9.3])], 0.2),
    "groups on two axes": ([np.array([0.0, 1.0, 90.0]), np.array([0.0, 60.0])], 1.0),
    "products vanish": ([np.arange(4.0) * 9, np.arange(3.0) * 8], 0.5),
    "one point on an axis": ([np.zeros(1), np.arange(3.0), np.zeros(1)], 1.0),
    "in no order": ([np.array([9.1, 0.0, 9.0, 0.1])], 0.2),
    "one point": ([np.zeros(1)], 1.0),
    "small lengthscale": ([np.arange(3.0) * 1e-200], 1e-200),
    "large coordinates": ([np.arange(3.0) * 1e200, np.arange(2.0)], 1.0),
}
each_grid = pytest.mark.parametrize("name", GRIDS)


def exact_energy(graph: po.graphs.Graph, W: np.ndarray) -> np.longdouble:
    """Σ over ordered pairs in extended precision."""
    S = graph.similarities.toarray().astype(np.longdouble)
    total = np.longdouble(0.0)
    for w in W.T.astype(np.longdouble):
        total += (S * np.subtract.outer(w, w) ** 2).sum()
    return total


@each_grid
def test_grid_counts_the_edges_and_components_that_it_lists(name):
    axes, lengthscale = GRIDS[name]
    graph = GridGaussianGraph(axes, lengthscale)
    assert graph.n_edges == len(graph.edges) == graph.similarities.nnz / 2
    count, labels = connected_components(graph.similarities, directed=False)
    assert graph.n_components == count
    pairs = set(zip(graph.components.labels.tolist(), labels.tolist(), strict=True))
    assert len(pairs) == count  # the same parts, whatever their numbers


def test_vanishing_similarities_are_counted_without_a_matrix_of_all_pairs():
    axis = np.arange(1000.0) * 2
    graph = GridGaussianGraph([axis, axis], 0.1)
    assert graph.n_edges == ((1000 + 2 * 999) ** 2 - 10**6) // 2


@each_grid
def test_what_is_constant_on_components_of_a_grid_costs_exactly_nothing(name, rng):
    graph = GridGaussianGraph(*GRIDS[name])
    means = 1e17 * rng.normal(size=(graph.n_components, 2))
    W = means[graph.components.labels]
    assert po.PairwiseRobustness(graph).value(W) == 0.0
    assert not po.PairwiseRobustness(graph).map.gradient(W).any()


ENERGIES = {
    **{f"lattice {box}": LatticeGraph(box) for box in [(40,), (5, 1, 7), (2, 3, 4)]},
    "long lengthscale": GridGaussianGraph([np.linspace(0, 1, 9)] * 2, 2.0),
    "short lengthscale": GridGaussianGraph([np.arange(6.0), np.arange(5.0)], 0.12),
    "one axis": GridGaussianGraph([np.linspace(0, 1, 30)], 0.05),
    "three axes": GridGaussianGraph(
        [np.linspace(0, 1, n) ** 2 for n in (5, 2, 4)], 0.3
    ),
    # similarities of 1e-16 and 1e-20 between points of similarity one
    "far groups": GridGaussianGraph(
        [np.array([0.0, 0.1, 8.6, 8.7]), np.array([0.0, 0.2, 9.6])], 1.0
    ),
}
each_energy = pytest.mark.parametrize("name", ENERGIES)


def test_products_with_small_similarities_keep_them(rng):
    graph = ENERGIES["short lengthscale"]  # of the next: exp(−35) = 8e-16
    W = rng.normal(size=(graph.n_nodes, 3))
    exact = 2.0 * graph.laplacian.toarray() @ W
    np.testing.assert_allclose(graph.differences.gram @ W, exact, rtol=1e-12)


LATTICES = [box for n in (1, 2, 3) for box in itertools.product((1, 2, 3), repeat=n)]


@pytest.mark.parametrize("box", LATTICES, ids=str)
def test_lattice_lists_the_neighbours_and_no_others(box):
    graph = LatticeGraph(box)
    position = np.stack(np.unravel_index(np.arange(graph.n_nodes), box), axis=1)
    apart = np.abs(position[:, None] - position[None]).sum(axis=2)
    np.testing.assert_array_equal(graph.edges, np.argwhere(np.triu(apart == 1)))
    assert graph.n_edges == len(graph.edges) == graph.incidence.shape[0]
    assert graph.similarities.nnz == 2 * graph.n_edges
    if box == (2, 2):
        W = np.array([[0.0], [1.0], [1.0], [2.0]])
        assert po.losses.MaxDifferenceRobustness(graph).value(W) == 1.0


def holds_energy(graph, W, digits):
    exact = exact_energy(graph, W)
    assert abs(po.PairwiseRobustness(graph).value(W) - exact) <= digits * exact
    return exact


@each_energy
def test_energy_is_that_of_extended_precision(name, rng, monkeypatch):
    graph = ENERGIES[name]
    W = rng.normal(size=(graph.n_nodes, 2))
    for offset in (0.0, 1e6):
        holds_energy(graph, W + offset, 1e-13)
    smooth = np.linspace(1e6, 1e6 + 1e-3, graph.n_nodes)[:, None]
    holds_energy(graph, smooth, 1e-12)
    if name == "far groups":  # of different means, which are not lost
        close = np.add.outer([0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 2.0]).reshape(-1, 1)
        assert holds_energy(graph, close, 1e-12) < 1e-14
    for slab in (1, 7, 100):
        monkeypatch.setattr("propopt.losses.operators.SLAB", slab)
        holds_energy(graph, W, 1e-13)


def test_eigenvalues_below_zero_by_rounding_change_no_energy(rng):
    graph = ENERGIES["long lengthscale"]
    assert all(np.linalg.eigvalsh(k)[0] < 0 for k in graph.differences.gram.kernels)
    holds_energy(graph, rng.normal(size=(graph.n_nodes, 2)), 1e-13)


# ---- distances between rows of which some numbers are missing, pair by pair
def distances(X):
    """The rule: 1 where one of both has no number, 0 where neither has one."""
    odd = np.isnan(X)[:, None] != np.isnan(X)
    return np.sqrt((np.nan_to_num(X[:, None] - X) ** 2 + odd).sum(axis=2))


@pytest.fixture(params=[(30, 2), (40, 5), (25, 20)], ids=str)
def X(request, rng):
    table = 2.0 * rng.normal(size=request.param)
    table[rng.random(table.shape) < 0.25] = np.nan
    table[3] = np.nan
    table[4], table[5] = table[7], table[3]  # the same, and missing everywhere
    return table


def test_distances_follow_the_rule(X):
    expected = distances(X)
    np.testing.assert_allclose(squareform(all_distances(X)), expected, rtol=1e-13)
    pairs = np.array([[0, 1], [3, 5], [4, 7], [2, 20]])
    result = pair_distances(X, pairs)
    np.testing.assert_allclose(result, [expected[n, m] for n, m in pairs], rtol=1e-13)
    assert result[1] == result[2] == 0.0
    np.testing.assert_allclose(distances_between(X[:4], X), expected[:4], rtol=1e-13)


def test_distances_to_a_row_do_not_depend_on_other_rows(X):
    joint = distances_between(X, X[::2])
    alone = [distances_between(row[None], X[::2])[0] for row in X]
    np.testing.assert_array_equal(joint, alone)


@pytest.mark.parametrize("count", [1, 4])
def test_neighbours_are_the_nearest(X, count):
    expected = distances(X)
    np.fill_diagonal(expected, np.inf)
    result = nearest_rows(X, count).matrix.toarray()
    np.testing.assert_array_equal(result.sum(axis=1), count)
    assert not result.diagonal().any()
    for n in range(len(X)):
        taken = expected[n, result[n] > 0]
        others = np.delete(expected[n], np.append(np.flatnonzero(result[n]), n))
        assert taken.max() <= others.min() * (1 + 1e-9)


def test_gaussian_similarities_are_those_of_the_distances(X):
    expected = np.exp(-0.5 * (distances(X) / 1.3) ** 2)
    np.fill_diagonal(expected, 0.0)
    result = po.graphs.gaussian_graph(X, 1.3).similarities.toarray()
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    sparse = po.graphs.gaussian_graph(X, 1.3, cutoff=0.05).similarities.toarray()
    np.testing.assert_allclose(
        sparse, np.where(expected >= 0.05, expected, 0), rtol=1e-12
    )
    ours = distances(X)
    upper = ours[np.triu_indices(len(X), 1)]
    expected = np.median(upper[upper > 0])
    assert median_distance(X) == pytest.approx(expected, rel=1e-13)


def test_threshold_graph_of_incomplete_rows(X):
    expected = distances(X) ** 2 <= 3.0
    np.fill_diagonal(expected, False)
    result = po.graphs.threshold_graph(X, 3.0).similarities.toarray()
    np.testing.assert_array_equal(result, expected)


def test_words_are_refused_by_the_name_of_their_column():
    X = pd.DataFrame({"age": [1.0, 2.0, None], "region": ["a", None, "b"]})
    message = "column 'region', row 0 holds 'a'"
    with pytest.raises(po.errors.InvalidInput, match=message):
        po.graphs.knn_graph(X.astype({"region": "category"}), 1)
    coordinates = po.functions.TableSchema.of(X).coordinates(X)
    assert po.graphs.knn_graph(coordinates, 1).n_nodes == 3


@pytest.mark.parametrize("size", [1e-100, 1e-3, 1.0, 1e150])
def test_a_mismatch_is_one_at_any_scale(size):
    X = size * np.array([[1.0, 2.0], [1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]])
    expected = [1, np.hypot(2 * size, 1), np.sqrt(2), 2 * size, 1, 1]
    np.testing.assert_allclose(all_distances(X), expected, rtol=1e-14)


def test_neighbours_far_off_by_their_differences(rng):
    X = np.round(rng.normal(size=(40, 3)) * 2**10) / 2**10
    X[rng.random(X.shape) < 0.2] = np.nan
    expected = nearest_rows(X, 3).matrix.toarray()
    far = np.concatenate([X, X + 2.0**27])
    result = nearest_rows(far, 3).matrix.toarray()
    close = distances(X)
    np.fill_diagonal(close, np.inf)
    for n in range(40):
        if np.isnan(X[n]).all():
            continue
        ties = np.sort(close[n])
        if ties[2] == ties[3]:
            continue
        assert (result[n, :40] > 0).sum() >= 1
        np.testing.assert_array_equal(result[n, :40], expected[n])


BUILDERS = {
    "knn": lambda X, **same: po.graphs.knn_graph(X, 4, **same),
    "knn, gaussian": lambda X, **same: po.graphs.knn_graph(
        X, 4, weights="gaussian", **same
    ),
    "gaussian": lambda X, **same: po.graphs.gaussian_graph(X, **same),
    "threshold": lambda X, **same: po.graphs.threshold_graph(X, 4.0, **same),
}


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_edges_across_patterns_are_counted_and_dropped(build, X):
    graph = build(X)
    absent = np.isnan(X)
    across = [(absent[n] != absent[m]).any() for n, m in graph.edges]
    assert po.graphs.share_across_patterns(graph, X) == pytest.approx(np.mean(across))
    inside = build(X, same_pattern=True)
    assert po.graphs.share_across_patterns(inside, X) == 0.0
    same = (absent[:, None] == absent).all(axis=2)
    expected = graph.similarities.toarray() * same
    np.testing.assert_array_equal(inside.similarities.toarray(), expected)
    assert inside.kind == graph.kind
    assert inside.parameters == graph.parameters


def test_graphs_have_the_names_of_rows():
    X = pd.DataFrame({"a": [1.0, np.nan, 2.0]}, index=list("pqr"))
    assert po.graphs.knn_graph(X, 1, same_pattern=True).names == ("p", "q", "r")
    assert within_patterns(po.graphs.knn_graph(X, 1), X).names == ("p", "q", "r")


def test_many_incomplete_rows_are_put_together_in_blocks(monkeypatch, X):
    from propopt.base.resources import Budget
    from propopt.losses.graphs import distances, nearest

    expected = po.graphs.knn_graph(X, 4).similarities.toarray()
    every = all_distances(X)
    for module in (distances, nearest):
        monkeypatch.setattr(module, "BATCH_BUDGET", Budget(1))
    np.testing.assert_array_equal(
        po.graphs.knn_graph(X, 4).similarities.toarray(), expected
    )
    np.testing.assert_array_equal(all_distances(X), every)


def test_correlations_are_those_of_the_rows_that_have_both(rng):
    X = rng.normal(size=(40, 4)) @ rng.normal(size=(4, 6)) + 1e4
    X[rng.random(X.shape) < 0.3] = np.nan
    X[:, 4] = np.where(np.isnan(X[:, 4]), np.nan, 7.1)  # constant
    X[2:, 5] = np.nan  # two rows at most
    frame = pd.DataFrame(X)
    expected = frame.corr(min_periods=3).abs().fillna(0.0).to_numpy(copy=True)
    np.fill_diagonal(expected, 0.0)
    expected[4] = expected[:, 4] = 0.0
    result = po.graphs.correlation_graph(X).similarities.toarray()
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)
    assert (expected[:4, :4] > 0).sum() == 12
