"""Functions of what a model sees are the same functions of the table."""

from __future__ import annotations

import numpy as np
import pytest

from propopt.structures.products.families import Bumps, Exponentials, Powers
from propopt.structures.products.normals import Normals
from propopt.structures.products.seen import Line, Listed, by_table, constant
from propopt.structures.products.sums import SumOfProducts


RNG = np.random.default_rng(0)
M = 5
COLORS = Listed(1, np.arange(3.0), np.array([0.0, 1.0, 0.5]))
SIZES = Listed(1, np.arange(3.0), np.array([2.0, -1.0, 0.0]))
SEEN = [
    Line(0, 2.0, 0.3, missing=0.7),
    COLORS,
    SIZES,
    Line(2, -0.5, 1.0),
    Listed(3, np.array([1.0, 4.0]), np.array([1.0, 0.0]), 0.25, 2.0),
]


def machine(seed=0, n_products=7):
    """Products of bumps, powers and exponentials of five columns."""
    rng = np.random.default_rng(seed)
    families = [
        Bumps(np.arange(M), rng.normal(size=M), rng.random(M) + 0.5),
        Powers(np.arange(M), np.array([1, 2, 3, 2, 1]), rng.normal(size=M)),
        Exponentials(np.arange(M), rng.normal(size=M), rng.normal(size=M)),
    ]
    kinds = rng.integers(0, 3, (n_products, M))
    paths = np.where(rng.random((n_products, M)) < 0.7, kinds * M + np.arange(M), -1)
    paths = -np.sort(-paths, axis=1)
    values = rng.normal(size=n_products)
    return SumOfProducts(0.5, values, paths, tuple(families), M)


def rows(n=40):
    table = np.column_stack(
        [
            RNG.normal(size=n),
            RNG.integers(0, 3, n),
            RNG.normal(size=n),
            RNG.choice([1.0, 4.0, 2.5, np.nan], n),
        ]
    )
    table[::5, 0] = np.nan
    return table


def as_seen(table, seen):
    columns = []
    for each in seen:
        x = table[:, each.column]
        if isinstance(each, Line):
            label = each.slope * (x - each.center)
        else:
            label = np.full(len(x), each.other)
            for key, value in zip(each.keys, each.seen, strict=True):
                label[x == key] = value
        columns.append(np.where(np.isnan(x), each.missing, label))
    return np.column_stack(columns)


@pytest.mark.parametrize("seed", range(5))
def test_values_are_those_of_what_is_seen(seed):
    function, table = machine(seed), rows()
    pulled = by_table(function, SEEN, n_columns=4)
    expected = function.value(as_seen(table, SEEN))
    np.testing.assert_allclose(pulled.value(table), expected, rtol=1e-12, atol=1e-12)
    assert pulled.n_columns == 4


def test_a_column_of_codes_has_one_factor_in_each_product():
    pulled = by_table(machine(1), SEEN, n_columns=4)
    column = np.append(pulled.column, -1)[pulled.paths]
    for path in column:
        assert len(set(path[path >= 0])) == (path >= 0).sum()


def test_numbers_that_are_all_seen_alike_are_constant():
    function = machine(2)
    seen = [Line(0), Line(1), constant(2, 0.4, missing=-1.0), Line(3), Line(4)]
    table = RNG.normal(size=(30, 5))
    table[::4, 2] = np.nan
    pulled = by_table(function, seen, n_columns=5)
    expected = function.value(as_seen(table, seen))
    np.testing.assert_allclose(pulled.value(table), expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_lines_and_lists_of_one_column_are_one_factor(seed):
    seen = [
        Line(0, 1.5, 0.2, missing=0.3),
        Line(0, -1.0, 1.0, missing=2.0),
        constant(0, 0.5, missing=-1.0),
        Line(1),
        Line(1, 2.0),
    ]
    table = RNG.normal(size=(40, 2))
    table[::4, 0] = np.nan
    function = machine(seed)
    pulled = by_table(function, seen, n_columns=2)
    expected = function.value(as_seen(table, seen))
    np.testing.assert_allclose(pulled.value(table), expected, rtol=1e-12, atol=1e-12)
    column = np.append(pulled.column, -1)[pulled.paths]
    for path in column:
        assert len(set(path[path >= 0])) == (path >= 0).sum()


def test_joint_factors_have_the_means_of_both():
    """x² under a normal, from a product of two lines x."""
    function = SumOfProducts(
        0.0, np.ones(1), np.array([[0, 1]]), (Powers.first(np.arange(2)),), 2
    )
    pulled = by_table(function, [Line(0), Line(0, 3.0, 1.0)], n_columns=1)
    (family,) = pulled.factors
    mean = family.under(Normals.of(0.5, 2.0, -np.inf, np.inf))[0, 0]
    assert mean == pytest.approx(3.0 * (0.25 + 4.0 - 0.5), rel=1e-12)


def test_lines_of_one_column_are_added():
    added = SumOfProducts.additive(
        0.0, np.array([1.0, 2.0]), Powers.first(np.array([0, 1])), 2
    )
    both = by_table(added, [Line(0), Line(0, 3.0, 1.0)], n_columns=1)
    np.testing.assert_allclose(both.value(np.array([[2.0]])), [2.0 + 2.0 * 3.0])
