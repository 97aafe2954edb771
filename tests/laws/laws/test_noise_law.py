"""The gaussian law: probabilities of intervals and their slopes."""

from __future__ import annotations

import numpy as np
from random_trees import random_tree, some_rows
from scipy.integrate import quad
from scipy.stats import norm

from propopt.laws.data_law import Means, NoiseLaw
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.sets import Sets


def measures(law, sets, rows):
    """Law and contrast of each set, (U, n)."""
    return law.columns[0].mixing(sets)(rows[:, 0])


def test_measures_of_intervals_are_integrals_of_the_density():
    low, high = np.array([-np.inf, 0.2, 0.5]), np.array([0.7, 0.9, np.inf])
    sets = Sets.of_numbers([0] * 3, low, high, [False, True, False])
    law = NoiseLaw(np.array([0.4]), (None,))
    P, R = measures(law, sets, np.array([[0.6]]))
    for u in range(3):
        mass, _ = quad(norm(0.6, 0.4).pdf, max(low[u], -5), min(high[u], 5))
        slope, _ = quad(
            lambda v: norm(0.6, 0.4).pdf(v) * (v - 0.6) / 0.16,
            max(low[u], -5),
            min(high[u], 5),
        )
        np.testing.assert_allclose((P[u, 0], R[u, 0]), (mass, slope), atol=1e-9)


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
    boxes = Boxes.of_trees(trees, n_columns=4, n_codes=(None, None, 3, None))
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
