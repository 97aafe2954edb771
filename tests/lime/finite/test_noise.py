"""The scatter of one run: against dense algebra, and against runs."""

from __future__ import annotations

import lime_fixture as fixture
import numpy as np
import pytest
from lime_functions import bump_at, plain_lime, product_of
from scipy import stats

from propopt.base.errors import InvalidInput
from propopt.lime import GaussianLaw, GlimeLaw, TabularLaw
from propopt.lime.expectations import ExactLimits, Limits
from propopt.lime.single_runs import expected, required_samples, single_run
from propopt.structures.products.sums import SumOfProducts


N_RUNS = 400
FALSE_ALARM = 1e-6


def limits_of(function, law):
    return ExactLimits(function, law).of(fixture.ROW)


def run_of(function, law, n_samples, **settings):
    values = function.value(fixture.ROW)
    limits = limits_of(function, law)
    return single_run(
        function.value, law, fixture.ROW, limits, values, n_samples, **settings
    )


@pytest.mark.parametrize("first_row", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 30.0])
def test_influences_are_those_of_the_normal_equations(first_row, ridge):
    rng = np.random.default_rng(0)
    alpha = rng.uniform(0.1, 0.9, (1, 4))
    beta, mean = rng.normal(size=(1, 4)), rng.normal(size=1)
    limits = Limits(beta, mean, alpha, np.array([-3.0]))
    values = rng.normal(size=1) if first_row else None
    fit = expected(limits, values, 500, ridge, first_row)
    a = np.concatenate([[1.0], alpha[0]])
    M = np.outer(a, a)
    M[np.arange(1, 5), np.arange(1, 5)] = a[1:]
    A = fit.total[0] * M + first_row + ridge * np.diag([0.0, 1, 1, 1, 1])
    bits = (rng.random((1, 6, 4)) < 0.5).astype(float)
    Z = np.concatenate([np.ones((6, 1)), bits[0]], axis=1)
    truth = fit.total[0] * np.linalg.solve(A, Z.T).T
    np.testing.assert_allclose(fit.influences(slice(0, 1), bits)[0], truth, atol=1e-12)
    # E r Z under the weighted law, from M and the difference of the coefficients
    b = np.concatenate([fit.intercept, fit.coefficients[0]])
    scores = M @ (np.concatenate([limits.intercept, beta[0]]) - b)
    known = fit.total[0] * np.linalg.solve(A, scores)
    np.testing.assert_allclose(fit.mean_influence[0], known, atol=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["bump", "box", "product"])
@pytest.mark.parametrize(("ridge", "first_row"), [(0.0, False), (1.0, True)])
def test_predicted_deviations_are_those_of_runs(name, ridge, first_row):
    """Variances of 400 runs against χ², at a false-alarm rate of 1e-6 each.

    The bounds are widened by 8 %, twice the error of the prediction.
    """
    n = 1000
    law, function = fixture.law(0.7), fixture.FUNCTIONS[name]
    predicted = run_of(function, law, n, ridge=ridge, first_row=first_row)
    settings = {"ridge": ridge, "first_row": first_row}
    runs = np.array(
        [
            plain_lime(
                law,
                function.value,
                fixture.ROW,
                n,
                np.random.default_rng(seed),
                **settings,
            )
            for seed in range(N_RUNS)
        ]
    )
    variances = np.diagonal(predicted.covariance[0])
    ratio = runs.var(axis=0, ddof=1) / variances
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], N_RUNS - 1)
    assert (ratio > low / (N_RUNS - 1) / 1.08).all()
    assert (ratio < high / (N_RUNS - 1) * 1.08).all()
    truth = np.concatenate([predicted.intercept, predicted.coefficients[0]])
    z = (runs.mean(axis=0) - truth) / np.sqrt(variances / N_RUNS)
    assert np.abs(z).max() < 5  # of 4 numbers: below 3e-6
    correlations = np.corrcoef(runs.T)
    known = predicted.covariance[0] / np.sqrt(np.outer(variances, variances))
    np.testing.assert_allclose(correlations, known, rtol=0, atol=0.25)


def test_deviations_fall_with_the_root_of_n():
    few, many = (
        run_of(fixture.FUNCTIONS["bump"], fixture.law(1.0), n, ridge=0, first_row=False)
        for n in (100, 10_000)
    )
    ratio = few.standard_deviations / many.standard_deviations
    np.testing.assert_allclose(ratio, 10.0, rtol=1e-10)


