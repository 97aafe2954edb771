"""Laws of columns, the data law and the gaussian one: tables, slopes and promises."""

from __future__ import annotations

import math
from itertools import product

import golden_table as golden
import numpy as np
import pytest
from column_oracle import contrast_at, law_at
from family_catalogue import FAMILIES, is_closed, is_of
from random_trees import boxes_of_trees, random_tree, some_rows

from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.laws import data_law
from propopt.laws.column_laws import CodedLaw, NoisyColumn, NumericLaw, temper
from propopt.laws.data_law import DataLaw, Means, NoiseLaw, Reference
from propopt.structures.boxes.sets import Sets, Tree
from propopt.structures.products.families import Powers
from propopt.tables.frames import Labels


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


@pytest.mark.parametrize(("column", "x"), CASES)
def test_contrasts_are_slopes_and_laws_are_no_wider_than_they_have_to_be(column, x):
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
    least = min(0.02, (1 - law.shares.max()) / 2)
    assert 1.0 - q[np.argmin(np.abs(law.values - x))] >= least * (1 - 1e-9)
    local = temper(law.values, law.shares, law.unit, np.array([x]))
    if local.widening[0] > 1.0:
        beside = np.delete(local.masses[0], local.nearest[0]).sum() / local.totals[0]
        assert abs(beside / least - 1.0) < 1e-9


def test_slopes_at_outliers_of_two_values_and_between_two():
    law = NumericLaw.of(np.array([*range(10), 1e6]), "a")
    values, masses = contrast_at(law, 1e6)  # the secant to the nearest values
    np.testing.assert_allclose(masses @ (values > 1e5), 1e-6, rtol=1e-4)
    law = NumericLaw.of(np.array([0.0, 0.0, 2.0, 2.0, 5.0]), "a")
    local = temper(law.values, law.shares, law.unit, np.array([1.0]))
    assert local.nearest.tolist() == [0]  # of two nearest values the smaller counts
    law = NumericLaw.of(OUTLIER * 4.0, "a")
    for x in (0.0, 4.0, 1.0):
        np.testing.assert_array_equal(contrast_at(law, x).masses, [-0.25, 0.25])
    law = NumericLaw.of(np.random.default_rng(2).normal(size=99), "a")
    sets = Sets.of_numbers([0], [-np.inf], [np.inf], [False])
    P, R = law.mixing(sets)(np.array([0.2, -5.0, 60.0]))
    assert (P == 1.0).all()
    assert (R == 0.0).all()


def test_deviations_are_computed_without_cancellation_and_ranges_end():
    spread = NumericLaw.of(1e9 + np.arange(3.0), "a").spread
    assert spread == pytest.approx(np.sqrt(2 / 3), rel=1e-14)
    assert NumericLaw.of(np.full(3, 7.0), "a").spread == 0.0
    assert np.isnan(NumericLaw.of(np.full(3, np.nan), "a").spread)
    for column in ([0.0, 5e-324], [-1e308, 1e308]):
        with pytest.raises(InvalidInput, match="range of column 'age'"):
            NumericLaw.of(np.array(column), "'age'")
    for column in ([3.0], [np.nan]):  # moments of one value or none
        law = NumericLaw.of(np.array(column), "a")
        means, variances = law.moments(np.array([5.0, np.nan]))
        np.testing.assert_array_equal(means, [column[0], np.nan])
        np.testing.assert_array_equal(variances, 0.0)


# ---- the data law: its table without random numbers, and what it promises


REFERENCE = Reference.of_points(golden.TABLE)
LAW = DataLaw(REFERENCE)


def contrasts(boxes, rows, law=LAW):
    return Means(boxes, law).of(rows)


def enumerated(function, law, row):
    """Mean and contrasts by all combinations of values, none of them left out."""
    own = [law_at(column, x) for column, x in zip(law.columns, row, strict=True)]
    points = np.array(list(product(*(measure.values for measure in own))))
    masses = [math.prod(some) for some in product(*(measure.masses for measure in own))]
    totals = [np.asarray(masses) @ function(points)]
    for j, column in enumerate(law.columns):
        changed = [*own]
        changed[j] = contrast_at(column, row[j])
        points = np.array(list(product(*(measure.values for measure in changed))))
        masses = [math.prod(some) for some in product(*(m.masses for m in changed))]
        totals.append(np.asarray(masses) @ function(points))
    return totals[0], np.array(totals[1:])


