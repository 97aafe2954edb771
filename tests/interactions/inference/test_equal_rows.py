"""Intervals from rows that are all equal: exact binomial probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from propopt.interactions.inference import ErrorRange, ScoreLaw, are_equal


def equal_rows(scores, n_rows, null=0.0):
    """The law of scores between −2 and 2 that so many rows have alike."""
    estimates = np.array(scores)
    none, every = np.zeros(len(estimates)), np.ones(len(estimates), dtype=bool)
    return ScoreLaw(estimates, none, none + np.inf, none + null, every, 2.0, n_rows)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("n_rows", [2, 5, 30, 500])
@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.5])
def test_a_law_of_two_values_is_missed_with_a_probability_of_at_most_alpha(
    n_rows, alpha
):
    # scores are c, or an end of the range with probability p: missed where all rows are
    # equal, and the interval about their common value does not hold the mean
    for c in (-1.9, -0.3, 0.0, 0.7, 2.0):
        for end in (-2.0, 2.0):
            for p in np.linspace(0.0, 1.0, 401):
                mean = (1 - p) * c + p * end
                missed = 0.0
                for value, weight in ((c, 1 - p), (end, p)):
                    rows = equal_rows([value], n_rows)
                    low = rows.intervals(alpha, "lower")[0, 0]
                    high = rows.intervals(alpha, "upper")[0, 1]
                    if not low - 1e-12 <= mean <= high + 1e-12:
                        missed += weight**n_rows
                assert missed <= alpha + 1e-12


def test_it_is_no_wider_than_that_needs():
    # a share p a little above 1 − α^(1/(N − 1)) at the far end is outside
    ((low, high),) = equal_rows([0.5], 30).intervals(0.1, "both")
    p = 1 - 0.1 ** (1 / 29)
    assert low == pytest.approx((1 - p) * 0.5 - p * 2.0, rel=1e-12)
    assert high == pytest.approx((1 - p) * 0.5 + p * 2.0, rel=1e-12)


def test_p_values_are_the_alpha_at_which_an_end_is_the_null():
    rows = equal_rows([0.5, -0.5, 0.0], 30, np.array([0.1, -0.2, 0.0]))
    above, below = rows.p_values("greater"), rows.p_values("less")
    assert rows.intervals(above[0], "lower")[0, 0] == pytest.approx(0.1, rel=1e-9)
    assert rows.intervals(below[1], "upper")[1, 1] == pytest.approx(-0.2, rel=1e-9)
    assert below[0] == above[1] == above[2] == below[2] == 1.0


def test_means_at_the_end_of_the_range_leave_no_room():
    assert equal_rows([-2.0], 10).intervals(0.1, "lower")[0, 0] == -2.0
    for null, p in ((-3.0, 0.0), (-2.0, 1.0)):  # it cannot be as low
        assert equal_rows([-2.0], 10, null).p_values("greater") == p


def test_scores_of_larger_sets_have_larger_ranges():
    unit = ErrorRange(0.0, 1.0, proved=True)
    assert [unit.of_score(order) for order in (1, 2, 3)] == [1.0, 2.0, 4.0]


def test_spreads_of_rounding_are_none():
    bound = ErrorRange(0.0, 3.0, proved=False).rounding(2)
    errors = np.array([0.0, 1e-16, 1e-9, np.nan])
    np.testing.assert_array_equal(
        are_equal(errors, 100, bound), [True, True, False, False]
    )
