"""Gradients beside a large mean, as nearly linear models have them.

Constants cost nothing but in the matching losses, so that the optimum beside an offset
is the one without it, shifted; sparsity of attributions of one sign is linear.
"""

import time

import numpy as np
import pytest

import propopt as po


RNG = np.random.default_rng(0)
N, D = 120, 3
X = RNG.normal(size=(N, 2))
G = RNG.normal(size=(N, D))
GRAPH = po.knn_graph(X, 5)
LATTICE = po.graphs.LatticeGraph((12, 10))
CHAIN = po.chain_graph(D)
DESIGNS = RNG.normal(size=(N, 4, D))
CHANGES = np.sin(np.arange(4.0 * N)).reshape(N, 4)
DIRECTION = np.array([1.0, -1.0, 0.5])


def max_differences(graph, **kinds):
    return po.MaxDifferenceRobustness(graph, **kinds)


def locally(C):
    """Function matching near C, whose values C explains up to the same remainders."""
    values = CHANGES + DESIGNS @ C
    return po.FunctionMatching(np.zeros((N, D)), values, perturbations=DESIGNS)


BESIDE = {
    "max": lambda C, b: matching(C) + b * max_differences(GRAPH),
    "sum": lambda C, b: matching(C) + b * max_differences(GRAPH, aggregate="sum"),
    "sum, lattice": lambda C, b: (
        matching(C) + b * max_differences(LATTICE, aggregate="sum")
    ),
    "sum, l1": lambda C, b: (
        matching(C) + b * max_differences(GRAPH, aggregate="sum", norm="l1")
    ),
    "max and pairs": lambda C, b: (
        matching(C) + b * max_differences(GRAPH) + b * po.PairwiseRobustness(GRAPH)
    ),
    "function": lambda C, b: locally(C) + b * po.PairwiseRobustness(GRAPH),
    "function and gradient": lambda C, b: (
        locally(C) + 0.1 * matching(C) + b * po.PairwiseRobustness(GRAPH)
    ),
    "gradient in l1": lambda C, b: (
        po.GradientMatching(G + C, norm="l1") + b * po.PairwiseRobustness(GRAPH)
    ),
}


def matching(C):
    return po.GradientMatching(G + C)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("offset", [1e4, 1e5, 1e6])
@pytest.mark.parametrize("b", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("name", BESIDE)
def test_an_offset_shifts_the_optimum_and_changes_nothing_else(name, b, offset):
    C = offset * DIRECTION
    plain = po.solve(BESIDE[name](0.0 * C, b), tolerance=1e-6)
    best = po.solve(BESIDE[name](C, b), tolerance=1e-6)
    assert best.solver == plain.solver != "CLARABEL"
    assert best.objective == pytest.approx(plain.objective, rel=1e-6)
    assert best.certificate.value - best.certificate.lower_bound <= (
        2e-6 * plain.objective
    )


def test_smooth_features_share_their_offset():
    def objective(offset):
        return (
            po.GradientMatching(G + offset)
            + 1e3 * max_differences(GRAPH)
            + 1e3 * po.Smoothness(CHAIN)
        )

    plain, best = po.solve(objective(0.0)), po.solve(objective(1e6))
    assert best.objective == pytest.approx(plain.objective, rel=1e-6)


def test_a_start_from_other_weights_is_shifted_too():
    objective = matching(1e6 * DIRECTION) + max_differences(GRAPH)
    weights = {"max_difference_robustness": [1.0, 1.1, 1.2]}
    curve = po.sweep(objective, weights)
    for point in curve.optimized:
        alone = po.solve(
            matching(0.0 * DIRECTION)
            + point.weights["max_difference_robustness"] * max_differences(GRAPH)
        )
        assert point.objective == pytest.approx(alone.objective, rel=2e-6)


SPARSE = {
    "pairs": po.PairwiseRobustness(GRAPH),
    "lattice": po.PairwiseRobustness(LATTICE),
    "none": None,
}


@pytest.mark.sampled(24)
@pytest.mark.parametrize("offset", [1e4, 1e6])
@pytest.mark.parametrize("weight", [1e-8, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("b", [1.0, 1e4, 1e6])
@pytest.mark.parametrize("name", SPARSE)
def test_sparsity_of_one_sign_moves_attributions_and_no_more(name, b, weight, offset):
    C = offset * DIRECTION
    objective = matching(C) + weight * po.Sparsity()
    plain = 1.0 * matching(0.0 * C)
    if SPARSE[name] is not None:
        objective, plain = objective + b * SPARSE[name], plain + b * SPARSE[name]
    best = po.solve(objective)
    # λ Σ s(g − s λ/2) + a λ²/4 each, beside the smooth optimum
    signs = np.sign(C)
    linear = weight * float((signs * (G + C)).sum()) - N * D * weight**2 / 4.0
    smooth = po.solve(plain)
    assert best.objective == pytest.approx(smooth.objective + linear, rel=1e-9)
    np.testing.assert_allclose(
        best.attributions - C,
        smooth.attributions - signs * weight / 2.0,
        atol=1e-12 * offset + 1e-6,
    )
    assert best.gap <= 1e-6


def test_features_that_straddle_zero_are_a_lasso_beside_those_that_do_not():
    C = np.array([1e6, 0.0, -1e6])
    graph = po.PairwiseRobustness(GRAPH)
    best = po.solve(matching(C) + 10.0 * graph + 0.5 * po.Sparsity())
    alone = po.solve(
        po.GradientMatching(G[:, 1:2]) + 10.0 * graph + 0.5 * po.Sparsity()
    )
    np.testing.assert_allclose(best.attributions[:, 1:2], alone.attributions, atol=1e-5)
    assert (best.attributions == 0.0).any() == (alone.attributions == 0.0).any()
    assert best.gap <= 1e-6


@pytest.mark.parametrize("weight", [1e-3, 1.0, 1.9, 2.1, 100.0])
def test_signs_are_judged_beside_the_weight_of_sparsity(weight):
    positive = np.abs(G) + 1.0  # the smallest above λ/2 up to λ = 2
    objective = po.GradientMatching(positive) + po.PairwiseRobustness(GRAPH)
    best = po.solve(objective + weight * po.Sparsity(), "lasso", tolerance=1e-9)
    other = po.solve(objective + weight * po.Sparsity(), "CLARABEL")
    assert best.objective == pytest.approx(other.objective, rel=1e-6)
    assert best.gap <= 1e-9


def test_a_large_offset_takes_no_longer():
    def seconds(C):
        began = time.perf_counter()
        po.solve(BESIDE["sum, l1"](C, 1e6))
        return time.perf_counter() - began

    assert seconds(1e4 * DIRECTION) <= 20.0 * seconds(0.0 * DIRECTION) + 2.0
