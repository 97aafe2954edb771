"""Losses, their maps and penalties: the contract of each that is in the catalogue."""

from __future__ import annotations

import re

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from catalogue import (
    CHANGES,
    FRAME,
    KERNEL,
    LOSSES,
    MAPS,
    NOISE,
    PENALTIES,
    POINT_GRAPHS,
    ROBUSTNESS,
    SHAPE,
    VALUES,
    G,
    X,
    gaussian_kernel,
)
from oracles import brute_value, kernel_precision, minimise_over, subclasses

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.losses.algebra import Faithfulness
from propopt.losses.maps import (
    GroupMax,
    ImplicitOverPoints,
    LinearMap,
    OverFeatures,
    OverPoints,
    Penalty,
    Squared,
    dense_matrix,
)


each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
each_robustness = pytest.mark.parametrize("loss", ROBUSTNESS.values(), ids=ROBUSTNESS)
each_kernel_mean = pytest.mark.parametrize("mean", ["per_feature", "none"])


@pytest.fixture
def W(rng):
    return rng.normal(size=SHAPE)


def test_everything_is_in_the_catalogue():
    public = {
        kind
        for kind in subclasses(po.PropertyLoss) - subclasses(Faithfulness)
        if not kind.__name__.startswith("_")
        and kind.__module__.startswith("propopt.losses.")
    }
    known = {type(loss) for loss in LOSSES.values()}
    assert public | subclasses(Faithfulness) <= known
    assert subclasses(LinearMap) == {type(A) for A in MAPS.values()}
    assert subclasses(Penalty) == {type(phi) for phi in PENALTIES.values()}


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
def test_loss_is_never_negative_and_midpoint_convex(loss, rng):
    for scale in (0.0, 1e-8, 1.0, 1e8):
        assert loss.value(scale * rng.normal(size=SHAPE)) >= 0.0
    for _ in range(20):
        V, W = rng.normal(size=(2, *SHAPE)) * rng.lognormal(size=(2, 1, 1))
        mean = (loss.value(V) + loss.value(W)) / 2
        assert loss.value((V + W) / 2) <= mean * (1 + 1e-12)


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


# ---- what is known of the value of some


@each_robustness
def test_constant_attributions_are_robust(loss):
    W = np.tile([1.0, -2.0, 3.0, 0.5], (SHAPE[0], 1))
    assert loss.value(W) == pytest.approx(0.0, abs=1e-12 * abs(loss.value(G)) + 1e-20)


def test_attributions_that_cost_nothing(rng):
    W = np.array([[1.0], [1.0], [1.0], [5.0], [5.0], [-2.0], [-2.0]])
    assert po.PairwiseRobustness(POINT_GRAPHS["disconnected"]).value(W) == 0.0
    W = np.tile(rng.normal(size=(SHAPE[0], 1)), (1, SHAPE[1]))
    assert po.Smoothness(po.chain_graph(SHAPE[1])).value(W) == 0.0
    for name in ("gradient l2", "gradient l1", "gradient of a frame"):
        assert LOSSES[name].value(G) == 0.0
    slopes = rng.normal(size=SHAPE[1])  # of a linear function match it
    through_origin = po.FunctionMatching(X, X @ slopes)
    referred = po.FunctionMatching(X, X @ slopes + 3, (X[0], X[0] @ slopes + 3))
    local = po.FunctionMatching(X, NOISE @ slopes, perturbations=NOISE)
    for loss in (through_origin, referred, local):
        value = loss.value(np.tile(slopes, (SHAPE[0], 1)))
        assert value == pytest.approx(0.0, abs=1e-24)
    W, isolated = rng.normal(size=SHAPE), LOSSES["difference, isolated point"]
    before = isolated.value(W)
    W[3] += 100.0
    assert isolated.value(W) == before


def test_sample_weights_weigh_squares(rng):
    W = rng.normal(size=SHAPE)
    weights = np.array([0.0, 2.0, 0.0, 1.0, 0.0, 0.5])
    loss = po.FunctionMatching(X, CHANGES, perturbations=NOISE, sample_weights=weights)
    squares = (CHANGES - np.einsum("nsd,nd->ns", NOISE, W)) ** 2
    assert loss.value(W) == pytest.approx((squares @ weights).sum())


def test_names_of_a_frame_are_kept_and_gradients_copied():
    loss = po.GradientMatching(FRAME)
    assert loss.labels.features == ("age", "height", "weight", "dose")
    assert loss.labels.points == tuple(range(10, 17))
    gradients = G.copy()
    loss = po.GradientMatching(gradients)
    gradients[:] = 0.0
    assert loss.value(G) == 0.0


