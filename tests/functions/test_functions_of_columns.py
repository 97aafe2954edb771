"""Sums and products of functions of one column each, and those of the paper."""

from __future__ import annotations

import numpy as np
import pytest

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.text import Reason
from propopt.functions import PAPER_FUNCTIONS
from propopt.functions.formulas import Additive, Interactions, Multiplicative
from propopt.functions.means import Checked
from propopt.structures.products.normals import Normals
from propopt.tables.frames import Labels


X = np.random.default_rng(0).normal(size=(30, 4))
TERMS = [np.sin, None, np.abs, np.exp]
SLOPES = [np.cos, None, np.sign, np.exp]


@pytest.mark.parametrize("slopes", [SLOPES, None])
def test_sums_have_their_values_and_gradients(slopes):
    function = Additive(TERMS, base=0.5, slopes=slopes, knots={2: [0.0]})
    expected = 0.5 + np.sin(X[:, 0]) + np.abs(X[:, 2]) + np.exp(X[:, 3])
    np.testing.assert_allclose(function.value(X), expected, rtol=1e-14)
    np.testing.assert_allclose(function.products.value(X), expected, rtol=1e-14)
    zeros = np.zeros(len(X))
    slope = np.column_stack([np.cos(X[:, 0]), zeros, np.sign(X[:, 2]), np.exp(X[:, 3])])
    np.testing.assert_allclose(function.gradient(X), slope, rtol=1e-8)
    assert (function.gradient_method == "exact") == (slopes is not None)


@pytest.mark.parametrize("slopes", [SLOPES, None])
def test_products_have_their_values_and_gradients(slopes):
    function = Multiplicative(TERMS, scale=-2.0, slopes=slopes, knots={2: [0.0]})
    a, b, c = np.sin(X[:, 0]), np.abs(X[:, 2]), np.exp(X[:, 3])
    np.testing.assert_allclose(function.value(X), -2.0 * a * b * c, rtol=1e-14)
    np.testing.assert_allclose(function.products.value(X), -2.0 * a * b * c, rtol=1e-13)
    zeros = np.zeros(len(X))
    slope = np.column_stack(
        [np.cos(X[:, 0]) * b * c, zeros, a * np.sign(X[:, 2]) * c, a * b * c]
    )
    np.testing.assert_allclose(function.gradient(X), -2.0 * slope, rtol=1e-7)


def test_knots_are_where_quadrature_stops():
    function = Additive([lambda x: np.where(x > 0.3, 1.0, 0.0)], knots={0: [0.3]})
    mean = function.products.factors[0].under(Normals.of(0.0, 1.0, -1.0, 1.0))
    share = Normals.of(0.0, 1.0, -1.0, 1.0).shares(np.array([0.3]), np.array([1.0]))
    np.testing.assert_allclose(mean[0], share, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        (([],), {}, "terms: expected a sequence"),
        ((np.sin,), {}, "terms: expected a sequence"),
        (([np.sin, 3.0],), {}, "terms: expected callables or None, got 3.0"),
        (([None],), {}, "terms: expected one callable"),
        (([np.sin, None],), {"slopes": [np.cos, np.cos]}, "one for each term"),
        (([np.sin, None],), {"knots": {1: [0.0]}}, r"no term has the positions \[1\]"),
    ],
)
@pytest.mark.parametrize("kind", [Additive, Multiplicative])
def test_what_cannot_be_is_refused(kind, arguments, settings, message):
    with pytest.raises(InvalidInput, match=message):
        kind(*arguments, **settings)


def test_tables_of_other_columns_are_refused():
    with pytest.raises(InvalidInput, match="has 4 columns, got 3"):
        Additive(TERMS).value(X[:, :3])


@pytest.mark.parametrize("name", PAPER_FUNCTIONS)
def test_functions_of_the_paper_are_sums_of_products(name):
    kind = PAPER_FUNCTIONS[name]
    function = kind(degree=3) if name == "power" else kind()
    assert isinstance(function.products, Reason)
    assert "products_in" in function.products.reason
    for d in (1, 4):
        read = function.products_in(d)
        np.testing.assert_allclose(
            read.value(X[:, :d]), function.value(X[:, :d]), rtol=1e-12, atol=1e-12
        )
    assert Checked.of(function, X.shape[1]).at(X, Labels()).n_columns == 4


@pytest.mark.parametrize("name", PAPER_FUNCTIONS)
def test_functions_of_the_paper_have_means(name):
    """|z| < 5 of 100,000 draws from a normal: false alarm below 6e-7 each."""
    kind = PAPER_FUNCTIONS[name]
    function = kind(degree=3) if name == "power" else kind()
    laws = Normals.of(0.3, 0.8, -np.inf, np.inf)
    read = function.products_in(1)
    draws = 0.3 + 0.8 * np.random.default_rng(1).normal(size=(100_000, 1))
    values = function.value(draws)
    factors = [family.under(laws) for family in read.factors]
    mean = read.sums(np.concatenate(factors))[0]
    z = (values.mean() - mean) / (values.std() / np.sqrt(len(values)))
    assert abs(z) < 5


def test_interactions_have_all_pairs():
    read = Interactions().products_in(3)
    assert len(read.values) == 6


def test_other_functions_are_the_same_of_any_number_of_columns():
    function = po.wrap(lambda data: data[:, 0])
    assert function.products_in(3).reason == function.products.reason
