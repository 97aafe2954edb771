"""The algebra of losses: sums, scalings, bounds, and what is no algebra."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from catalogue import FRAME, OBJECTIVES, SHAPE, G

import propopt as po
from propopt.base.errors import InvalidInput


gradient = po.GradientMatching(G)
robustness = po.PairwiseRobustness(po.chain_graph(SHAPE[0]))
sparsity = po.Sparsity()
each_objective = pytest.mark.parametrize(
    "objective", OBJECTIVES.values(), ids=OBJECTIVES
)


@pytest.fixture
def W(rng):
    return rng.normal(size=SHAPE)


def test_sum_of_losses_has_weights_of_one():
    assert (gradient + sparsity).weights == {"gradient_matching": 1, "sparsity": 1}


def test_value_is_the_weighted_sum(W):
    objective = 2 * gradient + 0.5 * robustness
    expected = 2 * gradient.value(W) + 0.5 * robustness.value(W)
    assert objective.value(W) == pytest.approx(expected, rel=1e-14)


@each_objective
def test_expression_has_the_value(objective, W):
    variable = cp.Variable(SHAPE)
    variable.value = W
    result = float(objective.expression(variable).value)
    assert objective.value(W) == pytest.approx(result, rel=1e-10)


@each_objective
def test_objective_is_convex(objective):
    assert objective.expression(cp.Variable(SHAPE)).is_convex()


@each_objective
def test_value_is_the_weighted_breakdown(objective, W):
    parts = objective.breakdown(W)
    total = sum(objective.weights[name] * part for name, part in parts.items())
    assert objective.value(W) == pytest.approx(total, rel=1e-14)


def test_sums_keep_their_order():
    assert list((sparsity + gradient + robustness).weights) == [
        "sparsity",
        "gradient_matching",
        "pairwise_robustness",
    ]


def test_sum_is_associative():
    left = (gradient + robustness) + sparsity
    right = gradient + (robustness + sparsity)
    assert left.terms == right.terms


def test_scaling_distributes_over_sums():
    assert (3 * (gradient + 2 * sparsity)).weights == {
        "gradient_matching": 3,
        "sparsity": 6,
    }


@pytest.mark.parametrize(
    "weight", [2, 0.5, np.float64(0.5), np.float32(0.5), np.int64(3), 0]
)
def test_weight_may_stand_on_either_side(weight):
    for thing in (sparsity, 1.0 * sparsity):
        for product in (weight * thing, thing * weight):
            assert isinstance(product, po.Objective)
            assert product.weights == {"sparsity": float(weight)}


def test_sum_of_a_list_is_their_sum():
    assert sum([gradient, robustness]).weights == (gradient + robustness).weights
    assert sum([2 * gradient, robustness, sparsity]).weights["gradient_matching"] == 2


def test_same_loss_is_added_up():
    assert (gradient + sparsity + 2 * gradient).weights == {
        "gradient_matching": 3,
        "sparsity": 1,
    }


def test_algebra_leaves_its_operands_as_they_were():
    objective = gradient + sparsity
    2 * objective + robustness
    objective.with_weights({"sparsity": 9})
    assert objective.weights == {"gradient_matching": 1, "sparsity": 1}


def test_two_losses_of_one_name_are_refused():
    with pytest.raises(InvalidInput, match="two losses are called 'sparsity'"):
        po.Sparsity() + po.Sparsity()


def test_two_losses_of_a_kind_may_have_two_names():
    objective = po.Sparsity() + po.Sparsity(name="few")
    assert list(objective.weights) == ["sparsity", "few"]


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


def test_weight_that_overflows_is_refused():
    with pytest.raises(InvalidInput, match="sparsity"):
        1e200 * (1e200 * sparsity)
    with pytest.raises(InvalidInput, match="sparsity"):
        1e308 * sparsity + 1e308 * sparsity


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_objective_is_checked_however_it_is_made(weight):
    with pytest.raises(InvalidInput, match="sparsity"):
        po.Objective(((weight, sparsity),))


def test_weights_can_be_replaced_by_name():
    objective = (gradient + sparsity).with_weights({"sparsity": 0.25})
    assert objective.weights == {"gradient_matching": 1, "sparsity": 0.25}


def test_unknown_weight_is_refused_with_the_known_ones():
    with pytest.raises(
        InvalidInput, match=r"'simplicity'.*gradient_matching, sparsity"
    ):
        (gradient + sparsity).with_weights({"simplicity": 1})


@pytest.mark.parametrize("weight", [-1, np.nan, np.inf, "much", None])
def test_bad_replacement_is_refused_by_name(weight):
    with pytest.raises(InvalidInput, match=r"^sparsity:"):
        (gradient + sparsity).with_weights({"sparsity": weight})


def test_at_most_makes_a_bound():
    bound = sparsity <= 2
    assert (bound.loss, bound.limit) == (sparsity, 2.0)
    assert isinstance(bound, po.Bound)


@pytest.mark.parametrize("limit", [2, 2.0, np.float64(2), np.int32(2)])
def test_at_least_on_the_left_makes_the_same_bound(limit):
    bound = limit >= sparsity
    assert (bound.loss, bound.limit) == (sparsity, 2.0)


@pytest.mark.parametrize("limit", [-1, np.nan, np.inf])
def test_negative_or_non_finite_bound_is_refused_by_name(limit):
    with pytest.raises(InvalidInput, match="bound on sparsity"):
        sparsity <= limit  # noqa: B015  # the comparison is what raises


def test_bound_reads_as_it_was_written():
    assert repr(robustness <= 0.25) == "pairwise_robustness <= 0.25"


def test_objective_reads_as_it_was_written():
    assert repr(gradient + 0.5 * sparsity) == "1 * gradient_matching + 0.5 * sparsity"


def test_loss_shows_its_name_and_shape():
    assert repr(gradient) == "<gradient_matching: 7 points, 4 features>"
    assert repr(robustness) == "<pairwise_robustness: 7 points>"
    assert repr(sparsity) == "<sparsity>"


def test_names_come_from_the_first_loss_that_has_them():
    objective = sparsity + po.GradientMatching(FRAME)
    assert objective.labels.features == ("age", "height", "weight", "dose")


def test_a_single_loss_is_an_objective():
    assert po.Objective.of(sparsity).weights == {"sparsity": 1.0}
    objective = 2 * sparsity
    assert po.Objective.of(objective) is objective
