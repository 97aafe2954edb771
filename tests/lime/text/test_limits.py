"""Limits of LIME on texts against closed forms of Mardaoui and Garreau (2021)."""

from __future__ import annotations

import numpy as np
import pytest

from propopt.lime.text.text_reading import WordRegression
from propopt.structures.subsets.conjunctions import Conjunctions


def tree(d: int) -> Conjunctions:
    """z_1 + (1 − z_1) z_2 z_3."""
    return Conjunctions.of([1.0, 1.0], [[0], [1, 2]], [[], [0]], d)


TREE = {  # d, ν: intercept, z_1, z_2 and z_3, others
    (5, 0.25): (0.00835643, 0.57402143, 0.27152279, 0.07121156),
    (5, np.inf): (-0.02, 0.74, 0.24, 0.04),
    (29, 0.25): (0.13057, 0.55758, 0.20079, 0.00070),
    (35, 0.25): (0.13282, 0.55890, 0.20046, 0.00038),
    (29, 0.05): (0.64447, 0.16560, 0.07957, 0.00188),
    (29, 0.35): (0.07775, 0.61613, 0.20519, 0.00088),
}


@pytest.mark.parametrize("case", TREE)
def test_tree(case):
    d, nu = case
    intercept, one, two, other = TREE[case]
    result = WordRegression(tree(d)).at(np.array([nu]))
    digits = 1e-8 if d == 5 else 6e-6
    assert result.intercept[0] == pytest.approx(intercept, abs=digits)
    expected = [one, two, two, *[other] * (d - 3)]
    np.testing.assert_allclose(result.coefficients[0], expected, rtol=0, atol=digits)


def product(d: int, p: int) -> Conjunctions:
    """z_1 ... z_p."""
    return Conjunctions.of([1.0], [list(range(p))], [[]], d)


PRODUCTS = {  # ν, p: intercept, words of the product, others; d = 29
    (0.25, 2): (-0.369461, 0.642806, -0.000401),
    (0.25, 3): (-0.500034, 0.442019, -0.001104),
    (np.inf, 2): (-0.155172, 0.498768, -0.001232),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_products(case):
    nu, p = case
    intercept, inside, outside = PRODUCTS[case]
    result = WordRegression(product(29, p)).at(np.array([nu]))
    assert result.intercept[0] == pytest.approx(intercept, abs=6e-7)
    expected = [inside] * p + [outside] * (29 - p)
    np.testing.assert_allclose(result.coefficients[0], expected, rtol=0, atol=6e-7)


@pytest.mark.parametrize("d", [2, 3, 7, 40])
def test_products_without_weights_have_a_closed_form(d):
    for p in range(1, d):
        result = WordRegression(product(d, p)).at(np.array([np.inf]))
        parts = d * (d - 1) * (p + 1) * (p + 2)
        inside = 6 * (d - p) * (d + p - 1) / parts
        outside = -6 * p * (p - 1) / parts
        intercept = -2 * (d - p) * (p - 1) / (d * (p + 1) * (p + 2))
        expected = [inside] * p + [outside] * (d - p)
        np.testing.assert_allclose(result.coefficients[0], expected, rtol=0, atol=1e-12)
        assert result.intercept[0] == pytest.approx(intercept, abs=1e-12)


def test_tree_with_two_more_words():
    # tree + 1bad + 1bad 1character
    f = Conjunctions.of(
        [1.0, 1.0, 1.0, 1.0], [[0], [1, 2], [3], [3, 4]], [[], [0], [], []], 29
    )
    result = WordRegression(f).at(np.array([0.25]))
    expected = [0.55718, 0.20039, 0.20039, 1.64351, 0.64351, *[0.00030] * 24]
    np.testing.assert_allclose(result.coefficients[0], expected, rtol=0, atol=6e-6)
    assert result.intercept[0] == pytest.approx(-0.23889, abs=6e-6)


NU = np.array([0.01, 0.25, 1.0, np.inf])


def test_a_word_alone_has_its_effect_at_any_bandwidth():
    result = WordRegression(product(12, 1)).at(NU)
    np.testing.assert_allclose(result.coefficients, np.eye(12)[[0] * 4], atol=1e-12)
    np.testing.assert_allclose(result.intercept, 0.0, atol=1e-11)


def test_constants_move_the_intercept_alone_and_factors_scale():
    f = Conjunctions.of([2.0, -1.0], [[0, 3], [1]], [[2], []], 9)
    more = Conjunctions.of([6.0, -3.0], [[0, 3], [1]], [[2], []], 9, base=5.0)
    one, three = WordRegression(f).at(NU), WordRegression(more).at(NU)
    np.testing.assert_allclose(three.coefficients, 3 * one.coefficients, atol=1e-11)
    np.testing.assert_allclose(three.intercept, 3 * one.intercept + 5.0, atol=1e-10)


def test_words_in_another_order_have_the_same_coefficients():
    order = np.random.default_rng(0).permutation(9)
    f = Conjunctions.of([2.0, -1.0], [[0, 3], [1]], [[2], []], 9)
    place = np.argsort(order)
    other = Conjunctions.of(
        [2.0, -1.0], [place[[0, 3]].tolist(), [place[1]]], [[place[2]], []], 9
    )
    one, two = WordRegression(f).at(NU), WordRegression(other).at(NU)
    np.testing.assert_allclose(two.coefficients, one.coefficients[:, order], rtol=1e-10)


def test_all_words_together_are_never_seen():
    result = WordRegression(product(5, 5)).at(NU)
    assert not result.coefficients.any()
    assert not result.intercept.any()
