"""Similarity graphs: every factory against its definition, and ordered pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from catalogue import EMPTY_GRAPH, FEATURE_GRAPHS, POINT_GRAPHS, D, N, X
from oracles import pair_sum

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.losses.graphs.grids import GridGaussianGraph, LatticeGraph
from propopt.losses.graphs.points import median_distance


GRAPHS = {
    **{f"points, {name}": graph for name, graph in POINT_GRAPHS.items()},
    **{f"features, {name}": graph for name, graph in FEATURE_GRAPHS.items()},
    "no edges": EMPTY_GRAPH,
    "lattice": LatticeGraph((2, 1, 3)),
    "grid": GridGaussianGraph([np.arange(3.0), np.array([0.0, 0.5])], 1.2),
}
each_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
SQUARES = ((X[:, None] - X[None]) ** 2).sum(axis=2)
OFF_DIAGONAL = ~np.eye(N, dtype=bool)
GRID = np.stack(np.meshgrid(*3 * [np.arange(3.0)], indexing="ij"), axis=-1).reshape(
    -1, 3
)


def dense(graph: po.graphs.SimilarityGraph) -> np.ndarray:
    return graph.similarities.toarray()


@each_graph
def test_sum_over_ordered_pairs_is_twice_the_trace(graph, rng):
    W = rng.normal(size=(graph.n_nodes, 3))
    double_sum = pair_sum(W, dense(graph))
    assert 2 * np.trace(W.T @ graph.laplacian @ W) == pytest.approx(double_sum)


@each_graph
def test_root_squares_to_the_sum_over_ordered_pairs(graph, rng):
    W = rng.normal(size=(graph.n_nodes, 3))
    assert ((graph.root @ W) ** 2).sum() == pytest.approx(pair_sum(W, dense(graph)))


@each_graph
def test_differences_have_the_energy_of_the_ordered_pairs(graph, rng):
    W = rng.normal(size=(graph.n_nodes, 3))
    assert graph.differences.energy(W) == pytest.approx(pair_sum(W, dense(graph)))


@each_graph
def test_similarities_are_symmetric_with_zero_diagonal(graph):
    np.testing.assert_allclose(dense(graph), dense(graph).T, rtol=0, atol=1e-15)
    assert not dense(graph).diagonal().any()


@each_graph
def test_laplacian_has_zero_row_sums(graph):
    np.testing.assert_allclose(graph.laplacian.sum(axis=1), 0, atol=1e-13)


@each_graph
def test_edges_are_the_pairs_that_are_similar(graph):
    pairs = np.argwhere(np.triu(dense(graph)) != 0)
    assert set(map(tuple, graph.edges)) == set(map(tuple, pairs))
    assert graph.n_edges == len(pairs)


@each_graph
def test_incidence_takes_differences_along_edges(graph, rng):
    W = rng.normal(size=(graph.n_nodes, 2))
    ends = graph.edges
    np.testing.assert_array_equal(graph.incidence @ W, W[ends[:, 0]] - W[ends[:, 1]])


@each_graph
def test_repr_gives_sizes(graph):
    assert f"{graph.n_nodes} nodes, {graph.n_edges} edges" in repr(graph)


def test_gaussian_similarities_follow_their_formula():
    expected = np.where(OFF_DIAGONAL, np.exp(-SQUARES / (2 * 1.7**2)), 0)
    np.testing.assert_allclose(dense(po.gaussian_graph(X, 1.7)), expected, rtol=1e-12)


def test_lengthscale_is_the_median_distance_and_reported():
    expected = np.median(np.sqrt(SQUARES[np.triu_indices(N, 1)]))
    graph = po.gaussian_graph(X)
    assert graph.parameters["lengthscale"] == pytest.approx(expected)
    assert f"lengthscale={expected:.6g}" in repr(graph)


def test_median_distance_leaves_out_coinciding_points():
    assert median_distance(np.array([[0.0], [0.0], [0.0], [0.0], [3.0]])) == 3.0


def test_median_distance_of_many_points_is_that_of_evenly_spaced_ones(rng):
    points = rng.normal(size=(4001, 1))
    assert median_distance(points) == median_distance(points[::3])


def test_cutoff_drops_small_similarities_only():
    full = dense(po.gaussian_graph(X, 2.0))
    cut = po.gaussian_graph(X, 2.0, cutoff=0.2)
    np.testing.assert_allclose(dense(cut), np.where(full >= 0.2, full, 0), rtol=1e-12)
    assert cut.parameters["cutoff"] == 0.2


def test_threshold_graph_joins_points_within_the_squared_distance():
    expected = (SQUARES <= 6.0) & OFF_DIAGONAL
    np.testing.assert_array_equal(dense(po.threshold_graph(X, 6.0)), expected)


@pytest.mark.parametrize("threshold", [1, 2, 3, 4, 5, 6, 8, 9, 12])
def test_points_exactly_at_the_threshold_are_joined(threshold):
    squares = ((GRID[:, None] - GRID[None]) ** 2).sum(axis=2)
    expected = (squares <= threshold) & ~np.eye(len(GRID), dtype=bool)
    graph = po.threshold_graph(GRID, threshold)
    np.testing.assert_array_equal(dense(graph), expected)


def test_knn_graph_weighs_its_edges():
    joined = dense(po.knn_graph(X, 2)) > 0
    graph = po.knn_graph(X, 2, weights="gaussian", lengthscale=0.9)
    expected = np.where(joined, np.exp(-SQUARES / (2 * 0.9**2)), 0)
    np.testing.assert_allclose(dense(graph), expected, rtol=1e-12)


def test_knn_lengthscale_is_the_median_along_its_edges():
    joined = np.triu(dense(po.knn_graph(X, 2))) > 0
    graph = po.knn_graph(X, 2, weights="gaussian")
    expected = np.median(np.sqrt(SQUARES[joined]))
    assert graph.parameters["lengthscale"] == pytest.approx(expected)


def test_similarities_that_vanish_are_no_edges():
    graph = po.knn_graph(
        np.arange(5.0)[:, None], 1, weights="gaussian", lengthscale=1e-3
    )
    assert (graph.n_edges, graph.n_components) == (0, 5)


def test_grid_graph_is_the_gaussian_graph_of_its_points():
    axes = [np.array([0.0, 1.0, 3.0]), np.array([-1.0, 0.5])]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    expected = dense(po.gaussian_graph(points, 1.3))
    np.testing.assert_allclose(
        dense(GridGaussianGraph(axes, 1.3)), expected, rtol=1e-12
    )


def test_complete_graph_joins_all_pairs():
    np.testing.assert_array_equal(dense(po.complete_graph(N)), OFF_DIAGONAL)


def test_chain_graph_joins_neighbouring_columns():
    apart = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    np.testing.assert_array_equal(dense(po.chain_graph(5)), apart == 1)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 1), (3, 4)])
def test_pixel_graph_joins_the_four_neighbours(shape):
    place = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
    apart = np.abs(place[:, None] - place[None]).sum(axis=2)
    np.testing.assert_array_equal(dense(po.pixel_graph(*shape)), apart == 1)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9])
def test_a_constant_column_is_similar_to_none(constant):
    points = X.copy()
    points[:, 1] = constant
    graph = po.correlation_graph(points)
    assert not dense(graph)[1].any()
    assert graph.n_edges == (D - 1) * (D - 2) // 2


def test_group_graph_joins_equal_labels():
    labels = np.array(["b", "a", "b", "c", "a", "b"])
    expected = (labels[:, None] == labels) & ~np.eye(6, dtype=bool)
    graph = po.group_graph(labels)
    np.testing.assert_array_equal(dense(graph), expected)
    assert graph.n_components == 3


@pytest.mark.parametrize(
    "form",
    [np.asarray, sp.csr_array, sp.coo_matrix, sp.csc_array, pd.DataFrame],
    ids=lambda form: form.__name__,
)
@pytest.mark.parametrize("kind", [float, int, bool])
def test_matrix_may_be_dense_or_sparse_of_any_numbers(form, kind):
    matrix = dense(POINT_GRAPHS["knn"]).astype(kind)
    np.testing.assert_array_equal(dense(po.graph_from_matrix(form(matrix))), matrix)


def test_graph_shares_no_memory_with_its_matrix():
    matrix = sp.csr_array(np.ones((3, 3)) - np.eye(3))
    matrix.data[:2] = 0.0
    matrix.data[[2, 4]] = 0.0
    graph = po.graph_from_matrix(matrix)
    assert matrix.nnz == 6
    matrix.data[:] = 7.0
    assert dense(graph).max() == 1.0


def test_entries_given_twice_are_added():
    pairs = (np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    matrix = sp.coo_array((np.array([1.0, 2.0, 3.0, 0.0]), pairs), shape=(2, 2))
    assert po.graph_from_matrix(matrix).n_edges == 1


def test_precomputed_graph_counts_components():
    matrix = np.zeros((5, 5))
    matrix[0, 1] = matrix[1, 0] = matrix[2, 3] = matrix[3, 2] = 0.4
    assert po.graph_from_matrix(matrix).n_components == 3


def test_coinciding_points_have_similarity_one():
    points = np.array([[0.0], [0.0], [5.0]])
    for graph in (po.gaussian_graph(points, 1.0), po.threshold_graph(points, 0.0)):
        assert dense(graph)[0, 1] == 1.0


def test_points_may_be_a_frame():
    frame = pd.DataFrame(X, columns=list("abcd"))
    np.testing.assert_array_equal(
        dense(po.gaussian_graph(frame)), dense(po.gaussian_graph(X))
    )


BAD_MATRICES = {
    "not square": (np.zeros((2, 3)), "square"),
    "diagonal": (np.eye(3), "zero diagonal"),
    "not symmetric": (np.triu(np.ones((3, 3)), 1), "symmetric"),
    "not finite": (np.full((2, 2), np.nan), "not finite"),
    "not finite, sparse": (
        sp.csr_array(np.array([[0, np.inf], [np.inf, 0]])),
        "finite",
    ),
    "one axis": (np.zeros(3), "dimensions"),
    "empty": (np.zeros((0, 0)), "empty"),
    "empty, sparse": (sp.csr_array((0, 0)), "empty"),
    "words": ([["a", "b"], ["c", "d"]], "numbers"),
}


@pytest.mark.parametrize(("matrix", "words"), BAD_MATRICES.values(), ids=BAD_MATRICES)
def test_bad_matrix_is_refused(matrix, words):
    with pytest.raises(InvalidInput, match=words):
        po.graph_from_matrix(matrix)


def test_indefinite_similarities_are_refused_with_the_smallest_eigenvalue():
    matrix = np.array([[0.0, -1.0], [-1.0, 0.0]])  # the Laplacian has eigenvalue −2
    with pytest.raises(InvalidInput, match="smallest eigenvalue -2"):
        po.graph_from_matrix(matrix)


BAD_SETTINGS = {
    "lengthscale": lambda: po.gaussian_graph(X, 0.0),
    "lengthscale of words": lambda: po.gaussian_graph(X, "wide"),
    "cutoff": lambda: po.gaussian_graph(X, 1.0, cutoff=1.0),
    "threshold": lambda: po.threshold_graph(X, -1.0),
    "n_neighbors": lambda: po.knn_graph(X, N),
    "n_neighbors as a fraction": lambda: po.knn_graph(X, 1.5),
    "weights": lambda: po.knn_graph(X, 1, weights="linear"),
    "n_nodes": lambda: po.complete_graph(0),
    "height": lambda: po.pixel_graph(0, 2),
    "labels": lambda: po.group_graph([]),
}


@pytest.mark.parametrize(("name", "make"), BAD_SETTINGS.items(), ids=BAD_SETTINGS)
def test_bad_setting_is_named(name, make):
    with pytest.raises(InvalidInput, match=f"^{name.split()[0]}:"):
        make()


@pytest.mark.parametrize("n_features", [1, 3, 15, 16])
def test_neighbours_are_the_nearest_of_all(n_features, rng):
    X = rng.normal(size=(60, n_features))
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    near = np.zeros((60, 60))
    np.put_along_axis(near, np.argsort(distances, axis=1)[:, :5], 1.0, axis=1)
    result = po.knn_graph(X, 5).similarities.toarray()
    np.testing.assert_array_equal(result, np.maximum(near, near.T))


def test_many_duplicates_have_neighbours_and_none_is_its_own():
    graph = po.knn_graph(np.zeros((12, 2)), 3)
    similarities = graph.similarities.toarray()
    assert (similarities.diagonal() == 0).all()
    assert (similarities.sum(axis=1) >= 3).all()
