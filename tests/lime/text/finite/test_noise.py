"""How runs of LIME on texts scatter: published numbers, sums over sets, and runs."""

from __future__ import annotations

import numpy as np
import pytest
from text_lime_runs import runs, tree

from propopt.lime.single_runs import ranking_chances, required_samples, single_text_run
from propopt.lime.text.text_reading import TextLaw, WordRegression
from propopt.structures.subsets.conjunctions import Conjunctions, Enumerated
from propopt.structures.subsets.sets import all_sets


def deviations(run):
    return np.concatenate(
        [np.sqrt(run.covariance[:, 0, 0]), run.standard_deviations[0]]
    )


def test_published_deviations():
    run = single_text_run(tree(29), TextLaw(0.25), None, 5000)
    result = deviations(run)[[0, 1, 2, 3, 4]]
    known = [0.0112, 0.0134, 0.0089, 0.0089, 0.0091]
    np.testing.assert_allclose(result, known, rtol=0, atol=6e-5)


@pytest.mark.parametrize(("ridge", "first_row"), [(0.0, False), (1.0, True)])
def test_words_of_no_use_may_be_told_apart_or_not(ridge, first_row):
    # the same tree, of which nothing is known but its values: all 2^9 sets are summed
    d = 9
    f = tree(d)
    blind = Enumerated(f.value(all_sets(d)))
    args = (TextLaw(0.2), None, 40, ridge, first_row)
    one, other = single_text_run(f, *args), single_text_run(blind, *args)
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=0, atol=1e-12)


def test_draws_tell_what_sums_say():
    d = 14
    exact = single_text_run(tree(d), TextLaw(0.25), None, 500)

    class Hidden:
        n_words = d
        value = staticmethod(tree(d).value)
        mean_by_size = staticmethod(tree(d).mean_by_size)
        kept = staticmethod(tree(d).kept)

    drawn = single_text_run(Hidden(), TextLaw(0.25), None, 500, n_draws=20_000)
    # 20,000 draws tell deviations to 1 %: 6 % is beyond any false alarm
    np.testing.assert_allclose(deviations(drawn), deviations(exact), rtol=0.06)
    rng = np.random.default_rng(1)
    bits, _ = TextLaw(0.25).draw(d, 20_000, rng)
    known = bits, tree(d).value(bits)
    given = single_text_run(Hidden(), TextLaw(0.25), None, 500, draws=known)
    np.testing.assert_allclose(deviations(given), deviations(exact), rtol=0.06)


CASES = {  # n, ridge, the document among the samples, ν, runs
    "as few samples as words": (30, 1.0, True, 0.25, 1500),
    "without ridge": (45, 0.0, False, 0.25, 1500),
    "more": (150, 1.0, True, np.inf, 700),
    "a small bandwidth": (200, 1.0, True, 0.1, 700),
}


@pytest.mark.parametrize("case", CASES)
def test_deviations_of_runs_of_few_samples(case):
    # a deviation is known to 1 / √(2 R) or somewhat more: 4.5 of these and 6 % of what
    # is left over; a false alarm in 1 of 1000 tests
    n, ridge, first_row, nu, n_runs = CASES[case]
    law, f = TextLaw(nu), tree(20)
    result = runs(f, law, n, n_runs, ridge, first_row).std(axis=0, ddof=1)
    full = deviations(single_text_run(f, law, None, n, ridge, first_row))
    off = np.abs(full / result - 1.0)
    assert off.max() < 4.5 / np.sqrt(2 * n_runs) + 0.06


def test_needed_samples_reach_the_precision():
    law = TextLaw(0.25)
    few = single_text_run(tree(29), law, None, 5000)
    n = int(required_samples(5000, few.standard_deviations, 0.005).max())
    run = single_text_run(tree(29), law, None, n)
    assert run.standard_deviations.max() == pytest.approx(0.005, rel=0.02)


def test_a_sum_of_words_does_not_scatter_without_ridge():
    f = Conjunctions.of([1.0, -2.0], [[0], [3]], [[], []], 20)
    run = single_text_run(f, TextLaw(0.25), None, 100, ridge=0.0)
    assert deviations(run).max() < 1e-7


def test_ranking_of_words():
    law = TextLaw(0.25)
    limits = WordRegression(tree(29)).at(np.array([0.25]))
    run = single_text_run(tree(29), law, None, 5000)
    told = ranking_chances(run, limits.coefficients, top=3)
    assert told[0] == 1.0
    # two words are alike, so that it is a coin which of them is the second
    told = ranking_chances(run, limits.coefficients, top=2)
    assert told[0] == pytest.approx(0.5, abs=0.04)
