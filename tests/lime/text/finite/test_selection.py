"""Which words are kept, against searches over dense equations."""

from __future__ import annotations

import numpy as np
import pytest
from text_lime_runs import tree

from propopt.base.errors import InvalidInput
from propopt.lime.single_runs import expected_run, kept_words
from propopt.lime.text.text_reading import TextLaw, WordRegression
from propopt.structures.subsets.conjunctions import Enumerated
from propopt.structures.subsets.sets import all_sets


def explained(function, law, n_samples, first_row, some):
    """The weighted squares that a fit to some words explains, in the mean of runs."""
    d, masks = function.n_words, all_sets(function.n_words)
    sizes = masks.sum(axis=1)
    weights = np.exp(law.log_weights(d))[sizes] / (d * np.bincount(sizes)[sizes])
    weights *= n_samples - first_row
    weights[sizes == d] = float(first_row)
    X = np.column_stack([np.ones(len(masks)), masks[:, some]])
    f = function.value(masks)
    root = np.sqrt(weights)
    fit = np.linalg.lstsq(X * root[:, None], f * root, rcond=None)[0]
    return -float(weights @ (f - X @ fit) ** 2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n", "first_row"), [(30, False), (30, True), (3, True)])
def test_forward_selection_adds_the_best_word(seed, n, first_row):
    f = Enumerated(np.random.default_rng(seed).normal(size=2**7))
    law, order = TextLaw(0.15), []
    for k in range(1, 5):
        scores = [
            explained(f, law, n, first_row, [*order, j]) if j not in order else -np.inf
            for j in range(7)
        ]
        order.append(int(np.argmax(scores)))
        kept = kept_words(f, law, None, k, n_samples=n, first_row=first_row)
        np.testing.assert_array_equal(np.flatnonzero(kept), np.sort(order))


def test_highest_weights():
    f = Enumerated(np.random.default_rng(0).normal(size=2**8))
    kept = kept_words(f, TextLaw(0.25), None, 7, n_samples=500)
    sizes = np.abs(expected_run(f, TextLaw(0.25), None, 500, 0.01).coefficients[0])
    assert not kept[np.argmin(sizes)]
    assert kept.sum() == 7
    few = kept_words(f, TextLaw(0.25), None, 2, "highest_weights")
    assert few[np.argmax(sizes)]


def test_of_words_that_are_alike_the_first_are_kept():
    kept = kept_words(tree(12), TextLaw(0.25), None, 5)
    np.testing.assert_array_equal(np.flatnonzero(kept), [0, 1, 2, 3, 4])
    limits = WordRegression(tree(12)).at(np.array([0.25]))
    same = kept_words(limits, TextLaw(0.25), 1.0, 5)
    np.testing.assert_array_equal(kept, same)
    assert kept_words(tree(12), TextLaw(0.25), None, 30).all()


def test_names():
    with pytest.raises(InvalidInput, match="how: expected one of"):
        kept_words(tree(12), TextLaw(0.25), None, 5, "best")
