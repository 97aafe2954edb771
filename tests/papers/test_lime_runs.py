"""Runs of LIME and what is said of them: true ones pass, slightly wrong ones fail."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from lime_runs import LIMIT, WRONG, exact_runs, with_parts

from papers.lime import functions, statements
from papers.lime.runs import (
    RunSettings,
    expected_at,
    fit_bits,
    run_lime,
    with_intercept,
)
from papers.tabular_lime.setups import uniform_data, uniform_law
from propopt.lime import GaussianLaw
from propopt.lime.expectations import ExactLimits


each_way = pytest.mark.parametrize("wrong", WRONG)


# statements


@each_way
def test_a_mean_that_is_not_the_expected_one_fails(wrong):
    runs = exact_runs()
    assert statements.mean_is_expected(runs).holds
    off = with_parts(runs, expected=wrong(LIMIT))
    assert not statements.mean_is_expected(off).holds


def test_a_mean_is_held_against_what_is_expected_not_against_the_limit():
    runs = with_parts(exact_runs(), limit=2 * LIMIT)
    assert statements.mean_is_expected(runs).holds


@pytest.mark.parametrize("n_runs", [20, 100])
@each_way
def test_a_theory_outside_the_boxes_is_not_confirmed(wrong, n_runs):
    runs = exact_runs(n_runs)
    assert str(statements.theory_is_in_the_boxes(runs).verdict) == "confirmed"
    result = statements.theory_is_in_the_boxes(with_parts(runs, limit=wrong(LIMIT)))
    assert str(result.verdict) == "not confirmed"


def test_a_theory_in_another_set_up_differs():
    result = statements.theory_is_in_the_boxes(exact_runs(), difference="a stand-in")
    assert str(result.verdict) == "differs"


@each_way
def test_a_formula_that_does_not_give_the_limit_is_not_confirmed(wrong):
    runs = exact_runs()
    assert statements.formula_as_printed(runs, name="Eq. 1").holds
    off = with_parts(runs, printed=wrong(LIMIT))
    assert not statements.formula_as_printed(off, name="Eq. 1").holds


def test_a_formula_that_there_is_not_is_not_confirmed():
    runs = dataclasses.replace(exact_runs(), printed=None)
    assert not statements.formula_as_printed(runs, name="Eq. 1").holds


def test_a_number_is_known_from_both_sides():
    for factor, holds in ((1.0, True), (1.001, False), (0.999, False)):
        assert statements.equals("x", factor * 2.0, 2.0, 1e-3).holds is holds
    assert not statements.equals("x", np.nan, 2.0, 1e-3).holds


def test_unused_columns_have_no_coefficient_at_all():
    runs = exact_runs()
    zero = with_parts(runs, limit=np.r_[LIMIT[:3], 0.0, 0.0])
    tiny = with_parts(runs, limit=np.r_[LIMIT[:3], 0.0, 1e-300])
    assert statements.unused_are_zero(zero, used=2).holds
    assert not statements.unused_are_zero(tiny, used=2).holds


# runs


def test_regressions_are_weighted_ridge_with_a_free_intercept():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (2, 50, 3)).astype(float)
    weights, values = rng.random((2, 50)), rng.normal(size=(2, 50))
    for one, result in enumerate(fit_bits(bits, weights, values, ridge=0.7)):
        Z = np.c_[np.ones(50), bits[one]]
        left = Z.T @ (weights[one][:, None] * Z) + np.diag([0.0, 0.7, 0.7, 0.7])
        right = Z.T @ (weights[one] * values[one])
        np.testing.assert_allclose(result, np.linalg.solve(left, right), rtol=1e-12)


@pytest.mark.parametrize("first_row", [True, False])
def test_the_expected_output_solves_the_mean_equations(first_row):
    law = uniform_law(uniform_data(np.random.RandomState(0), 3))
    row, f = np.array([1.0, -2.0, 6.0]), functions.linear_function(np.arange(3.0))
    limits = ExactLimits(f, law).of(row[None, :])
    settings = RunSettings(n_samples=50, ridge=3.0, first_row=first_row)
    a = np.r_[1.0, limits.alpha[0]]
    mean = np.outer(a, a)
    np.fill_diagonal(mean, a)
    mean *= (50 - first_row) * np.exp(limits.log_weight[0])
    left = mean + first_row + np.diag([0.0, 3.0, 3.0, 3.0])
    right = mean @ with_intercept(limits) + first_row * f.value(row[None, :])
    result = expected_at(limits, float(f.value(row[None, :])[0]), settings)
    wanted = np.linalg.solve(left, right)
    # what solves a system is known to ε cond(A) of its largest entry, zeros too
    rounding = np.finfo(float).eps * np.linalg.cond(left) * np.abs(wanted).max()
    np.testing.assert_allclose(result, wanted, rtol=1e-10, atol=rounding)
    assert rounding < 1e-12


def test_runs_are_about_what_is_expected_and_the_same_for_one_seed():
    """Largest |z| of 3 coefficients of 200 runs: below 5, a false alarm in 5e5."""
    law = GaussianLaw.of(np.zeros(2), 1.0, 1.0)
    f, row = functions.gaussian_sum(np.eye(2), np.ones(2), 1.0), np.array([0.3, -1.0])
    settings = RunSettings(n_samples=2000, n_runs=200, ridge=0.0, first_row=False)
    runs = run_lime(f.value, f, law, row, settings)
    assert runs.estimates.shape == (200, 3)
    assert np.abs(runs.scores).max() < 5
    assert runs.to_frame()["coefficient"].tolist() == ["intercept", "x0", "x1"]
    again = run_lime(f.value, f, law, row, settings)
    other = run_lime(f.value, f, law, row, dataclasses.replace(settings, seed=1))
    np.testing.assert_array_equal(runs.estimates, again.estimates)
    assert (runs.estimates != other.estimates).all()


def test_functions_are_what_they_say():
    X = np.random.default_rng(0).normal(size=(20, 2))
    line = functions.linear_function(np.array([2.0, -1.0]), 0.5)
    np.testing.assert_allclose(line.value(X), 0.5 + X @ [2.0, -1.0])
    bumps = functions.gaussian_sum(np.array([[1.0]]), np.array([3.0]), 0.5, n_columns=2)
    np.testing.assert_allclose(bumps.value(X), 3 * np.exp(-2 * (X[:, 0] - 1) ** 2))
    box = functions.box_function(np.array([-1.0, 0.0]), np.array([1.0, 2.0]))
    inside = (np.abs(X[:, 0]) < 1) & (X[:, 1] > 0) & (X[:, 1] <= 2)
    np.testing.assert_array_equal(box.value(X), inside)
    both = functions.bilinear_function(0, 1, offset=-0.3, n_columns=2)
    np.testing.assert_allclose(both.value(X), X[:, 0] * (X[:, 1] - 0.3))


def test_the_width_of_the_package_is_that_of_the_statement_on_it():
    tabular = pytest.importorskip("lime.lime_tabular")
    X = np.random.default_rng(0).normal(size=(50, 3))
    kernel = tabular.LimeTabularExplainer(X, mode="regression").base.kernel_fn
    width = np.sqrt(-0.5 / np.log(kernel(np.ones(1))[0]))
    assert width == pytest.approx(0.75 * np.sqrt(3))
    assert uniform_law(X).kernel_width == pytest.approx(width)
