"""Penalties: value, expression, proximal operator and conjugate belong together."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from catalogue import PENALTIES, SHAPE
from oracles import minimise_over, subclasses

from propopt.losses.maps import GroupMax, Penalty


each_penalty = pytest.mark.parametrize("phi", PENALTIES.values(), ids=PENALTIES)
STEPS = (0.02, 0.3, 2.0, 50.0)
each_step = pytest.mark.parametrize("step", STEPS)
by_degree = {
    degree: pytest.mark.parametrize(
        "phi",
        [phi for phi in PENALTIES.values() if phi.degree == degree],
        ids=[name for name, phi in PENALTIES.items() if phi.degree == degree],
    )
    for degree in (1, 2)
}


def test_every_penalty_is_in_the_catalogue():
    assert subclasses(Penalty) == {type(phi) for phi in PENALTIES.values()}


@each_penalty
def test_value_is_the_expression(phi, rng):
    R = cp.Variable(SHAPE)
    R.value = rng.normal(size=SHAPE)
    assert phi.value(R.value) == pytest.approx(
        float(phi.expression(R).value), rel=1e-12
    )


@each_penalty
def test_expression_is_convex(phi):
    assert phi.expression(cp.Variable(SHAPE)).is_convex()


@each_penalty
def test_zero_costs_nothing(phi):
    assert phi.value(np.zeros(SHAPE)) == 0.0


@each_penalty
@pytest.mark.parametrize("factor", [-3.0, 0.5, 1e4])
def test_penalty_is_homogeneous_of_its_degree(phi, factor, rng):
    R = rng.normal(size=SHAPE)
    expected = abs(factor) ** phi.degree * phi.value(R)
    assert phi.value(factor * R) == pytest.approx(expected, rel=1e-12)


@each_step
@each_penalty
def test_prox_is_no_worse_than_brute_force(phi, step, rng):
    V = rng.normal(size=SHAPE)

    def cost(R):
        return step * phi.value(R) + ((R - V) ** 2).sum() / 2

    result = phi.prox(V, step)
    _, other = minimise_over(
        SHAPE, lambda R: step * phi.expression(R) + cp.sum_squares(R - V) / 2
    )
    assert cost(result) <= cost(other) * (1 + 1e-12) + 1e-14
    for size in (1e-1, 1e-3, 1e-5):
        near = result + size * rng.normal(size=SHAPE)
        assert cost(result) <= cost(near)


@each_step
@each_penalty
def test_prox_leaves_a_subgradient(phi, step, rng):
    # Moreau: V = R + Y with Y in the subdifferential of step·φ at R
    V = rng.normal(size=SHAPE)
    R = phi.prox(V, step)
    Y = V - R
    assert phi.polar(Y) <= step * (1 + 1e-12)
    pairing = step * phi.value(R) + phi.conjugate(Y, step)
    assert pairing == pytest.approx(np.vdot(Y, R), rel=1e-11, abs=1e-13)


@each_penalty
def test_a_step_of_zero_changes_nothing(phi, rng):
    V = rng.normal(size=SHAPE)
    np.testing.assert_allclose(phi.prox(V, 0.0), V, rtol=1e-14)


@each_step
@each_penalty
def test_prox_of_zero_is_zero(phi, step):
    np.testing.assert_array_equal(phi.prox(np.zeros(SHAPE), step), np.zeros(SHAPE))


@each_penalty
def test_prox_takes_rows_of_very_different_sizes(phi, rng):
    V = rng.normal(size=SHAPE) * np.logspace(-200, 12, SHAPE[0])[:, None]
    V[1] = 0.0
    R = phi.prox(V, 0.5)
    assert np.isfinite(R).all()
    assert (np.abs(R) <= np.abs(V)).all()


@each_penalty
@pytest.mark.parametrize("weight", [0.1, 1.0, 30.0])
def test_fenchels_inequality_holds_for_any_shrunk_dual(phi, weight, rng):
    for size in (0.01, 1.0, 100.0):
        R, Y = rng.normal(size=(2, *SHAPE))
        Y = phi.shrink(size * Y, weight)
        bound = np.vdot(Y, R) - phi.conjugate(Y, weight)
        assert weight * phi.value(R) >= bound - 1e-12 * abs(bound)


@each_penalty
def test_shrunk_dual_is_in_the_domain(phi, rng):
    Y = 10 * rng.normal(size=SHAPE)
    assert phi.polar(phi.shrink(Y, 0.7)) <= 0.7 * (1 + 1e-12)


@each_penalty
def test_dual_in_the_domain_is_not_shrunk(phi, rng):
    Y = rng.normal(size=SHAPE)
    weight = phi.polar(Y) + 1.0
    np.testing.assert_array_equal(phi.shrink(Y, weight), Y)


@by_degree[2]
def test_conjugate_is_the_largest_excess_of_the_inner_product(phi, rng):
    Y = rng.normal(size=SHAPE)
    least, _ = minimise_over(
        SHAPE, lambda R: 0.7 * phi.expression(R) - cp.sum(cp.multiply(Y, R))
    )
    assert phi.conjugate(Y, 0.7) == pytest.approx(-least, rel=1e-6)


@by_degree[1]
def test_polar_is_the_largest_inner_product_with_the_unit_ball(phi, rng):
    Y = rng.normal(size=SHAPE)
    R = cp.Variable(SHAPE)
    largest = cp.Problem(
        cp.Maximize(cp.sum(cp.multiply(Y, R))), [phi.expression(R) <= 1]
    ).solve(solver="CLARABEL")
    assert phi.polar(Y) == pytest.approx(largest, rel=1e-6)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_groups_are_treated_one_by_one(norm, rng):
    V = rng.normal(size=(5, 3))
    both = GroupMax(np.array([0, 2]), 5, norm)
    first, second = GroupMax(np.array([0]), 2, norm), GroupMax(np.array([0]), 3, norm)
    assert both.value(V) == pytest.approx(first.value(V[:2]) + second.value(V[2:]))
    apart = np.concatenate([first.prox(V[:2], 0.4), second.prox(V[2:], 0.4)])
    np.testing.assert_allclose(both.prox(V, 0.4), apart, atol=1e-14)
