"""Each family of factors under the data law of each kind of column, value by value."""

import numpy as np
import pytest
from column_oracle import contrast_at, law_at

from propopt.base.resources import AT_ONCE
from propopt.laws.column_laws import CodedLaw, NumericLaw
from propopt.laws.data_law import DataLaw, Means, Reference
from propopt.structures.products.families import (
    Bumps,
    Curves,
    Exponentials,
    Imputed,
    Powers,
    Tables,
)
from propopt.structures.products.sums import SumOfProducts


RNG = np.random.default_rng(4)
COLUMNS = {
    "many values": RNG.normal(size=50),
    "repeated values": RNG.integers(0, 7, 50) / 2.0,
    "two values": np.repeat([-1.0, 2.0], [40, 10]),
    "one value": np.full(50, 3.0),
    "an outlier": np.append(RNG.normal(size=49), 1e6),
    "far from zero": 1e9 + RNG.integers(0, 7, 50),
    "missing in some": np.where(RNG.random(50) < 0.3, np.nan, RNG.normal(size=50)),
    "always missing": np.full(50, np.nan),
}
at = np.zeros(3, np.intp)
centers = np.array([-0.5, 0.0, 2.0])
FAMILIES = {
    "bumps": Bumps(at, centers, np.array([0.3, 1.0, 5.0])),
    "exponentials": Exponentials(at, np.array([-1e-7, 0.0, 1e-7]), centers),
    "powers": Powers(at, np.array([1, 2, 3]), centers),
    "tables": Tables(
        at,
        np.array([-1.0, 0.5, 2.0, 3.0]),
        RNG.normal(size=(3, 4)),
        RNG.normal(size=3),
        RNG.normal(size=3),
    ),
    "imputed bumps": Imputed(
        Bumps(at, centers, np.array([0.3, 1.0, 5.0])), np.array([0.2, 0.4, 0.9])
    ),
    "curves": Curves(at, (np.sin, np.cos, np.tanh), (np.zeros(0),) * 3),
}
each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


def summed(measure, factors):
    """What has no mass does not count, though a factor may be NaN there."""
    some = measure.masses != 0.0
    return factors.at(measure.values[some]) @ measure.masses[some]


def sizes(measure, factors):
    """What the rounding of a sum is of."""
    some = measure.masses != 0.0
    return np.abs(factors.at(measure.values[some])) @ np.abs(measure.masses[some])


@each_family
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_numbers(family, name):
    column = COLUMNS[name]
    law = NumericLaw.of(column, "column")
    x = np.array([*column[:6], column[-1], np.nan, 0.7])
    P, R = law.mixing(family)(x)
    for n, value in enumerate(x):
        for result, measure in ((P, law_at(law, value)), (R, contrast_at(law, value))):
            wanted, size = summed(measure, family), sizes(measure, family)
            assert (np.isnan(wanted) == np.isnan(result[:, n])).all()
            assert not (np.abs(result[:, n] - wanted) > 1e-13 * size).any()


@each_family
def test_codes(family):
    law = CodedLaw.of(RNG.integers(0, 4, 50).astype(float), 5)
    codes = np.arange(5.0)
    P, R = law.mixing(family)(codes)
    for n, code in enumerate(codes):
        np.testing.assert_array_equal(P[:, n], family.at(codes)[:, n])
        wanted = summed(contrast_at(law, code), family)
        np.testing.assert_allclose(R[:, n], wanted, rtol=0, atol=1e-12)


def test_a_function_that_misses_nothing_is_not_asked_of_missing_numbers():
    law = NumericLaw.of(COLUMNS["missing in some"], "column")
    there = law.mixing(FAMILIES["bumps"])(np.array([0.1, -0.4]))
    assert all(np.isfinite(part).all() for part in there)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
def test_a_linear_factor_has_its_slope_far_from_zero_too(offset):
    column = offset + RNG.normal(size=60)
    law = NumericLaw.of(column, "column")
    _, R = law.mixing(Powers.first(np.zeros(1, np.intp)))(column[:20])
    # differences of values have the digits that the values have
    digits = np.finfo(float).eps * max(offset, 1.0)
    np.testing.assert_allclose(R, 1.0, rtol=0, atol=max(1e-13, 4.0 * digits))


def test_a_thousand_columns_take_no_more_memory_than_is_said(monkeypatch):
    N, D = 300, 1000
    points = RNG.integers(0, 40, (N, D)) / 4.0
    columns = np.tile(np.arange(D), 30)
    factors = Bumps(columns, RNG.normal(size=30 * D), np.full(30 * D, 2.0))
    law = DataLaw(Reference.of(points))
    means = Means(
        SumOfProducts(0.5, np.ones(30 * D), np.arange(30 * D)[:, None], (factors,), D),
        law,
    )
    whole = means.of(points[:3])
    small = type(AT_ONCE)(2**12, 1)
    monkeypatch.setattr("propopt.laws.column_laws.AT_ONCE", small)
    again = Means(means.structure, law)
    for one, other in zip(whole, again.of(points[:3]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
