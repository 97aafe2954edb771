"""The gaussian law: probabilities of intervals and their slopes."""

from __future__ import annotations

import numpy as np
import pytest
from family_catalogue import FAMILIES, is_closed, is_of
from random_trees import boxes_of_trees, random_tree, some_rows

from propopt.laws.column_laws import NoisyColumn
from propopt.laws.data_law import Means, NoiseLaw
from propopt.structures.boxes.sets import Sets


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
