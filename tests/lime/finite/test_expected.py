"""What n samples give in their mean, against dense normal equations and numbers."""

from __future__ import annotations

import lime_fixture as fixture
import numpy as np
import pytest

from propopt.base.errors import InvalidInput
from propopt.lime.expectations import ExactLimits, Limits
from propopt.lime.single_runs import (
    expected,
    first_row_shift,
    kept_columns,
)
from propopt.structures.products.families import Powers
from propopt.structures.products.sums import SumOfProducts


def joined(result):
    return np.concatenate([result.intercept[:, None], result.coefficients], axis=1)


def flat(n_columns, kernel_width, n_bins=4, coefficients=None):
    """Limits where all bins have equal shares."""
    eps = np.exp(-0.5 / kernel_width**2)
    c = 1 / n_bins + (1 - 1 / n_bins) * eps
    beta = np.zeros(n_columns) if coefficients is None else np.array(coefficients)
    alpha = np.full((1, n_columns), 1 / (n_bins * c))
    return Limits(beta[None], np.zeros(1), alpha, np.array([n_columns * np.log(c)]))


def random_limits(rng, n_rows, n_columns, log_weight=-1.0):
    return Limits(
        rng.normal(size=(n_rows, n_columns)),
        rng.normal(size=n_rows),
        rng.uniform(0.05, 0.95, (n_rows, n_columns)),
        np.full(n_rows, log_weight),
    )


def dense(limits, values, n_samples, ridge, first_row, kept=None):
    """The normal equations of all rows, built and solved one by one."""
    solutions = []
    for n in range(len(limits.mean)):
        a = np.concatenate([[1.0], limits.alpha[n]])
        M = np.outer(a, a)
        M[np.arange(1, len(a)), np.arange(1, len(a))] = a[1:]
        beta = np.concatenate([limits.intercept[[n]], limits.coefficients[n]])
        n_drawn = n_samples - first_row
        S = n_drawn * np.exp(limits.log_weight[n]) * M
        left = S + ridge * np.diag(np.r_[0.0, np.ones(len(a) - 1)]) + first_row
        right = S @ beta + first_row * values[n]
        used = np.ones(len(a), bool) if kept is None else np.r_[True, kept[n]]
        b = np.zeros(len(a))
        b[used] = np.linalg.solve(left[np.ix_(used, used)], right[used])
        solutions.append(b)
    return np.array(solutions)


@pytest.mark.parametrize("first_row", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 1.0, 70.0])
@pytest.mark.parametrize("log_weight", [0.0, -6.0])
def test_the_solution_is_that_of_the_normal_equations(first_row, ridge, log_weight):
    rng = np.random.default_rng(0)
    limits, values = random_limits(rng, 5, 6, log_weight), rng.normal(size=5)
    kept = rng.random((5, 6)) < 0.5
    for some in (None, kept):
        result = joined(expected(limits, values, 900, ridge, first_row, some))
        truth = dense(limits, values, 900, ridge, first_row, some)
        np.testing.assert_allclose(result, truth, rtol=0, atol=1e-11)


def test_golden_ridge_of_the_linear_function():
    limits = ExactLimits(fixture.FUNCTIONS["linear"], fixture.law(1.0)).of(fixture.ROW)
    golden = [2.0451260949, -5.2864801874, -0.0851953824, 1.2790223557]
    result = joined(expected(limits, None, 1000, 5.0, first_row=False))[0]
    np.testing.assert_allclose(result, golden, rtol=0, atol=1e-9)


def test_golden_spike_at_the_row_itself():
    # f is 1 at the row and 0 elsewhere: the limit is 0, the package's answer is not
    limits = flat(3, 0.75 * np.sqrt(3.0))
    shift = first_row_shift(limits, np.ones(1), 500)
    np.testing.assert_allclose(shift[0], 0.0123, rtol=0, atol=5e-5)
    # the mean of 200 runs of the package, known to 0.0001; the first order is off it
    measured = [-0.0073, 0.0118, 0.0120, 0.0118]
    result = expected(limits, np.ones(1), 500)
    np.testing.assert_allclose(joined(result)[0], measured, rtol=0, atol=3e-4)


@pytest.mark.parametrize(("ridge", "ratio"), [(1000.0, 0.4751), (1.0, 0.9989)])
def test_golden_share_that_ridge_leaves(ridge, ratio):
    # ten columns, four bins, width 10, 5000 samples
    limits = flat(10, 10.0, coefficients=np.arange(1.0, 11.0))
    result = expected(limits, None, 5000, ridge, first_row=False).coefficients
    np.testing.assert_allclose(result / limits.coefficients, ratio, rtol=0, atol=5e-5)


