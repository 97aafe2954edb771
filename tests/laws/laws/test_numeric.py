"""Laws of single columns of numbers, however they are spread."""

from __future__ import annotations

import numpy as np
import pytest
from column_oracle import contrast_at, law_at

from propopt.base.errors import InvalidInput
from propopt.laws.column_laws import CodedLaw, NumericLaw, temper
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.families import Powers


OUTLIER = np.array([0.0] * 1000 + [1.0])
COLUMNS = {
    "1000 zeros and a one": (OUTLIER, [0.0, 1.0, 0.4]),
    "0 to 9 and a million": (np.array([*range(10), 1e6]), [0.0, 4.2, 9.0, 1e6, 5e5]),
    "a billion and 0, 1, 2": (1e9 + np.arange(3.0), [1e9, 1e9 + 1, 1e9 + 2]),
    "zeros and 1e-300": (np.array([0.0] * 10**5 + [1e-300]), [0.0, 1e-300]),
    "0, 1, 2 from afar": (np.arange(3.0), [1e12, -1e12, 1e300, -1e300]),
    "skewed": (np.exp(np.linspace(0, 30, 200)), [1.0, 1e6, 1e13]),
    "ties": (np.array([0.0, 0.0, 2.0, 2.0, 5.0]), [1.0, 3.5]),
}
CASES = [
    pytest.param(column, x, id=f"{name} at {x:g}")
    for name, (column, places) in COLUMNS.items()
    for x in places
]


@pytest.mark.parametrize(("column", "x"), CASES)
def test_contrasts_are_slopes_and_laws_are_never_on_one_value_alone(column, x):
    law = NumericLaw.of(column, "a")
    values, masses = contrast_at(law, x)
    assert np.isfinite(masses).all()
    assert abs(masses.sum()) < 1e-12 * np.abs(masses).sum()
    origin = values[np.argmin(np.abs(values - x))]
    assert abs(masses @ (values - origin) - 1.0) < 1e-7
    q = law_at(law, x).masses
    assert abs(q.sum() - 1.0) < 1e-14
    cuts = np.arange(len(values) + 1)
    for table, own in zip(
        law.cumulative(np.array([x]), cuts), (q, masses), strict=True
    ):
        sums = np.append(0.0, np.cumsum(own))
        np.testing.assert_allclose(table[0], sums, atol=1e-12 * np.abs(own).sum())
    nearest = np.argmin(np.abs(law.values - x))
    least = min(0.02, (1 - law.shares.max()) / 2)
    assert 1.0 - q[nearest] >= least * (1 - 1e-9)


@pytest.mark.parametrize(("column", "x"), CASES)
def test_the_bandwidth_is_no_wider_than_it_has_to_be(column, x):
    law = NumericLaw.of(column, "a")
    local = temper(law.values, law.shares, law.unit, np.array([x]))
    if local.widening[0] > 1.0:
        least = min(0.02, (1 - law.shares.max()) / 2)
        nearest = local.nearest[0]
        beside = np.delete(local.masses[0], nearest).sum() / local.totals[0]
        assert abs(beside / least - 1.0) < 1e-9


def test_the_slope_at_an_outlier_is_the_secant_to_the_nearest_values():
    law = NumericLaw.of(np.array([*range(10), 1e6]), "a")
    values, masses = contrast_at(law, 1e6)
    step = (values > 1e5).astype(float)
    np.testing.assert_allclose(masses @ step, 1e-6, rtol=1e-4)


def test_of_two_nearest_values_the_smaller_counts():
    law = NumericLaw.of(np.array([0.0, 0.0, 2.0, 2.0, 5.0]), "a")
    local = temper(law.values, law.shares, law.unit, np.array([1.0]))
    assert local.nearest.tolist() == [0]


def test_deviations_are_computed_without_cancellation():
    assert NumericLaw.of(1e9 + np.arange(3.0), "a").spread == pytest.approx(
        np.sqrt(2 / 3), rel=1e-14
    )
    assert NumericLaw.of(np.full(3, 7.0), "a").spread == 0.0
    assert np.isnan(NumericLaw.of(np.full(3, np.nan), "a").spread)


def test_a_single_value_has_no_contrast():
    law = NumericLaw.of(np.array([3.0, 3.0, np.nan]), "a")
    assert contrast_at(law, 5.0).masses.tolist() == [0.0]
    assert law_at(law, 5.0).values.tolist() == [3.0]
    values, masses = contrast_at(law, np.nan)
    np.testing.assert_array_equal(values, [3.0, np.nan])
    np.testing.assert_array_equal(masses, [-1.0, 1.0])


