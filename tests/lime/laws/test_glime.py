"""GLIME's law: the limits of another law, from samples that all count."""

from __future__ import annotations

import numpy as np
import pytest
from linear_sums import curved, linear

from propopt.base.errors import InvalidInput
from propopt.lime import GaussianLaw, GlimeLaw, TabularLaw
from propopt.lime.expectations import ExactLimits


ROWS = np.array([[0.5, -0.3, 1.2], [-2.0, 0.1, 0.65]])


def laws(rng):
    X = rng.normal(size=(200, 3))
    return GaussianLaw.of(np.zeros(3), 1.0, 0.8), TabularLaw.from_data(X)


@pytest.mark.parametrize("kind", [0, 1])
def test_limits_are_those_of_the_law_at_any_width(rng, kind):
    law = laws(rng)[kind]
    f = linear([1.0, -2.0, 0.5])
    for widths in (None, np.array([0.3, 5.0])):
        a = ExactLimits(f, law).of(ROWS, widths)
        b = ExactLimits(f, GlimeLaw(law)).of(ROWS, widths)
        np.testing.assert_array_equal(a.coefficients, b.coefficients)
        np.testing.assert_array_equal(a.intercept, b.intercept)
        np.testing.assert_array_equal(a.alpha, b.alpha)
        np.testing.assert_array_equal(b.log_weight, np.zeros(2))


@pytest.mark.parametrize("kind", [0, 1])
def test_both_ways_to_draw_are_one(rng, kind):
    law = GlimeLaw(laws(rng)[kind])
    a, b = (
        draw(ROWS, 50, np.random.default_rng(3))
        for draw in (law.draw, law.law.draw_weighted)
    )
    np.testing.assert_array_equal(a.samples, b.samples)
    np.testing.assert_array_equal(a.bits, b.bits)
    assert (a.weights == 1.0).all()
    c = law.draw_weighted(ROWS, 50, np.random.default_rng(3))
    np.testing.assert_array_equal(a.samples, c.samples)


def test_widths_and_names_are_those_of_the_law(rng):
    law = GlimeLaw(laws(rng)[0])
    assert law.kernel_width == 0.8
    assert law.with_width(2.0).kernel_width == 2.0
    assert law.with_width(2.0).law.kernel_width == 2.0
    assert law.columns[0].bins == law.law.columns[0].bins
    assert repr(law) == "GlimeLaw(GaussianLaw(3 columns, 12 bins, kernel_width=0.8))"
    with pytest.raises(InvalidInput, match="another law"):
        GlimeLaw(law)


def test_weights_are_their_own_squares(rng):
    law, widths = laws(rng)[0], np.array([0.5, 2.0])
    np.testing.assert_array_equal(GlimeLaw(law).squared_widths(widths), widths)
    np.testing.assert_allclose(law.squared_widths(widths) ** 2, widths**2 / 2.0)


def test_samples_fit_to_the_limits_with_errors_that_are_told(rng):
    """4 z-scores, of 20,000 samples in one run: |z| < 5 fails with 2e-6."""
    from normal_samples import weighted_fit, with_intercept

    law, f = GlimeLaw(laws(rng)[0]), curved()
    draws = law.draw(ROWS[:1], 20_000, rng)
    values = f.value(draws.samples[0])
    beta, errors = weighted_fit(draws.bits[0], draws.weights[0], values)
    z = (beta - with_intercept(ExactLimits(f, law).of(ROWS[:1]))) / errors
    assert np.abs(z).max() < 5.0
