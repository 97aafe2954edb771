"""Limits of LIME on texts against closed forms of Mardaoui and Garreau (2021)."""

from __future__ import annotations

import numpy as np
import pytest

from propopt.lime.text import ExactWordLimits, TextLaw
from propopt.structures.subsets import Conjunctions


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
    found = ExactWordLimits(tree(d)).at(np.array([nu]))
    digits = 1e-8 if d == 5 else 6e-6
    assert found.intercept[0] == pytest.approx(intercept, abs=digits)
    expected = [one, two, two, *[other] * (d - 3)]
    np.testing.assert_allclose(found.coefficients[0], expected, rtol=0, atol=digits)


def test_moments():
    found = TextLaw(0.25).moments(29)
    known = [0.48441163, 0.33638798, 0.24985253, 0.19419235, 0.15584646, 0.12803622]
    np.testing.assert_allclose(found[:6], known, rtol=0, atol=5e-9)
    assert found[-1] == 0.0


def test_extreme_bandwidth_is_leaving_one_out():
    # ν → 0: β_j = 2 E_(d−1) f − E_(d−2) f − f(ξ less w_j)
    found = ExactWordLimits(tree(29)).at(np.array([0.005]))
    np.testing.assert_allclose(found.coefficients[0], 2 / 406, rtol=1e-3)
    tiny = ExactWordLimits(tree(4)).at(np.array([1e-4]))
    np.testing.assert_allclose(tiny.coefficients[0], 1 / 3, atol=1e-14)
    assert abs(tiny.intercept[0]) < 1e-14
