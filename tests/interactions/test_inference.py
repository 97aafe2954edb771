"""Means of rows, their intervals and p-values, and corrections for many sets."""

from itertools import combinations
from typing import get_args

import numpy as np
import pytest
from interaction_scores import made_up_scores
from numpy.testing import assert_allclose, assert_array_equal
from refusals import refusals
from scipy import stats

from propopt.base.errors import InvalidInput
from propopt.interactions.inference import (
    ALTERNATIVES,
    Adjustment,
    ErrorRange,
    ScoreLaw,
    Side,
    adjusted_p_values,
    interval_alpha,
    moments,
)


METHODS = get_args(Adjustment)


def test_means_and_errors_are_those_of_a_ratio_of_means_row_by_row(rng):
    # the mean and the linearised error of Σ w z/Σ w; of groups that of their sums
    z, weights = rng.normal(size=(30, 2)), rng.uniform(0.2, 3.0, size=30)
    weights *= 30 / weights.sum()
    rows = np.arange(30)
    groups = rng.permutation(np.repeat(np.arange(6), [1, 2, 3, 5, 8, 11]))
    for given, labels, count in [((), rows, 30), ((groups,), groups, 6)]:
        means, errors, _ = moments(z, weights, *given)
        for q in range(2):
            mean = sum(w * v for w, v in zip(weights, z[:, q], strict=True)) / 30
            values = weights * (z[:, q] - mean)
            sums = [
                sum(values[i] for i in rows if labels[i] == c) for c in range(count)
            ]
            variance = count / (count - 1) * sum(one**2 for one in sums) / 30**2
            assert means[q] == pytest.approx(mean, rel=1e-12)
            assert errors[q] == pytest.approx(np.sqrt(variance), rel=1e-12)
    # of equal weights they are the mean and its standard error
    means, errors, _ = moments(z, np.ones(30))
    assert_allclose(means, z.mean(axis=0), rtol=1e-13)
    assert_allclose(errors, z.std(axis=0, ddof=1) / np.sqrt(30), rtol=1e-13)


def test_groups_of_one_row_change_nothing_and_rows_without_weight_are_not_there(rng):
    z, ones = rng.normal(size=(12, 2)), np.ones(12)
    alone, grouped = moments(z, ones), moments(z, ones, rng.permutation(12))
    weights = np.resize([1.5, 0.0, 1.5], 12)
    without, fewer = moments(z, weights), moments(z[weights > 0], np.ones(8))
    for one, expected in [*zip(grouped, alone), *zip(without, fewer)]:  # noqa: B905
        assert_allclose(one, expected, rtol=1e-12)
    groups = np.repeat(np.arange(4), 3)
    retained = groups != 1
    result = moments(z, retained * 12 / 9, groups)
    fewer = moments(z[retained], np.ones(9), np.repeat(np.arange(3), 3))
    assert_allclose(result[1], fewer[1])


def test_how_many_rows_carry_the_error(rng):
    signs = np.resize([1.0, -1.0], 100)
    spike = np.zeros(1000)
    spike[3] = 1e-8  # the others carry next to nothing
    assert moments(signs[:, None], np.ones(100))[2] == pytest.approx(100)
    assert moments(spike[:, None], np.ones(1000))[2] == pytest.approx(1.0, abs=0.01)
    # ρ = E|d|³/σ³ = √(8/π): of 200,000 rows the error is far below 2 %
    effective = moments(rng.normal(size=(200_000, 1)), np.ones(200_000))[2]
    assert effective[0] == pytest.approx(200_000 * np.pi / 8, rel=0.02)
    z = rng.normal(size=(30, 1))
    _, reference, own_rows = moments(z, np.ones(30))
    for scale in (1e-140, 1e140):  # also where cubes are not finite
        _, errors, rows = moments(scale * z, np.ones(30))
        assert_allclose(rows, own_rows, rtol=1e-9)
        assert_allclose(errors, scale * reference, rtol=1e-12)
    means, errors, rows = moments(np.full((10, 1), 0.25), np.ones(10))
    assert (means, errors) == (0.25, 0.0)
    assert np.isnan(rows)


