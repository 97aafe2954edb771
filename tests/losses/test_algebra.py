"""The algebra of losses: sums, scalings, bounds, and what is no algebra."""

import numpy as np
import pandas as pd
import pytest
from catalogue import FRAME, SHAPE, G

import propopt as po


gradient = po.GradientMatching(G)
robustness = po.PairwiseRobustness(po.graphs.chain_graph(SHAPE[0]))
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
        (po.losses.Objective.of(sparsity), {"sparsity": 1}),
    ):
        assert list(made.weights.items()) == list(weights.items())
    objective = gradient + sparsity  # which stays as it was
    2 * objective + robustness
    objective.with_weights({"sparsity": 9})
    assert objective.weights == {"gradient_matching": 1, "sparsity": 1}
    assert po.losses.Objective.of(objective) is objective


@pytest.mark.parametrize(
    "weight", [2, 0.5, np.float64(0.5), np.float32(0.5), np.int64(3), 0]
)
def test_weight_may_stand_on_either_side(weight):
    for thing in (sparsity, 1.0 * sparsity):
        for product in (weight * thing, thing * weight):
            assert isinstance(product, po.losses.Objective)
            assert product.weights == {"sparsity": float(weight)}


def test_at_most_makes_a_bound_on_either_side():
    for bound in [sparsity <= 2] + [
        limit >= sparsity for limit in (2, 2.0, np.float64(2), np.int32(2))
    ]:
        assert isinstance(bound, po.losses.Bound)
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
def test_what_is_present_and_the_names_are_those_of_the_table():
    counts = np.array([[2, 0], [1, 3], [0, 1]])
    loss = po.losses.SharedRobustness(po.graphs.chain_graph(3), counts)
    np.testing.assert_array_equal(loss.present, counts > 0)
    table = pd.DataFrame({"good": [1, 0], "bad": [1, 1]}, index=["a", "b"])
    loss = po.losses.SharedRobustness(po.graphs.chain_graph(2), table)
    assert loss.labels == po.GradientMatching(table).labels
    W = pd.DataFrame({"bad": [1.0, 3.0], "good": [9.0, 0.0]}, index=["a", "b"])
    assert loss.value(W) == pytest.approx(8.0)
