"""Laws of columns, the data law and the gaussian one: tables, slopes and promises."""

import golden_table as golden
import numpy as np
import pytest
from column_oracle import contrast_at, enumerated, law_at
from family_catalogue import FAMILIES, is_closed, is_of
from random_trees import boxes_of_trees, random_tree, some_rows

from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.laws import data_law
from propopt.laws.background import Reference
from propopt.laws.column_laws import NoisyColumn, NumericLaw, temper
from propopt.laws.data_law import DataLaw, Means, NoiseLaw
from propopt.structures.boxes.sets import Sets
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


def test_contrasts_are_those_of_all_combinations_of_values():
    small = DataLaw(Reference.of_points(golden.TABLE[::4]))
    means, attributions = contrasts(golden.boxes(), golden.ROWS, small)
    for n, row in enumerate(golden.ROWS):
        mean, expected = enumerated(golden.function, small, row)
        assert abs(means[n] - mean) < 1e-12
        np.testing.assert_allclose(attributions[n], expected, atol=1e-12, rtol=0)


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


# ---- what a reader of slopes has to know of a column is said of that column alone
NAN = np.nan
CONSTANT = "column 'c' is constant in the reference rows: 0"
MISSING = "column 'c' is missing in all reference rows: 0"
NEVER = "column 'c' is missing in rows, and never in the reference rows"


@pytest.mark.parametrize(
    ("reference", "rows", "told"),
    [
        ([1.0, 2.0, 3.0], [1.0, 5.0], ()),
        ([2.0, 2.0, 2.0], [1.0, 2.0], (CONSTANT,)),
        ([2.0, 2.0, 2.0], [1.0, NAN], (CONSTANT, NEVER)),
        # what is missing in all rows has an effect, of being missing, or none at all
        ([2.0, 2.0, 2.0], [NAN, NAN], (NEVER,)),
        ([2.0, 2.0, NAN], [NAN, NAN], ()),
        ([2.0, 2.0, NAN], [2.0, NAN], (CONSTANT,)),
        ([1.0, 2.0, 3.0], [1.0, NAN], (NEVER,)),
        ([1.0, 2.0, NAN], [1.0, NAN], ()),
        ([NAN, NAN, NAN], [1.0, NAN], (MISSING,)),
    ],
)
def test_a_column_without_a_slope_is_named(reference, rows, told):
    # the other column, of categories, has nothing to be said of
    points = np.column_stack([[0.0, 1.0, 0.0], reference])
    labels = Labels(features=("kind", "c"))
    law = DataLaw(Reference(points, (2, None), labels, n_rows=3))
    assert law.notes(np.column_stack([np.zeros(2), rows])) == told
