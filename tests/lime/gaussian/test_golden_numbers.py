"""Numbers of the linear paper's variant that were computed elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from linear_sums import linear, wavy

from papers.lime import gaussian_theory
from papers.lime.linear_limits import linear_limits
from propopt.lime import GaussianLaw, GlimeLaw
from propopt.lime.expectations import ExactLimits
from propopt.lime.fidelity import effective_share


ONE_COLUMN = {
    (1.0, 1.0): (0.40254475, -0.27363538, 0.04199854, 1.13776533),
    (0.432, 1.0): (0.36163359, -0.04062276, 0.15236451, 0.17596675),
    (0.1, 1.0): (0.33961158, -0.09039382, -0.08687978, 0.40304803),
    (-0.3, 0.5): (0.53860990, 0.04319456, -0.14638169, -0.17381469),
    (-1.5, 2.0): (0.33772052, 0.32688008, 0.19356818, -1.46146931),
}
"""x and ν of f(x) = x under N(0, 1) in quartiles, to α, θ, β_0 and β_1."""


@pytest.mark.parametrize(("case", "expected"), ONE_COLUMN.items())
def test_one_column(case, expected):
    x, width = case
    law = GaussianLaw.of([0.0], 1.0, width)
    limits = ExactLimits(linear([1.0]), law).of(np.array([[x]]))
    theta = gaussian_theory.gains(law, [[x]]).theta[0, 0]
    result = limits.alpha[0, 0], theta, limits.intercept[0], limits.coefficients[0, 0]
    np.testing.assert_allclose(result, expected, rtol=0, atol=5.1e-9)


@pytest.mark.parametrize("kind", [lambda law: law, GlimeLaw])
def test_three_columns(kind):
    law = kind(GaussianLaw.of([0.5, -1.0, 2.0], 1.7, 1.5))
    limits = ExactLimits(linear([1.0, -2.0, 0.5], 0.7), law).of(
        np.array([[1.2, -3.0, 2.3]])
    )
    np.testing.assert_allclose(limits.intercept, 4.94929917, rtol=0, atol=5.1e-9)
    expected = [[0.26791601, 3.58989395, 0.29308691]]
    np.testing.assert_allclose(limits.coefficients, expected, rtol=0, atol=5.1e-9)


def test_a_column_below_its_critical_width_has_the_other_sign():
    law, x = GaussianLaw.of([0.5, -1.0, 2.0], 1.7, 0.7), [[1.2, -3.0, 2.3]]
    limits = ExactLimits(linear([1.0, -2.0, 0.5], 0.7), law).of(np.array(x))
    np.testing.assert_allclose(limits.coefficients[0, 0], -0.0512, rtol=0, atol=5.1e-5)
    critical = gaussian_theory.critical_bandwidths(law, x)[0, 0]
    np.testing.assert_allclose(critical, 0.799, rtol=0, atol=5.1e-4)


def test_ten_columns_of_the_fourth_figure():
    law = GaussianLaw.of(np.zeros(10), 1.0, 1.0)
    x = np.append([0.9607, 0.0892], np.linspace(-1.0, 1.0, 8))[None]
    result = linear_limits(gaussian_theory.gains(law, x), [10.0, -10.0, *[0.0] * 8])
    np.testing.assert_allclose(
        result.coefficients[0, :2], [11.400, -4.1002], rtol=0, atol=5.1e-4
    )
    np.testing.assert_array_equal(result.coefficients[0, 2:], np.zeros(8))


@pytest.mark.parametrize(
    ("first", "expected", "atol"),
    [(1.0, (-0.003, 7.525), 5.1e-4), (0.9607, (-0.1025, 7.4994), 5.1e-5)],
)
def test_a_column_is_switched_off_in_the_seventh_figure(first, expected, atol):
    law = GaussianLaw.of(np.zeros(3), 1.0, 0.53)
    result = linear_limits(
        gaussian_theory.gains(law, [[first, 0.43198, 0.7]]), [10.0, -10.0, 0.0]
    )
    # the paper's 0.53 is ν_crit to two digits only
    exact = law.with_width(
        gaussian_theory.critical_bandwidths(law, [[first, 0.43198, 0.7]])[0, 1]
    )
    off = linear_limits(
        gaussian_theory.gains(exact, [[first, 0.43198, 0.7]]), [10.0, -10.0, 0.0]
    )
    np.testing.assert_allclose(off.coefficients[0, 1], 0.0, atol=1e-13)
    assert abs(result.coefficients[0, 1]) < 2e-3
    np.testing.assert_allclose(
        (result.intercept[0], result.coefficients[0, 0]), expected, rtol=0, atol=atol
    )


def test_critical_widths():
    x = np.array([0.1, 0.3, 0.34, 0.432, 0.6, -0.432, 1.0, -2.0])
    law = GaussianLaw.of([0.0], 1.0, 1.0)
    result = gaussian_theory.critical_bandwidths(law, x[:, None])[:, 0]
    none = np.nan
    expected = [none, none, 0.0904, 0.5301, 0.8827, 0.5301, none, none]
    np.testing.assert_allclose(result, expected, rtol=0, atol=5.1e-5)


def test_a_function_with_an_interaction():
    law = GaussianLaw.of(np.zeros(4), 1.0, 0.8)
    limits = ExactLimits(wavy(), law).of(np.array([[0.5, -0.3, 1.2, 0.1]]))
    expected = [[0.5672, -0.4715, 0.3043, -0.2007]]
    np.testing.assert_allclose(limits.coefficients, expected, rtol=0, atol=5.1e-5)


@pytest.mark.parametrize(
    ("x", "expected", "atol"),
    [
        (0.1, 0.10001, 5.1e-6),
        (0.3, 0.30000, 5.1e-6),
        (0.35, -0.32449, 5.1e-6),
        (0.6, -0.07450, 5.1e-6),
    ],
)
def test_gains_at_a_width_of_a_thousandth_of_the_scale(x, expected, atol):
    law = GaussianLaw.of([0.0], 1.0, 1e-3)
    by_pieces = ExactLimits(linear([1.0]), law).of(np.array([[x]])).coefficients[0, 0]
    np.testing.assert_allclose(by_pieces, expected, rtol=0, atol=atol)
    closed = gaussian_theory.gains(law, [[x]]).gain[0, 0]
    np.testing.assert_allclose(closed, by_pieces, rtol=1e-13)


@pytest.mark.parametrize(
    ("n_columns", "expected"),
    {10: (0.237, 0.815, 0.993), 50: (7.5e-4, 0.360, 0.964)}.items(),
)
def test_the_effective_share_of_samples(n_columns, expected):
    law = GaussianLaw.of(np.zeros(n_columns), 1.0, 1.0)
    x, widths = np.zeros((3, n_columns)), np.array([1.0, 2.0, 5.0])
    result = effective_share(law, x, widths)
    np.testing.assert_allclose(result, expected, rtol=0, atol=5.1e-4)
    np.testing.assert_array_equal(effective_share(GlimeLaw(law), x, widths), np.ones(3))


def test_the_share_of_samples_that_reach_the_row_falls_with_columns():
    shares = [
        np.exp(
            gaussian_theory.gains(
                GaussianLaw.of(np.zeros(d), 1.0, 10.0), np.zeros((1, d))
            ).log_weight[0]
        )
        for d in (10, 100, 1000)
    ]
    np.testing.assert_allclose(shares, [0.951, 0.608, 0.0069], rtol=0, atol=5.1e-4)
