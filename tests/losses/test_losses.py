"""Losses, their maps and penalties: the contract of each, and what is refused."""

import re

import catalogue
import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from catalogue import CHANGES, FRAME, LOSSES, MAPS, NOISE, PENALTIES, SHAPE, G, X
from oracles import brute_value, minimise_over, subclasses
from refusals import refused

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.losses import maps
from propopt.losses.algebra import Faithfulness


each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


@pytest.fixture
def W(rng):
    return rng.normal(size=SHAPE)


def test_everything_is_in_the_catalogue():
    public = {
        kind
        for kind in subclasses(po.losses.PropertyLoss) - subclasses(Faithfulness)
        if not kind.__name__.startswith("_")
        and kind.__module__.startswith("propopt.losses.")
    } - {po.losses.Custom}  # which is made of a function of users
    reference = {type(loss) for loss in LOSSES.values()}
    assert public | subclasses(Faithfulness) <= reference
    assert subclasses(maps.LinearMap) == {type(A) for A in MAPS.values()}
    assert subclasses(maps.Penalty) == {type(phi) for phi in PENALTIES.values()}


@each_loss
def test_value_is_the_formula_and_the_expression_which_is_convex(loss, W):
    assert loss.value(W) == pytest.approx(brute_value(loss, W), rel=1e-9)
    variable = cp.Variable(SHAPE)
    for scale in (1e-6, 1.0, 1e6):
        variable.value = scale * W
        expression = float(loss.expression(variable).value)
        assert loss.value(scale * W) == pytest.approx(expression, rel=1e-10)
    assert loss.expression(cp.Variable(SHAPE)).is_dcp()
    assert loss.expression(cp.Variable(SHAPE)).is_convex()


@each_loss
def test_value_takes_a_frame_leaves_it_and_is_named(loss, W):
    named, before = loss.labels.points is not None, W.copy()
    frame = FRAME * 0 + W if named else pd.DataFrame(W, columns=["a", "b", "c", "d"])
    assert loss.value(frame) == loss.value(W)
    np.testing.assert_array_equal(W, before)
    assert loss.name in repr(loss)


@each_loss
def test_other_shapes_and_numbers_that_are_not_finite_are_refused(loss, W):
    for shape in [(6, 4), (7, 5)]:
        if loss.n_points in (None, shape[0]) and loss.n_features in (None, shape[1]):
            continue
        with pytest.raises(InvalidInput, match=loss.name):
            loss.value(np.zeros(shape))
        with pytest.raises(InvalidInput, match=loss.name):
            loss.expression(cp.Variable(shape))
    for bad in (np.nan, np.inf):
        W[2, 1] = bad
        with pytest.raises(InvalidInput, match=r"not finite.*\(2, 1\)"):
            loss.value(W)


def test_local_errors_are_summed_over_perturbations(rng):
    W = rng.normal(size=SHAPE)
    loss = po.losses.FunctionMatching(X, CHANGES, perturbations=NOISE)
    squares = (CHANGES - np.einsum("nsd,nd->ns", NOISE, W)) ** 2
    assert loss.value(W) == pytest.approx(squares.sum())


def test_names_of_a_frame_are_used_and_gradients_copied():
    loss = po.GradientMatching(FRAME)
    assert loss.labels.features == ("age", "height", "weight", "dose")
    assert loss.labels.points == tuple(range(10, 17))
    gradients = G.copy()
    loss = po.GradientMatching(gradients)
    gradients[:] = 0.0
    assert loss.value(G) == 0.0


# ---- gradients: those of squared losses, and a refusal of the others
SMOOTH = {
    n: loss for n, loss in LOSSES.items() if isinstance(loss.penalty, maps.Squared)
}
KINKED = {n: loss for n, loss in LOSSES.items() if n not in SMOOTH}
each_smooth = pytest.mark.parametrize("loss", SMOOTH.values(), ids=SMOOTH)
each_kinked = pytest.mark.parametrize("loss", KINKED.values(), ids=KINKED)


def differences(loss, W):
    """Central differences: exact for a quadratic, but for rounding."""
    step = 0.5
    slopes = np.empty(SHAPE)
    for index in np.ndindex(*SHAPE):
        move = np.zeros(SHAPE)
        move[index] = step
        slopes[index] = (loss.value(W + move) - loss.value(W - move)) / (2 * step)
    return slopes


@each_smooth
def test_a_gradient_is_that_of_differences(loss, rng):
    W = rng.normal(size=SHAPE)
    result, expected = loss.gradient(W), differences(loss, W)
    rounding = 1e-14 * loss.value(W) + 1e-15
    largest = np.abs(expected).max()
    np.testing.assert_allclose(result, expected, atol=1e-8 * largest + rounding)


@each_kinked
def test_a_loss_with_kinks_has_no_gradient_and_says_what_it_has(loss):
    with pytest.raises(Refused, match=rf"^{loss.name} has no gradient.*penalty\.prox"):
        loss.gradient(G)


# ---- maps: one text for arrays and for cvxpy, an adjoint and a matrix
each_map = pytest.mark.parametrize("A", MAPS.values(), ids=MAPS)


