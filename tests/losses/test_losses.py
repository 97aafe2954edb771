"""The contract of a property loss, for every loss of the catalogue."""

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
    NOISE,
    POINT_GRAPHS,
    ROBUSTNESS,
    SHAPE,
    VALUES,
    G,
    X,
    gaussian_kernel,
)
from oracles import brute_value, kernel_precision, subclasses

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.losses.algebra import Faithfulness


each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
each_robustness = pytest.mark.parametrize("loss", ROBUSTNESS.values(), ids=ROBUSTNESS)
each_kernel_mean = pytest.mark.parametrize("mean", ["per_feature", "none"])


@pytest.fixture
def W(rng):
    return rng.normal(size=SHAPE)


def test_every_loss_is_in_the_catalogue():
    known = {type(loss) for loss in LOSSES.values()}
    public = {
        kind
        for kind in subclasses(po.PropertyLoss) - subclasses(Faithfulness)
        if not kind.__name__.startswith("_")
        and kind.__module__.startswith("propopt.losses.")
    }
    assert public <= known
    assert subclasses(Faithfulness) <= known


@each_loss
def test_value_is_the_formula_term_by_term(loss, W):
    assert loss.value(W) == pytest.approx(brute_value(loss, W), rel=1e-9)


@each_loss
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_value_is_the_expression(loss, scale, W):
    variable = cp.Variable(SHAPE)
    variable.value = scale * W
    expression = float(loss.expression(variable).value)
    assert loss.value(scale * W) == pytest.approx(expression, rel=1e-10)


@each_loss
def test_expression_is_convex(loss):
    assert loss.expression(cp.Variable(SHAPE)).is_dcp()
    assert loss.expression(cp.Variable(SHAPE)).is_convex()


@each_loss
def test_loss_is_never_negative(loss, rng):
    for scale in (0.0, 1e-8, 1.0, 1e8):
        assert loss.value(scale * rng.normal(size=SHAPE)) >= 0.0


@each_loss
def test_loss_is_midpoint_convex(loss, rng):
    for _ in range(20):
        V, W = rng.normal(size=(2, *SHAPE)) * rng.lognormal(size=(2, 1, 1))
        mean = (loss.value(V) + loss.value(W)) / 2
        assert loss.value((V + W) / 2) <= mean * (1 + 1e-12)


@each_loss
def test_value_takes_a_frame(loss, W):
    named = loss.labels.points is not None
    frame = FRAME * 0 + W if named else pd.DataFrame(W, columns=["a", "b", "c", "d"])
    assert loss.value(frame) == loss.value(W)


@each_loss
def test_value_does_not_change_its_input(loss, W):
    before = W.copy()
    loss.value(W)
    np.testing.assert_array_equal(W, before)


@each_loss
def test_repr_names_the_loss(loss):
    assert loss.name in repr(loss)


@each_loss
def test_wrong_shape_is_refused_by_name(loss):
    for shape in [(6, 4), (7, 5)]:
        if loss.n_points in (None, shape[0]) and loss.n_features in (None, shape[1]):
            continue
        with pytest.raises(InvalidInput, match=loss.name):
            loss.value(np.zeros(shape))
        with pytest.raises(InvalidInput, match=loss.name):
            loss.expression(cp.Variable(shape))


@each_loss
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_attributions_that_are_not_finite_are_refused(loss, bad, W):
    W[2, 1] = bad
    with pytest.raises(InvalidInput, match=r"not finite.*\(2, 1\)"):
        loss.value(W)


@each_robustness
def test_constant_attributions_are_robust(loss):
    W = np.tile([1.0, -2.0, 3.0, 0.5], (SHAPE[0], 1))
    assert loss.value(W) == pytest.approx(0.0, abs=1e-12 * abs(loss.value(G)) + 1e-20)


def test_attributions_constant_on_components_are_robust():
    W = np.array([[1.0], [1.0], [1.0], [5.0], [5.0], [-2.0], [-2.0]])
    assert po.PairwiseRobustness(POINT_GRAPHS["disconnected"]).value(W) == 0.0


def test_equal_features_are_smooth(rng):
    W = np.tile(rng.normal(size=(SHAPE[0], 1)), (1, SHAPE[1]))
    assert po.Smoothness(po.chain_graph(SHAPE[1])).value(W) == 0.0


def test_the_gradient_matches_itself():
    for name in ("gradient l2", "gradient l1", "gradient of a frame"):
        assert LOSSES[name].value(G) == 0.0


def test_the_slopes_of_a_linear_function_match_it(rng):
    slopes = rng.normal(size=SHAPE[1])
    W = np.tile(slopes, (SHAPE[0], 1))
    through_origin = po.FunctionMatching(X, X @ slopes)
    referred = po.FunctionMatching(X, X @ slopes + 3, (X[0], X[0] @ slopes + 3))
    local = po.FunctionMatching(X, NOISE @ slopes, perturbations=NOISE)
    for loss in (through_origin, referred, local):
        assert loss.value(W) == pytest.approx(0.0, abs=1e-24)


