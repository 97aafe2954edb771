"""Blocks of draws of the gaussian law: what they say of the error of its slopes."""

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.losses.faithfulness import Estimate


CUBE = po.functions.Power(3)
SCALE = 0.7
X = np.random.default_rng(0).normal(size=(25, 3))
EXACT = 3 * X**2 + 3 * SCALE**2
"""The gradient of the mean of x³."""


def drawn(seed, n_samples=200):
    return po.smoothed(CUBE, SCALE, n_samples, seed).estimate(X)


def test_they_have_the_mean_that_the_gradient_is():
    mean = po.smoothed(CUBE, SCALE, 200, 0)
    result = mean.estimate(X)
    np.testing.assert_allclose(result.blocks.mean(axis=0), result.values, atol=1e-12)
    np.testing.assert_array_equal(result.values, mean.gradient(X))
    assert (len(result.blocks), result.n_draws, result.exact) == (10, 400, False)
    assert result.source == mean.gradient_method


def test_their_standard_errors_are_those_of_the_regression():
    mean = po.smoothed(CUBE, SCALE, 2000, 0)
    ratios = mean.estimate(X).standard_errors / mean.gradient_error(X)
    # of nine degrees of freedom each; a prototype gave .94
    assert 0.7 <= np.sqrt(np.mean(ratios**2)) <= 1.35


def test_they_cover_the_exact_slopes():
    covered = []
    for seed in range(40):
        result = drawn(seed)
        covered.append(np.abs(result.values - EXACT) <= 2.262 * result.standard_errors)
    # 40 independent draws of 25 rows that share them: 5 σ of 40 is 0.17
    assert 0.85 <= np.mean(covered) <= 0.995


def objective(target):
    return po.GradientMatching(target) + po.PairwiseRobustness(po.knn_graph(X, 4))


def test_the_excess_that_they_estimate_is_the_true_one():
    excess, estimated = 0.0, 0.0
    least = po.solve(objective(EXACT)).objective
    for seed in range(40):
        best = po.solve(objective(drawn(seed)))
        excess += objective(EXACT).value(best.attributions) - least
        estimated += best.target.value
    assert 0.6 <= estimated / excess <= 1.6


def test_a_linear_function_has_no_error():
    line = po.wrap(lambda X: X @ [1.0, -2.0, 0.5])
    result = po.smoothed(line, SCALE, 50, 0).estimate(X)
    assert result.standard_errors.max() < 1e-12


def test_effects_of_categories_and_of_missing_numbers_have_blocks_too():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "size": np.where(rng.random(40) < 0.3, np.nan, rng.normal(size=40)),
            "kind": rng.choice(["a", "b", "c"], 40),
        }
    )

    def model(frame):
        bonus = frame["kind"].map({"a": 0.0, "b": 1.0, "c": 4.0}).astype(float)
        return np.round(2 * frame["size"].fillna(3.0)) * (1.0 + bonus)

    mean = po.smoothed(po.wrap(model, data=table), SCALE, 200, 0)
    result = mean.estimate(table[:10])
    np.testing.assert_array_equal(result.values, mean.gradient(table[:10]))
    np.testing.assert_allclose(result.blocks.mean(axis=0), result.values, atol=1e-12)
    noisy = table["size"][:10].notna().to_numpy()  # missing numbers get no noise
    assert (result.standard_errors[noisy, 1] > 1e-6).all()
    assert (result.standard_errors[~noisy, 0] > 1e-6).all()


def test_of_fewer_pairs_than_blocks_the_error_is_not_known():
    line = po.functions.Power(3)
    result = po.smoothed(line, SCALE, 9, 0).estimate(X)
    assert result.blocks is None
    assert result.standard_errors is None


@pytest.mark.parametrize("n_blocks", [2, 7])
def test_left_out_means_give_back_the_blocks(n_blocks):
    blocks = np.random.default_rng(2).normal(size=(n_blocks, 4, 3))
    left_out = [np.delete(blocks, b, axis=0).mean(axis=0) for b in range(n_blocks)]
    result = Estimate.blocks_of_left_out(blocks.mean(axis=0), np.stack(left_out))
    np.testing.assert_allclose(result, blocks, atol=1e-12)
