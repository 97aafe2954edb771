"""Levels of comparisons at their edges: one refit, exact limits, no base."""

import numpy as np
import pytest
from scipy.stats import t as student

import propopt as po
from propopt.results.comparison import SHARE_OF_SIZES, NullLevel


def level(kind="bootstrap_refits", **fields):
    given = {"n_models": 1, "distances": np.array([[1.0, 0.5]])}
    return NullLevel(kind=kind, **{**given, **fields})


def compared(**fields):
    settings = {"kind": "versions", "names": ("old", "new"), "sources": ("a", "b")}
    sides = {"before": np.zeros((1, 2)), "after": np.array([[1.25, 2.0]])}
    return po.results.Comparison(**{**settings, **sides, **fields})


def test_one_refit_has_one_degree_of_freedom():
    tail = SHARE_OF_SIZES / 6
    assert level().quantile == pytest.approx(1.25 * student.isf(tail, 1))
    two = level(n_models=2).quantile
    assert two == level().quantile
    halves = level("split_half_refits", bases=np.ones(1)).quantile
    assert halves == pytest.approx(student.isf(SHARE_OF_SIZES / 8, 1))
    assert level("permutations").limit == 1.0


def test_a_column_at_its_limit_is_not_flagged():
    result = compared(level=level())  # the limit is 1.25
    assert result.times_level.tolist() == [1.0, 1.6]
    assert result.distance_flagged.tolist() == [False, True]
    assert np.isnan(result.size_ratios).all()  # the level has no sizes


@pytest.mark.parametrize("fields", [{}, {"level": level()}, {"base_values": (0, 9)}])
def test_without_a_level_or_a_base_the_base_is_not_flagged(fields):
    assert not compared(**fields).base_flagged


def test_a_base_is_flagged_above_its_limit():
    with_base = level("split_half_refits", bases=np.ones(1))
    limit = with_base.base_limit
    for change, flagged in ((limit, False), (1.001 * limit, True)):
        result = compared(level=with_base, base_values=(0.0, -change))
        assert result.base_flagged is flagged