@pytest.mark.parametrize("n_others", [0, 3])
def test_adjusted_p_values_are_those_of_definitions(rng, n_others):
    p = rng.uniform(size=9) ** 4
    # candidates that were not scored count as p = 1
    every = np.append(p, np.ones(n_others))
    closed = [  # each intersection of null hypotheses that one is part of
        max(
            min(1.0, size * min(every[list(part)]))
            for size in range(1, len(every) + 1)
            for part in combinations(range(len(every)), size)
            if i in part
        )
        for i in range(len(p))
    ]
    expected = {
        "none": p,
        "bonferroni": np.minimum(len(every) * p, 1.0),
        "holm": closed,
        "benjamini-hochberg": stats.false_discovery_control(every, method="bh")[:9],
        "benjamini-yekutieli": stats.false_discovery_control(every, method="by")[:9],
    }
    assert set(expected) == set(METHODS)
    order = rng.permutation(9)
    for method, required in expected.items():
        result = adjusted_p_values(p, method, len(every))
        assert_allclose(result, required, rtol=1e-14)
        permuted = adjusted_p_values(p[order], method, len(every))
        assert_array_equal(permuted, result[order])
        # unknown ones count, and stay unknown
        with_nan = adjusted_p_values(np.insert(p, 3, np.nan), method, 12)
        assert np.isnan(with_nan[3])
        assert_array_equal(np.delete(with_nan, 3), adjusted_p_values(p, method, 12))


def test_shares_of_alpha_and_ranges_of_scores():
    p = np.array([1e-6, 1e-5, 1e-4, 0.8, 0.9])
    price = 1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5
    for one, method, alpha in [  # the more is found the more of alpha there is
        (p, "benjamini-hochberg", 0.06),
        (p, "benjamini-yekutieli", 0.06 / price),
        (np.full(5, 0.7), "benjamini-hochberg", 0.02),
    ]:
        assert interval_alpha(one, method, 5, 0.1) == pytest.approx(alpha)
    unit = ErrorRange(0.0, 1.0, proved=True)
    assert [unit.of_score(order) for order in (1, 2, 3)] == [1.0, 2.0, 4.0]
    assert ErrorRange(-5.0, 3.0, proved=False).rounding(2) == pytest.approx(20e-12)


# ---- intervals from rows that are all equal: exact binomial probabilities


def equal_rows(scores, n_rows):
    """The law of scores between −2 and 2 that so many rows have alike."""
    estimates = np.array(scores)
    none, every = np.zeros(len(estimates)), np.ones(len(estimates), dtype=bool)
    return ScoreLaw(estimates, none, none + np.inf, every, 2.0, n_rows)


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
            for p in np.linspace(0.0, 1.0, 81):
                mean = (1 - p) * c + p * end
                missed = 0.0
                for value, weight in ((c, 1 - p), (end, p)):
                    rows = equal_rows([value], n_rows)
                    low = rows.intervals(alpha, "lower")[0, 0]
                    high = rows.intervals(alpha, "upper")[0, 1]
                    if not low - 1e-12 <= mean <= high + 1e-12:
                        missed += weight**n_rows
                assert missed <= alpha + 1e-12


def test_intervals_of_equal_rows_are_no_wider_than_that_needs():
    # a share p a little above 1 − α^(1/(N − 1)) at the far end is outside
    ((low, high),) = equal_rows([0.5], 30).intervals(0.1, "both")
    p = 1 - 0.1 ** (1 / 29)
    assert low == pytest.approx((1 - p) * 0.5 - p * 2.0, rel=1e-12)
    assert high == pytest.approx((1 - p) * 0.5 + p * 2.0, rel=1e-12)
    # p-values are the alpha at which an end is zero
    rows = equal_rows([0.5, -0.5, 0.0], 30)
    above, below = rows.p_values("greater"), rows.p_values("less")
    assert rows.intervals(above[0], "lower")[0, 0] == pytest.approx(0.0, abs=1e-9)
    assert rows.intervals(below[1], "upper")[1, 1] == pytest.approx(0.0, abs=1e-9)
    assert below[0] == above[1] == above[2] == below[2] == 1.0
    # at the end of the range there is no room
    assert equal_rows([-2.0], 10).intervals(0.1, "lower")[0, 0] == -2.0
    assert equal_rows([-2.0], 10).p_values("greater") == 1.0


def of_pairs(rng, estimates, errors, **fields):
    """Scores of as many pairs of three features, without the error of patches."""
    count = len(estimates)
    defaults = {
        "scores": np.array(estimates),
        "standard_errors": np.array(errors),
        "monte_carlo": np.zeros(count),
        "counts": np.ones(count),
        "sets": np.array([[0, 1], [0, 2], [1, 2]])[:count],
        "n_candidates": count,
    }
    return made_up_scores(rng, **{**defaults, **fields})


