"""What losses determine W by: function matching, minimum norm, graphs at the edge."""

from __future__ import annotations

import numpy as np
import pytest
from catalogue import LOSSES, POINT_GRAPHS, SHAPE, VALUES, G, X

import propopt as po
from propopt.base.errors import Refused


gradient, sparsity = LOSSES["gradient l2"], LOSSES["sparsity"]
function = LOSSES["function"]


def test_function_matching_alone_is_refused_with_a_hint():
    with pytest.raises(Refused, match=r"undetermined.*solver='minimum_norm'"):
        po.solve(1.0 * function)


def test_function_matching_needs_a_connected_graph():
    objective = function + LOSSES["pairwise, disconnected"]
    with pytest.raises(Refused, match="undetermined"):
        po.solve(objective)


def test_function_matching_is_determined_in_one_dimension():
    loss = po.FunctionMatching(X[:, :1], VALUES)
    best = po.solve(1.0 * loss)
    np.testing.assert_allclose(best.attributions[:, 0], VALUES / X[:, 0], rtol=1e-6)


def test_minimum_norm_is_the_smallest_exact_fit():
    best = po.solve(1.0 * function, "minimum_norm")
    expected = X * (VALUES / (X**2).sum(axis=1))[:, None]
    np.testing.assert_allclose(best.attributions, expected, rtol=1e-12)


def test_minimum_norm_is_the_pseudoinverse():
    objective = function + 0.5 * LOSSES["pairwise, disconnected"]
    rows = [
        np.sqrt(weight) * loss.map.flat(SHAPE).toarray()
        for weight, loss in objective.terms
    ]
    targets = np.concatenate([VALUES, np.zeros(len(rows[1]))])
    expected, *_ = np.linalg.lstsq(np.vstack(rows), targets, rcond=None)
    best = po.solve(objective, "minimum_norm")
    np.testing.assert_allclose(best.attributions.ravel(), expected, atol=1e-10)


def test_components_are_explained_apart():
    graph = POINT_GRAPHS["disconnected"]
    best = po.solve(gradient + po.PairwiseRobustness(graph)).attributions
    for rows in ([0, 1, 2], [3, 4], [5, 6]):
        part = po.solve(
            po.GradientMatching(G[rows])
            + po.PairwiseRobustness(po.complete_graph(len(rows)))
        )
        np.testing.assert_allclose(best[rows], part.attributions, atol=1e-12)
