"""Certificates: a lower bound that is one, and no proof of what is not optimal."""

from functools import cache

import cvxpy as cp
import numpy as np
import pytest
from catalogue import LOSSES, OBJECTIVES, SHAPE, G
from oracles import minimise_over, reference_optimum

import propopt as po
from propopt.base.errors import SolverFailure
from propopt.proofs import certificate
from propopt.proofs.certificate import Certificate, smallest_curvature


REFERENCE = 2e-8  # relative accuracy of Clarabel as a reference
SIZES = (1e-9, 1e-6, 1e-3, 1e-1, 1.0, 1e2)
each_objective = pytest.mark.parametrize("name", OBJECTIVES)
gradient, sparsity = LOSSES["gradient l2"], LOSSES["sparsity"]
robustness = LOSSES["pairwise, gaussian"]


@cache
def solved(name: str) -> tuple[po.losses.Objective, po.results.Explanation, float]:
    """The objective, its solution, and the optimum of an independent program."""
    objective = OBJECTIVES[name]
    return objective, po.solve(objective), reference_optimum(objective, SHAPE)


def perturbed(W, rng):
    """The attributions and others near and far."""
    yield W
    for size in SIZES:
        yield W + size * rng.normal(size=W.shape)
    yield np.zeros_like(W)
    yield G


@each_objective
def test_lower_bounds_are_below_the_optimum_wherever_they_are_taken(name, rng):
    objective, best, optimum = solved(name)
    lower = best.certificate.lower_bound
    assert best.certificate.holds(1e-6)
    for W in perturbed(best.attributions, rng):
        result = po.proofs.certify(objective, W)
        assert result.value == objective.value(W)
        assert result.lower_bound <= optimum + REFERENCE * optimum + 1e-12
        assert result.lower_bound <= result.value
        assert lower <= result.value * (1 + 1e-12)


@each_objective
def test_any_duals_are_safe(name, rng):
    objective, best, optimum = solved(name)
    for size in SIZES:
        duals = {
            loss.name: size * rng.normal(size=np.shape(loss.residual(G)))
            for loss in objective.losses
        }
        result = po.proofs.certify(objective, best.attributions, duals=duals)
        assert result.lower_bound <= optimum + REFERENCE * optimum + 1e-12


@each_objective
def test_optimum_is_within_the_distance(name, rng):
    objective, best, _ = solved(name)
    close = best.certificate.distance
    for W in perturbed(best.attributions, rng):
        distance = po.proofs.certify(objective, W).distance
        if close is not None and distance is not None:
            away = np.linalg.norm(W - best.attributions)
            assert away <= distance + close + 1e-12 * np.linalg.norm(W)


@pytest.mark.parametrize("weight", [1e-3, 0.5, 2.0, 1e3])
def test_soft_threshold_is_certified_from_the_attributions_alone(weight):
    best = np.sign(G) * np.maximum(np.abs(G) - weight / 2, 0)
    assert po.proofs.certify(gradient + weight * sparsity, best).gap <= 1e-13


def test_what_is_certified_from_attributions_alone(rng):
    objective = OBJECTIVES["gradient, pairwise, sparsity"]
    best = po.solve(objective, tolerance=1e-9)
    assert po.proofs.certify(objective, best.attributions).gap <= 1e-7
    W = rng.normal(size=SHAPE)
    distance = po.proofs.certify(gradient, W).distance
    assert distance == pytest.approx(np.linalg.norm(W - G))
    objective, best, optimum = solved("gradient, max")  # a dual is missing
    assert po.proofs.certify(objective, best.attributions).lower_bound < optimum
    objective = OBJECTIVES["gradient, pairwise, smoothness"]
    _, W = minimise_over(SHAPE, lambda W: objective.expression(W))
    assert po.proofs.certify(objective, W).holds(1e-6)


