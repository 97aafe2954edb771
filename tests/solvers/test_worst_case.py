"""The worst target within a radius: on the curve, and as cvxpy finds it."""

import cvxpy as cp
import numpy as np
import pytest
from golden_chains import G, objective

import propopt as po
from propopt.solvers.solving import WorstCase


def golden(**named):
    return po.solve(objective(), **named)


def drawn(seed, N=15, D=4):
    rng = np.random.default_rng(seed)
    graph = po.knn_graph(rng.standard_normal((N, 2)), 3)
    return (
        rng.uniform(0.5, 2.0) * po.GradientMatching(rng.standard_normal((N, D)))
        + rng.uniform(0.1, 2.0) * po.PairwiseRobustness(graph)
        + rng.uniform(0.1, 2.0) * po.Smoothness(po.chain_graph(D))
    )


def cvxpy_worst_case(objective, radius):
    """min a(‖W − Ĝ‖ + δ)² + the rest, by Clarabel."""
    (a, matching), *others = objective.terms
    W = cp.Variable(matching.G.shape)
    worst = a * cp.square(cp.norm(cp.vec(W - matching.G, order="C")) + radius)
    F = worst + sum(c * loss.expression(W) for c, loss in others)
    return cp.Problem(cp.Minimize(F)).solve(cp.CLARABEL), W.value


def test_the_result_is_a_point_of_the_curve():
    best = golden(target_radius=0.5)
    kappa = best.parameters["kappa"]
    assert kappa == pytest.approx(0.7828883890625, abs=1e-9)
    r = np.linalg.norm(best.attributions - G)
    assert kappa == pytest.approx(r / (r + 0.5), rel=1e-12)
    assert best.weights["gradient_matching"] == 1.0
    assert best.weights["pairwise_robustness"] == pytest.approx(0.5 * kappa)
    assert best.weights["smoothness"] == pytest.approx(0.25 * kappa)
    assert best.certificate.holds(1e-9)


@pytest.mark.parametrize("solver", ["auto", "krylov", "factored", "normal_equations"])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_what_a_conic_solver_finds(seed, solver):
    objective = drawn(seed)
    best = po.solve(objective, solver, target_radius=0.5)
    assert 0.0 < best.parameters["kappa"] < 1.0
    value, W = cvxpy_worst_case(objective, 0.5)
    assert best.parameters["worst_case"] == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(best.attributions, W, atol=1e-4)
    # proved: no attributions have less
    assert best.parameters["worst_case_lower_bound"] <= value * (1 + 1e-8)
    assert best.parameters["worst_case_lower_bound"] >= value * (1 - 1e-6)


def test_a_large_radius_leaves_the_target_and_none_the_optimum():
    kept = golden(target_radius=100.0)
    assert kept.parameters["kappa"] == 0.0
    np.testing.assert_allclose(kept.attributions, G, atol=1e-12)
    worst = kept.parameters
    assert worst["worst_case_lower_bound"] == pytest.approx(worst["worst_case"])
    free = golden(target_radius=0.0)
    assert free.parameters["kappa"] == 1.0
    np.testing.assert_array_equal(free.attributions, golden().attributions)
    assert free.parameters["worst_case"] == pytest.approx(golden().objective)


def test_the_lower_bound_is_one_from_any_attributions():
    objective = drawn(4)
    least = po.solve(objective, target_radius=0.5).parameters["worst_case"]
    program = po.losses.Program(objective.losses)
    worst = WorstCase(program, objective.coefficients, 0.5)
    rng = np.random.default_rng(0)
    best = po.solve(objective, target_radius=0.5).attributions
    for size in (1e-3, 0.1, 1.0):
        W = best + size * rng.standard_normal(best.shape)
        assert worst.lower_bound(W) < least < worst.value(W)
