"""Weights and limits of a sweep have the same keys: names of losses, and losses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sweeps import never_made, without_seconds

import propopt as po
from propopt.base.errors import InvalidInput


NAME = "pairwise_robustness"
WEIGHTS = [0.1, 1.0, 10.0]


def same(one, other):
    pd.testing.assert_frame_equal(without_seconds(one), without_seconds(other))


def limits_of(objective):
    matching, robustness = objective.losses
    return np.linspace(0.1, 0.9, 4) * robustness.value(matching.G)


def test_a_loss_of_the_objective_is_known_by_its_name_and_as_itself(objective):
    _, robustness = objective.losses
    same(
        po.sweep(objective, {NAME: WEIGHTS}), po.sweep(objective, {robustness: WEIGHTS})
    )
    limits = limits_of(objective)
    same(
        po.sweep(objective, limits={NAME: limits}),
        po.sweep(objective, limits={robustness: limits}),
    )


def test_a_loss_with_weights_need_not_be_in_the_objective(objective):
    matching, robustness = objective.losses
    same(
        po.sweep(objective, {NAME: WEIGHTS}), po.sweep(matching, {robustness: WEIGHTS})
    )


def test_a_loss_with_limits_leaves_the_sum(objective):
    matching, robustness = objective.losses
    limits = limits_of(objective)
    curve = po.sweep(matching + 7.0 * robustness, limits={NAME: limits})
    same(curve, po.sweep(matching, limits={robustness: limits}))
    for best, limit in zip(curve.optimized, limits, strict=True):
        alone = po.solve(1.0 * matching, subject_to=[robustness <= limit])
        assert best.attributions.tobytes() == alone.attributions.tobytes()
        assert best.losses[NAME] == pytest.approx(limit, rel=1e-6)
        assert best.weights == {"gradient_matching": 1.0}


def test_weights_and_limits_are_combined_by_name(rough):
    matching, robustness, sparsity = rough.losses
    limits = [0.2 * robustness.value(matching.G), 0.4 * robustness.value(matching.G)]
    curve = po.sweep(rough, {"sparsity": [0.1, 1.0]}, limits={NAME: limits})
    combinations = [
        (best.weights["sparsity"], round(best.losses[NAME] / limits[0], 4))
        for best in curve.optimized
    ]
    assert combinations == [(0.1, 1), (0.1, 2), (1.0, 1), (1.0, 2)]
    assert curve.losses == ("gradient_matching", sparsity.name, NAME)


@pytest.mark.parametrize("what", ["weights", "limits"])
def test_a_name_of_no_loss_says_how_to_add_one(objective, what):
    message = (
        f"^{what}: no loss is called 'sparsity'; this objective has gradient_matching, "
        "pairwise_robustness; to add another, give the loss as the key$"
    )
    with pytest.raises(InvalidInput, match=message):
        po.sweep(objective, baselines=never_made(), **{what: {"sparsity": [1.0]}})


@pytest.mark.parametrize("what", ["weights", "limits"])
def test_a_near_name_is_suggested(objective, what):
    with pytest.raises(InvalidInput, match=r"did you mean 'pairwise_robustness'\?"):
        po.sweep(objective, **{what: {"pairwise_robustnes": [1.0]}})


def test_a_loss_is_named_once(objective):
    _, robustness = objective.losses
    with pytest.raises(InvalidInput, match=f"weights: {NAME} is named twice"):
        po.sweep(objective, {NAME: [1.0], robustness: [2.0]})
    with pytest.raises(InvalidInput, match=f"limits: {NAME} has weights too"):
        po.sweep(objective, {NAME: [1.0]}, limits={robustness: [2.0]})


@pytest.mark.parametrize("what", ["weights", "limits"])
def test_another_loss_of_the_same_name_is_refused(objective, X, what):
    other = po.PairwiseRobustness(po.chain_graph(len(X)))
    with pytest.raises(InvalidInput, match=NAME):
        po.sweep(objective, **{what: {other: [1.0]}})


def test_limits_on_all_losses_leave_nothing_to_minimise(objective):
    with pytest.raises(InvalidInput, match="nothing is left to minimise"):
        po.sweep(objective, limits={name: [1.0] for name in objective.weights})


@pytest.mark.parametrize("limit", [-1.0, np.nan, np.inf, "low"])
def test_limits_are_numbers(objective, limit):
    with pytest.raises(InvalidInput, match=f"^bound on {NAME}: expected a .*number"):
        po.sweep(objective, limits={NAME: [1.0, limit]}, baselines=never_made())


def test_values_in_rows_of_several_lengths_are_refused(objective):
    with pytest.raises(InvalidInput, match=f"^{NAME}: expected numbers"):
        po.sweep(objective, {NAME: [[1.0], [1.0, 2.0]]})
