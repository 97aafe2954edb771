"""Factors have the means that quadrature finds, in far tails too."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from propopt.base.errors import Refused
from propopt.structures.products.families import (
    Curves,
    Imputed,
    Pieces,
    Powers,
    Tables,
)
from propopt.structures.products.normals import Normals, normal_nodes


INF = np.inf
LAWS = [
    (0.0, 1.0, -INF, INF),
    (0.3, 2.0, -1.0, 4.0),
    (5.0, 0.5, -INF, 4.0),
    (0.0, 1.0, 8.0, 9.0),
    (0.0, 1.0, 25.0, INF),
    (0.0, 1.0, -40.0, -39.9),
    (1e4, 3.0, 1e4 - 1.0, 1e4 + 2.0),
    (2.0, 0.7, 2.0, 2.0 + 1e-6),
]
"""Mean, sd and ends of normals, some of whose ends are far from their means."""

AT = np.zeros(1, np.intp)


def mean_by_quad(g, mean, sd, low, high):
    """E g of a truncated normal, its density counted from its largest value."""
    start, stop = (low - mean) / sd, (high - mean) / sd
    mode = np.clip(0.0, start, stop)
    ends = max(start - mode, -12.0), min(stop - mode, 12.0)

    def density(t):
        return np.exp(-0.5 * t * (2.0 * mode + t))

    settings = {"epsabs": 0.0, "epsrel": 1e-13, "limit": 500}
    near = 1.0 / (1.0 + abs(mode))  # where most of the mass is
    cuts = sorted({*ends, *(t for t in (-near, near) if ends[0] < t < ends[1])})
    x0 = np.clip(mean, low, high)
    parts = list(pairwise(cuts))
    mass = sum(quad(density, a, b, **settings)[0] for a, b in parts)
    total = sum(
        quad(lambda t: density(t) * g(x0 + sd * t), a, b, **settings)[0]
        for a, b in parts
    )
    return total / mass


def test_all_moments_of_a_normal_are_known():
    """E V^k = (k − 1)!! of even k, and 0 of odd ones."""
    degrees = np.arange(1, 13)
    zeros = np.zeros(12)
    moments = Powers(zeros.astype(np.intp), degrees, zeros).under(
        Normals.of(0.0, 1.0, -INF, INF)
    )[:, 0]
    even = [1.0, 3.0, 15.0, 105.0, 945.0, 10395.0]
    np.testing.assert_allclose(moments[1::2], even, rtol=1e-12)
    np.testing.assert_allclose(moments[::2], 0.0, atol=1e-8)


@pytest.mark.parametrize("law", LAWS)
def test_nodes_are_between_the_ends_and_weights_add_up(law):
    x, weights = normal_nodes(Normals.of(*law))
    assert x.min() >= law[2]
    assert x.max() <= law[3]
    assert weights.sum() == pytest.approx(1.0, rel=1e-14)
    assert x.shape == weights.shape == (1, 64)


def test_tables_know_keys_others_and_missing_values():
    table = Tables(
        np.zeros(2, np.intp),
        np.array([1.0, 4.0]),
        np.array([[10.0, 20.0], [1.0, 2.0]]),
        np.array([7.0, 0.5]),
        np.array([-1.0, -2.0]),
    )
    values = np.array([[4.0, 1.0], [np.nan, 3.0], [9.0, -5.0]])
    expected = [[20.0, 10.0], [-1.0, 7.0], [7.0, 7.0]]
    np.testing.assert_array_equal(table.at(values)[0], expected)
    np.testing.assert_array_equal(table.take([1]).at(values)[0, 0], [2.0, 1.0])
    np.testing.assert_array_equal(
        table.under(Normals.of(0.0, 1.0, -1.0, np.array([1.0, 2.0]))),
        [[7.0, 7.0], [0.5, 0.5]],
    )


def test_codes_are_looked_up_in_pieces():
    table = Tables(
        np.array([3]),
        np.arange(3.0),
        np.array([[0.5, 2.0, -1.0]]),
        np.array([np.nan]),
        np.array([np.nan]),
    )
    pieces = Pieces.of_values(np.array([2.0, 0.0]))
    np.testing.assert_array_equal(pieces.expect(table), [[-1.0, 0.5]])
    assert table.column.tolist() == [3]


def test_imputed_factors_have_a_value_of_nan():
    factors = Imputed(Powers.first(np.array([0, 0])), np.array([5.0, 6.0]))
    values = np.array([1.0, np.nan])
    np.testing.assert_array_equal(factors.at(values), [[1.0, 5.0], [1.0, 6.0]])
    np.testing.assert_array_equal(factors.take([1]).at(values), [[1.0, 6.0]])
    np.testing.assert_allclose(
        factors.under(Normals.of(0.0, 1.0, 0.0, INF)), np.sqrt(2 / np.pi)
    )


def test_curves_that_grow_faster_than_the_density_falls_are_refused():
    curves = Curves(AT, (lambda x: np.exp(0.6 * x**2),), (np.zeros(0),))
    with pytest.raises(Refused, match=r"column 0 .* between -inf and inf"):
        curves.under(Normals.of(0.0, 1.0, -INF, INF))
    inside = curves.under(Normals.of(0.0, 1.0, -1.0, 1.0))[0, 0]
    expected = mean_by_quad(lambda x: np.exp(0.6 * x**2), 0.0, 1.0, -1.0, 1.0)
    assert inside == pytest.approx(expected, rel=1e-12)


def test_jumps_without_knots_are_refused():
    curves = Curves(AT, (lambda x: np.where(x > 0.1234, 1.0, 0.0),), (np.zeros(0),))
    with pytest.raises(Refused, match="give its kinks and jumps as knots"):
        curves.under(Normals.of(0.0, 1.0, -1.0, 1.0))


def test_curves_answer_for_single_values_too():
    curves = Curves(
        np.array([2, 2]),
        (lambda x: np.where(np.isnan(x), -1.0, 2 * x), np.square),
        (np.zeros(0), np.zeros(0)),
    )
    pieces = Pieces.of_values(np.array([3.0, np.nan]))
    np.testing.assert_array_equal(pieces.expect(curves), [[6.0, -1.0], [9.0, np.nan]])
    np.testing.assert_array_equal(curves.take([1]).at(np.array([[2.0]])), [[[4.0]]])
