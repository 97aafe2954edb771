"""Intervals and p-values of scores: the paper's, with patches, one-sided, adjusted."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from scipy import stats

from propopt.base.errors import InvalidInput
from propopt.interactions.inference import (
    ALTERNATIVES,
    Adjustment,
    ErrorRange,
    Null,
    Side,
)
from tests.support.interaction_scores import made_up_scores


def test_of_the_worked_example_the_interval_is_that_of_the_paper(rng):
    scores = made_up_scores(
        rng,
        estimates=np.array([-4.596065]),
        standard_errors=np.array([2.375272]),
        monte_carlo=np.zeros(1),
        counts=np.ones(1),
        sets=np.array([[0, 1]]),
        n_candidates=1,
    )
    np.testing.assert_allclose(
        scores.intervals(level=0.9), [[-8.503039, -0.689091]], atol=2e-6
    )


def test_tests_of_rows_alone_are_those_of_the_normal_law(rng):
    scores = made_up_scores(rng)
    T = scores.estimates / scores.standard_errors
    for alternative, p in {
        "greater": 1 - stats.norm.cdf(T),
        "less": stats.norm.cdf(T),
        "two-sided": 2 * (1 - stats.norm.cdf(np.abs(T))),
    }.items():
        result = scores.p_values(alternative, errors="rows")
        np.testing.assert_allclose(result, p, rtol=1e-9, atol=1e-15)
    z = stats.norm.isf(0.05 / len(scores))
    ends = scores.intervals(level=0.9, adjust="bonferroni", errors="rows")
    reach = z * scores.standard_errors
    np.testing.assert_allclose(ends[:, 0], scores.estimates - reach, rtol=1e-12)
    np.testing.assert_allclose(ends[:, 1], scores.estimates + reach, rtol=1e-12)


def test_tests_of_the_total_error_know_from_how_many_groups_it_is(rng):
    scores = made_up_scores(rng, n_groups=20)
    se, mc = scores.standard_errors, scores.monte_carlo
    total = np.sqrt(se**2 + mc**2)
    degrees = total**4 / (mc**4 / 19)
    p = 2 * stats.t.sf(np.abs(scores.estimates / total), degrees)
    np.testing.assert_allclose(scores.p_values(), p, rtol=1e-12)
    none = made_up_scores(rng, monte_carlo=np.zeros(10))
    np.testing.assert_array_equal(none.p_values(), none.p_values(errors="rows"))


CHOICES = list(product(get_args(Side), get_args(Adjustment), get_args(Null)))


@pytest.mark.parametrize(("side", "adjust", "against"), CHOICES)
def test_sets_are_found_whose_interval_excludes_the_null(rng, side, adjust, against):
    scores = made_up_scores(rng, n_candidates=12, leak=rng.normal(size=10))
    how: dict[str, Any] = {"side": side, "adjust": adjust, "against": against}
    frame = scores.to_frame(level=0.8, **how)
    null = scores.leak if against == "leak" else np.zeros(10)
    excluded = (frame["ci_low"] > null) | (frame["ci_high"] < null)
    result = frame["reject"]
    if adjust == "holm":  # which may find more than its intervals show
        assert not (excluded & ~result).any()
    else:
        assert (excluded == result).all()
    assert 0 < result.sum() < 10
    np.testing.assert_array_equal(
        frame[["ci_low", "ci_high"]], scores.intervals(level=0.8, **how)
    )
    np.testing.assert_array_equal(
        frame["p_adj"],
        scores.p_values(ALTERNATIVES[side], adjust=adjust, against=against),
    )


def test_one_sided_intervals_are_closer_and_open_at_the_other_side(rng):
    scores = made_up_scores(rng)
    both = scores.intervals(adjust="none")
    lower = scores.intervals(adjust="none", side="lower")
    upper = scores.intervals(adjust="none", side="upper")
    assert (lower[:, 0] > both[:, 0]).all()
    assert (upper[:, 1] < both[:, 1]).all()
    assert np.isposinf(lower[:, 1]).all()
    assert np.isneginf(upper[:, 0]).all()
    twice = scores.intervals(level=0.8, adjust="none")
    np.testing.assert_allclose(twice[:, 0], lower[:, 0], rtol=1e-12)


def degenerate(rng: np.random.Generator, proved: bool, **fields: Any) -> Any:
    own: dict[str, Any] = {
        "estimates": np.array([0.0, 0.4, 0.4]),
        "standard_errors": np.array([0.0, 1e-17, 0.1]),
        "monte_carlo": np.zeros(3),
        "counts": np.ones(3),
        "sets": np.array([[0, 1], [0, 2], [1, 2]]),
        "n_candidates": 3,
        "error_range": ErrorRange(0.0, 1.0, proved),
    }
    return made_up_scores(rng, **{**own, **fields})


@pytest.mark.parametrize("proved", [True, False])
def test_no_interval_has_no_width_though_all_rows_are_equal(rng, proved):
    scores = degenerate(rng, proved)
    np.testing.assert_array_equal(scores.degenerate, [True, True, False])
    ends = scores.intervals(level=0.9, adjust="none")
    share = 1.0 - 0.1 ** (1 / 49)
    for (low, high), score in zip(ends[:2], (0.0, 0.4), strict=True):
        assert low == pytest.approx(score - share * (2.0 + score), rel=1e-12)
        assert high == pytest.approx(score + share * (2.0 - score), rel=1e-12)
    assert (ends[:, 1] - ends[:, 0] > 0.1).all()
    np.testing.assert_allclose(ends[2], 0.4 + 0.1 * stats.norm.isf([0.95, 0.05]))
    p = scores.p_values()
    assert p[0] == 1.0
    assert p[1] == pytest.approx((2.0 / 2.4) ** 49)
    frame = scores.to_frame(adjust="none")
    np.testing.assert_array_equal(frame["stat"][:1], [0.0])
    np.testing.assert_array_equal(frame["reject"], [False, True, True])


def test_of_equal_rows_the_error_of_patches_still_counts(rng):
    # the wider of the two intervals, and the larger of the two p-values
    scores = degenerate(rng, True, monte_carlo=np.full(3, 0.3), n_groups=0)
    ends = scores.intervals(adjust="none")
    reach = 0.3 * stats.norm.isf(0.05)
    np.testing.assert_allclose(ends[1], [0.4 - reach, 0.4 + reach], rtol=1e-12)
    assert scores.p_values()[1] == pytest.approx(2 * stats.norm.sf(0.4 / 0.3))


def test_errors_that_are_not_known_find_nothing(rng):
    error = np.full(10, 0.3)
    error[4] = np.nan
    scores = made_up_scores(rng, monte_carlo=error)
    frame = scores.to_frame(level=0.5)
    assert frame.loc[4, ["ci_low", "ci_high", "stat", "p_two", "p_adj"]].isna().all()
    assert not frame.loc[4, "reject"]
    assert frame.drop(index=4)["p_adj"].notna().all()
    assert np.isfinite(scores.intervals(errors="rows")).all()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"level": 90},
            "level: expected a number between 0 and 1, such as 0.9, got 90",
        ),
        ({"level": True}, "level: expected a number, got True"),
        (
            {"side": "left"},
            "side: expected 'both', 'lower' or 'upper', got 'left'",
        ),
        ({"adjust": "holms"}, "adjust: .*did you mean 'holm'"),
        ({"errors": "row"}, "errors: .*did you mean 'rows'"),
        ({"against": "leaks"}, "against: .*did you mean 'leak'"),
    ],
)
def test_what_cannot_be_chosen_is_refused_by_name(rng, how, message):
    scores = made_up_scores(rng)
    with pytest.raises(InvalidInput, match=message):
        scores.intervals(**how)
    with pytest.raises(InvalidInput, match=message):
        scores.to_frame(**how)


def test_other_alternatives_are_refused(rng):
    with pytest.raises(InvalidInput, match="alternative: expected 'two-sided'"):
        made_up_scores(rng).p_values("larger")


@pytest.mark.slow
def test_of_few_groups_students_law_keeps_the_level():
    # the error is that of patches alone: 20 groups' means, jackknifed; 40,000 means,
    # and a bound of 4 standard errors: a false alarm in about 1 of 15,000 runs
    rng = np.random.default_rng(5)
    groups = rng.normal(size=(40_000, 20))
    means = groups.mean(axis=1)
    left_out = (20 * means[:, None] - groups) / 19
    apart = left_out - left_out.mean(axis=1, keepdims=True)
    error = np.sqrt(19 / 20 * (apart**2).sum(axis=1))
    count = len(means)
    scores = made_up_scores(
        rng,
        sets=np.tile([0, 1], (count, 1)),
        estimates=means,
        standard_errors=np.full(count, 1e-9),
        monte_carlo=error,
        counts=np.ones(count),
        n_candidates=count,
    )
    for level in (0.9, 0.99):
        share = (scores.p_values() <= 1 - level).mean()
        assert abs(share - (1 - level)) < 4 * np.sqrt(level * (1 - level) / count)
