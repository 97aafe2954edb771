"""Shapley values from means over sizes, against all orders, all sets and ``shap``."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from propopt.structures.subsets.conjunctions import Conjunctions
from propopt.structures.subsets.words import word_shapley


def random_trees(d: int, n_leaves: int, seed: int) -> Conjunctions:
    rng = np.random.default_rng(seed)
    present, absent = [], []
    for _ in range(n_leaves):
        words = rng.permutation(d)[: rng.integers(0, min(d, 6) + 1)].tolist()
        cut = rng.integers(0, len(words) + 1)
        present.append(words[:cut])
        absent.append(words[cut:])
    return Conjunctions.of(rng.normal(size=n_leaves).tolist(), present, absent, d, 0.7)


def by_all_sets(f: Conjunctions) -> np.ndarray:
    """Σ_S |S|! (d − |S| − 1)! / d! (f(S ∪ j) − f(S)), term by term."""
    d, phi = f.n_words, np.zeros(f.n_words)
    for bits in itertools.product([0, 1], repeat=d):
        z, m = np.array(bits), sum(bits)
        for j in np.flatnonzero(z == 0):
            more = z.copy()
            more[j] = 1
            gain = np.diff(f.value(np.array([z, more])))[0]
            phi[j] += gain * math.factorial(m) * math.factorial(d - m - 1)
    return phi / math.factorial(d)


@pytest.mark.parametrize("d", [1, 2, 3, 6, 9])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_values_are_those_of_all_sets(d, seed):
    f = random_trees(d, 12, seed)
    np.testing.assert_allclose(word_shapley(f), by_all_sets(f), atol=1e-12)


@pytest.mark.parametrize("d", [2, 29, 300, 2000])
def test_values_add_up_to_the_text_less_the_empty_text(d):
    f = random_trees(d, 40, seed=d)
    ends = f.value(np.array([np.ones(d), np.zeros(d)]))
    total = word_shapley(f).sum()
    assert total == pytest.approx(ends[0] - ends[1], abs=1e-10)


def test_a_product_is_shared_by_its_words():
    f = Conjunctions.of([3.0], [[0, 2, 3]], [[]], 6)
    np.testing.assert_allclose(word_shapley(f), [1, 0, 1, 1, 0, 0], atol=1e-14)


def test_words_that_are_not_asked_for_have_nothing():
    f = Conjunctions.of([1.0, 1.0], [[0], [1, 2]], [[], [0]], 50)
    assert np.abs(word_shapley(f)[3:]).max() < 1e-13


def test_a_constant_is_shared_by_nobody():
    f = Conjunctions.of([0.0], [[0]], [[]], 7, base=5.0)
    np.testing.assert_allclose(word_shapley(f), 0.0, atol=1e-14)


def test_values_are_those_of_the_package():
    shap = pytest.importorskip("shap")
    f = random_trees(8, 20, seed=5)
    explainer = shap.explainers.ExactExplainer(
        lambda bits: f.value(np.asarray(bits) > 0.5),
        shap.maskers.Independent(np.zeros((1, 8))),
    )
    result = explainer(np.ones((1, 8)), silent=True).values[0]
    np.testing.assert_allclose(word_shapley(f), result, atol=1e-10)