def test_tests_of_rows_alone_are_those_of_the_normal_law(rng):
    ends = of_pairs(rng, [-4.596065], [2.375272]).intervals(level=0.9)
    assert_allclose(ends, [[-8.503039, -0.689091]], atol=2e-6)  # of the paper
    scores = made_up_scores(rng)
    T = scores.scores / scores.standard_errors
    for alternative, p in {
        "greater": 1 - stats.norm.cdf(T),
        "less": stats.norm.cdf(T),
        "two-sided": 2 * (1 - stats.norm.cdf(np.abs(T))),
    }.items():
        result = scores.p_values(alternative, errors="rows")
        assert_allclose(result, p, rtol=1e-9, atol=1e-15)
    reach = stats.norm.isf(0.05 / len(scores)) * scores.standard_errors
    ends = scores.intervals(level=0.9, adjust="bonferroni", errors="rows")
    expected = scores.scores[:, None] + np.stack([-reach, reach], axis=1)
    assert_allclose(ends, expected, rtol=1e-12)
    # tests of the total error know from how many groups it is
    scores = made_up_scores(rng, n_groups=20)
    se, mc = scores.standard_errors, scores.monte_carlo
    total = np.sqrt(se**2 + mc**2)
    degrees = total**4 / (mc**4 / 19)
    p = 2 * stats.t.sf(np.abs(scores.scores / total), degrees)
    assert_allclose(scores.p_values(), p, rtol=1e-12)
    none = made_up_scores(rng, monte_carlo=np.zeros(10))
    assert_array_equal(none.p_values(), none.p_values(errors="rows"))


@pytest.mark.parametrize("side", get_args(Side))
@pytest.mark.parametrize("adjust", METHODS)
def test_sets_are_found_whose_interval_excludes_zero(rng, side, adjust):
    scores = made_up_scores(rng, n_candidates=12)
    how = {"side": side, "adjust": adjust}
    frame = scores.to_frame(level=0.8, **how)
    excluded = (frame["ci_low"] > 0) | (frame["ci_high"] < 0)
    result = frame["reject"]
    if adjust == "holm":  # which may find more than its intervals show
        assert not (excluded & ~result).any()
    else:
        assert (excluded == result).all()
    assert 0 < result.sum() < 10
    ends = scores.intervals(level=0.8, **how)
    assert_array_equal(frame[["ci_low", "ci_high"]], ends)
    p = scores.p_values(ALTERNATIVES[side], adjust=adjust)
    assert_array_equal(frame["p_adj"], p)


def test_one_sided_intervals_are_closer_and_open_at_the_other_side(rng):
    scores = made_up_scores(rng)
    both, lower, upper = (
        scores.intervals(adjust="none", side=side) for side in get_args(Side)
    )
    assert (lower[:, 0] > both[:, 0]).all()
    assert (upper[:, 1] < both[:, 1]).all()
    assert np.isposinf(lower[:, 1]).all()
    assert np.isneginf(upper[:, 0]).all()
    twice = scores.intervals(level=0.8, adjust="none")
    assert_allclose(twice[:, 0], lower[:, 0], rtol=1e-12)


@pytest.mark.parametrize("proved", [True, False])
def test_no_interval_has_no_width_though_all_rows_are_equal(rng, proved):
    unit = {"error_range": ErrorRange(0.0, 1.0, proved)}
    given = [0.0, 0.4, 0.4], [0.0, 1e-17, 0.1]
    scores = of_pairs(rng, *given, **unit)
    assert_array_equal(scores.degenerate, [True, True, False])
    ends = scores.intervals(level=0.9, adjust="none")
    share = 1.0 - 0.1 ** (1 / 49)
    for (low, high), score in zip(ends[:2], (0.0, 0.4), strict=True):
        assert low == pytest.approx(score - share * (2.0 + score), rel=1e-12)
        assert high == pytest.approx(score + share * (2.0 - score), rel=1e-12)
    assert (ends[:, 1] - ends[:, 0] > 0.1).all()
    assert_allclose(ends[2], 0.4 + 0.1 * stats.norm.isf([0.95, 0.05]))
    p = scores.p_values()
    assert p[0] == 1.0
    assert p[1] == pytest.approx((2.0 / 2.4) ** 49)
    frame = scores.to_frame(adjust="none")
    assert_array_equal(frame["stat"][:1], [0.0])
    assert_array_equal(frame["reject"], [False, True, True])
    # the error of patches still counts: the wider interval, and the larger p-value
    scores = of_pairs(rng, *given, monte_carlo=np.full(3, 0.3), n_groups=0, **unit)
    reach = 0.3 * stats.norm.isf(0.05)
    ends = scores.intervals(adjust="none")
    assert_allclose(ends[1], [0.4 - reach, 0.4 + reach], rtol=1e-12)
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


@pytest.mark.parametrize(("how", "message"), refusals(__file__, "intervals"))
def test_what_cannot_be_chosen_is_refused_by_name(rng, how, message):
    scores = made_up_scores(rng)
    with pytest.raises(InvalidInput, match=message):
        scores.to_frame(**eval(how))
    with pytest.raises(InvalidInput, match="alternative: expected 'two-sided'"):
        scores.p_values("larger")
