"""The best possible at equal other losses is enclosed, at the ends of fronts too."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction import solved, with_baseline

import propopt as po
from papers.engine import statements
from papers.engine.frontier import Frontier


def gradients(rng):
    return rng.normal(size=(15, 2)) + 3.0


LOSSES = {
    "chain": lambda: po.PairwiseRobustness(po.chain_graph(15)),
    "two parts": lambda: po.PairwiseRobustness(two_chains()),
    "kernel": lambda: po.KernelRobustness(np.exp(-np.abs(differences()))),
    "smooth": lambda: po.Smoothness(po.chain_graph(2)),
    "sparse": lambda: po.Sparsity(),
}


def two_chains():
    S = po.chain_graph(15).similarities.toarray()
    S[6, 7] = S[7, 6] = 0.0
    return po.graphs.SimilarityGraph(S)


def differences():
    x = np.arange(15.0)
    return x[:, None] - x


def cheapest_when_zero(name, G):
    """A where B is zero: means over what the loss couples, or nothing at all."""
    match name:
        case "chain" | "kernel":
            W = np.broadcast_to(G.mean(axis=0), G.shape)
        case "two parts":
            W = np.concatenate(
                [np.tile(P.mean(axis=0), (len(P), 1)) for P in (G[:7], G[7:])]
            )
        case "smooth":
            W = np.broadcast_to(G.mean(axis=1, keepdims=True), G.shape)
        case _:
            W = np.zeros_like(G)
    return po.GradientMatching(G).value(W)


@pytest.mark.parametrize("known", [(), (0.1, 1.0, 10.0)])
@pytest.mark.parametrize("name", LOSSES)
def test_at_a_limit_of_zero_the_answer_is_exact(name, known, rng):
    G = gradients(rng)
    objective = po.GradientMatching(G) + LOSSES[name]()
    loss = objective.losses[1]
    optima = [po.solve(objective.with_weights({loss.name: c})) for c in known]
    for cost in (1e-3, 1.0, 1e6):
        result = Frontier(objective, optima).enclose(
            {"gradient_matching": cost, loss.name: 0.0}
        )
        exact = cheapest_when_zero(name, G)
        assert result.upper == pytest.approx(exact, rel=1e-9)
        assert result.lower == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("part", [1e-30, 1e-26, 1e-18, 1e-12, 1e-8, 1e-4])
@pytest.mark.parametrize("name", ["chain", "two parts", "smooth"])
def test_limits_near_zero_are_enclosed(name, part, rng):
    """A* lies below that of zero, by at most about √part of it."""
    G = gradients(rng)
    objective = po.GradientMatching(G) + LOSSES[name]()
    loss = objective.losses[1]
    optima = [po.solve(objective.with_weights({loss.name: c})) for c in (0.1, 1.0)]
    end = cheapest_when_zero(name, G)
    result = Frontier(objective, optima).enclose(
        {"gradient_matching": end, loss.name: part * loss.value(G)}
    )
    assert result.lower <= end * (1 + 1e-12)
    assert result.lower <= result.upper * (1 + 1e-12)
    assert end * (1 - 20 * np.sqrt(part) - 0.01) <= result.upper <= end * (1 + 1e-6)
    assert result.upper - result.lower <= 0.011 * end


def test_maps_that_are_constant_over_images_may_still_be_rough(rng):
    """One limit is zero, the other is not: the end is a front of its own."""
    G = gradients(rng)
    robustness = po.PairwiseRobustness(po.chain_graph(15))
    smoothness = po.Smoothness(po.chain_graph(2))
    objective = po.GradientMatching(G) + robustness + smoothness
    mean = G.mean(axis=0, keepdims=True)
    limit = 0.25 * smoothness.value(np.broadcast_to(mean, G.shape))
    # a constant halfway to that with equal columns: half the difference, a quarter of B
    middle = mean.mean() + 0.5 * (mean - mean.mean())
    exact = po.GradientMatching(G).value(np.broadcast_to(middle, G.shape))
    result = Frontier(objective, []).enclose(
        {"gradient_matching": exact, "pairwise_robustness": 0.0, "smoothness": limit}
    )
    assert result.lower <= exact * (1 + 1e-9)
    assert result.upper == pytest.approx(exact, rel=0.01)
    assert result.upper - result.lower <= 0.01 * exact


def test_a_constant_baseline_gives_away_what_it_is_off_the_mean():
    G = solved().problem.losses["gradient_matching"].G
    constant = np.broadcast_to(G.mean(axis=0), G.shape)
    best = po.GradientMatching(G).value(constant)
    losses = {"gradient_matching": best / 0.9, "pairwise_robustness": 0.0}
    assert statements.dominated(with_baseline(solved(), losses=losses)).holds
    result = statements.give_away(with_baseline(solved(), losses=losses))
    assert result.value == pytest.approx(0.1, rel=1e-6)
    losses["gradient_matching"] = 0.999 * best
    assert not statements.dominated(with_baseline(solved(), losses=losses)).holds


@pytest.mark.parametrize("part", [0.02, 0.3, 0.9, 2.0])
def test_an_enclosure_holds_the_optimum_under_a_bound(part, rng):
    G = rng.normal(size=(15, 2))
    faithfulness = po.GradientMatching(G)
    robustness = po.PairwiseRobustness(po.chain_graph(15))
    limit = part * robustness.value(G)
    best = po.solve(faithfulness, subject_to=[robustness <= limit])
    result = Frontier(faithfulness + robustness, []).enclose(
        {"gradient_matching": 1.0, "pairwise_robustness": limit}
    )
    assert result.lower <= best.objective * (1 + 1e-6) + 1e-9
    assert best.objective <= result.upper * (1 + 1e-6) + 1e-9
    assert result.upper - result.lower <= 0.01 * max(result.cost, result.upper)


def test_an_enclosure_holds_the_optimum_under_two_bounds(rng):
    G = rng.normal(size=(10, 2))
    faithfulness, sparsity = po.GradientMatching(G), po.Sparsity()
    robustness = po.PairwiseRobustness(po.chain_graph(10))
    limits = {"sparsity": 0.5 * sparsity.value(G), "pairwise_robustness": 2.0}
    best = po.solve(
        faithfulness,
        subject_to=[
            sparsity <= limits["sparsity"],
            robustness <= limits["pairwise_robustness"],
        ],
    )
    result = Frontier(faithfulness + sparsity + robustness, []).enclose(
        {"gradient_matching": best.objective * 1.5, **limits}
    )
    assert result.lower * (1 - 1e-6) <= best.objective <= result.upper * (1 + 1e-6)
    assert 0.3 < result.saved <= 1 / 3 + 1e-6