@each_kernel_mean
def test_kernel_robustness_is_a_sum_over_ordered_pairs(mean, W):
    loss = po.KernelRobustness(KERNEL, mean=mean)
    precision = kernel_precision(loss)
    pairs = sum(
        -precision[n, m] * ((W[n] - W[m]) ** 2).sum()
        for n in range(SHAPE[0])
        for m in range(SHAPE[0])
    )
    rows = 2 * (precision.sum(axis=1) * (W**2).sum(axis=1)).sum()
    assert loss.value(W) == pytest.approx(pairs + rows, rel=1e-7)


def test_kernel_robustness_with_and_without_a_mean(W, rng):
    marginalised = po.KernelRobustness(KERNEL)
    gram = marginalised.map.gram
    assert np.abs(gram.sum(axis=1)).max() <= 1e-9 * np.abs(gram).max()
    # Σ⁻¹ leaves what no constant per feature can take away
    free = po.KernelRobustness(KERNEL, mean="none")
    assert free.value(np.ones(SHAPE)) > 0.1
    inverse = np.linalg.inv(KERNEL)
    constants = inverse.sum(axis=0) @ W / inverse.sum()
    assert marginalised.value(W) == pytest.approx(free.value(W - constants), rel=1e-7)
    line = np.linspace(-5, 5, 50)[:, None]
    loss = po.KernelRobustness(gaussian_kernel(line, 0.5))
    assert all(loss.value(rng.normal(size=(50, 1))) > 0 for _ in range(20))


def test_minus_the_inverse_kernel_is_refused_with_its_smallest_eigenvalue():
    points = np.linspace(-5, 5, 50)[:, None]
    similarities = -np.linalg.inv(gaussian_kernel(points, 0.5))
    similarities = (similarities + similarities.T) / 2
    np.fill_diagonal(similarities, 0.0)
    smallest = np.linalg.eigvalsh(np.diag(similarities.sum(axis=1)) - similarities)[0]
    assert smallest == pytest.approx(-95, abs=1)
    with pytest.raises(InvalidInput, match="smallest eigenvalue") as refused:
        po.graph_from_matrix(similarities)
    told = re.search(r"eigenvalue ([-.\d]+)", str(refused.value))
    assert float(told[1]) == pytest.approx(smallest, rel=1e-4)


BAD_LOSSES = {
    "norm": lambda: po.GradientMatching(G, norm="l3"),
    "G": lambda: po.GradientMatching(G[0]),
    "values": lambda: po.FunctionMatching(X, VALUES[:-1]),
    "values,": lambda: local(CHANGES[:, :-1]),
    "perturbations": lambda: local(CHANGES, NOISE[:-1]),
    "perturbations.* not both": lambda: po.FunctionMatching(
        X, CHANGES, (X[0], 0.0), NOISE
    ),
    "reference": lambda: po.FunctionMatching(X, VALUES, (X[0, :-1], 0.0)),
    "reference value": lambda: po.FunctionMatching(X, VALUES, (X[0], np.nan)),
    "sample_weights": lambda: local(CHANGES, sample_weights=-np.ones(6)),
    "sample_weights,": lambda: local(CHANGES, sample_weights=np.ones(5)),
    "sample_weights, alone": lambda: local(VALUES, None, sample_weights=np.ones(1)),
    "mean": lambda: po.KernelRobustness(KERNEL, mean="common"),
    "kernel_matrix": lambda: po.KernelRobustness(KERNEL[:, :-1]),
    "kernel_matrix, not symmetric": lambda: po.KernelRobustness(np.triu(KERNEL)),
    "kernel_matrix, small": lambda: po.KernelRobustness(1e-9 * np.triu(KERNEL)),
    "kernel_matrix: .*positive definite.*jitter": lambda: po.KernelRobustness(
        np.ones((3, 3))
    ),
    "aggregate": lambda: po.MaxDifferenceRobustness(POINT_GRAPHS["knn"], "mean"),
    "norm, of differences": lambda: po.MaxDifferenceRobustness(
        POINT_GRAPHS["knn"], norm="l3"
    ),
    "graph": lambda: po.MaxDifferenceRobustness(po.chain_graph(1)),
}


def local(values, perturbations=NOISE, **settings):
    return po.FunctionMatching(X, values, perturbations=perturbations, **settings)


@pytest.mark.parametrize(("name", "make"), BAD_LOSSES.items(), ids=BAD_LOSSES)
def test_bad_argument_is_named(name, make):
    words = name if ".*" in name else f"{name.split(',')[0]}:"
    with pytest.raises(InvalidInput, match=f"^{words}" if ":" in words else words):
        make()


# ---- gradients: those of squared losses, and a refusal of the others


SMOOTH = {n: loss for n, loss in LOSSES.items() if isinstance(loss.penalty, Squared)}
KINKED = {n: loss for n, loss in LOSSES.items() if n not in SMOOTH}
each_smooth = pytest.mark.parametrize("loss", SMOOTH.values(), ids=SMOOTH)
each_kinked = pytest.mark.parametrize("loss", KINKED.values(), ids=KINKED)


