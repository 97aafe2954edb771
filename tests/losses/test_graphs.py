"""Similarity graphs: every factory against its definition, and ordered pairs."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from catalogue import EMPTY_GRAPH, FEATURE_GRAPHS, POINT_GRAPHS, D, N, X
from oracles import pair_sum
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics.pairwise import cosine_similarity

import propopt as po
from propopt.losses.graphs.distances import median_distance
from propopt.losses.graphs.grids import GridGaussianGraph, LatticeGraph
from propopt.losses.graphs.nearest import nearest_rows


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
def test_roots_traces_and_differences_are_sums_over_ordered_pairs(graph, rng):
    W = rng.normal(size=(graph.n_nodes, 3))
    double_sum = pair_sum(W, dense(graph))
    assert 2 * np.trace(W.T @ graph.laplacian @ W) == pytest.approx(double_sum)
    assert ((graph.root @ W) ** 2).sum() == pytest.approx(double_sum)
    assert graph.differences.energy(W) == pytest.approx(double_sum)
    ends = graph.edges
    np.testing.assert_array_equal(graph.incidence @ W, W[ends[:, 0]] - W[ends[:, 1]])


@each_graph
def test_graphs_are_symmetric_and_list_their_edges(graph):
    S = dense(graph)
    np.testing.assert_allclose(S, S.T, rtol=0, atol=1e-15)
    assert not S.diagonal().any()
    np.testing.assert_allclose(graph.laplacian.sum(axis=1), 0, atol=1e-13)
    pairs = np.argwhere(np.triu(S) != 0)
    assert set(map(tuple, graph.edges)) == set(map(tuple, pairs))
    assert graph.n_edges == len(pairs)
    assert f"{graph.n_nodes} nodes, {graph.n_edges} edges" in repr(graph)


# ---- formulas
def gaussian(lengthscale, where=OFF_DIAGONAL, squares=SQUARES):
    return np.where(where, np.exp(-squares / (2 * lengthscale**2)), 0)


def apart(*shape):
    """Steps between the places of a grid, (n, n)."""
    position = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
    return np.abs(position[:, None] - position[None]).sum(axis=2)


LABELS = np.array(["b", "a", "b", "c", "a", "b"])
AXES = [np.array([0.0, 1.0, 3.0]), np.array([-1.0, 0.5])]
AT_GRID = np.stack(np.meshgrid(*AXES, indexing="ij"), axis=-1).reshape(-1, 2)
TWO_NEAREST = dense(po.graphs.knn_graph(X, 2)) > 0
GRID_SQUARES = ((GRID[:, None] - GRID[None]) ** 2).sum(axis=2)
FORMULAS = {
    "gaussian": (po.graphs.gaussian_graph(X, 1.7), gaussian(1.7)),
    "cut": (
        po.graphs.gaussian_graph(X, 2.0, cutoff=0.2),
        np.where(gaussian(2.0) >= 0.2, gaussian(2.0), 0),
    ),
    "of a frame": (
        po.graphs.gaussian_graph(pd.DataFrame(X)),
        dense(po.graphs.gaussian_graph(X)),
    ),
    "threshold": (po.graphs.threshold_graph(X, 6.0), (SQUARES <= 6.0) & OFF_DIAGONAL),
    **{  # points exactly at the threshold are joined
        f"threshold {most}": (
            po.graphs.threshold_graph(GRID, most),
            (most >= GRID_SQUARES) & ~np.eye(len(GRID), dtype=bool),
        )
        for most in (1, 2, 3, 4, 5, 6, 8, 9, 12)
    },
    "nearest": (
        po.graphs.knn_graph(X, 2, weights="gaussian", lengthscale=0.9),
        gaussian(0.9, TWO_NEAREST),
    ),
    "grid": (
        GridGaussianGraph(AXES, 1.3),
        dense(po.graphs.gaussian_graph(AT_GRID, 1.3)),
    ),
    "grid of points": (
        po.graphs.grid_gaussian_graph(AT_GRID),
        dense(po.graphs.gaussian_graph(AT_GRID)),
    ),
    "complete": (po.graphs.complete_graph(N), OFF_DIAGONAL),
    "chain": (po.graphs.chain_graph(5), apart(5) == 1),
    **{
        f"pixels {shape}": (po.graphs.pixel_graph(*shape), apart(*shape) == 1)
        for shape in [(1, 1), (1, 4), (3, 1), (3, 4)]
    },
    "groups": (
        po.graphs.group_graph(LABELS),
        (LABELS[:, None] == LABELS) & ~np.eye(6, dtype=bool),
    ),
}


@pytest.mark.parametrize(("graph", "expected"), FORMULAS.values(), ids=FORMULAS)
def test_similarities_follow_their_formula(graph, expected):
    np.testing.assert_allclose(dense(graph), expected, rtol=1e-12)


def test_lengthscales_are_medians_and_reported(rng):
    expected = np.median(np.sqrt(SQUARES[np.triu_indices(N, 1)]))
    graph = po.graphs.gaussian_graph(X)
    assert graph.parameters["lengthscale"] == pytest.approx(expected)
    assert f"lengthscale={expected:.6g}" in repr(graph)
    expected = np.median(np.sqrt(SQUARES[np.triu(TWO_NEAREST)]))  # along its edges
    graph = po.graphs.knn_graph(X, 2, weights="gaussian")
    assert graph.parameters["lengthscale"] == pytest.approx(expected)
    assert po.graphs.gaussian_graph(X, 2.0, cutoff=0.2).parameters["cutoff"] == 0.2
    # points that coincide are left out, and of many some, evenly spaced
    assert median_distance(np.array([[0.0], [0.0], [0.0], [0.0], [3.0]])) == 3.0
    many = rng.normal(size=(4001, 1))
    assert median_distance(many) == median_distance(many[::3])


@pytest.mark.parametrize("n_features", [1, 3, 15, 16])
def test_neighbours_are_the_nearest_of_all(n_features, rng):
    X = rng.normal(size=(60, n_features))
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    close = np.zeros((60, 60))
    np.put_along_axis(close, np.argsort(distances, axis=1)[:, :5], 1.0, axis=1)
    result = dense(po.graphs.knn_graph(X, 5))
    np.testing.assert_array_equal(result, np.maximum(close, close.T))


def test_points_that_coincide_or_are_far_apart():
    points = np.array([[0.0], [0.0], [5.0]])
    for graph in (
        po.graphs.gaussian_graph(points, 1.0),
        po.graphs.threshold_graph(points, 0.0),
    ):
        assert dense(graph)[0, 1] == 1.0
    many = dense(po.graphs.knn_graph(np.zeros((12, 2)), 3))
    assert (many.diagonal() == 0).all()
    assert (many.sum(axis=1) >= 3).all()
    far = np.arange(5.0)[:, None]
    graph = po.graphs.knn_graph(far, 1, weights="gaussian", lengthscale=1e-3)
    assert (graph.n_edges, graph.n_components) == (0, 5)
    assert po.graphs.group_graph(LABELS).n_components == 3


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9])
def test_a_constant_column_is_similar_to_none(constant):
    points = X.copy()
    points[:, 1] = constant
    graph = po.graphs.correlation_graph(points)
    assert not dense(graph)[1].any()
    assert graph.n_edges == (D - 1) * (D - 2) // 2


# ---- matrices
@pytest.mark.parametrize(
    "form",
    [np.asarray, sp.csr_array, sp.coo_matrix, sp.csc_array, pd.DataFrame],
    ids=lambda form: form.__name__,
)
@pytest.mark.parametrize("kind", [float, int, bool])
def test_matrix_may_be_dense_or_sparse_of_any_numbers(form, kind):
    matrix = dense(POINT_GRAPHS["knn"]).astype(kind)
    np.testing.assert_array_equal(
        dense(po.graphs.graph_from_matrix(form(matrix))), matrix
    )


def test_matrices_are_copied_added_up_and_taken_apart():
    matrix = sp.csr_array(np.ones((3, 3)) - np.eye(3))
    matrix.data[:2] = 0.0
    matrix.data[[2, 4]] = 0.0
    graph = po.graphs.graph_from_matrix(matrix)
    assert matrix.nnz == 6
    matrix.data[:] = 7.0
    assert dense(graph).max() == 1.0
    pairs = (np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    matrix = sp.coo_array((np.array([1.0, 2.0, 3.0, 0.0]), pairs), shape=(2, 2))
    assert po.graphs.graph_from_matrix(matrix).n_edges == 1
    matrix = np.zeros((5, 5))
    matrix[0, 1] = matrix[1, 0] = matrix[2, 3] = matrix[3, 2] = 0.4
    assert po.graphs.graph_from_matrix(matrix).n_components == 3


# ---- points that are far off, tiny, huge and doubled
SCALES = {"tiny": 2.0**-1000, "one": 1.0, "huge": 2.0**1000}
BUILDERS = {
    "gaussian": lambda X, size: po.graphs.gaussian_graph(X, 1.5 * size),
    "gaussian, own": lambda X, _: po.graphs.gaussian_graph(X),
    "gaussian, cut": lambda X, size: po.graphs.gaussian_graph(
        X, 2.0 * size, cutoff=0.2
    ),
    "knn": lambda X, _: po.graphs.knn_graph(X, 3),
    "knn, gaussian": lambda X, _: po.graphs.knn_graph(X, 3, weights="gaussian"),
    "correlation": lambda X, _: po.graphs.correlation_graph(X),
}
each_builder = pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)


def points(rng: np.random.Generator, n_features: int) -> np.ndarray:
    """Multiples of 2⁻¹⁰, to which 2²⁷ = 1.3e8 can be added exactly."""
    return np.round(rng.normal(size=(40, n_features)) * 2**10) / 2**10


@each_builder
@pytest.mark.parametrize("size", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("n_features", [2, 20])
def test_graphs_do_not_know_the_scale_of_points_nor_how_far_off_they_are(
    build, size, n_features, rng
):
    X = points(rng, n_features)
    expected = build(X, 1.0).similarities.toarray()
    result = build(size * X, size).similarities.toarray()
    np.testing.assert_allclose(result, expected, rtol=1e-13)
    result = build(X + 2.0**27, 1.0).similarities.toarray()
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n_features", [3, 30])
def test_neighbours_in_each_of_two_groups_far_apart(n_features, rng):
    group = points(rng, n_features)
    X = np.concatenate([group, group + 2.0**27])
    distances = ((group[:, None] - group[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    close = np.argsort(distances, axis=1)[:, :4]
    result = nearest_rows(X, 4).matrix.toarray()
    for n in range(40):
        assert set(np.flatnonzero(result[n])) == set(close[n])
        assert set(np.flatnonzero(result[40 + n])) == set(40 + close[n])


@pytest.mark.parametrize("n_features", [3, 30])
@pytest.mark.parametrize("offset", [0.0, 0.1, 1e8])
def test_doubled_points_are_neighbours_of_each_other(n_features, offset, rng):
    X = np.repeat(rng.normal(size=(30, n_features)), 2, axis=0) + offset
    result = nearest_rows(X, 1).matrix.toarray()
    np.testing.assert_array_equal(result, np.kron(np.eye(30), [[0, 1], [1, 0]]))


@pytest.mark.parametrize("size", SCALES.values(), ids=SCALES)
def test_threshold_graph_at_every_scale(size, rng):
    X = points(rng, 3)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    result = po.graphs.threshold_graph(
        2.0**500 * X, 2.0 * 2.0**1000
    ).similarities.toarray()
    np.testing.assert_array_equal(result, (squares <= 2.0) & ~np.eye(40, dtype=bool))
    everything = po.graphs.threshold_graph(X / 2.0**1000, size * 1e4)
    assert everything.n_edges == 40 * 39 // 2


@pytest.mark.parametrize("lengthscale", [1e-300, 1e-20, 1e20, 1e300])
def test_similarities_at_extreme_lengthscales_are_zero_or_one(lengthscale, rng):
    X = points(rng, 2)
    graphs = (
        po.graphs.gaussian_graph(X, lengthscale),
        po.graphs.gaussian_graph(X, lengthscale, cutoff=0.5),
        po.graphs.knn_graph(X, 39, weights="gaussian", lengthscale=lengthscale),
    )
    for graph in graphs:
        expected = 0 if lengthscale < 1 else 40 * 39 // 2
        assert graph.n_edges == expected
        assert (graph.similarities.data == 1.0).all()


def test_correlation_of_columns_with_a_large_mean_and_a_small_spread(rng):
    small = points(rng, 4) * 2.0**-15
    expected = np.abs(np.corrcoef(small.T))
    np.fill_diagonal(expected, 0.0)
    result = po.graphs.correlation_graph(small + 2.0**27).similarities.toarray()
    np.testing.assert_allclose(result, expected, rtol=1e-10)


def test_the_last_digits_of_a_constant_column_are_no_spread(rng):
    X = points(rng, 3)
    X[:, 1] = 0.3
    X[::2, 1] = 0.1 + 0.2
    assert not po.graphs.correlation_graph(X).similarities.toarray()[1].any()


# ---- the cosine of an angle, of documents that of tf-idf
RAYS = (
    np.random.default_rng(4).normal(size=(14, 5)) * np.geomspace(1e-3, 1e3, 14)[:, None]
)
COUNTS = np.random.default_rng(2).poisson(0.6, size=(12, 9)).astype(float)
COUNTS[4] = 0.0
KINDS = {
    "points": (po.graphs.cosine_graph, RAYS, cosine_similarity(RAYS)),
    "documents": (
        po.graphs.document_graph,
        COUNTS,
        cosine_similarity(TfidfTransformer().fit_transform(COUNTS)),
    ),
}
each_kind = pytest.mark.parametrize(("build", "table", "cosines"), KINDS.values())


@each_kind
@pytest.mark.parametrize("most", [1, 3, 11])
def test_an_edge_is_where_either_is_among_the_nearest_of_the_other(
    build, table, cosines, most
):
    full = np.maximum(cosines, 0.0)
    np.fill_diagonal(full, 0.0)
    close = np.zeros(full.shape, bool)
    for n, row in enumerate(full):
        close[n, np.argsort(-row, kind="stable")[:most]] = True
    result = build(table, most).similarities.toarray()
    np.testing.assert_allclose(result, np.where(close | close.T, full, 0.0), atol=1e-14)
    assert build is not po.graphs.cosine_graph or (cosines < 0.0).any()


@each_kind
def test_names_and_parameters_of_graphs(build, table, cosines):
    graph = build(pd.DataFrame(table, index=[f"row {n}" for n in range(len(table))]), 2)
    assert graph.names == tuple(f"row {n}" for n in range(len(cosines)))
    assert graph.parameters == {"n_neighbors": 2}
    assert graph.again(3).parameters == {"n_neighbors": 3}