def test_contrasts_are_those_of_all_combinations_of_values():
    small = DataLaw(Reference.of_points(golden.TABLE[::4]))
    means, attributions = contrasts(golden.boxes(), golden.ROWS, small)
    for n, row in enumerate(golden.ROWS):
        mean, expected = enumerated(golden.function, small, row)
        assert abs(means[n] - mean) < 1e-12
        np.testing.assert_allclose(attributions[n], expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("seed", range(4))
def test_contrasts_of_trees_with_categories_are_those_of_all_combinations(seed):
    rng = np.random.default_rng(seed)
    table = some_rows(rng, 12, 4, coded=(2,), n_codes=3)
    table[:, 1] = table[:, 1].round()
    law = DataLaw(Reference(table, (None, None, 3, None), Labels(), 12))
    trees = [random_tree(rng, 4, 4, coded=(2,), n_codes=3) for _ in range(5)]
    boxes = boxes_of_trees(trees, 0.5, n_columns=4, n_codes=(None, None, 3, None))
    rows = some_rows(rng, 6, 4, coded=(2,), n_codes=3)
    means, attributions = contrasts(boxes, rows, law)
    for n, row in enumerate(rows):
        mean, expected = enumerated(boxes.value, law, row)
        assert abs(means[n] - mean) < 1e-12
        np.testing.assert_allclose(attributions[n], expected, atol=1e-11, rtol=0)


def test_linear_functions_have_their_coefficients():
    beta = np.array([2.0, -1.0, 0.5, 0.25, 0.0, 3.0])
    present = golden.ROWS[[0, 1, 2, 4]]
    for n in range(len(present)):
        for j, column in enumerate(LAW.columns):
            values, masses = contrast_at(column, present[n, j])
            expected = 0.0 if j == 4 else beta[j]
            assert abs(masses @ (beta[j] * values) - expected) < 1e-12


def slope(values, h, x, heights):
    """Cov(V, f) / Var(V) at bandwidth h, of f that takes ``heights`` at the values."""
    shares = np.full(len(values), 1 / len(values))
    masses = temper(values, shares, np.sqrt(2) * h, np.array([x])).masses[0]
    q = masses / masses.sum()
    centered = values - q @ values
    return (q * centered) @ heights / (q @ centered**2)


@pytest.mark.parametrize(("h", "expected"), [(0.5, 5.07), (0.1, 4.35), (0.02, 4.3212)])
def test_on_an_even_grid_slopes_are_those_of_smoothgrad(h, expected):
    # 3 x² + 3 h², by Stein's identity for N(x, h²)
    grid = np.arange(-1000, 1001) / 100
    assert abs(slope(grid, h, 1.2, grid**3) - expected) < 1e-9


@pytest.mark.parametrize(("h", "tolerance"), [(0.5, 0.15), (0.1, 0.02), (0.02, 0.01)])
def test_of_dense_data_slopes_are_derivatives_as_the_bandwidth_falls(h, tolerance):
    draws = np.unique(np.random.default_rng(0).normal(size=200_001))
    assert abs(slope(draws, h, 0.7, np.sin(draws)) - np.cos(0.7)) < tolerance


def test_moving_thresholds_between_values_changes_no_bit():
    rng = np.random.default_rng(0)
    means, attributions = contrasts(golden.boxes(), golden.ROWS)
    for _ in range(20):
        cuts = {}
        for j, own in golden.CUTS.items():
            atoms = LAW.columns[j].values
            gaps = [np.searchsorted(atoms, cut, side="right") for cut in own]
            cuts[j] = [rng.uniform(atoms[gap - 1], atoms[gap]) for gap in gaps]
        moved_means, moved = contrasts(golden.boxes(cuts), golden.ROWS)
        np.testing.assert_array_equal(moved, attributions)
        np.testing.assert_array_equal(moved_means, means)


def test_rows_are_explained_one_by_one_alike(monkeypatch):
    rng = np.random.default_rng(5)
    table = some_rows(rng, 200, 5)
    law = DataLaw(Reference.of_points(table))
    boxes = boxes_of_trees([random_tree(rng, 5, 6) for _ in range(30)], n_columns=5)
    whole = contrasts(boxes, table, law)
    order = rng.permutation(200)
    permuted = contrasts(boxes, table[order], law)
    monkeypatch.setattr(data_law, "ROWS_AT_ONCE", Budget(1))
    single = contrasts(boxes, table, law)
    for got, back in ((permuted, order), (single, np.arange(200))):
        np.testing.assert_array_equal(got[0], whole[0][back])
        np.testing.assert_array_equal(got[1], whole[1][back])


BANDWIDTHS = [
    (1, 0.0, 2.927129591),
    (1, 1.0, 1.732893289),
    (3, 50.0, 2.224276093),
    (2, 4.0, 1.008688203),
    (0, 0.8, 1.0),
    (0, -3.0, 1.0),
    (5, 5.0, 1.0),
]


def test_the_golden_table():
    values = golden.boxes().value(golden.TABLE)
    np.testing.assert_allclose(values, golden.function(golden.TABLE), atol=1e-15)
    means, attributions = contrasts(golden.boxes(), golden.ROWS)
    np.testing.assert_allclose(attributions, golden.CONTRASTS, atol=1e-11, rtol=0)
    np.testing.assert_allclose(means, golden.MEANS, atol=1e-11, rtol=0)
    spreads = [getattr(column, "spread", 1.0) for column in LAW.columns]
    np.testing.assert_allclose(spreads, golden.SPREADS, atol=1e-11, rtol=0)
    for column, x, expected in BANDWIDTHS:
        law = LAW.columns[column]
        widening = temper(law.values, law.shares, law.unit, np.array([x])).widening[0]
        assert abs(widening - expected) < 1e-9


def stump(column, threshold):
    return Tree.of([column, -1, -1], [threshold, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 2])


def test_columns_without_splits_between_their_values_are_zero():
    boxes = boxes_of_trees([stump(4, 3.0), stump(0, 0.5)], n_columns=6)
    _, attributions = contrasts(boxes, golden.ROWS)
    assert (attributions[:, 1:] == 0.0).all()
    assert (attributions[:, 0] != 0.0).all()
    boxes = boxes_of_trees([stump(0, 1e9)], n_columns=6)  # beyond all values
    means, attributions = contrasts(boxes, golden.ROWS)
    assert (attributions == 0.0).all()
    np.testing.assert_array_equal(means, 1.0)


# ---- the gaussian law: probabilities of intervals and their slopes


def measures(law, sets, rows):
    """Law and contrast of each set, (U, n)."""
    return law.columns[0].mixing(sets)(rows[:, 0])


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, each in FAMILIES.items()
        if is_of(each, coded=False) and is_closed(each)
    ],
)
def test_a_number_without_noise_stays_what_it_is(name):
    x = np.array([0.5, -1.0])
    P, R = NoisyColumn(0.0, 0, None).mixing(FAMILIES[name])(x)
    np.testing.assert_array_equal(P, FAMILIES[name].at(x))
    np.testing.assert_array_equal(R, 0.0)


