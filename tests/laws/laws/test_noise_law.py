"""The gaussian law: probabilities of intervals and their slopes."""

from __future__ import annotations

import numpy as np
import pytest
from random_trees import boxes_of_trees, random_tree, some_rows
from scipy.stats import norm

from propopt.laws.column_laws import NoisyColumn
from propopt.laws.data_law import Means, NoiseLaw
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.families import (
    Bumps,
    Exponentials,
    Imputed,
    Powers,
    Tables,
)
from propopt.tables.columns import Atoms


def measures(law, sets, rows):
    """Law and contrast of each set, (U, n)."""
    return law.columns[0].mixing(sets)(rows[:, 0])


FAMILIES = {
    "bumps": Bumps(np.zeros(3, int), np.array([-0.5, 0.7, 9.0]), np.array([0.3, 1, 5])),
    "exponentials": Exponentials(np.zeros(2, int), np.array([-2.0, 0.3]), np.ones(2)),
    "powers": Powers(
        np.zeros(4, int), np.array([1, 2, 3, 6]), np.array([0, 0.5, 9, -1])
    ),
    "tables": Tables(
        np.zeros(1, int), np.zeros(1), np.ones((1, 1)), np.array([4.0]), np.array([7.0])
    ),
    "imputed": Imputed(Powers.first(np.zeros(1, int)), np.array([0.25])),
    "sets": Sets.of_numbers(
        [0] * 3, [-np.inf, 0.2, 0.5], [0.7, 0.9, np.inf], [False, True, False]
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("x", [0.6, -3.0])
def test_each_family_has_the_means_and_slopes_of_quadrature(name, x):
    """By nodes of Gauss and Legendre between the ends of sets, ½ δ apart at most."""
    family, scale = FAMILIES[name], 0.4
    result = NoisyColumn(scale, 0, None).mixing(family)(np.array([x]))
    jumps = (np.array([0.2, 0.5, 0.7, 0.9]) - x) / scale
    cuts = np.unique(np.clip([*np.linspace(-12.0, 12.0, 49), *jumps], -12.0, 12.0))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = 0.5 * np.diff(cuts)[:, None]
    z = (cuts[:-1, None] + half * (1.0 + nodes)).ravel()
    density = (half * weights).ravel() * norm.pdf(z)
    for got, factor in zip(result, (density, density * z / scale), strict=True):
        g = family.at(x + scale * z)
        size = np.abs(g) @ np.abs(factor)
        of_sums = 1e-15 if name == "sets" else 0.0  # which are Φ up to each end
        assert (np.abs(got[:, 0] - g @ factor) <= 1e-12 * size + of_sums).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_missing_number_is_held_against_the_observed_ones(name):
    family, values = FAMILIES[name], np.array([0.0, 0.3, 0.3, 2.0])
    column = NoisyColumn(0.4, 0, (Atoms.of(values),))
    P, R = column.mixing(family)(np.array([np.nan, 1.0]))
    g = family.at(np.array([np.nan]))
    np.testing.assert_array_equal(P[:, :1], g)
    expected = g[:, 0] - family.at(values).mean(axis=1)
    np.testing.assert_allclose(R[:, 0], expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_number_without_noise_stays_what_it_is(name):
    x = np.array([0.5, -1.0])
    P, R = NoisyColumn(0.0, 0, None).mixing(FAMILIES[name])(x)
    np.testing.assert_array_equal(P, FAMILIES[name].at(x))
    np.testing.assert_array_equal(R, 0.0)


def test_missing_numbers_get_no_noise_and_have_no_slope():
    sets = Sets.of_numbers([0] * 2, [-np.inf, 0.0], [0.0, np.inf], [True, False])
    law = NoiseLaw(np.array([0.4]), (None,))
    P, R = measures(law, sets, np.array([[np.nan]]))
    np.testing.assert_array_equal(P[:, 0], [1.0, 0.0])
    np.testing.assert_array_equal(R, 0.0)


def test_what_only_missing_values_reach_has_no_probability_of_others():
    sets = Sets.of_numbers([0], [0.5], [0.1], [True])
    law = NoiseLaw(np.array([0.4]), (None,))
    P, R = measures(law, sets, np.array([[0.3], [np.nan]]))
    np.testing.assert_array_equal(P, [[0.0, 1.0]])
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