@pytest.mark.parametrize("limit", [1, 10_000])
def test_curvature_is_the_smallest_eigenvalue(limit, monkeypatch):
    monkeypatch.setattr(certificate, "DENSE_LIMIT", limit)
    terms = [(1.0, LOSSES["function"]), (0.3, robustness)]
    hessian = 0
    for weight, loss in terms:
        matrix = loss.map.flat(SHAPE).toarray()
        hessian = hessian + 2 * weight * matrix.T @ matrix
    exact = np.linalg.eigvalsh(hessian)[0]
    assert 0.95 * exact <= smallest_curvature(terms, SHAPE) <= exact
    for name in ("function", "pairwise, gaussian", "kernel"):  # undetermined
        assert smallest_curvature([(1.0, LOSSES[name])], SHAPE) == 0.0


# ---- with bounds
BOUNDS = {
    "robustness": (1.0 * gradient, robustness, 0.3),
    "sparsity": (gradient + 0.3 * robustness, sparsity, 0.4),
    "maximum": (1.0 * gradient, LOSSES["difference, max"], 0.3),
    "sum of maxima": (gradient + 0.1 * sparsity, LOSSES["difference, sum"], 0.3),
    "absolute": (LOSSES["gradient l1"] + 0.0 * sparsity, robustness, 0.3),
    "faithfulness": (1.0 * sparsity, gradient, 0.3),
}


@cache
def bounded(
    name: str,
) -> tuple[po.losses.Objective, po.losses.Bound, po.results.Explanation, float]:
    """A bound at a fraction of the loss that the gradient, or nothing, has."""
    objective, loss, fraction = BOUNDS[name]
    bound = loss <= fraction * max(loss.value(G), loss.value(np.zeros(SHAPE)))
    best = po.solve(objective, subject_to=[bound])
    optimum = reference_optimum(objective, SHAPE, [bound])
    return objective, bound, best, optimum


each_bound = pytest.mark.parametrize("name", BOUNDS)


@each_bound
def test_certificate_holds_at_the_constrained_solution(name):
    _, _, best, optimum = bounded(name)
    assert best.certificate.holds(1e-6)
    assert best.objective == pytest.approx(optimum, rel=1e-6)


@each_bound
def test_any_multiplier_is_safe_and_may_be_left_out(name, rng):
    objective, bound, best, optimum = bounded(name)
    for multiplier in (0.0, 1e-3, 1.0, 1e3, *best.multipliers.values(), None):
        for W in perturbed(best.attributions, rng):
            given = [] if multiplier is None else [multiplier]
            result = po.proofs.certify(objective, W, bounds=[bound], multipliers=given)
            assert result.lower_bound <= optimum * (1 + REFERENCE)


@each_bound
def test_violated_bound_is_no_proof(name):
    objective, bound, best, _ = bounded(name)
    free = po.solve(objective, tolerance=1e-8) if name != "faithfulness" else best
    W = free.attributions if name != "faithfulness" else np.zeros(SHAPE)
    result = po.proofs.certify(objective, W, bounds=[bound])
    excess = bound.loss.value(W) / bound.limit - 1
    assert excess > 0.1
    assert result.violation == pytest.approx(excess)
    assert not result.holds(1e-6)


@each_bound
def test_constrained_optimum_is_within_the_distance(name, rng):
    objective, bound, best, _ = bounded(name)
    for W in perturbed(best.attributions, rng):
        for multipliers in ([], [0.0], [1.0], list(best.multipliers.values())):
            result = po.proofs.certify(
                objective, W, bounds=[bound], multipliers=multipliers
            )
            away = np.linalg.norm(W - best.attributions)
            if result.distance is not None:
                # the solution itself is known to 1e-3 only: gaps bound squares
                assert away <= result.distance + 1e-3 * np.linalg.norm(G)


# ---- the numbers of a certificate, and what a gap is relative to
def test_a_proof_needs_gap_and_violation():
    for value, lower, violation, gap, holds in (
        (2.0, 1.5, 0.0, 0.25, False),  # relative to the scale
        (0.0, 0.0, 0.0, 0.0, True),
        (1.0, 1.5, 0.0, 0.0, True),  # never negative
        (1.0, 1.0, 1e-3, 0.0, False),
        (1.0, np.nan, 0.0, np.nan, False),  # what is no number is no proof
    ):
        numbers = {"value": value, "lower_bound": lower, "violation": violation}
        proof = Certificate(**numbers, scale=value, kind="dual")
        assert np.isnan(gap) or proof.gap == gap
        assert proof.holds(1e-6) is holds


