"""Limits of LIME against golden numbers, and against all cells one by one."""

from __future__ import annotations

import lime_fixture as fixture
import numpy as np
import pytest

from propopt.lime.expectations import ExactLimits
from propopt.structures.products.sums import SumOfProducts


CASES = [
    pytest.param(name, i, id=f"{name}-{width:.3g}")
    for name in fixture.FUNCTIONS
    for i, width in enumerate(fixture.WIDTHS)
]


def limits(name, width):
    return ExactLimits(fixture.FUNCTIONS[name], fixture.law(width)).of(fixture.ROW)


def with_intercept(result):
    return np.concatenate([result.intercept, result.coefficients[0]])


@pytest.mark.parametrize(("name", "i"), CASES)
def test_golden_numbers(name, i):
    result = with_intercept(limits(name, fixture.WIDTHS[i]))
    np.testing.assert_allclose(result, fixture.GOLDEN[name][i], rtol=0, atol=1e-9)


def test_constants_of_the_weighted_law():
    result = [limits("bump", width) for width in fixture.WIDTHS]
    alphas = [one.alpha[0] for one in result]
    expected = [[0.451862761878] * 3, [0.402069183368] * 3, [1 / 3] * 3]
    np.testing.assert_allclose(alphas, expected, rtol=0, atol=1e-12)
    c = [np.exp(one.log_weight[0] / 3) for one in result]
    np.testing.assert_allclose(c, [0.737687106475, 0.829044719471, 1.0], atol=1e-12)


def test_a_column_that_is_not_used_has_exactly_zero():
    assert limits("product", 1.0).coefficients[0, 2] == 0.0


def test_limits_are_linear_in_the_function():
    f, g = fixture.FUNCTIONS["bump"], fixture.FUNCTIONS["box"]
    both = SumOfProducts.sum_of([f.scaled(2.0), g.scaled(-3.0)])
    result = ExactLimits(both, fixture.law(1.0)).of(fixture.ROW)
    expected = 2 * with_intercept(limits("bump", 1.0))
    expected -= 3 * with_intercept(limits("box", 1.0))
    np.testing.assert_allclose(with_intercept(result), expected, rtol=0, atol=1e-15)


def test_many_rows_and_widths_at_once_are_each_for_itself():
    points = np.concatenate([fixture.ROW, fixture.ROW[:, ::-1], fixture.ROW])
    widths = np.array([1.0, 0.6, 2.0])
    exact = ExactLimits(fixture.FUNCTIONS["bump"], fixture.law(1.0))
    joint = exact.of(points, widths)
    for n in range(3):
        alone = exact.of(points[[n]], widths[[n]])
        assert with_intercept(alone) == pytest.approx(
            [joint.intercept[n], *joint.coefficients[n]], rel=1e-14
        )


def test_draws_tend_to_the_limits():
    """|z| < 5 for 4 coefficients of 2 samplers: false alarm below 5e-6."""
    law, f = fixture.law(0.8), fixture.FUNCTIONS["bump"]
    truth = with_intercept(ExactLimits(f, law).of(fixture.ROW))
    for draw in (law.draw, law.draw_weighted):
        draws = draw(fixture.ROW, 200_000, np.random.default_rng(0))
        Z = np.column_stack([np.ones(200_000), draws.bits[0]])
        weighted = Z * draws.weights[0][:, None]
        bread = np.linalg.inv(weighted.T @ Z)
        values = f.value(draws.samples[0])
        beta = bread @ (weighted.T @ values)
        influence = weighted * (values - Z @ beta)[:, None]
        errors = np.sqrt(np.diag(bread @ (influence.T @ influence) @ bread))
        z = (beta - truth) / errors
        assert np.abs(z).max() < 5
        assert np.abs(z).max() > 0.1  # errors are not far too large