def differences(loss, W):
    """Central differences: exact for a quadratic, but for rounding."""
    step = 0.5
    slopes = np.empty(SHAPE)
    for place in np.ndindex(*SHAPE):
        move = np.zeros(SHAPE)
        move[place] = step
        slopes[place] = (loss.value(W + move) - loss.value(W - move)) / (2 * step)
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


@each_kinked
def test_the_operator_that_it_names_is_there(loss):
    """prox(V) = argmin step·φ(R) + ½‖R − V‖² costs less than V and than zero."""
    V = loss.residual(G + 0.1)
    R = loss.penalty.prox(V, 0.3)

    def cost(R):
        return 0.3 * loss.penalty.value(R) + 0.5 * float(np.vdot(R - V, R - V))

    assert cost(R) <= min(cost(V), cost(0.0 * V), cost(0.99 * R), cost(1.01 * R))


def test_both_kinds_are_in_the_catalogue_and_attributions_are_checked():
    assert len(SMOOTH) > 10
    kinds = {type(loss.penalty).__name__ for loss in KINKED.values()}
    assert kinds == {"Absolute", "GroupMax"}
    for W in (np.zeros((3, 4)), np.full(SHAPE, np.nan)):
        with pytest.raises(InvalidInput, match="gradient_matching"):
            po.GradientMatching(G).gradient(W)


# ---- maps: one text for arrays and for cvxpy, an adjoint and a matrix


each_map = pytest.mark.parametrize("A", MAPS.values(), ids=MAPS)


@each_map
def test_maps_are_linear_and_leave_what_they_are_given(A, rng):
    V, W = rng.normal(size=(2, *SHAPE))
    before = W.copy()
    np.testing.assert_allclose(A(2 * V - W), 2 * A(V) - A(W), atol=1e-12)
    A.adjoint(A(W))
    np.testing.assert_array_equal(W, before)


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
    R = rng.normal(size=A(W).shape)
    assert np.vdot(A(W), R) == pytest.approx(np.vdot(W, A.adjoint(R)), rel=1e-12)
    assert A.adjoint(R).shape == SHAPE
    assert A.energy(W) == pytest.approx((A(W) ** 2).sum(), rel=1e-12)
    np.testing.assert_allclose(A.normal(W), A.adjoint(A(W)), atol=1e-12)
    if isinstance(A, OverPoints | ImplicitOverPoints | OverFeatures):
        explicit = A.explicit() if isinstance(A, ImplicitOverPoints) else A
        matrix = dense_matrix(explicit.matrix)
        np.testing.assert_allclose(dense_matrix(A.gram), matrix.T @ matrix, atol=1e-12)


@each_map
def test_rounding_is_small_and_bounds_gradients_whatever_the_mean(A, rng):
    W = rng.normal(size=SHAPE)
    rounding = A.rounding(W)
    assert 0.0 <= rounding.residual <= 1e-13 * np.linalg.norm(W)
    assert 0.0 <= rounding.gradient <= 1e-12 * np.linalg.norm(W)
    for offset in (0.0, 1e6):
        moved = W + offset
        exact = A.adjoint(A(moved))
        error = np.linalg.norm(A.gradient(moved) - exact)
        declared = A.rounding(moved).gradient
        assert error <= declared + 1e-14 * np.linalg.norm(exact)


# ---- penalties: value, expression, proximal operator and conjugate belong together


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


@each_penalty
def test_penalties_have_the_value_of_their_convex_expression(phi, rng):
    R = cp.Variable(SHAPE)
    R.value = rng.normal(size=SHAPE)
    expression = float(phi.expression(R).value)
    assert phi.value(R.value) == pytest.approx(expression, rel=1e-12)
    assert phi.expression(cp.Variable(SHAPE)).is_convex()
    assert phi.value(np.zeros(SHAPE)) == 0.0
    for factor in (-3.0, 0.5, 1e4):  # homogeneous of their degree
        expected = abs(factor) ** phi.degree * phi.value(R.value)
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
@pytest.mark.parametrize("weight", [0.1, 1.0, 30.0])
def test_fenchels_inequality_holds_for_any_shrunk_dual(phi, weight, rng):
    for size in (0.01, 1.0, 100.0):
        R, Y = rng.normal(size=(2, *SHAPE))
        Y = phi.shrink(size * Y, weight)
        bound = np.vdot(Y, R) - phi.conjugate(Y, weight)
        assert weight * phi.value(R) >= bound - 1e-12 * abs(bound)


@each_penalty
def test_shrunk_duals_are_in_the_domain_and_stay_there(phi, rng):
    Y = 10 * rng.normal(size=SHAPE)
    assert phi.polar(phi.shrink(Y, 0.7)) <= 0.7 * (1 + 1e-12)
    np.testing.assert_array_equal(phi.shrink(Y, phi.polar(Y) + 1.0), Y)


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
