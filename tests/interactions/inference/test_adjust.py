"""Corrections for many sets, against definitions, and scipy where it has them."""

from __future__ import annotations

from itertools import combinations
from typing import get_args

import numpy as np
import pytest
from scipy import stats

from propopt.base.errors import InvalidInput
from propopt.interactions.inference import Adjustment, adjusted_p_values, interval_alpha


METHODS = get_args(Adjustment)


@pytest.fixture
def p(rng) -> np.ndarray:
    return rng.uniform(size=9) ** 4


@pytest.mark.parametrize("method", ["bh", "by"])
@pytest.mark.parametrize("n_others", [0, 4])
def test_false_discoveries_are_those_of_scipy(p, method, n_others):
    # candidates that were not scored count as p = 1
    name = {"bh": "benjamini-hochberg", "by": "benjamini-yekutieli"}[method]
    all_p = np.append(p, np.ones(n_others))
    expected = stats.false_discovery_control(all_p, method=method)[: len(p)]
    result = adjusted_p_values(p, name, len(all_p))
    np.testing.assert_allclose(result, expected, rtol=1e-14)


@pytest.mark.parametrize("n_others", [0, 3])
def test_holm_is_the_closed_test_of_bonferroni(p, n_others):
    # rejected: each intersection of null hypotheses that one is part of
    all_p = np.append(p, np.ones(n_others))
    expected = [
        max(
            min(1.0, size * min(all_p[list(part)]))
            for size in range(1, len(all_p) + 1)
            for part in combinations(range(len(all_p)), size)
            if i in part
        )
        for i in range(len(p))
    ]
    result = adjusted_p_values(p, "holm", len(all_p))
    np.testing.assert_allclose(result, expected, rtol=1e-14)


def test_bonferroni_multiplies_by_all_candidates(p):
    np.testing.assert_array_equal(
        adjusted_p_values(p, "bonferroni", 40), np.minimum(40 * p, 1.0)
    )
    np.testing.assert_array_equal(adjusted_p_values(p, "none", 40), p)


@pytest.mark.parametrize("method", METHODS)
def test_p_values_that_are_not_known_count_and_stay_unknown(p, method):
    with_nan = np.insert(p, 3, np.nan)
    result = adjusted_p_values(with_nan, method, len(with_nan))
    assert np.isnan(result[3])
    without = adjusted_p_values(p, method, len(with_nan))
    np.testing.assert_array_equal(np.delete(result, 3), without)


@pytest.mark.parametrize("method", METHODS)
def test_order_of_sets_does_not_matter(p, method, rng):
    order = rng.permutation(len(p))
    np.testing.assert_array_equal(
        adjusted_p_values(p[order], method, 20),
        adjusted_p_values(p, method, 20)[order],
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.4])
def test_found_where_p_is_at_most_the_alpha_of_the_interval(p, method, alpha):
    result = adjusted_p_values(p, method, 12) <= alpha
    excluded = p <= interval_alpha(p, method, 12, alpha)
    if method == "holm":
        assert not (excluded & ~result).any()
    else:
        np.testing.assert_array_equal(result, excluded)


def test_intervals_of_what_is_found_have_more_of_alpha_the_more_there_is():
    p = np.array([1e-6, 1e-5, 1e-4, 0.8, 0.9])
    assert interval_alpha(p, "benjamini-hochberg", 5, 0.1) == pytest.approx(0.06)
    price = 1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5
    assert interval_alpha(p, "benjamini-yekutieli", 5, 0.1) == pytest.approx(
        0.06 / price
    )
    none = np.full(5, 0.7)
    assert interval_alpha(none, "benjamini-hochberg", 5, 0.1) == pytest.approx(0.02)


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(InvalidInput, match=r"adjust: .* 'holm'.*did you mean 'bonferr"):
        adjusted_p_values(np.ones(2), "bonferoni", 2)


@pytest.mark.slow
def test_errors_of_all_tests_are_those_that_are_promised(rng):
    # of 20 sets 15 have no effect; 4000 families; a bound of 4 standard errors has a
    # false alarm in about 1 of 15,000 runs for each of the four numbers
    n, families = 20, 4000
    shifts = np.where(np.arange(n) < 15, 0.0, 3.0)
    null = shifts == 0.0
    for method in METHODS[1:]:
        bad = np.zeros(families)
        for k in range(families):
            p = 2 * stats.norm.sf(np.abs(rng.normal(size=n) + shifts))
            result = adjusted_p_values(p, method, n) <= 0.1
            false = (result & null).sum()
            any_false = method in ("bonferroni", "holm")
            bad[k] = false > 0 if any_false else false / max(result.sum(), 1)
        error = bad.std() / np.sqrt(families)
        exact = {"bonferroni": 1 - (1 - 0.1 / n) ** 15, "benjamini-hochberg": 0.075}
        if method in exact:
            assert abs(bad.mean() - exact[method]) < 4 * error
        assert bad.mean() < 0.1 + 4 * error
