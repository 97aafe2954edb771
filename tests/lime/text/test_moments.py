"""Constants of LIME on texts against printed numbers, limits, and 400 digits."""

from __future__ import annotations

import numpy as np
import pytest

from papers.lime.text_constants import TextConstants
from propopt.base.errors import InvalidInput
from propopt.lime.text.text_reading import TextLaw


WIDTHS = [0.05, 0.1, 0.25, 0.35, 1.0, 10.0, np.inf]


def test_reference_values():
    quarter = TextConstants(TextLaw(0.25), 29)
    alphas = [0.48441163, 0.33638798, 0.24985253, 0.19419235, 0.15584646, 0.12803622]
    np.testing.assert_allclose(quarter.alphas(5), alphas, rtol=0, atol=5e-9)
    assert quarter.alphas()[-1] == 0.0
    assert quarter.c == pytest.approx(0.27028198, abs=5e-9)
    known = [27.12818171, -1.24458160, 11.21927719, -0.33667971]
    np.testing.assert_allclose(quarter.sigmas, known, rtol=0, atol=5e-9)
    small = TextConstants(TextLaw(0.05), 29)
    np.testing.assert_allclose(
        small.alphas(2), [0.10308973, 0.09410440, 0.08590101], rtol=0, atol=5e-9
    )
    assert small.c == pytest.approx(8.4202297e-4, abs=5e-12)
    wide = TextConstants(TextLaw(np.inf), 29)
    assert wide.c == pytest.approx(2.4137931, abs=5e-8)
    np.testing.assert_allclose(
        wide.sigmas, [3.8, -0.2, 5.61428571, -0.18571429], rtol=0, atol=5e-9
    )


@pytest.mark.parametrize("d", [2, 3, 5, 29, 500])
def test_limits_of_wide_bandwidths(d):
    wide = TextConstants(TextLaw(np.inf), d)
    p = np.arange(d + 1.0)
    np.testing.assert_allclose(wide.alphas(), (d - p) / ((p + 1) * d), atol=1e-14)
    assert wide.c == pytest.approx((d**2 - 1) / (12 * d), rel=1e-13)
    known = [
        2 * (2 * d - 1) / (d + 1),
        -6 / (d + 1),
        6 * (d**2 - 2 * d + 3) / (d**2 - 1),
        -6 * (d - 3) / (d**2 - 1),
    ]
    np.testing.assert_allclose(wide.sigmas, known, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("nu", WIDTHS)
@pytest.mark.parametrize("d", [5, 12, 29, 100, 500])
def test_the_inverse_is_one(d, nu):
    constants = TextConstants(TextLaw(nu), d)
    product = constants.matrix @ constants.inverse
    np.testing.assert_allclose(product, np.eye(d + 1), rtol=0, atol=8e-12)


def precise(d, nu):
    """c_d and σ_0, ..., σ_3 over it as they are printed, with 400 digits."""
    mpmath = pytest.importorskip("mpmath")
    psi = [
        mpmath.exp(-((1 - mpmath.sqrt(mpmath.mpf(d - s) / d)) ** 2) / (2 * nu**2))
        for s in range(d + 1)
    ]
    a = []
    for p in range(3):
        terms = []
        for s in range(1, d + 1):
            share = mpmath.mpf(1)
            for k in range(p):
                share *= mpmath.mpf(d - s - k) / (d - k)
            terms.append(psi[s] * share)
        a.append(mpmath.fsum(terms) / d)
    c = (d - 1) * a[0] * a[2] - d * a[1] ** 2 + a[0] * a[1]
    two = (d - 2) * a[0] * a[2] - (d - 1) * a[1] ** 2 + a[0] * a[1]
    three = a[1] ** 2 - a[0] * a[2]
    gap = a[1] - a[2]
    sigmas = [(d - 1) * a[2] + a[1], -a[1], two / gap, three / gap]
    return float(c), [float(sigma / c) for sigma in sigmas]


@pytest.mark.parametrize(
    "case", [(2, 0.06), (2, 0.1), (3, 0.05), (4, 0.02), (29, 0.01)]
)
def test_nothing_cancels(case):
    d, nu = case
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(400):
        c, sigmas = precise(d, mpmath.mpf(nu))
    constants = TextConstants(TextLaw(nu), d)
    assert constants.c == pytest.approx(c, rel=1e-11, abs=0.0)
    np.testing.assert_allclose(constants.sigmas, sigmas, rtol=1e-11)


@pytest.mark.parametrize("nu", WIDTHS)
@pytest.mark.parametrize("d", [5, 29])
def test_norms_are_those_of_the_matrix(d, nu):
    values = np.linalg.eigvalsh(TextConstants(TextLaw(nu), d).matrix)
    norm = TextLaw(nu).inverse_norm(d)
    assert norm == pytest.approx(1 / values[0], rel=1e-4)


def test_norms_are_bounded_in_the_number_of_words():
    assert TextLaw(0.25).inverse_norm(500) == pytest.approx(26.1, abs=0.05)
    assert TextLaw(10.0).inverse_norm(500) == pytest.approx(6.0, abs=0.05)
    assert TextLaw(0.25).inverse_norm(20000) < 26.5


def test_many_words_tend_to_integrals():
    constants = TextConstants(TextLaw(0.25), 5000)
    known = [0.50166, 0.35353, 0.26988, 0.21686, 0.18059]
    np.testing.assert_allclose(constants.alphas(4), known, atol=2e-4)
    assert constants.c / 5000 == pytest.approx(0.0104, abs=5e-5)


@pytest.mark.parametrize(
    ("nu", "share"), [(0.05, 0.154), (0.1, 0.304), (0.25, 0.646), (0.35, 0.788)]
)
def test_effective_shares(nu, share):
    result = TextLaw(nu).effective_share(29)
    assert result == pytest.approx(share, abs=5e-4)


def test_one_word_is_refused():
    with pytest.raises(InvalidInput, match="at least 2"):
        TextLaw().bits(1)


@pytest.mark.parametrize("bandwidth", [0, -0.25, np.nan, 1e-200, 1e200, "wide", None])
def test_a_bandwidth_that_is_no_positive_number_is_refused(bandwidth):
    with pytest.raises(InvalidInput, match="bandwidth: expected a"):
        TextLaw(bandwidth)


@pytest.mark.parametrize("bandwidth", [np.float32(np.inf), np.inf])
def test_an_endless_bandwidth_weighs_all_alike(bandwidth):
    assert TextLaw(bandwidth) == TextLaw(np.inf)
    np.testing.assert_array_equal(TextLaw(bandwidth).shares(4), [1, 1, 1, 1, 0])


@pytest.mark.parametrize("bandwidth", [1e-100, 1e-5])
def test_what_is_left_of_weights_at_the_smallest_bandwidths(bandwidth):
    np.testing.assert_array_equal(TextLaw(bandwidth).shares(5), [0, 0, 0, 0, 1, 0])


@pytest.mark.parametrize("bandwidth", [1e60, 1e100])
def test_what_is_left_of_weights_at_the_largest_bandwidths(bandwidth):
    np.testing.assert_array_equal(TextLaw(bandwidth).shares(3), [1, 1, 1, 0])
    np.testing.assert_allclose(TextLaw(bandwidth).log_weights(3)[:3], 0.0, atol=1e-99)
