"""Thousands of random problems of all kinds: right to the last digit, or announced.

Each result is held against the definitions in extended precision and against
explanations found otherwise; see ``tests/support/storm``.
"""

from dataclasses import replace

import numpy as np
import pytest
from storm.definitions import long
from storm.problems import draw
from storm.rivals import normal_equations
from storm.verdict import judged, weather

import propopt as po


BLOCK = 25
IN_SUITE = range(0, 500, BLOCK)
LONG = (*range(1_000, 11_000, 500), *range(1_000_000, 1_010_000, 500))


def faults(first, count):
    outcome = {number: weather(number).faults for number in range(first, first + count)}
    return {number: reported for number, reported in outcome.items() if reported}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("first", IN_SUITE)
def test_random_problems_are_right_or_announced(first):
    assert faults(first, BLOCK) == {}


@pytest.mark.slow
@pytest.mark.parametrize("first", LONG)
def test_many_more_random_problems_are_right_or_announced(first):
    assert faults(first, 500) == {}


@pytest.fixture(scope="module")
def problem():
    """A problem with a unique minimiser, which refinement finds to the last digit."""
    return next(problem for problem in map(draw, range(1_000)) if is_plain(problem))


def is_plain(problem):
    kinds = [type(term.loss) for term in problem.terms]
    plain = kinds == [po.GradientMatching, po.PairwiseRobustness]
    return plain and not problem.limits and problem.G.std() > 0


def verdict(problem, best):
    return list(judged(problem, best, np.random.default_rng(0)))


def test_what_is_right_has_no_fault_and_what_is_wrong_has_one(problem):
    best = po.solve(problem.objective)
    assert verdict(problem, best) == []
    bound = best.certificate.lower_bound * (1 + 1e-6)
    high = replace(best, certificate=replace(best.certificate, lower_bound=bound))
    assert any("below the bound" in fault for fault in verdict(problem, high))
    wrong = {name: value * (1 + 1e-6) for name, value in best.losses.items()}
    result = verdict(problem, replace(best, losses=wrong))
    assert any("should be" in fault for fault in result)
    turned = replace(best, attributions=np.roll(best.attributions, 1, axis=0))
    assert verdict(problem, turned)


def test_refinement_finds_the_minimum(problem):
    weights = problem.objective.weights
    W = normal_equations(problem, weights)
    least = problem.value(W, weights)
    rng = np.random.default_rng(0)
    for size in 10.0 ** np.arange(-8, 1.0):
        other = W + size * np.abs(W).max() * long(rng.normal(size=W.shape))
        assert problem.value(other, weights) > least
