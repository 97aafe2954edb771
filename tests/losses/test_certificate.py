"""Certificates: a lower bound that is one, and no proof of what is not optimal."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from catalogue import LOSSES, OBJECTIVES, SHAPE, G
from oracles import minimise_over, reference_optimum

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.results import certificate
from propopt.results.certificate import Certificate, smallest_curvature


REFERENCE = 2e-8  # relative accuracy of Clarabel as a reference
SIZES = (1e-9, 1e-6, 1e-3, 1e-1, 1.0, 1e2)

each_objective = pytest.mark.parametrize("name", OBJECTIVES)
gradient, sparsity = LOSSES["gradient l2"], LOSSES["sparsity"]
robustness = LOSSES["pairwise, gaussian"]


@cache
def solved(name: str) -> tuple[po.Objective, po.Explanation, float]:
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
def test_lower_bound_is_below_the_optimum_wherever_it_is_taken(name, rng):
    objective, best, optimum = solved(name)
    for W in perturbed(best.attributions, rng):
        result = po.certify(objective, W)
        assert result.lower_bound <= optimum + REFERENCE * optimum + 1e-12
        assert result.lower_bound <= result.value


@each_objective
def test_lower_bound_is_below_every_value(name, rng):
    objective, best, _ = solved(name)
    lower = best.certificate.lower_bound
    for W in perturbed(best.attributions, rng):
        assert lower <= objective.value(W) * (1 + 1e-12)


@each_objective
def test_value_of_a_certificate_is_the_objective(name, rng):
    W = rng.normal(size=SHAPE)
    assert po.certify(OBJECTIVES[name], W).value == OBJECTIVES[name].value(W)


@each_objective
def test_any_duals_are_safe(name, rng):
    objective, best, optimum = solved(name)
    for size in SIZES:
        duals = {
            loss.name: size * rng.normal(size=np.shape(loss.residual(G)))
            for loss in objective.losses
        }
        result = po.certify(objective, best.attributions, duals=duals)
        assert result.lower_bound <= optimum + REFERENCE * optimum + 1e-12


@each_objective
def test_certificate_holds_at_the_solution(name):
    _, best, _ = solved(name)
    assert best.certificate.holds(1e-6)


@each_objective
def test_certificate_never_holds_where_the_objective_is_larger(name, rng):
    objective, best, optimum = solved(name)
    duals = {}
    for size in SIZES:
        W = best.attributions + size * rng.normal(size=SHAPE)
        if objective.value(W) <= optimum * (1 + 1e-5) + 1e-12:
            continue
        assert not po.certify(objective, W, duals=duals).holds(1e-6)


@each_objective
def test_optimum_is_within_the_distance(name, rng):
    objective, best, _ = solved(name)
    near = best.certificate.distance
    for W in perturbed(best.attributions, rng):
        distance = po.certify(objective, W).distance
        if near is not None and distance is not None:
            away = np.linalg.norm(W - best.attributions)
            assert away <= distance + near + 1e-12 * np.linalg.norm(W)


@pytest.mark.parametrize("weight", [1e-3, 0.5, 2.0, 1e3])
def test_soft_threshold_is_certified_from_the_attributions_alone(weight):
    best = np.sign(G) * np.maximum(np.abs(G) - weight / 2, 0)
    assert po.certify(gradient + weight * sparsity, best).gap <= 1e-13


def test_gradient_matching_and_sparsity_need_no_duals_beside_squared_losses():
    objective = OBJECTIVES["gradient, pairwise, sparsity"]
    best = po.solve(objective, tolerance=1e-9)
    assert po.certify(objective, best.attributions).gap <= 1e-7


@pytest.mark.parametrize("weight", [0.3, 1.7])
def test_closed_form_of_absolute_losses_is_a_lower_bound(weight, rng):
    # |w − g| + c|w| is smallest at g or at zero, with the value min(1, c)|g|
    objective = LOSSES["gradient l1"] + weight * sparsity
    optimum = min(1, weight) * np.abs(G).sum()
    for W in perturbed(G if weight < 1 else np.zeros(SHAPE), rng):
        assert po.certify(objective, W).lower_bound <= optimum * (1 + 1e-12)
    assert po.solve(objective).objective == pytest.approx(optimum, rel=1e-6)


def test_distance_of_gradient_matching_is_the_distance_to_the_gradient(rng):
    W = rng.normal(size=SHAPE)
    result = po.certify(gradient, W)
    assert result.distance == pytest.approx(np.linalg.norm(W - G))


def test_missing_dual_weakens_the_bound_but_keeps_it():
    objective, best, optimum = solved("gradient, max")
    assert po.certify(objective, best.attributions).lower_bound < optimum


@pytest.mark.parametrize("limit", [1, 10_000])
def test_curvature_is_the_smallest_eigenvalue(limit, monkeypatch):
    monkeypatch.setattr(certificate, "DENSE_LIMIT", limit)
    terms = [(1.0, LOSSES["function"]), (0.3, robustness)]
    hessian = 0
    for weight, loss in terms:
        matrix = loss.map.flat(SHAPE).toarray()
        hessian = hessian + 2 * weight * matrix.T @ matrix
    exact = np.linalg.eigvalsh(hessian)[0]
    result = smallest_curvature(terms, SHAPE)
    assert 0.95 * exact <= result <= exact


@pytest.mark.parametrize("limit", [1, 10_000])
@pytest.mark.parametrize("name", ["function", "pairwise, gaussian", "kernel"])
def test_curvature_of_an_undetermined_loss_is_zero(name, limit, monkeypatch):
    monkeypatch.setattr(certificate, "DENSE_LIMIT", limit)
    assert smallest_curvature([(1.0, LOSSES[name])], SHAPE) == 0.0


# with bounds

BOUNDS = {
    "robustness": (1.0 * gradient, robustness, 0.3),
    "sparsity": (gradient + 0.3 * robustness, sparsity, 0.4),
    "maximum": (1.0 * gradient, LOSSES["difference, max l2"], 0.3),
    "sum of maxima": (gradient + 0.1 * sparsity, LOSSES["difference, sum l1"], 0.3),
    "absolute": (LOSSES["gradient l1"] + 0.0 * sparsity, robustness, 0.3),
    "faithfulness": (1.0 * sparsity, gradient, 0.3),
}


@cache
def bounded(name: str) -> tuple[po.Objective, po.Bound, po.Explanation, float]:
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
def test_any_multiplier_is_safe(name, rng):
    objective, bound, best, optimum = bounded(name)
    for multiplier in (0.0, 1e-3, 1.0, 1e3, *best.multipliers.values()):
        for W in perturbed(best.attributions, rng):
            result = po.certify(objective, W, bounds=[bound], multipliers=[multiplier])
            assert result.lower_bound <= optimum * (1 + REFERENCE)


@each_bound
def test_multipliers_may_be_left_out(name):
    objective, bound, best, optimum = bounded(name)
    result = po.certify(objective, best.attributions, bounds=[bound])
    assert result.lower_bound <= optimum * (1 + REFERENCE)


@each_bound
def test_violated_bound_is_no_proof(name):
    objective, bound, best, _ = bounded(name)
    free = po.solve(objective, tolerance=1e-8) if name != "faithfulness" else best
    W = free.attributions if name != "faithfulness" else np.zeros(SHAPE)
    result = po.certify(objective, W, bounds=[bound])
    excess = bound.loss.value(W) / bound.limit - 1
    assert excess > 0.1
    assert result.violation == pytest.approx(excess)
    assert not result.holds(1e-6)


@each_bound
def test_constrained_optimum_is_within_the_distance(name, rng):
    objective, bound, best, _ = bounded(name)
    for W in perturbed(best.attributions, rng):
        for multipliers in ([], [0.0], [1.0], list(best.multipliers.values())):
            result = po.certify(objective, W, bounds=[bound], multipliers=multipliers)
            away = np.linalg.norm(W - best.attributions)
            if result.distance is not None:
                # the solution itself is known to 1e-3 only: gaps bound squares
                assert away <= result.distance + 1e-3 * np.linalg.norm(G)


@pytest.mark.parametrize("multiplier", [-1.0, np.nan, np.inf])
def test_bad_multiplier_is_refused(multiplier):
    with pytest.raises(InvalidInput, match="multiplier"):
        po.certify(gradient, G, bounds=[sparsity <= 1], multipliers=[multiplier])


def test_wrong_shape_is_refused_by_name():
    with pytest.raises(InvalidInput, match="gradient_matching"):
        po.certify(gradient + sparsity, np.zeros((3, 3)))


# the numbers of a certificate


@pytest.mark.parametrize(
    ("value", "lower_bound", "violation", "gap", "holds"),
    [
        (2.0, 1.5, 0.0, 0.25, False),  # relative to the scale
        (0.0, 0.0, 0.0, 0.0, True),
        (1.0, 1.5, 0.0, 0.0, True),  # never negative
        (1.0, 1.0, 1e-3, 0.0, False),
        (1.0, np.nan, 0.0, np.nan, False),  # what is no number is no proof
    ],
)
def test_a_proof_needs_gap_and_violation(value, lower_bound, violation, gap, holds):
    result = Certificate(
        value=value,
        lower_bound=lower_bound,
        scale=value,
        kind="dual",
        violation=violation,
    )
    assert np.isnan(gap) or result.gap == gap
    assert result.holds(1e-6) is holds


def test_independent_solution_is_certified_too():
    objective = OBJECTIVES["gradient, pairwise, smoothness"]
    _, W = minimise_over(SHAPE, lambda W: objective.expression(W))
    assert po.certify(objective, W).holds(1e-6)
