"""Numbers of the linear paper's variant that were computed elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from linear_sums import linear

from propopt.lime import GaussianLaw
from propopt.lime.expectations import ExactLimits


ONE_COLUMN = {
    (1.0, 1.0): (0.40254475, 0.04199854, 1.13776533),
    (0.432, 1.0): (0.36163359, 0.15236451, 0.17596675),
    (0.1, 1.0): (0.33961158, -0.08687978, 0.40304803),
    (-0.3, 0.5): (0.53860990, -0.14638169, -0.17381469),
    (-1.5, 2.0): (0.33772052, 0.19356818, -1.46146931),
}
"""x and ν of f(x) = x under N(0, 1) in quartiles, to α, β_0 and β_1."""


@pytest.mark.parametrize(("case", "expected"), ONE_COLUMN.items())
def test_one_column(case, expected):
    x, width = case
    law = GaussianLaw.of([0.0], 1.0, width)
    limits = ExactLimits(linear([1.0]), law).of(np.array([[x]]))
    found = limits.alpha[0, 0], limits.intercept[0], limits.coefficients[0, 0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-9)


def test_three_columns():
    law = GaussianLaw.of([0.5, -1.0, 2.0], 1.7, 1.5)
    limits = ExactLimits(linear([1.0, -2.0, 0.5], 0.7), law).of(
        np.array([[1.2, -3.0, 2.3]])
    )
    np.testing.assert_allclose(limits.intercept, 4.94929917, rtol=0, atol=5e-9)
    expected = [[0.26791601, 3.58989395, 0.29308691]]
    np.testing.assert_allclose(limits.coefficients, expected, rtol=0, atol=5e-9)


def test_a_column_below_its_critical_width_has_the_other_sign():
    function = linear([1.0, -2.0, 0.5], 0.7)
    law = GaussianLaw.of([0.5, -1.0, 2.0], 1.7, 0.7)
    limits = ExactLimits(function, law).of(np.array([[1.2, -3.0, 2.3]]))
    np.testing.assert_allclose(limits.coefficients[0, 0], -0.0512, rtol=0, atol=5e-5)


def test_gains_at_a_width_of_a_thousandth_of_the_scale_are_distances_to_edges():
    law = GaussianLaw.of([0.0], 1.0, 1e-3)
    x = np.array([[0.1], [0.3], [0.35], [0.6]])
    gains = ExactLimits(linear([1.0]), law).of(x).coefficients[:, 0]
    expected = [0.10001, 0.30000, -0.32449, -0.07450]
    np.testing.assert_allclose(gains, expected, rtol=0, atol=5.1e-6)