def test_sample_weights_weigh_squares(rng):
    W = rng.normal(size=SHAPE)
    weights = np.array([0.0, 2.0, 0.0, 1.0, 0.0, 0.5])
    loss = po.FunctionMatching(X, CHANGES, perturbations=NOISE, sample_weights=weights)
    squares = (CHANGES - np.einsum("nsd,nd->ns", NOISE, W)) ** 2
    assert loss.value(W) == pytest.approx((squares @ weights).sum())


def test_names_of_a_frame_are_kept():
    loss = po.GradientMatching(FRAME)
    assert loss.labels.features == ("age", "height", "weight", "dose")
    assert loss.labels.points == tuple(range(10, 17))


def test_gradients_are_copied():
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


def test_marginalised_precision_has_zero_row_sums():
    loss = po.KernelRobustness(KERNEL)
    gram = loss.map.gram
    assert np.abs(gram.sum(axis=1)).max() <= 1e-9 * np.abs(gram).max()


def test_kernel_robustness_without_mean_draws_to_zero():
    assert po.KernelRobustness(KERNEL, mean="none").value(np.ones(SHAPE)) > 0.1


def test_the_marginalised_mean_is_the_best_constant(W):
    # Σ⁻¹ leaves what no constant per feature can take away
    free = po.KernelRobustness(KERNEL, mean="none")
    inverse = np.linalg.inv(KERNEL)
    constants = inverse.sum(axis=0) @ W / inverse.sum()
    loss = po.KernelRobustness(KERNEL)
    assert loss.value(W) == pytest.approx(free.value(W - constants), rel=1e-7)


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


def test_kernel_robustness_takes_that_kernel(rng):
    points = np.linspace(-5, 5, 50)[:, None]
    loss = po.KernelRobustness(gaussian_kernel(points, 0.5))
    assert all(loss.value(rng.normal(size=(50, 1))) > 0 for _ in range(20))


def test_isolated_point_adds_nothing_to_the_summed_difference(rng):
    W = rng.normal(size=SHAPE)
    loss = LOSSES["difference, isolated point"]
    before = loss.value(W)
    W[3] += 100.0
    assert loss.value(W) == before


BAD_LOSSES = {
    "norm": lambda: po.GradientMatching(G, norm="l3"),
    "G": lambda: po.GradientMatching(G[0]),
    "values": lambda: po.FunctionMatching(X, VALUES[:-1]),
    "values,": lambda: po.FunctionMatching(X, CHANGES[:, :-1], perturbations=NOISE),
    "perturbations": lambda: po.FunctionMatching(X, CHANGES, perturbations=NOISE[:-1]),
    "reference": lambda: po.FunctionMatching(X, VALUES, (X[0, :-1], 0.0)),
    "reference value": lambda: po.FunctionMatching(X, VALUES, (X[0], np.nan)),
    "sample_weights": lambda: po.FunctionMatching(
        X, CHANGES, perturbations=NOISE, sample_weights=-np.ones(6)
    ),
    "sample_weights,": lambda: po.FunctionMatching(
        X, CHANGES, perturbations=NOISE, sample_weights=np.ones(5)
    ),
    "mean": lambda: po.KernelRobustness(KERNEL, mean="common"),
    "kernel_matrix": lambda: po.KernelRobustness(KERNEL[:, :-1]),
    "kernel_matrix, not symmetric": lambda: po.KernelRobustness(np.triu(KERNEL)),
    "kernel_matrix, small": lambda: po.KernelRobustness(1e-9 * np.triu(KERNEL)),
    "kernel_matrix, singular": lambda: po.KernelRobustness(np.ones((3, 3))),
    "aggregate": lambda: po.MaxDifferenceRobustness(POINT_GRAPHS["knn"], "mean"),
    "norm,": lambda: po.MaxDifferenceRobustness(POINT_GRAPHS["knn"], norm="l3"),
    "graph": lambda: po.MaxDifferenceRobustness(po.chain_graph(1)),
}


@pytest.mark.parametrize(("name", "make"), BAD_LOSSES.items(), ids=BAD_LOSSES)
def test_bad_argument_is_named(name, make):
    with pytest.raises(InvalidInput, match=f"^{name.split(',')[0]}:"):
        make()


def test_sample_weights_need_perturbations():
    with pytest.raises(InvalidInput, match="sample_weights"):
        po.FunctionMatching(X, VALUES, sample_weights=np.ones(1))


def test_reference_and_perturbations_exclude_each_other():
    with pytest.raises(InvalidInput, match="not both"):
        po.FunctionMatching(X, CHANGES, (X[0], 0.0), NOISE)


def test_singular_kernel_is_refused_with_advice():
    with pytest.raises(InvalidInput, match=r"positive definite.*jitter"):
        po.KernelRobustness(np.ones((3, 3)))
