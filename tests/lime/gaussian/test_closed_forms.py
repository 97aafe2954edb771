"""Closed forms against sums over pieces, quadrature, and truncated means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear_sums import curved, linear
from normal_samples import weighted_fit, weighted_grid, with_intercept
from scipy.stats import truncnorm

import propopt as po
from papers.lime import gaussian_theory
from papers.lime.linear_limits import linear_limits
from propopt.base.errors import InvalidInput
from propopt.lime import GaussianLaw, GlimeLaw
from propopt.lime.expectations import ExactLimits


ROWS = np.array([[0.5, -0.3, 1.2], [-2.0, 0.1, 0.65], [0.0, 0.6744, -3.5]])
SLOPES = np.array([2.0, -1.5, 0.3])


def some_law(width: float) -> GaussianLaw:
    return GaussianLaw.of([0.2, -1.0, 0.0], [1.0, 2.5, 0.4], width, n_bins=[4, 5, 2])


@pytest.mark.parametrize("width", [1e-6, 1e-3, 0.03, 0.3, 1.0, 7.0, 1e4])
def test_limits_of_linear_functions_are_the_closed_form(width):
    law = some_law(width)
    by_pieces = ExactLimits(linear(SLOPES, 0.7), law).of(ROWS)
    closed = linear_limits(gaussian_theory.gains(law, ROWS), SLOPES, 0.7)
    for name in ("coefficients", "intercept", "alpha", "mean"):
        np.testing.assert_allclose(
            getattr(by_pieces, name), getattr(closed, name), rtol=1e-12, atol=1e-12
        )
    np.testing.assert_allclose(
        by_pieces.log_weight, closed.log_weight, rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize("width", [0.3, 1.0, 7.0])
def test_limits_are_weighted_least_squares_on_a_grid(width):
    law = GaussianLaw.of([0.2, -1.0, 0.0], [1.0, 2.5, 0.4], width, n_bins=[2, 3, 2])
    x = np.array([0.5, -0.3, 1.2])
    samples, bits, weights = weighted_grid(law, x, nodes=40)
    f = curved()
    expected, _ = weighted_fit(bits, weights, f.value(samples))
    limits = ExactLimits(f, law).of(x[None])
    np.testing.assert_allclose(with_intercept(limits), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.exp(limits.log_weight[0]), weights.sum(), rtol=1e-9)
    np.testing.assert_allclose(
        limits.alpha[0], weights @ bits / weights.sum(), rtol=1e-9
    )


@pytest.mark.parametrize("x", [-1.2, -0.4, 0.2, 0.9])
def test_one_column_is_a_difference_of_truncated_means(x):
    law = GaussianLaw.of([0.0], 1.0, 0.9)
    share = 0.9**2 / (0.9**2 + 1.0)
    mean, sd = (1.0 - share) * x, np.sqrt(share)
    ends = law.columns[0].ends
    b = int(law.columns[0].place(np.array([x]))[0])
    low, high = ends[b : b + 2]

    def part(a: float, c: float) -> tuple[float, float]:
        a, c = (a - mean) / sd, (c - mean) / sd
        mass = truncnorm.cdf(c, -np.inf, np.inf) - truncnorm.cdf(a, -np.inf, np.inf)
        return (mass, truncnorm.mean(a, c, mean, sd)) if mass > 0 else (0.0, 0.0)

    (p, left), (_, inside), (q, right) = (
        part(-np.inf, low),
        part(low, high),
        part(high, np.inf),
    )
    outside = (p * left + q * right) / (p + q)
    result = gaussian_theory.gains(law, [[x]]).gain[0, 0]
    np.testing.assert_allclose(result, inside - outside, rtol=1e-10)


def test_coefficients_add_and_unused_columns_have_none():
    law, x = some_law(0.8), ROWS
    f, g = linear([1.0, 0.0, 0.0], 0.3), linear([0.0, 0.0, -2.0])
    exact = [ExactLimits(h, law).of(x) for h in (f, g, type(f).sum_of([f, g]))]
    for name in ("coefficients", "intercept"):
        one, other, both = (getattr(limits, name) for limits in exact)
        np.testing.assert_allclose(one + other, both, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(exact[2].coefficients[:, 1], np.zeros(3))


coordinate = st.floats(-3.0, 3.0).map(lambda v: round(v, 3))


@given(
    x=st.tuples(coordinate, coordinate),
    shift=st.tuples(coordinate, coordinate),
    width=st.floats(0.05, 20.0),
)
def test_a_shift_of_rows_and_samples_changes_nothing(x, shift, width):
    mean, c = np.array([0.3, -0.7]), np.array(shift)
    here = gaussian_theory.gains(GaussianLaw.of(mean, [1.0, 2.0], width), [x]).gain
    there = GaussianLaw.of(mean + c, [1.0, 2.0], width)
    moved = gaussian_theory.gains(there, [np.array(x) + c]).gain
    np.testing.assert_allclose(moved, here, rtol=1e-9, atol=1e-11)


@given(
    x=st.tuples(coordinate, coordinate),
    factor=st.sampled_from([0.01, 3.0, 1000.0]),
    width=st.floats(0.05, 20.0),
)
def test_other_units_are_other_units_of_the_gains(x, factor, width):
    mean, scale = np.array([0.3, -0.7]), np.array([1.0, 2.0])
    here = gaussian_theory.gains(GaussianLaw.of(mean, scale, width), [x]).gain
    there = GaussianLaw.of(factor * mean, factor * scale, factor * width)
    scaled = gaussian_theory.gains(there, [factor * np.array(x)]).gain
    np.testing.assert_allclose(scaled, factor * here, rtol=1e-9, atol=1e-11 * factor)


@given(x=st.tuples(coordinate, coordinate), width=st.floats(0.05, 20.0))
def test_a_mirror_turns_the_gains(x, width):
    mean, x = np.array([0.3, -0.7]), np.array(x)
    law = GaussianLaw.of(mean, [1.0, 2.0], width)
    gains, mirrored = gaussian_theory.gains(law, [x, 2.0 * mean - x]).gain
    edges = np.concatenate([column.edges for column in law.columns])
    if np.abs(np.concatenate([x, x]) - edges[[0, 3, 2, 5]]).min() < 1e-9:
        return  # on an edge, which is in the bin above it on both sides
    if (np.abs(x - mean) < 1e-9).any():
        return
    np.testing.assert_allclose(mirrored, -gains, rtol=1e-9, atol=1e-11)


def test_the_surrogate_at_the_row_is_the_mean_of_its_box_for_additive_functions():
    result = gaussian_theory.gains(some_law(0.8), ROWS)
    inside = result.mean - result.theta / result.alpha
    limits = linear_limits(result, SLOPES, 0.7)
    np.testing.assert_allclose(limits.at_row, inside @ SLOPES + 0.7, atol=1e-13)


def test_gains_have_the_names_of_the_rows():
    import pandas as pd

    X = pd.DataFrame({"a": [0.1], "b": [1.0]}, index=["row"])
    law = GaussianLaw.from_data(pd.DataFrame({"a": [0.0, 1.0], "b": [2.0, 5.0]}))
    result = gaussian_theory.gains(law, X)
    table = result.labels.frame(result.gain)
    assert list(table.columns) == ["a", "b"]
    assert list(table.index) == ["row"]
    other = gaussian_theory.gains(law, X[["b", "a"]])
    np.testing.assert_array_equal(other.gain[:, ::-1], result.gain)
    assert other.labels.features == ("b", "a")
    with pytest.raises(InvalidInput, match="its columns"):
        gaussian_theory.gains(law, X.rename(columns={"a": "c"}))
    with pytest.raises(InvalidInput, match="it has 2 columns, and X has 1"):
        gaussian_theory.gains(law, [[1.0]])


def test_glime_has_the_gains_of_its_law_and_a_tabular_law_has_none():
    law = some_law(0.8)
    np.testing.assert_array_equal(
        gaussian_theory.gains(GlimeLaw(law), ROWS).gain,
        gaussian_theory.gains(law, ROWS).gain,
    )
    with pytest.raises(InvalidInput, match="expected a GaussianLaw"):
        gaussian_theory.gains(po.lime.TabularLaw.from_data(ROWS), ROWS)


def test_a_slope_of_a_column_without_numbers_is_refused():
    X = np.array([[1.0, 0.0], [2.0, 1.0], [4.0, 1.0]])
    law = GaussianLaw.from_data(X, categorical=[1])
    result = gaussian_theory.gains(law, X)
    assert np.isnan(result.gain[:, 1]).all()
    assert np.isfinite(linear_limits(result, [1.0, 0.0]).intercept).all()
    with pytest.raises(InvalidInput, match="'x1' has a slope"):
        linear_limits(result, [1.0, 1.0])
    with pytest.raises(InvalidInput, match="expected 2 numbers"):
        linear_limits(result, [1.0])
