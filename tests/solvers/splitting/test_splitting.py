"""ADMM with a Newton finish: the conic optimum, with proof, on many programs."""

from __future__ import annotations

import numpy as np
import pytest
from max_differences import (
    AGGREGATES,
    NORMS,
    REFERENCE,
    gaussian_data,
    natural_weight,
    random_objective,
    task_of,
)

import propopt as po
from propopt.solvers import Conic
from propopt.solvers.splitting import Splitting


@pytest.mark.sampled(7)
@pytest.mark.parametrize("block", range(21))
def test_random_programs_have_the_conic_optimum_with_proof(block):
    for seed in range(10 * block, 10 * block + 10):
        objective = random_objective(seed)
        best = po.solve(objective, Splitting())
        assert best.certificate.kind == "strong convexity"
        assert best.gap <= 1e-6, seed
        reference = task_of(objective, Conic()).solve(objective.coefficients, REFERENCE)
        proof = po.certify(objective, reference.W, duals=reference.duals)
        rounding = 1e-11 * best.objective
        assert best.objective >= proof.lower_bound - rounding, seed
        assert proof.value >= best.certificate.lower_bound - rounding, seed


def test_tight_tolerances_are_reached():
    for seed in range(40):
        best = po.solve(random_objective(seed), Splitting(), tolerance=1e-8)
        assert best.gap <= 1e-8, seed


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_newton_reaches_almost_full_accuracy(aggregate, size):
    X, G = gaussian_data(1, 60, 4)
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 5), aggregate)
    objective = po.GradientMatching(G) + size * natural_weight(loss, G) * loss
    assert po.solve(objective, Splitting(), tolerance=1e-11).gap <= 1e-11


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_huge_weight_gives_the_means_of_components(aggregate, norm):
    _, G = gaussian_data(2, 9, 3)
    labels = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
    loss = po.MaxDifferenceRobustness(po.group_graph(labels), aggregate, norm)
    best = po.solve(po.GradientMatching(G) + 1e7 * loss, Splitting())
    means = np.array([G[labels == label].mean(axis=0) for label in labels])
    np.testing.assert_allclose(best.attributions, means, atol=1e-4)


def test_two_points_of_one_feature_move_towards_each_other():
    G = np.array([[0.0], [1.0]])
    loss = po.MaxDifferenceRobustness(po.chain_graph(2))
    best = po.solve(po.GradientMatching(G) + 1.0 * loss, Splitting(), tolerance=1e-12)
    # x² + (1 − y)² + (y − x)² is least at x = 1/3, y = 2/3
    np.testing.assert_allclose(best.attributions, [[1 / 3], [2 / 3]], atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_equal_gradients_stay_as_they_are(value):
    G = np.full((5, 2), value)
    loss = po.MaxDifferenceRobustness(po.chain_graph(5))
    best = po.solve(po.GradientMatching(G) + 1.0 * loss, Splitting())
    np.testing.assert_allclose(best.attributions, G, atol=1e-12)
    assert best.gap == 0.0


def test_sparsity_gives_zeros_that_are_exact():
    X, G = gaussian_data(3, 30, 4)
    loss = po.MaxDifferenceRobustness(po.knn_graph(X, 4))
    objective = po.GradientMatching(G) + 2.0 * loss + 1.5 * po.Sparsity()
    W = po.solve(objective, Splitting()).attributions
    assert 10 < (W == 0.0).sum() < W.size
