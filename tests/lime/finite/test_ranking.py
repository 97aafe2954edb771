"""Probabilities that a run agrees with the limit, against closed forms and runs."""

from __future__ import annotations

import lime_fixture as fixture
import numpy as np
import pytest
from lime_functions import plain_lime
from scipy import stats

from propopt.lime.expectations import ExactLimits
from propopt.lime.single_runs import SingleRun, ranking_chances, single_run


def run(coefficients, covariance):
    beta = np.atleast_2d(coefficients)
    whole = np.zeros((len(beta), beta.shape[1] + 1, beta.shape[1] + 1))
    whole[:, 1:, 1:] = covariance
    return SingleRun(1000, beta, np.zeros(len(beta)), whole)


def test_two_columns_have_a_closed_form():
    """Probabilities of 20000 draws within 5 of their errors: below 3e-6."""
    beta = np.array([[3.0, 2.0]])
    result = ranking_chances(run(beta, np.eye(2)), beta, top=1, n_draws=20_000)
    # |b_1| > |b_2|: b_1 + b_2 and b_1 − b_2 are independent and of the same sign
    up, apart = stats.norm.cdf(5 / np.sqrt(2)), stats.norm.cdf(1 / np.sqrt(2))
    truth = up * apart + (1 - up) * (1 - apart)
    assert result[0] == pytest.approx(truth, abs=5 * 0.5 / np.sqrt(20_000))


def test_correlations_count():
    beta = np.array([[3.0, 2.0]])
    joint = ranking_chances(run(beta, np.ones((2, 2))), beta, top=1)
    assert joint[0] == pytest.approx(stats.norm.cdf(2.5), abs=0.01)  # |3 + e| > |2 + e|
    opposed = ranking_chances(run(beta, [[1.0, -1.0], [-1.0, 1.0]]), beta, top=1)
    # |3 + e| > |2 − e|
    assert opposed[0] == pytest.approx(stats.norm.cdf(0.5), abs=0.05)


def test_coefficients_of_zero_are_not_to_be_told():
    beta = np.array([[3.0, 0.0, 0.0]])
    result = ranking_chances(run(beta, 0.01 * np.eye(3)), beta, top=3)
    assert result.tolist() == [1.0]


def test_without_scatter_all_is_certain_and_other_columns_are_found():
    beta = np.array([[3.0, -2.0, 1.0], [3.0, -2.0, 1.0], [3.0, -2.0, 1.0]])
    runs = np.array([[3.0, -2.0, 1.0], [2.0, 3.0, 1.0], [3.0, 0.5, 1.0]])
    result = ranking_chances(run(runs, np.zeros((3, 3))), beta, top=2)
    assert result.tolist() == [1.0, 1.0, 0.0]  # in whatever order


def test_the_probability_is_how_often_runs_agree():
    """300 runs: 5 binomial errors, and 3 % of the prediction; below 1e-5."""
    law, function = fixture.law(1.0), fixture.FUNCTIONS["bump"]
    limits = ExactLimits(function, law).of(fixture.ROW)
    values = function.value(fixture.ROW)
    noise = single_run(function.value, law, fixture.ROW, limits, values, 150)
    told = ranking_chances(noise, limits.coefficients, top=1)
    largest = np.argmax(np.abs(limits.coefficients[0]))
    agrees = [
        np.argmax(
            np.abs(
                plain_lime(
                    law, function.value, fixture.ROW, 150,
                    np.random.default_rng(seed), ridge=1.0, first_row=True,
                )[1:]
            )
        )
        == largest
        for seed in range(300)
    ]  # fmt: skip
    p = told[0]
    assert 0.2 < p < 0.8
    assert np.mean(agrees) == pytest.approx(
        p, abs=5 * np.sqrt(p * (1 - p) / 300) + 0.03
    )
