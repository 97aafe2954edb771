"""Robustness over shared features: each feature has a graph of its own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from catalogue import POINT_GRAPHS, SHAPE, G
from oracles import shared_sum

import propopt as po
from propopt.base.errors import InvalidInput


def similar(n: int, rng: np.random.Generator) -> po.graphs.Graph:
    S = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    return po.graph_from_matrix(S + S.T)


def closed_form(
    loss: po.SharedRobustness, targets: np.ndarray, weight: float
) -> np.ndarray:
    """(I + 2cL_j)⁻¹ g_j for each feature, on the points that have it."""
    W, S = targets.copy(), loss.graph.similarities.toarray()
    for j in range(targets.shape[1]):
        has = np.flatnonzero(loss.present[:, j])
        s = S[np.ix_(has, has)]
        laplacian = np.diag(s.sum(axis=1)) - s
        W[has, j] = np.linalg.solve(
            np.eye(len(has)) + 2.0 * weight * laplacian, targets[has, j]
        )
    return W


@pytest.mark.parametrize("graph", ["gaussian", "knn, gaussian", "disconnected"])
def test_with_all_features_present_it_is_pairwise_robustness(graph, rng):
    W, every = rng.normal(size=SHAPE), np.ones(SHAPE)
    shared = po.SharedRobustness(POINT_GRAPHS[graph], every)
    pairwise = po.PairwiseRobustness(POINT_GRAPHS[graph])
    assert shared.value(W) == pytest.approx(pairwise.value(W), rel=1e-14)
    np.testing.assert_allclose(shared.gradient(W), pairwise.gradient(W), atol=1e-12)
    first, second = (
        po.solve(po.GradientMatching(G) + 0.6 * loss, tolerance=1e-12).attributions
        for loss in (shared, pairwise)
    )
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_value_is_the_sum_over_shared_features(seed):
    rng = np.random.default_rng(seed)
    present = rng.random((6, 5)) < 0.5
    loss, W = po.SharedRobustness(similar(6, rng), present), rng.normal(size=(6, 5))
    assert loss.value(W) == pytest.approx(shared_sum(loss, W), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_optimum_is_that_of_each_feature_on_the_points_that_have_it(seed):
    rng = np.random.default_rng(seed)
    present = rng.random((8, 6)) < 0.6
    targets = np.where(present, rng.normal(size=(8, 6)), 0.0)
    loss = po.SharedRobustness(similar(8, rng), present)
    best = po.solve(po.GradientMatching(targets) + 0.8 * loss, tolerance=1e-12)
    assert best.certificate.holds(1e-12)
    np.testing.assert_allclose(
        best.attributions, closed_form(loss, targets, 0.8), atol=1e-6
    )


def test_features_that_are_absent_get_exactly_zero(rng):
    present = rng.random((9, 7)) < 0.5
    targets = np.where(present, rng.normal(size=(9, 7)), 0.0)
    loss = po.SharedRobustness(similar(9, rng), present)
    for objective in (
        po.GradientMatching(targets) + 3.0 * loss,
        po.GradientMatching(targets) + 3.0 * loss + 0.1 * po.Sparsity(),
    ):
        best = po.solve(objective)
        assert best.certificate.holds(1e-6)
        assert not best.attributions[~present].any()
        assert best.attributions[present].any()


def test_absent_features_cost_nothing(rng):
    present = rng.random((6, 4)) < 0.5
    loss, W = po.SharedRobustness(similar(6, rng), present), rng.normal(size=(6, 4))
    moved = np.where(present, W, 100.0 * rng.normal(size=W.shape))
    assert loss.value(moved) == loss.value(W)


def test_counts_say_what_is_present():
    counts = np.array([[2, 0], [1, 3], [0, 1]])
    loss = po.SharedRobustness(po.chain_graph(3), counts)
    np.testing.assert_array_equal(loss.present, counts > 0)


def test_names_are_those_of_the_table():
    table = pd.DataFrame({"good": [1, 0], "bad": [1, 1]}, index=["a", "b"])
    loss = po.SharedRobustness(po.chain_graph(2), table)
    assert loss.labels == po.GradientMatching(table).labels
    W = pd.DataFrame({"bad": [1.0, 3.0], "good": [9.0, 0.0]}, index=["a", "b"])
    assert loss.value(W) == pytest.approx(8.0)


def test_a_table_of_another_length_is_refused():
    with pytest.raises(InvalidInput, match="each of the 3 points"):
        po.SharedRobustness(po.chain_graph(3), np.ones((2, 4)))


def test_a_table_in_another_order_than_the_graph_is_refused(rng):
    points = pd.DataFrame(rng.normal(size=(4, 2)), index=list("abcd"))
    with pytest.raises(InvalidInput, match="other names"):
        po.SharedRobustness(po.knn_graph(points, 2), points.iloc[::-1])


def test_negative_similarities_are_refused():
    with pytest.raises(InvalidInput, match="negative similarities"):
        po.SharedRobustness(POINT_GRAPHS["signed"], np.ones(SHAPE))


@pytest.mark.parametrize("solver", ["auto", "normal_equations", "CLARABEL"])
def test_solvers_agree(solver, rng):
    present = rng.random((10, 8)) < 0.5
    targets = np.where(present, rng.normal(size=(10, 8)), 0.0)
    loss = po.SharedRobustness(similar(10, rng), present)
    best = po.solve(po.GradientMatching(targets) + 1.3 * loss, solver)
    assert best.certificate.holds(1e-6)
    np.testing.assert_allclose(
        best.attributions, closed_form(loss, targets, 1.3), atol=2e-3
    )