@each_map
def test_maps_of_expressions_and_matrices_are_those_of_arrays(A, rng):
    W, variable = rng.normal(size=SHAPE), cp.Variable(SHAPE)
    variable.value = W
    assert A(variable).shape == A(W).shape
    np.testing.assert_allclose(A(variable).value, A(W), atol=1e-12)
    np.testing.assert_allclose(A.flat(SHAPE) @ W.ravel(), A(W).ravel(), atol=1e-12)
    assert A.flat_rows(SHAPE) == A(np.zeros(SHAPE)).size == A.flat(SHAPE).shape[0]


@each_map
def test_adjoints_energies_and_normal_maps_belong_to_the_map(A, rng):
    W = rng.normal(size=SHAPE)
    R, before = rng.normal(size=A(W).shape), W.copy()
    assert np.vdot(A(W), R) == pytest.approx(np.vdot(W, A.adjoint(R)), rel=1e-12)
    A.adjoint(A(W))
    np.testing.assert_array_equal(W, before)
    assert A.adjoint(R).shape == SHAPE
    assert A.energy(W) == pytest.approx((A(W) ** 2).sum(), rel=1e-12)
    np.testing.assert_allclose(A.normal(W), A.adjoint(A(W)), atol=1e-12)
    if isinstance(A, maps.OverPoints | maps.ImplicitOverPoints | maps.OverFeatures):
        explicit = A.explicit() if isinstance(A, maps.ImplicitOverPoints) else A
        matrix = maps.dense_matrix(explicit.matrix)
        np.testing.assert_allclose(
            maps.dense_matrix(A.gram), matrix.T @ matrix, atol=1e-12
        )


@each_map
def test_rounding_is_small_and_bounds_gradients_whatever_the_mean(A, rng):
    W = rng.normal(size=SHAPE)
    rounding = A.rounding(W)
    assert 0.0 <= rounding[0] <= 1e-13 * np.linalg.norm(W)
    assert 0.0 <= rounding[1] <= 1e-12 * np.linalg.norm(W)
    for offset in (0.0, 1e6):
        moved = W + offset
        exact = A.adjoint(A(moved))
        error = np.linalg.norm(A.gradient(moved) - exact)
        declared = A.rounding(moved)[1]
        assert error <= declared + 1e-14 * np.linalg.norm(exact)


# ---- penalties: value, expression, proximal operator and conjugate belong together
each_penalty = pytest.mark.parametrize("phi", PENALTIES.values(), ids=PENALTIES)
STEPS = (0.02, 0.3, 2.0, 50.0)
each_step = pytest.mark.parametrize("step", STEPS)


@each_penalty
def test_penalties_have_the_value_of_their_convex_expression(phi, rng):
    R = cp.Variable(SHAPE)
    R.value = rng.normal(size=SHAPE)
    expression = float(phi.expression(R).value)
    assert phi.value(R.value) == pytest.approx(expression, rel=1e-12)
    assert phi.expression(cp.Variable(SHAPE)).is_convex()
    assert phi.value(np.zeros(SHAPE)) == 0.0
    for factor in (-3.0, 0.5, 1e4):  # in another unit
        size = abs(factor)
        expected = size**phi.degree * phi.scaled(size).value(R.value)
        assert phi.value(factor * R.value) == pytest.approx(expected, rel=1e-12)


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
        close = result + size * rng.normal(size=SHAPE)
        assert cost(result) <= cost(close)


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
def test_prox_of_no_step_of_zero_and_of_rows_of_very_different_sizes(phi, rng):
    V = rng.normal(size=SHAPE)
    np.testing.assert_allclose(phi.prox(V, 0.0), V, rtol=1e-14)
    for step in STEPS:
        np.testing.assert_array_equal(phi.prox(np.zeros(SHAPE), step), 0.0)
    V *= np.logspace(-200, 12, SHAPE[0])[:, None]
    V[1] = 0.0
    R = phi.prox(V, 0.5)
    assert np.isfinite(R).all()
    assert (np.abs(R) <= np.abs(V)).all()


@each_penalty
def test_shrunk_duals_are_in_the_domain_and_stay_there(phi, rng):
    Y = 10 * rng.normal(size=SHAPE)
    assert phi.polar(phi.shrink(Y, 0.7)) <= 0.7 * (1 + 1e-12)
    np.testing.assert_array_equal(phi.shrink(Y, phi.polar(Y) + 1.0), Y)


@pytest.mark.parametrize("name", [n for n, o in PENALTIES.items() if o.degree == 1])
def test_polar_is_the_largest_inner_product_with_the_unit_ball(name, rng):
    phi, Y = PENALTIES[name], rng.normal(size=SHAPE)
    R = cp.Variable(SHAPE)
    largest = cp.Problem(
        cp.Maximize(cp.sum(cp.multiply(Y, R))), [phi.expression(R) <= 1]
    ).solve(solver="CLARABEL")
    assert phi.polar(Y) == pytest.approx(largest, rel=1e-6)


# ---- what losses, their algebra and graphs refuse, and in which words
NAMES = {**vars(catalogue), "np": np, "pd": pd, "po": po, "sp": sp}


@pytest.mark.parametrize(("call", "words"), refused(__file__, NAMES))
def test_what_cannot_be_used_is_refused(call, words):
    with pytest.raises(InvalidInput) as raised:
        call()
    assert re.search(words, str(raised.value))
