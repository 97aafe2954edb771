"""The algebra of losses: sums, scalings, bounds, and what is no algebra."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from catalogue import FRAME, SHAPE, G
from oracles import shared_sum

import propopt as po
from propopt.base.errors import InvalidInput


gradient = po.GradientMatching(G)
robustness = po.PairwiseRobustness(po.chain_graph(SHAPE[0]))
sparsity = po.Sparsity()


@pytest.fixture
def W(rng):
    return rng.normal(size=SHAPE)


def test_sums_and_scalings(W):
    objective = 2 * gradient + 0.5 * robustness
    expected = 2 * gradient.value(W) + 0.5 * robustness.value(W)
    assert objective.value(W) == pytest.approx(expected, rel=1e-14)
    left = (gradient + robustness) + sparsity
    assert left.terms == (gradient + (robustness + sparsity)).terms
    few = po.Sparsity(name="few")
    for made, weights in (
        (gradient + sparsity, {"gradient_matching": 1, "sparsity": 1}),
        (
            sparsity + gradient + robustness,
            {"sparsity": 1, "gradient_matching": 1, "pairwise_robustness": 1},
        ),
        (3 * (gradient + 2 * sparsity), {"gradient_matching": 3, "sparsity": 6}),
        (sum([gradient, sparsity]), {"gradient_matching": 1, "sparsity": 1}),
        (sum([2 * gradient, sparsity]), {"gradient_matching": 2, "sparsity": 1}),
        (gradient + sparsity + 2 * gradient, {"gradient_matching": 3, "sparsity": 1}),
        (sparsity + few, {"sparsity": 1, "few": 1}),
        (
            (gradient + sparsity).with_weights({"sparsity": 0.25}),
            {"gradient_matching": 1, "sparsity": 0.25},
        ),
        (po.Objective.of(sparsity), {"sparsity": 1}),
    ):
        assert list(made.weights.items()) == list(weights.items())
    objective = gradient + sparsity  # which stays as it was
    2 * objective + robustness
    objective.with_weights({"sparsity": 9})
    assert objective.weights == {"gradient_matching": 1, "sparsity": 1}
    assert po.Objective.of(objective) is objective


@pytest.mark.parametrize(
    "weight", [2, 0.5, np.float64(0.5), np.float32(0.5), np.int64(3), 0]
)
def test_weight_may_stand_on_either_side(weight):
    for thing in (sparsity, 1.0 * sparsity):
        for product in (weight * thing, thing * weight):
            assert isinstance(product, po.Objective)
            assert product.weights == {"sparsity": float(weight)}


@pytest.mark.parametrize("thing", [sparsity, gradient + sparsity], ids=repr)
@pytest.mark.parametrize(
    "operation",
    [
        lambda thing: thing + 1,
        lambda thing: 1.5 + thing,
        lambda thing: thing + "sparsity",
        lambda thing: thing + None,
        lambda thing: thing * sparsity,
        lambda thing: thing * "2",
        lambda thing: thing * True,
        lambda thing: thing * np.ones(2),
        lambda thing: np.ones(2) * thing,
        lambda thing: np.ones((7, 4)) + thing,
        lambda thing: thing / 2,
        lambda thing: thing - sparsity,
        lambda thing: -thing,
        lambda thing: thing < 2,
        lambda thing: thing >= 2,
        lambda thing: thing <= "2",
        lambda thing: thing <= sparsity,
        lambda thing: thing <= None,
    ],
)
def test_wrong_operand_raises_a_type_error(thing, operation):
    with pytest.raises(TypeError):
        operation(thing)


@pytest.mark.parametrize("weight", [-1, -1e-300, np.nan, np.inf, np.float64(-2)])
@pytest.mark.parametrize("thing", [sparsity, gradient + sparsity], ids=repr)
def test_negative_or_non_finite_weight_is_refused(thing, weight):
    for multiply in (lambda: weight * thing, lambda: thing * weight):
        with pytest.raises(
            InvalidInput, match=r"^weight: expected a finite number >= 0"
        ):
            multiply()


def test_at_most_makes_a_bound_on_either_side():
    for bound in [sparsity <= 2] + [
        limit >= sparsity for limit in (2, 2.0, np.float64(2), np.int32(2))
    ]:
        assert isinstance(bound, po.Bound)
        assert (bound.loss, bound.limit) == (sparsity, 2.0)


def test_names_are_those_that_were_written():
    assert repr(robustness <= 0.25) == "pairwise_robustness <= 0.25"
    assert repr(gradient + 0.5 * sparsity) == "1 * gradient_matching + 0.5 * sparsity"
    assert repr(gradient) == "<gradient_matching: 7 points, 4 features>"
    assert repr(robustness) == "<pairwise_robustness: 7 points>"
    assert repr(sparsity) == "<sparsity>"
    objective = sparsity + po.GradientMatching(FRAME)
    assert objective.labels.features == ("age", "height", "weight", "dose")


# ---- robustness over shared features: each feature has a graph of its own


def similar(n: int, rng: np.random.Generator) -> po.graphs.Graph:
    S = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    return po.graph_from_matrix(S + S.T)


def closed_form(
    loss: po.SharedRobustness, targets: np.ndarray, weight: float
) -> np.ndarray:
    """(I + 2cL_j)⁻¹ g_j for each feature, on the points that have it."""
    W, S = targets.copy(), loss.graph.similarities.toarray()
    for j in range(targets.shape[1]):
        has = np.flatnonzero(loss.present[:, j])
        s = S[np.ix_(has, has)]
        laplacian = np.diag(s.sum(axis=1)) - s
        W[has, j] = np.linalg.solve(
            np.eye(len(has)) + 2.0 * weight * laplacian, targets[has, j]
        )
    return W


@pytest.mark.parametrize("seed", range(5))
def test_shared_robustness_is_a_sum_and_has_the_optimum_of_each_feature(seed):
    rng = np.random.default_rng(seed)
    present = rng.random((8, 6)) < 0.6
    targets = np.where(present, rng.normal(size=(8, 6)), 0.0)
    loss, W = po.SharedRobustness(similar(8, rng), present), rng.normal(size=(8, 6))
    assert loss.value(W) == pytest.approx(shared_sum(loss, W), rel=1e-12)
    moved = np.where(present, W, 100.0 * rng.normal(size=W.shape))
    assert loss.value(moved) == loss.value(W)  # absent features cost nothing
    best = po.solve(po.GradientMatching(targets) + 0.8 * loss, tolerance=1e-12)
    assert best.certificate.holds(1e-12)
    expected = closed_form(loss, targets, 0.8)
    np.testing.assert_allclose(best.attributions, expected, atol=1e-6)


def test_what_is_present_and_the_names_are_those_of_the_table():
    counts = np.array([[2, 0], [1, 3], [0, 1]])
    loss = po.SharedRobustness(po.chain_graph(3), counts)
    np.testing.assert_array_equal(loss.present, counts > 0)
    table = pd.DataFrame({"good": [1, 0], "bad": [1, 1]}, index=["a", "b"])
    loss = po.SharedRobustness(po.chain_graph(2), table)
    assert loss.labels == po.GradientMatching(table).labels
    W = pd.DataFrame({"bad": [1.0, 3.0], "good": [9.0, 0.0]}, index=["a", "b"])
    assert loss.value(W) == pytest.approx(8.0)
