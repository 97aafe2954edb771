"""Weights of edges with which pairwise robustness gives the same as max-differences."""

from __future__ import annotations

import numpy as np
import pytest
from max_differences import AGGREGATES, gaussian_data, natural_weight, solved

import propopt as po
from propopt.solvers.edge_newton import edge_weights


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("smooth", [0.0, 0.4])
def test_edge_weights_make_pairwise_robustness_give_the_same(aggregate, smooth):
    X, G = gaussian_data(9, 40, 3)
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 4), aggregate)
    smoothness = po.Smoothness(po.chain_graph(3))
    weight = natural_weight(loss, G)
    base = 2.0 * po.GradientMatching(G) + smooth * smoothness
    result = solved(base + weight * loss)
    S = edge_weights(loss, result)
    assert (S >= 0).all()
    n_groups = 1 if aggregate == "max" else 40
    assert 2 * S.sum() == pytest.approx(weight * n_groups, rel=1e-6)
    similarities = np.zeros((40, 40))
    similarities[tuple(loss.graph.edges.T)] = S
    graph = po.graph_from_matrix(similarities + similarities.T)
    same = po.solve(base + 1.0 * po.PairwiseRobustness(graph), "spectral")
    np.testing.assert_allclose(same.attributions, result.W, atol=1e-6)


def test_edge_weights_lie_on_the_longest_edges():
    X, G = gaussian_data(10, 30, 2)
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 4))
    result = solved(po.GradientMatching(G) + 5.0 * loss)
    lengths = np.linalg.norm(loss.graph.incidence @ result.W, axis=1)
    loaded = edge_weights(loss, result) > 0
    assert 0 < loaded.sum() < len(loaded)
    np.testing.assert_allclose(lengths[loaded], lengths.max(), rtol=1e-4)