def test_slopes_are_derivatives_of_means_and_effects_differences():
    rng = np.random.default_rng(0)
    trees = [random_tree(rng, 4, 5, coded=(2,), n_codes=3) for _ in range(8)]
    boxes = boxes_of_trees(trees, n_columns=4, n_codes=(None, None, 3, None))
    shares = np.array([0.2, 0.5, 0.3])
    law = NoiseLaw(np.array([0.3, 0.5, 1.0, 1.0]), (None, None, shares, None))
    means = Means(boxes, law)
    rows = some_rows(rng, 20, 4, coded=(2,), n_codes=3)
    values, attributions = means.of(rows)
    for j in (0, 1, 3):
        step = 1e-5 * (np.arange(4) == j)
        ahead, behind = means.of(rows + step)[0], means.of(rows - step)[0]
        slopes = (ahead - behind) / 2e-5
        np.testing.assert_allclose(attributions[:, j], slopes, atol=1e-8)
    others = np.empty((3, 20))
    for code in range(3):
        changed = rows.copy()
        changed[:, 2] = code
        others[code] = means.of(changed)[0]
    np.testing.assert_allclose(attributions[:, 2], values - shares @ others, atol=1e-13)


def test_missing_numbers_get_no_noise_and_have_no_slope():
    law = NoiseLaw(np.array([0.4]), (None,))
    sets = Sets.of_numbers([0] * 2, [-np.inf, 0.0], [0.0, np.inf], [True, False])
    P, R = measures(law, sets, np.array([[np.nan]]))
    np.testing.assert_array_equal(P[:, 0], [1.0, 0.0])
    np.testing.assert_array_equal(R, 0.0)
    sets = Sets.of_numbers([0], [0.5], [0.1], [True])  # which only they reach
    P, R = measures(law, sets, np.array([[0.3], [np.nan]]))
    np.testing.assert_array_equal(P, [[0.0, 1.0]])
    np.testing.assert_array_equal(R, 0.0)
