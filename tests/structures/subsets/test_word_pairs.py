"""Functions of sizes, words and pairs, and sets of one size, against all sets."""

from __future__ import annotations

import numpy as np
import pytest

from propopt.structures.subsets.sets import random_sets, sets_of_size
from propopt.structures.subsets.words import WordPairs


def test_value_counts_each_pair_once():
    pairs = np.array([[0.0, 5.0], [5.0, 0.0]])
    f = WordPairs(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0]), pairs)
    bits = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], bool)
    np.testing.assert_array_equal(f.value(bits), [1.0, 12.0, 22.0, 38.0])


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5])
def test_all_sets_of_a_size_are_there_once(size):
    bits = sets_of_size(5, size)
    assert (bits.sum(axis=1) == size).all()
    assert len(np.unique(bits, axis=0)) == len(bits)
    assert len(bits) == [1, 5, 10, 10, 5, 1][size]


def test_random_sets_have_their_sizes_and_all_words_alike():
    """Counts of words within 5 deviations: once in 3e5 seeds; this one is fixed."""
    sizes = np.repeat([0, 2, 5], 4000)
    bits = random_sets(5, sizes, np.random.default_rng(0))
    assert (bits.sum(axis=1) == sizes).all()
    shares = bits[sizes == 2].mean(axis=0)
    assert np.abs(shares - 0.4).max() < 5 * np.sqrt(0.24 / 4000)