def test_a_status_that_cvxpy_does_not_know_is_a_failure(monkeypatch):
    def solve(*_args, **_options):
        raise ValueError("Cannot unpack invalid solution: Solution(status=UNKNOWN)")

    monkeypatch.setattr(cp.Problem, "solve", solve)
    with pytest.raises(SolverFailure, match="CLARABEL stopped without a solution"):
        po.solve(gradient + robustness, "CLARABEL")


# ---- couplings as small as faithfulness allows: constants cost nothing
RNG = np.random.default_rng(0)


def setting(n_points, offset=5.0):
    X = RNG.normal(size=(n_points, 2))
    X[n_points // 2 :] += 10.0
    G = RNG.normal(size=(n_points, 3)) + offset
    graph = po.graphs.knn_graph(X, 4)
    labels = graph.components.labels
    M = np.stack([G[labels == ours].mean(axis=0) for ours in range(labels.max() + 1)])
    return po.GradientMatching(G), po.PairwiseRobustness(graph), G, M[labels]


def square(R):
    return float(np.vdot(R, R))


@pytest.mark.parametrize("n_points", [40, 2000])
@pytest.mark.parametrize("share", [0.0, 1e-9, 0.3, 0.9])
def test_means_are_the_answer_where_faithfulness_allows_them(n_points, share):
    matching, robustness, G, M = setting(n_points)
    lowest = square(G - M)
    limit = (lowest + share * (square(G) - lowest)) * (1.0 + 1e-12)
    best = po.solve(1.0 * robustness, subject_to=[matching <= limit])
    assert best.objective == 0.0
    assert best.gap == 0.0
    assert best.certificate.violation <= 1e-15
    np.testing.assert_allclose(best.attributions, M, rtol=1e-12)
    assert best.multipliers == {"gradient_matching": 0.0}


@pytest.mark.sampled(9)
@pytest.mark.parametrize("n_points", [40, 2000])
@pytest.mark.parametrize("below", [1e-6, 1e-5, 1e-4, 1e-2, 0.5, 1.0 - 1e-8])
@pytest.mark.parametrize("smooth", [0.0, 2.0])
def test_just_below_the_means_the_bound_holds_with_proof(n_points, below, smooth):
    matching, robustness, G, M = setting(n_points)
    objective = 1.0 * robustness
    if smooth:
        objective = objective + smooth * po.Smoothness(po.graphs.chain_graph(3))
        M = np.repeat(M.mean(axis=1, keepdims=True), 3, axis=1)
    limit = square(G - M) * (1.0 - below)
    best = po.solve(objective, subject_to=[matching <= limit])
    assert best.gap <= 1e-6
    assert best.certificate.violation <= 1e-12
    assert best.losses["gradient_matching"] == pytest.approx(limit, rel=1e-6)
    assert best.objective > 0.0
    again = po.solve(objective + best.multipliers["gradient_matching"] * matching)
    np.testing.assert_allclose(again.attributions, best.attributions, atol=1e-3)


def test_means_are_not_free_for_a_kernel_without_them():
    X = np.linspace(-1.0, 1.0, 20)[:, None]
    K = np.exp(-((X - X.T) ** 2) / 0.1) + 0.1 * np.eye(20)
    G = X**2 + 3.0
    matching = po.GradientMatching(G)
    robustness = po.losses.KernelRobustness(K, mean="none")
    best = po.solve(1.0 * robustness, subject_to=[matching <= 0.5 * square(G)])
    assert best.objective > 0.0
    assert best.gap <= 1e-6
    assert best.losses["gradient_matching"] == pytest.approx(0.5 * square(G), rel=1e-6)