def test_a_column_that_is_always_missing_stays_so():
    law = NumericLaw.of(np.full(4, np.nan), "a")
    for x in (np.nan, 2.0):
        assert np.isnan(law_at(law, x).values).all()
        assert contrast_at(law, x).masses.tolist() == [0.0]
    sets = Sets.of_numbers([0, 0], [-np.inf, 0.0], [0.0, np.inf], [True, False])
    P, R = law.mixing(sets)(np.array([np.nan, 2.0]))
    np.testing.assert_array_equal(P, [[1, 1], [0, 0]])
    np.testing.assert_array_equal(R, 0.0)


def test_two_values_differ_exactly():
    law = NumericLaw.of(OUTLIER * 4.0, "a")
    for x in (0.0, 4.0, 1.0):
        np.testing.assert_array_equal(contrast_at(law, x).masses, [-0.25, 0.25])


@pytest.mark.parametrize("column", [[0.0, 5e-324], [-1e308, 1e308]])
def test_ranges_beyond_float64_are_refused_by_name(column):
    with pytest.raises(InvalidInput, match="range of column 'age'"):
        NumericLaw.of(np.array(column), "'age'")


def test_moments_are_those_of_the_law():
    rng = np.random.default_rng(0)
    law = NumericLaw.of(np.append(rng.exponential(size=50), np.nan), "a")
    x = np.array([0.1, 3.0, np.nan, 40.0])
    means, variances = law.moments(x)
    for n in (0, 1, 3):
        values, masses = law_at(law, x[n])
        np.testing.assert_allclose(means[n], masses @ values, rtol=1e-13)
        centered = values - masses @ values
        np.testing.assert_allclose(variances[n], masses @ centered**2, rtol=1e-12)
    assert np.isnan(means[2])
    assert variances[2] == 0.0


@pytest.mark.parametrize("column", [[3.0], [np.nan]])
def test_moments_of_columns_of_one_value_or_none(column):
    law = NumericLaw.of(np.array(column), "a")
    means, variances = law.moments(np.array([5.0, np.nan]))
    np.testing.assert_array_equal(means, [column[0], np.nan])
    np.testing.assert_array_equal(variances, 0.0)


def test_draws_follow_the_law():
    law = NumericLaw.of(np.array([0.0, 1.0, 1.0, 2.0, 7.0]), "a")
    x = np.array([1.0, np.nan, 6.0])
    uniforms = (np.arange(10_000) + 0.5) / 10_000
    samples = law.quantiles(x, uniforms)
    assert np.isnan(samples[1]).all()
    for n in (0, 2):
        values, masses = law_at(law, x[n])
        shares = (samples[n] == values[:, None]).mean(axis=1)
        np.testing.assert_allclose(shares, masses, atol=1e-4)
        assert (np.diff(samples[n]) >= 0).all()
    assert law.quantiles(x, np.array([np.nextafter(1.0, 0.0)]))[0, 0] == 7.0


def test_measures_of_runs_are_sums_over_their_values():
    rng = np.random.default_rng(1)
    law = NumericLaw.of(np.append(rng.normal(size=30).round(1), np.nan), "a")
    low, high = np.sort(rng.normal(size=(2, 20)), axis=0)
    low[:3], high[3:6] = -np.inf, np.inf
    sets = Sets.of_numbers(np.zeros(20, int), low, high, rng.random(20) < 0.5)
    x = np.array([0.3, np.nan, -4.0, 0.3, 0.0])
    P, R = law.mixing(sets)(x)
    for n, each in enumerate(x):
        for masses, got in ((law_at(law, each), P), (contrast_at(law, each), R)):
            inside = sets.contain(masses.values[:, None])
            np.testing.assert_allclose(got[:, n], inside @ masses.masses, atol=1e-13)


def test_all_values_have_probability_one_and_no_contrast_exactly():
    law = NumericLaw.of(np.random.default_rng(2).normal(size=99), "a")
    sets = Sets.of_numbers([0], [-np.inf], [np.inf], [False])
    P, R = law.mixing(sets)(np.array([0.2, -5.0, 60.0]))
    assert (P == 1.0).all()
    assert (R == 0.0).all()


def test_a_category_stays_and_is_held_against_all_others():
    law = CodedLaw.of(np.array([0.0, 0.0, 2.0, 2.0]), 4)
    np.testing.assert_array_equal(contrast_at(law, 2.0).masses, [-0.5, 0.0, 0.5, 0.0])
    np.testing.assert_array_equal(contrast_at(law, 1.0).masses, [-0.5, 1.0, -0.5, 0.0])
    np.testing.assert_array_equal(law.quantiles(np.array([3.0]), np.ones(2)), [[3, 3]])


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
def test_a_linear_factor_has_its_slope_far_from_zero_too(offset):
    column = offset + np.random.default_rng(4).normal(size=60)
    law = NumericLaw.of(column, "column")
    _, R = law.mixing(Powers.first(np.zeros(1, np.intp)))(column[:20])
    # differences of values have the digits that the values have
    digits = np.finfo(float).eps * max(offset, 1.0)
    np.testing.assert_allclose(R, 1.0, rtol=0, atol=max(1e-13, 4.0 * digits))
