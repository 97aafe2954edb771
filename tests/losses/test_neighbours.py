"""Who is similar to a row: by plain loops over distances, and limits that are known."""

import numpy as np
import pytest
from contribution_program import nearest_of, reach_of, similarities_of

from propopt.losses.graphs import neighbours as module
from propopt.losses.graphs.neighbours import RowNeighbours, shares_of_ties


def rows_with_ties(n=60, seed=0):
    """Normal rows, equal rows, and rows of a grid."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3))
    rows[5] = rows[6] = rows[7]
    rows[20:40] = rng.integers(3, size=(20, 3))
    rows[50] *= 30.0  # far from all
    return rows


@pytest.mark.parametrize("k", [1, 3, 8])
def test_the_graph_is_that_of_loops_over_distances(k):
    rows = rows_with_ties()
    graph = RowNeighbours(rows, k).graph
    expected = similarities_of(rows, k)
    np.testing.assert_allclose(graph.similarities.toarray(), expected, atol=1e-12)
    assert (np.diag(expected) == 0.0).all()
    assert expected[5, 6] == expected[6, 7] == 0.0  # equal rows
    degrees = expected.sum(axis=1)
    assert degrees[50] < 0.01 * k
    assert graph.parameters["reach"] == pytest.approx(reach_of(rows, k), rel=1e-12)


@pytest.mark.parametrize("k", [1, 3, 8])
def test_neighbours_of_a_new_row_are_those_of_a_loop(k):
    rows = rows_with_ties()
    neighbours = RowNeighbours(rows, k)
    reach = reach_of(rows, k)
    for index in np.random.default_rng(1).normal(size=(20, 3)) * 2.0:
        (close,) = neighbours.of(index[None])
        expected, _ = nearest_of(np.linalg.norm(rows - index, axis=1), k, reach)
        result = np.zeros(len(rows))
        result[close.positions] = close.similarities
        np.testing.assert_allclose(result, expected, atol=1e-12)
        assert (
            np.diff(np.linalg.norm(rows[close.positions] - index, axis=1)) >= 0
        ).all()


def test_before_it_falls_similarity_has_the_mean_degree_k():
    rows = np.random.default_rng(2).normal(size=(200, 2))
    rows /= 1.0 + np.abs(rows)  # nobody is far
    neighbours = RowNeighbours(rows, 8)
    object.__setattr__(neighbours, "reach", 1e9)
    assert neighbours.graph.similarities.sum() / 200 == pytest.approx(8.0, rel=1e-12)


def test_ties_share_the_last_places():
    row = np.array([[3.0, 1.0, 2.0, 2.0, 2.0, 5.0]])
    _, chosen, shares, _ = shares_of_ties(row, 3)
    assert chosen.tolist() == [1, 2, 3, 4]
    np.testing.assert_allclose(shares, [1.0, 2 / 3, 2 / 3, 2 / 3])
    _, chosen, shares, _ = shares_of_ties(np.array([[2.0, 1.0]]), 2)
    assert chosen.tolist() == [0, 1]
    assert shares.tolist() == [1.0, 1.0]
    # up to rounding
    row = np.array([[1.0, 1.0 + 1e-13, 1.0 - 1e-13]])
    _, _, shares, _ = shares_of_ties(row, 2)
    np.testing.assert_allclose(shares, 2 / 3)


def test_similarity_falls_with_the_fourth_power_beyond_the_reach():
    neighbours = RowNeighbours(rows_with_ties(), 8)
    h = neighbours.reach
    result = neighbours.falling(np.array([0.0, 0.5 * h, h, 2.0 * h, 10.0 * h]))
    np.testing.assert_allclose(result, [1.0, 1.0, 1.0, 1 / 16, 1e-4], rtol=1e-12)


def test_equal_rows_have_no_neighbours():
    neighbours = RowNeighbours(np.ones((12, 3)), 8)
    assert neighbours.reach == 0.0
    assert neighbours.graph.similarities.sum() == 0.0


def test_many_rows_are_as_few(monkeypatch):
    """Of many rows some candidates are taken, with ties behind the last of them."""
    rows = np.concatenate([rows_with_ties(150, seed) for seed in range(3)])
    rows[200:260] = rows[200]  # more equal rows than candidates
    whole = RowNeighbours(rows, 8).graph.similarities.toarray()
    monkeypatch.setattr(module, "_DENSE", 10)
    some = RowNeighbours(rows, 8).graph.similarities.toarray()
    np.testing.assert_allclose(some, whole, atol=1e-12)


def test_many_ties_go_on_behind_the_candidates(monkeypatch):
    """The centre of a cross-polytope is as far from all of 40 corners."""
    corners = np.concatenate([np.eye(20), -np.eye(20)])
    rows = np.concatenate([np.zeros((1, 20)), corners])
    monkeypatch.setattr(module, "_DENSE", 10)
    S = RowNeighbours(rows, 8).graph.similarities.toarray()
    np.testing.assert_allclose(S, similarities_of(rows, 8), atol=1e-12)
    np.testing.assert_allclose(S[0, 1:], S[0, 1], rtol=1e-12)


def test_the_order_of_rows_means_nothing():
    rows = rows_with_ties()
    order = np.random.default_rng(3).permutation(len(rows))
    S = RowNeighbours(rows, 8).graph.similarities.toarray()
    again = RowNeighbours(rows[order], 8).graph.similarities.toarray()
    np.testing.assert_allclose(again, S[np.ix_(order, order)], atol=1e-14)


def test_those_joined_with_a_reference_row_are_its_row_of_the_graph():
    neighbours = RowNeighbours(rows_with_ties(), 8)
    S = neighbours.graph.similarities.toarray()
    for n in (0, 5, 25, 50):
        [close] = neighbours.joined([n])
        result = np.zeros(len(S))
        result[close.positions] = close.similarities
        np.testing.assert_array_equal(result, S[n])
