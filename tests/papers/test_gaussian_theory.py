"""The linear paper's forms for normal samples: digits, closed forms, widths."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear_sums import linear, wavy
from normal_samples import with_intercept

from papers.lime.gaussian_theory import critical_bandwidths, gains, tails
from papers.lime.linear_limits import linear_limits
from propopt.lime import GaussianLaw, GlimeLaw
from propopt.lime.exact_limits import ExactLimits


ROWS = np.array([[0.5, -0.3, 1.2], [-2.0, 0.1, 0.65], [0.0, 0.6744, -3.5]])
SLOPES = np.array([2.0, -1.5, 0.3])
ONE = GaussianLaw.of([0.0], 1.0, 1.0)
ONE_COLUMN = {
    (1.0, 1.0): (0.40254475, -0.27363538, 0.04199854, 1.13776533),
    (0.432, 1.0): (0.36163359, -0.04062276, 0.15236451, 0.17596675),
    (0.1, 1.0): (0.33961158, -0.09039382, -0.08687978, 0.40304803),
    (-0.3, 0.5): (0.53860990, 0.04319456, -0.14638169, -0.17381469),
    (-1.5, 2.0): (0.33772052, 0.32688008, 0.19356818, -1.46146931),
}
"""x and ν of f(x) = x under N(0, 1) in quartiles, to α, θ, β_0 and β_1."""
NARROW = {0.1: 0.10001, 0.3: 0.30000, 0.35: -0.32449, 0.6: -0.07450}
"""Gains at a width of a thousandth of the scale."""
THREE, AT = GaussianLaw.of([0.5, -1.0, 2.0], 1.7, 1.5), np.array([[1.2, -3.0, 2.3]])
OF_THREE = [4.94929917, 0.26791601, 3.58989395, 0.29308691]
OF_FOUR = [0.5672, -0.4715, 0.3043, -0.2007]
TEN = np.append([0.9607, 0.0892], np.linspace(-1.0, 1.0, 8))


def gain_of(law, row):
    return gains(law, [row]).gain[0]


def test_one_column():
    for (x, width), expected in ONE_COLUMN.items():
        law = ONE.with_width(width)
        limits = ExactLimits(linear([1.0]), law).of(np.array([[x]]))
        theta = gains(law, [[x]]).theta[0, 0]
        result = limits.alpha[0, 0], theta, *with_intercept(limits)
        np.testing.assert_allclose(result, expected, rtol=0, atol=5.1e-9)
    law = ONE.with_width(1e-3)
    for x, expected in NARROW.items():
        limits = ExactLimits(linear([1.0]), law).of(np.array([[x]])).coefficients[0, 0]
        np.testing.assert_allclose(limits, expected, rtol=0, atol=5.1e-6)
        np.testing.assert_allclose(gain_of(law, [x])[0], limits, rtol=1e-13)


def test_several_columns():
    f = linear([1.0, -2.0, 0.5], 0.7)
    for law in (THREE, GlimeLaw(THREE)):
        limits = with_intercept(ExactLimits(f, law).of(AT))
        np.testing.assert_allclose(limits, OF_THREE, rtol=0, atol=5.1e-9)
    # a column below its critical width has the other sign
    law = THREE.with_width(0.7)
    limits = ExactLimits(f, law).of(AT).coefficients
    np.testing.assert_allclose(limits[0, 0], -0.0512, rtol=0, atol=5.1e-5)
    critical = critical_bandwidths(law, AT)[0, 0]
    np.testing.assert_allclose(critical, 0.799, rtol=0, atol=5.1e-4)
    # with an interaction, and the ten columns of the fourth figure
    exact = ExactLimits(wavy(), GaussianLaw.of(np.zeros(4), 1.0, 0.8))
    limits = exact.of(np.array([[0.5, -0.3, 1.2, 0.1]])).coefficients
    np.testing.assert_allclose(limits[0], OF_FOUR, rtol=0, atol=5.1e-5)
    at = gains(GaussianLaw.of(np.zeros(10), 1.0, 1.0), TEN[None])
    result = linear_limits(at, [10.0, -10.0, *[0.0] * 8]).coefficients[0]
    np.testing.assert_allclose(result[:2], [11.400, -4.1002], rtol=0, atol=5.1e-4)
    np.testing.assert_array_equal(result[2:], np.zeros(8))


def test_critical_widths():
    x = np.array([0.1, 0.3, 0.34, 0.432, 0.6, -0.432, 1.0, -2.0])
    result = critical_bandwidths(ONE, x[:, None])[:, 0]
    expected = [np.nan, np.nan, 0.0904, 0.5301, 0.8827, 0.5301, np.nan, np.nan]
    np.testing.assert_allclose(result, expected, rtol=0, atol=5.1e-5)


@pytest.mark.parametrize("width", [1e-6, 1e-3, 0.03, 0.3, 1.0, 7.0, 1e4])
def test_limits_of_linear_functions_are_the_closed_form(width):
    law = GaussianLaw.of([0.2, -1.0, 0.0], [1.0, 2.5, 0.4], width, n_bins=[4, 5, 2])
    at = gains(law, ROWS)
    by_pieces, closed = (
        ExactLimits(linear(SLOPES, 0.7), law).of(ROWS),
        linear_limits(at, SLOPES, 0.7),
    )
    for name in ("coefficients", "intercept", "alpha", "mean", "log_weight"):
        atol = 1e-15 if name == "log_weight" else 1e-12
        own, other = getattr(by_pieces, name), getattr(closed, name)
        np.testing.assert_allclose(own, other, rtol=1e-12, atol=atol)
    # at the row an additive surrogate is the mean of its box
    inside = at.mean - at.theta / at.alpha
    np.testing.assert_allclose(closed.at_row, inside @ SLOPES + 0.7, atol=1e-13)
    np.testing.assert_array_equal(gains(GlimeLaw(law), ROWS).gain, at.gain)


WIDE = np.array([-1.69480839, -0.43288377, 0.43288377, 1.69480839])
"""Gains of the quartiles of N(0, 1) without weights, to eight digits."""


@given(x=st.lists(st.floats(-1.9, 1.9), min_size=3, max_size=3), p=st.integers(2, 7))
def test_gains_change_their_sign_at_the_critical_width_and_nowhere_else(x, p):
    law = GaussianLaw.of([0.0, 0.1, 1.0], [1.0, 0.7, 2.0], 1.0, p)
    widths = np.geomspace(1e-2, 1e2, 60)
    values = np.array([gain_of(law.with_width(w), x) for w in widths])
    signs = np.where(np.abs(values) < 1e-13, 0.0, np.sign(values))
    for j, root in enumerate(critical_bandwidths(law, [x])[0]):
        if np.isnan(root) or not widths[0] < root < widths[-1]:
            assert len(set(signs[:, j]) - {0.0}) <= 1
        else:
            np.testing.assert_array_equal(signs[:, j] == signs[-1, j], widths > root)
            assert abs(gain_of(law.with_width(root), x)[j]) < 1e-9


def test_narrow_and_wide_kernels_and_units():
    x = np.array([-1.5, -0.3, 0.3, 0.35, 1.5])[:, None]
    wide, narrow = (gains(ONE.with_width(w), x).gain[:, 0] for w in (1e7, 1e-7))
    np.testing.assert_allclose(wide, WIDE[[0, 1, 2, 2, 3]], atol=5.1e-9)
    edge = ONE.columns[0].edges[2]
    expected = [edge - 1.5, -0.3, 0.3, 0.35 - edge, 1.5 - edge]
    np.testing.assert_allclose(narrow, expected, rtol=1e-7)
    # units of distance are units of the critical width
    other = GaussianLaw.of([0.0], 10.0, 1.0, unit=10.0)
    a, b = critical_bandwidths(ONE, [[0.432]]), critical_bandwidths(other, [[4.32]])
    np.testing.assert_allclose(a, b, rtol=1e-14)
    here, there = gain_of(ONE, [0.432]), gain_of(other, [4.32])
    np.testing.assert_allclose(10.0 * here, there, rtol=1e-12)


def test_tails_of_nothing_outside_and_around_zero():
    # what is outside by an underflow still has a mean
    result = tails(np.array([-40.0]), np.array([41.0]))
    np.testing.assert_allclose(result.contrast, 40.0 + 1 / 40.0, rtol=1e-4)
    result = tails(np.array([-np.inf]), np.array([np.inf]))
    assert np.array(result)[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0]
    result = tails(np.array([-0.3, -0.001]), np.array([0.3, 0.001]))
    assert result.contrast.tolist() == result.theta.tolist() == [0.0, 0.0]
