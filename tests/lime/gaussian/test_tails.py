"""Masses and contrasts of intervals against arithmetic with 60 digits."""

from __future__ import annotations

import numpy as np
import pytest

from papers.lime.gaussian_theory import tails


mpmath = pytest.importorskip("mpmath")

INTERVALS = [
    (-0.3, 0.7),
    (0.2, 0.2001),
    (0.000946, 0.001075),
    (30.0, 30.1),
    (5.0, 50.0),
    (-7.0, 6.9),
    (-14.6, 58.3),
    (-np.inf, 1.0),
    (40.0, np.inf),
    (-np.inf, -30.0),
]


def many_digits(low: float, high: float) -> tuple[float, ...]:
    def below(z):
        return mpmath.erfc(-mpmath.mpf(z) / mpmath.sqrt(2)) / 2

    def density(z):
        return mpmath.npdf(mpmath.mpf(z)) if np.isfinite(z) else mpmath.mpf(0)

    with mpmath.workdps(400):
        alpha, complement = below(high) - below(low), below(low) + below(-high)
        theta = density(high) - density(low)
        contrast = -theta / (alpha * complement)
        return tuple(float(x) for x in (alpha, complement, theta, contrast))


@pytest.mark.parametrize(("low", "high"), INTERVALS)
def test_all_have_the_digits_that_many_have(low, high):
    result = np.array(tails(np.array([low]), np.array([high])))[:, 0]
    np.testing.assert_allclose(result, many_digits(low, high), rtol=2e-12, atol=0.0)


def test_what_is_outside_by_an_underflow_still_has_a_mean():
    result = tails(np.array([-40.0]), np.array([41.0]))
    np.testing.assert_allclose(result.contrast, 40.0 + 1 / 40.0, rtol=1e-4)


def test_where_nothing_is_outside_there_is_no_contrast():
    result = tails(np.array([-np.inf]), np.array([np.inf]))
    assert np.array(result)[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_around_zero_there_is_none_either():
    result = tails(np.array([-0.3, -0.001]), np.array([0.3, 0.001]))
    assert result.contrast.tolist() == [0.0, 0.0]
    assert result.theta.tolist() == [0.0, 0.0]