def test_glime_scatters_less_and_its_weights_are_one():
    """Variances of 400 runs against χ², false alarms of 1e-6, widened by 8 %."""
    law = GlimeLaw(fixture.law(0.5))
    function = fixture.FUNCTIONS["bump"]
    settings = {"ridge": 0.0, "first_row": False}
    predicted = run_of(function, law, 500, **settings).standard_deviations
    weighted = run_of(function, fixture.law(0.5), 500, **settings).standard_deviations
    assert (predicted < weighted).all()
    runs = [
        plain_lime(law, function.value, fixture.ROW, 500, np.random.default_rng(seed))
        for seed in range(N_RUNS)
    ]
    ratio = np.var(runs, axis=0, ddof=1)[1:] / predicted[0] ** 2
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], N_RUNS - 1)
    assert (ratio > low / (N_RUNS - 1) / 1.08).all()
    assert (ratio < high / (N_RUNS - 1) * 1.08).all()


def test_a_constant_does_not_scatter():
    constant = fixture.FUNCTIONS["bump"].scaled(0.0)
    run = run_of(constant, fixture.law(1.0), 100)
    np.testing.assert_allclose(run.covariance, 0.0, atol=1e-30)
    assert (required_samples(100, run.standard_deviations, 0.1) == 1).all()


def test_weights_that_underflow_leave_nothing_to_scatter():
    function = SumOfProducts.sum_of([fixture.FUNCTIONS["bump"]])
    limits = limits_of(function, fixture.law(1.0))
    tiny = Limits(limits.coefficients, limits.mean, limits.alpha, np.array([-50.0]))
    fit = expected(tiny, np.ones(1), 1000)
    assert np.abs(fit.influences(slice(0, 1), np.ones((1, 2, 3)))).max() < 1e-15


def test_the_samples_for_a_precision_have_it():
    function, law = fixture.FUNCTIONS["bump"], fixture.law(1.0)
    settings = {"ridge": 0.0, "first_row": False}
    run = run_of(function, law, 1000, **settings)
    wanted = required_samples(1000, run.standard_deviations, 0.001)
    assert (wanted == np.ceil(1000 * (run.standard_deviations / 0.001) ** 2)).all()
    n = int(wanted.max())
    deviations = run_of(function, law, n, **settings).standard_deviations
    assert deviations.max() == pytest.approx(0.001, rel=1e-3)


def test_settings_that_cannot_be_are_refused():
    function, law = fixture.FUNCTIONS["bump"], fixture.law(1.0)
    with pytest.raises(InvalidInput, match="give f at the rows"):
        single_run(
            function.value, law, fixture.ROW, limits_of(function, law), None, 100
        )


def test_ten_columns_and_a_wide_bump_take_the_samples_that_were_measured():
    # 0.001 for each coefficient: about 4e4; 0.1 for all in the mean square: about 160
    X = np.random.default_rng(0).uniform(-10, 10, (1000, 10))
    law, function = TabularLaw.from_data(X), bump_at(np.zeros(10), 10.0)
    row = X[[3]] / 2
    limits = ExactLimits(function, law).of(row)
    run = single_run(
        function.value, law, row, limits, None, 5000, ridge=0.0, first_row=False
    )
    needed = required_samples(5000, run.standard_deviations, 0.001)
    assert needed.max() == pytest.approx(4.3e4, rel=0.1)
    both = 4 * np.trace(run.covariance[0]) * 5000  # n for 2 deviations of 1
    assert both / 0.1**2 == pytest.approx(170, rel=0.15)


@pytest.mark.slow
def test_weights_by_distance_scatter_as_predicted():
    """Variances of 250 runs against χ², false alarms of 1e-6, widened by 8 %."""
    law = GaussianLaw.of(np.zeros(4), 1.0, kernel_width=1.2)
    function = product_of([(2.0, [0]), (-1.0, [1]), (0.5, [0, 2])], 4)
    row = np.array([[0.3, -0.2, 0.5, 1.0]])
    limits = ExactLimits(function, law).of(row)
    predicted = single_run(
        function.value, law, row, limits, function.value(row), 3000
    ).covariance[0]
    runs = [
        plain_lime(
            law,
            function.value,
            row,
            3000,
            np.random.default_rng(seed),
            ridge=1.0,
            first_row=True,
        )
        for seed in range(250)
    ]
    ratio = np.var(runs, axis=0, ddof=1) / np.diag(predicted)
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 249)
    assert (ratio > low / 249 / 1.08).all()
    assert (ratio < high / 249 * 1.08).all()
