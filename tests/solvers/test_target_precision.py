"""The stopping rule of draws: the target error of the optimum for another estimate."""

import math

import numpy as np
import pytest

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.losses.faithfulness import Estimate
from propopt.solvers.precision import target_error_of


SLOPES = np.random.default_rng(0).normal(size=(9, 2))
NOISE = np.random.default_rng(1).normal(size=(10, 9, 2))


def drawn(size):
    return Estimate.of_blocks(SLOPES + size * NOISE, source="noise", n_draws=10)


def objective(target):
    return po.GradientMatching(target) + po.PairwiseRobustness(po.chain_graph(9))


def test_it_is_what_the_result_for_that_estimate_says():
    found = target_error_of(objective(drawn(0.2)), drawn(0.1))
    assert found == po.solve(objective(drawn(0.1))).target_error
    assert found < po.solve(objective(drawn(0.2))).target_error


def test_an_exact_estimate_has_none_and_one_of_unknown_error_nan():
    exact = Estimate(values=SLOPES, source="exact", exact=True)
    assert target_error_of(objective(drawn(0.2)), exact) == 0.0
    unknown = Estimate(values=SLOPES, source="central differences")
    assert math.isnan(target_error_of(objective(drawn(0.2)), unknown))


def test_an_objective_has_one_target():
    two = objective(drawn(0.2)) + po.GradientMatching(SLOPES, name="other")
    with pytest.raises(InvalidInput, match="one gradient-matching loss, got 2"):
        target_error_of(two, drawn(0.1))


def test_draws_stop_where_the_error_is_small_enough():
    X = np.random.default_rng(2).normal(size=(60, 2))
    steps = po.wrap(lambda X: np.round(2 * X).sum(axis=1))
    mean = po.smoothed(steps, law="data", data=X, n_samples=50)
    robust = 0.3 * po.PairwiseRobustness(po.knn_graph(X, 4))
    matching = po.GradientMatching(mean.estimate(X))
    few = target_error_of(matching + robust, mean.estimate(X))
    grown = mean.growing(X).until(
        lambda estimate: target_error_of(matching + robust, estimate), few / 3.0
    )
    assert grown.n_draws > 100
    assert target_error_of(matching + robust, grown.estimate) <= few / 3.0
