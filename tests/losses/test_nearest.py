"""Nearest rows by random projections, against all distances."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import propopt as po
from propopt.base import resources
from propopt.losses.graphs import nearest
from propopt.losses.graphs.distances import Unit, squares_between
from propopt.losses.graphs.nearest import Recall, nearest_rows
from propopt.losses.graphs.neighbours import RowNeighbours


@pytest.fixture(autouse=True)
def _searched_from_1000_rows(monkeypatch):
    monkeypatch.setattr(nearest, "EXACT_ROWS", 1000)
    monkeypatch.setattr(nearest, "_LEAF", 64)


def _table(n_rows=3000, n_columns=12, seed=0):
    """Rows near a surface of three dimensions, as columns of tables are correlated."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_rows, 3)) @ rng.normal(size=(3, n_columns))
    return Z + 0.3 * rng.normal(size=(n_rows, n_columns))


def _squares(X):
    """Squared distances of all pairs, infinite on the diagonal."""
    unit = Unit.of(X)
    squares = squares_between(unit.points, unit.points, unit.mismatch)
    np.fill_diagonal(squares, np.inf)
    return squares


def _true_recall(X, indices):
    """The share of the true nearest rows that are found, for each row."""
    squares, count = _squares(X), indices.shape[1]
    limits = np.partition(squares, count - 1, axis=1)[:, count - 1]
    found = np.take_along_axis(squares, indices, axis=1) <= limits[:, None]
    return found.mean(axis=1)


@pytest.mark.parametrize("missing", [0.0, 0.02])
@pytest.mark.parametrize("goal", [0.6, 0.95])
def test_recall_is_what_it_is_said_to_be(goal, missing):
    X = _table()
    X[np.random.default_rng(1).random(X.shape) < missing] = np.nan
    result = nearest_rows(X, 8, goal)
    shares = _true_recall(X, result.indices)
    # z-score of the mean of 500 of 3,000 rows: above 4.5 in 7 of a million runs
    error = shares.std() / np.sqrt(500.0)
    assert abs(result.recall.share - shares.mean()) < 4.5 * error
    assert shares.mean() > goal - 4.5 * error


def test_neighbours_are_distinct_other_rows():
    result = nearest_rows(_table(), 8)
    assert result.indices.shape == (3000, 8)
    assert not (result.indices == np.arange(3000)[:, None]).any()
    assert all(len(set(row)) == 8 for row in result.indices.tolist())


def test_a_goal_of_one_gives_exact_neighbours():
    X = _table()
    result = nearest_rows(X, 8, 1.0)
    assert result.recall is None
    np.testing.assert_array_equal(_true_recall(X, result.indices), 1.0)


def test_few_rows_or_columns_are_searched_exactly():
    assert nearest_rows(_table(900), 8).recall is None
    assert nearest_rows(_table(3000, n_columns=5), 8).recall is None
    assert nearest_rows(_table(3000, n_columns=6), 8).recall is not None


def test_neighbours_do_not_depend_on_threads(monkeypatch):
    X = _table()
    alone = nearest_rows(X, 8).indices
    monkeypatch.setattr(resources, "SERIAL_BELOW", 0)
    np.testing.assert_array_equal(nearest_rows(X, 8).indices, alone)


def test_the_true_distances_of_sampled_rows_are_exact():
    X = _table() * 1e6 + 1e8  # a large offset costs digits of products
    X[:40] = X[40:80]  # equal rows
    unit = Unit.of(X)
    forest = nearest.ProjectionForest(unit, 8)
    for leaf in (32, 64, 64):
        forest.add_tree(leaf)
    rows = np.arange(0, 3000, 7)
    expected = np.partition(_squares(X)[rows], 7, axis=1)[:, 7]
    np.testing.assert_allclose(forest.true_limits(rows), expected, rtol=1e-9)


def test_the_graph_of_an_approximate_search_has_its_recall():
    X = _table()
    graph = po.graphs.knn_graph(X, 8)
    assert graph.parameters["recall"] > 0.98
    assert 0.0 < graph.parameters["recall_error"] < 0.02
    assert ", recall=0.98" in repr(graph)
    exact = po.graphs.knn_graph(X, 8, recall=1)
    assert "recall" not in exact.parameters
    shared = graph.similarities.multiply(exact.similarities).nnz
    assert shared > 0.97 * exact.similarities.nnz
    assert graph.again is None  # it does not retain the points
    assert exact.again(4).n_edges < exact.n_edges
    falling = po.graphs.knn_graph(X, 8, weights="gaussian")
    assert falling.parameters["recall"] == graph.parameters["recall"]


def test_results_say_that_similar_rows_are_approximate(tmp_path):
    X = _table()
    objective = po.GradientMatching(X) + po.PairwiseRobustness(
        po.graphs.knn_graph(X, 8)
    )
    best = po.solve(objective)
    said = best.parameters["similar rows"]
    assert said.startswith("98.")
    assert best.document().facts["similar rows"].value == said
    path = tmp_path / "best.npz"
    best.save(path)
    assert po.results.Explanation.load(path).parameters["similar rows"] == said
    exact = po.graphs.knn_graph(X, 8, recall=1)
    alike = po.solve(po.GradientMatching(X) + po.PairwiseRobustness(exact))
    assert "similar rows" not in alike.parameters


def test_falling_similarities_are_searched_too():
    X = _table()
    graph = RowNeighbours(X, 8).graph
    assert graph.parameters["recall"] > 0.98
    nearest_8 = np.argsort(cdist(X, X), axis=1)[:, 1:9]
    rows = np.repeat(np.arange(3000), 8)
    found = graph.similarities[rows, nearest_8.ravel()] > 0.0
    assert found.mean() > 0.97


def test_the_error_of_a_recall_covers_it():
    rng = np.random.default_rng(3)
    covered = []
    for p in (0.9, 0.99, 0.999):
        for _ in range(400):
            shares = rng.binomial(8, p, size=500) / 8.0
            recall = Recall.of(shares)
            covered.append(abs(recall.share - p) <= recall.error)
    # 95 % or more are covered; below 92.2 % in one of a million runs
    assert np.mean(covered) > 0.922