def test_a_small_width_leaves_ridge_alone():
    # x_1 (x_2 - 0.3) at (0.9, 0.1), four bins of U(0, 1): limit β_1 = 1/2 (1/8 - 0.3)
    eps = np.exp(-0.5 / 0.2**2)
    alpha = 1 / (1 + 3 * eps)
    T_1, T_2 = alpha * 0.875 + (1 - alpha) * 0.375, alpha * 0.125 + (1 - alpha) * 0.625
    limits = Limits(
        np.array([[0.5 * (T_2 - 0.3), -0.5 * T_1]]),
        np.array([T_1 * (T_2 - 0.3)]),
        np.full((1, 2), alpha),
        np.array([2 * np.log((1 + 3 * eps) / 4)]),
    )
    assert limits.coefficients[0, 0] == pytest.approx(-0.0875, abs=1e-5)
    result = expected(limits, np.array([0.9 * (0.1 - 0.3)]), 5000)
    # measured in the package with quartiles of a sample: -0.00031, -0.0015
    assert result.coefficients[0, 0] == pytest.approx(-0.00031, rel=0.03)
    assert result.coefficients[0, 1] == pytest.approx(-0.0015, rel=0.05)


def test_the_shift_of_the_row_is_the_first_order_of_the_solution():
    rng = np.random.default_rng(1)
    limits, values = random_limits(rng, 4, 5), rng.normal(size=4)
    left = []
    for n in (10_000, 100_000):
        moved = expected(limits, values, n, ridge=0.0).coefficients
        still = expected(limits, None, n, ridge=0.0, first_row=False).coefficients
        shift = first_row_shift(limits, values, n)
        left.append(np.abs(moved - still - shift).max() / np.abs(shift).max())
    assert left[0] < 0.03
    assert left[1] == pytest.approx(left[0] / 10, rel=0.1)


def test_without_ridge_the_coefficients_solve_for_the_row_too():
    # of n → 1 only the row is left: the fit goes through it
    rng = np.random.default_rng(2)
    limits, values = random_limits(rng, 3, 4, log_weight=-800.0), rng.normal(size=3)
    result = expected(limits, values, 5000, ridge=0.0)
    np.testing.assert_allclose(joined(result).sum(axis=1), values, rtol=1e-12)


def test_weights_that_underflow_leave_the_row_alone():
    rng = np.random.default_rng(3)
    limits, values = random_limits(rng, 3, 4, log_weight=-800.0), rng.normal(size=3)
    result = expected(limits, values, 5000)
    np.testing.assert_allclose(result.coefficients, 0.0, atol=1e-300)
    np.testing.assert_allclose(result.intercept, values, rtol=1e-12)
    small = limits
    ridged = expected(small, None, 5000, first_row=False)
    np.testing.assert_allclose(ridged.coefficients, 0.0, atol=1e-300)
    np.testing.assert_allclose(ridged.intercept, small.mean, rtol=1e-12)


def test_columns_that_only_the_row_tells_apart_share_its_gap():
    # α = 0: no sample has the bit; the least of all solutions gives each a half
    limits = Limits(np.zeros((1, 2)), np.zeros(1), np.zeros((1, 2)), np.zeros(1))
    result = expected(limits, np.ones(1), 100, ridge=0.0)
    np.testing.assert_allclose(result.coefficients, [[0.5, 0.5]])


def test_a_column_that_is_always_in_its_bin_has_no_coefficient():
    limits = Limits(np.zeros((1, 2)), np.zeros(1), np.array([[1.0, 0.3]]), np.zeros(1))
    for ridge in (0.0, 1.0):
        result = expected(limits, np.ones(1), 100, ridge=ridge)
        assert result.coefficients[0, 0] == 0.0
        assert first_row_shift(limits, np.ones(1), 100)[0, 0] == 0.0


def test_what_is_kept_is_what_regression_on_fewer_bits_gives():
    function = SumOfProducts(
        0.3,
        np.array([1.0, -2.0]),
        np.array([[0, 1], [2, -1]]),
        (Powers.first(np.arange(3)),),
        3,
    )
    limits = ExactLimits(function, fixture.law(0.8)).of(fixture.ROW)
    kept = np.array([[True, False, True]])
    result = expected(limits, None, 10**12, 0.0, first_row=False, kept=kept)
    np.testing.assert_allclose(
        result.coefficients, np.where(kept, limits.coefficients, 0.0), rtol=1e-12
    )
    pulls = (limits.alpha * limits.coefficients * kept).sum()
    assert result.intercept[0] == pytest.approx(limits.mean[0] - pulls, rel=1e-12)


def test_each_rule_keeps_its_own_columns():
    beta, alpha = np.array([[1.0, 0.8, 0.1]]), np.array([[0.02, 0.5, 0.5]])
    limits = Limits(beta, np.zeros(1), alpha, np.zeros(1))
    assert kept_columns(limits, 1, "highest_weights").tolist() == [[True, False, False]]
    assert kept_columns(limits, 1, "forward_selection").tolist() == [
        [False, True, False]
    ]
    assert kept_columns(limits, 1).tolist() == [[False, True, False]]
    assert kept_columns(limits, 7).all()


def test_settings_out_of_range_are_refused():
    limits = flat(2, 1.0)
    with pytest.raises(InvalidInput, match="give f at the rows"):
        expected(limits, None, 100)
    with pytest.raises(InvalidInput, match="n_samples"):
        expected(limits, np.ones(1), 1)
    with pytest.raises(InvalidInput, match="ridge"):
        expected(limits, np.ones(1), 100, ridge=-1.0)
    with pytest.raises(InvalidInput, match="how: expected one of auto"):
        kept_columns(limits, 1, "lasso")
