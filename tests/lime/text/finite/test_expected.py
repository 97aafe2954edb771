"""What runs of LIME on texts give in their mean, against equations and runs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from text_lime_runs import runs, tree

from propopt.base.errors import InvalidInput
from propopt.lime import single_runs
from propopt.lime.single_runs import (
    effective_log_weights,
    single_text_run,
)
from propopt.lime.text.text_reading import TextLaw, WordRegression
from propopt.structures.subsets.conjunctions import Conjunctions, Enumerated
from propopt.structures.subsets.sets import all_sets


SETTINGS = [(0.0, False), (0.0, True), (1.0, True), (5.0, False)]


def expected_run(*arguments, **settings):
    fit = single_runs.expected_run(*arguments, **settings)
    intercept, coefficients = float(fit.intercept[0]), fit.coefficients[0]
    return SimpleNamespace(intercept=intercept, coefficients=coefficients)


def joined(result):
    return np.concatenate([[result.intercept], result.coefficients])


def normal_equations(function, log_weights, n_samples, ridge, first_row, kept=None):
    """The mean of each sum over all 2^d sets, and its solution."""
    d, masks = function.n_words, all_sets(function.n_words)
    sizes = masks.sum(axis=1)
    n_of_size = np.bincount(sizes)[sizes]
    weights = np.exp(log_weights)[sizes] / (d * n_of_size) * (n_samples - first_row)
    weights[sizes == d] = float(first_row)
    used = np.concatenate([[True], np.ones(d, bool) if kept is None else kept])
    X = np.column_stack([np.ones(len(masks)), masks])[:, used]
    penalty = ridge * np.eye(X.shape[1])
    penalty[0, 0] = 0.0
    A = (X.T * weights) @ X + penalty
    result = np.zeros(1 + d)
    result[used] = np.linalg.solve(A, (X.T * weights) @ function.value(masks))
    return result, A, X, sizes


@pytest.fixture
def any_function():
    return Enumerated(np.random.default_rng(0).normal(size=2**7))


@pytest.mark.parametrize("nu", [0.1, 0.25, np.inf])
@pytest.mark.parametrize(("ridge", "first_row"), SETTINGS)
@pytest.mark.parametrize("some", [False, True])
def test_without_leverage_it_solves_the_mean_normal_equations(
    any_function, nu, ridge, first_row, some
):
    kept = np.array([1, 0, 0, 1, 1, 0, 1], bool) if some else None
    law = TextLaw(nu)
    result = expected_run(
        any_function, law, None, 60, ridge, first_row, kept, leverage=False
    )
    logs = law.log_weights(7)
    truth, *_ = normal_equations(any_function, logs, 60, ridge, first_row, kept)
    np.testing.assert_allclose(joined(result), truth, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("ridge", "first_row"), SETTINGS)
@pytest.mark.parametrize("some", [False, True])
def test_effective_weights_are_a_fixed_point(any_function, ridge, first_row, some):
    # π̃ = π / (1 + π q), q the mean over sets of one size of Zᵀ A⁻¹ Z
    kept = np.array([1, 0, 0, 1, 1, 0, 1], bool) if some else None
    law, n = TextLaw(0.25), 20
    logs = effective_log_weights(law, 7, n, ridge, first_row, 4 if some else None)
    truth, A, X, sizes = normal_equations(any_function, logs, n, ridge, first_row, kept)
    q = np.einsum("si,ij,sj->s", X, np.linalg.inv(A), X)
    mean_q = (np.bincount(sizes, q) / np.bincount(sizes))[:7]
    pi = np.exp(law.log_weights(7)[:7])
    np.testing.assert_allclose(np.exp(logs[:7]), pi / (1 + pi * mean_q), rtol=1e-10)
    result = expected_run(any_function, law, None, n, ridge, first_row, kept)
    np.testing.assert_allclose(joined(result), truth, rtol=0, atol=1e-9)


def test_many_samples_give_the_limit():
    law = TextLaw(0.25)
    limit = WordRegression(tree(29)).at(np.array([0.25]))
    result = expected_run(tree(29), law, None, 10**9)
    np.testing.assert_allclose(result.coefficients, limit.coefficients[0], atol=1e-6)
    assert result.intercept == pytest.approx(limit.intercept[0], abs=1e-6)


def test_limits_alone_give_the_first_order():
    law = TextLaw(0.25)
    limit = WordRegression(tree(29)).at(np.array([0.25]))
    result = expected_run(limit, law, 1.0, 50)
    truth = expected_run(tree(29), law, None, 50, leverage=False)
    np.testing.assert_allclose(joined(result), joined(truth), rtol=0, atol=1e-12)
    with pytest.raises(InvalidInput, match="values"):
        expected_run(limit, law, None, 50)


def test_published_numbers_of_the_package():
    # n = 5000 at ν = 0.05: the intercept .6550 ± .0015, and .6535 in the first order
    small = expected_run(tree(29), TextLaw(0.05), None, 5000, leverage=False)
    assert small.intercept == pytest.approx(0.6535, abs=5e-5)
    full = expected_run(tree(29), TextLaw(0.05), None, 5000)
    assert full.intercept == pytest.approx(0.655, abs=0.0045)
    # n = 500 and 50 at ν = 0.25: .5452 ± .0009 and .382, in the first order .5455, .455
    quarter = TextLaw(0.25)
    first = [
        expected_run(tree(29), quarter, None, n, leverage=False).coefficients[0]
        for n in (500, 50)
    ]
    np.testing.assert_allclose(first, [0.5455, 0.4555], atol=5e-5)
    full = [expected_run(tree(29), quarter, None, n).coefficients[0] for n in (500, 50)]
    np.testing.assert_allclose(full, [0.5452, 0.382], atol=0.002)


CASES = {  # n, ridge, the document itself among the samples, ν, runs
    "as few samples as words": (30, 1.0, True, 0.25, 1500),
    "without ridge": (40, 0.0, False, 0.25, 1500),
    "a wide bandwidth": (40, 1.0, True, np.inf, 1500),
    "a small bandwidth": (200, 1.0, True, 0.1, 700),
}


@pytest.mark.parametrize("case", CASES)
def test_means_of_runs_of_few_samples(case):
    # 20 coefficients and an intercept: |z| > 4.5 of any is a false alarm in 1 of 7000
    # tests; what is left over of leverage is below 2 % of the largest coefficient
    n, ridge, first_row, nu, n_runs = CASES[case]
    law, f = TextLaw(nu), tree(20)
    result = runs(f, law, n, n_runs, ridge, first_row)
    error = result.std(axis=0, ddof=1) / np.sqrt(n_runs)
    full = joined(expected_run(f, law, None, n, ridge, first_row))
    first = joined(expected_run(f, law, None, n, ridge, first_row, leverage=False))
    allowed = 4.5 * error + 0.02 * np.abs(full[1:]).max()
    assert (np.abs(result.mean(axis=0) - full) < allowed).all()
    off, first_off = (np.abs(result.mean(axis=0) - t)[1] for t in (full, first))
    assert off < 0.25 * first_off


def test_means_of_runs_that_fit_some_words():
    kept = np.zeros(12, bool)
    kept[[0, 1, 5, 7]] = True
    result = runs(tree(12), TextLaw(0.25), 25, 2000, kept=kept)
    error = result.std(axis=0, ddof=1) / np.sqrt(2000)
    full = joined(expected_run(tree(12), TextLaw(0.25), None, 25, kept=kept))
    np.testing.assert_array_equal(full[1:][~kept], 0.0)
    some = np.concatenate([[True], kept])
    off = np.abs(result.mean(axis=0) - full)[some]
    # |z| > 4.5 of five numbers: a false alarm in 1 of 30000 tests
    assert (off < 4.5 * error[some] + 0.01).all()


def test_a_subset_of_words_in_the_limit():
    # K = {1, 2, 6, 8} of 12: a word that matters is left out
    kept = np.zeros(12, bool)
    kept[[0, 1, 5, 7]] = True
    result = expected_run(
        tree(12), TextLaw(0.25), None, 10**6, 0.0, False, kept, leverage=False
    )
    known = [0.23185, 0.56931, 0.22677, 0.02666, 0.02666]
    some = np.concatenate([[True], kept])
    np.testing.assert_allclose(joined(result)[some], known, rtol=0, atol=5e-6)


def test_a_constant_moves_the_intercept_alone(any_function):
    law = TextLaw(0.25)
    one = joined(expected_run(any_function, law, None, 20))
    more = Enumerated(3.0 * any_function.values + 5.0)
    other = joined(expected_run(more, law, None, 20))
    np.testing.assert_allclose(other[1:], 3.0 * one[1:], rtol=0, atol=1e-12)
    assert other[0] == pytest.approx(3.0 * one[0] + 5.0, abs=1e-11)


@pytest.mark.parametrize("nu", [1e-3, 1e-4])
def test_weights_that_vanish(nu):
    # nothing is left of all weights but that of the document: no word tells anything
    result = expected_run(tree(29), TextLaw(nu), None, 5000)
    assert np.isfinite(joined(result)).all()
    assert result.intercept + result.coefficients.sum() == pytest.approx(1.0, abs=1e-3)


def test_settings_out_of_range():
    law = TextLaw(0.25)
    with pytest.raises(InvalidInput, match="without ridge expected more than 30"):
        expected_run(tree(29), law, None, 30, ridge=0.0)
    with pytest.raises(InvalidInput, match="n_samples"):
        expected_run(tree(29), law, None, 1)
    with pytest.raises(InvalidInput, match="ridge"):
        expected_run(tree(29), law, None, 50, ridge=-1.0)


@pytest.mark.parametrize("bandwidth", [1e-4, 1e-3, 5e-3])
@pytest.mark.parametrize("d", [2, 8])
def test_where_no_sample_counts_the_ridge_leaves_the_row_itself(bandwidth, d):
    """Weights of exp(−1000) are zero in a run of the package, and so is its scatter."""
    f = Conjunctions.of([2.0, 1.0], [[0], [1]], [[], [0]], d)
    run = single_text_run(f, TextLaw(bandwidth), None, 5000)
    np.testing.assert_allclose(run.coefficients, 0.0, atol=1e-15)
    np.testing.assert_allclose(run.intercept, 2.0, rtol=1e-12)
    np.testing.assert_allclose(run.standard_deviations, 0.0, atol=1e-15)
