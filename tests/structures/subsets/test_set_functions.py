"""Functions of sets of words against sums over all sets."""

from __future__ import annotations

import numpy as np
import pytest
from subset_oracle import assert_means, masks

from propopt.base.errors import InvalidInput
from propopt.structures.subsets.conjunctions import Conjunctions, Enumerated
from propopt.structures.subsets.sums import AddedSets


def drawn(d: int, n: int = 12, seed: int = 0) -> Conjunctions:
    """Random leaves, of none up to all of d words."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(d).tolist() for _ in range(n)]
    cuts = np.sort(rng.integers(0, d + 1, (n, 2)), axis=1).tolist()
    present = [order[:p] for order, (p, _) in zip(orders, cuts, strict=True)]
    absent = [order[p:q] for order, (p, q) in zip(orders, cuts, strict=True)]
    return Conjunctions.of(rng.normal(size=n).tolist(), present, absent, d, base=0.7)


def plainly(f: Conjunctions, bits: np.ndarray) -> np.ndarray:
    """The formula, a leaf after the other."""
    total = np.full(len(bits), f.base)
    for value, present, absent in zip(f.values, f.present, f.absent, strict=True):
        on = bits[:, present[present >= 0]].all(axis=1)
        total += value * (on & ~bits[:, absent[absent >= 0]].any(axis=1))
    return total


@pytest.mark.parametrize("d", [1, 2, 3, 6, 9])
def test_conjunctions(d):
    f, bits = drawn(d), masks(d)
    assert_means(f, plainly(f, bits), bits, atol=1e-13)


@pytest.mark.parametrize("d", [1, 2, 7])
def test_enumerated(d):
    bits = masks(d)
    f = Enumerated.of(lambda z: np.sin(z @ np.arange(1.0, d + 1)), d)
    assert_means(f, np.sin(bits @ np.arange(1.0, d + 1)), bits, atol=1e-13)


def test_enumerated_refuses_many_words_and_wrong_counts():
    with pytest.raises(InvalidInput, match="up to 16 words"):
        Enumerated.of(lambda bits: bits[:, 0], 17)
    with pytest.raises(InvalidInput, match=r"one for each of 2\^d sets"):
        Enumerated(np.zeros(5))


def test_added():
    bits = masks(5)
    first, second = drawn(5), drawn(5, seed=1)
    both = AddedSets([(2.0, first), (-0.5, second)], base=1.25)
    values = 1.25 + 2.0 * plainly(first, bits) - 0.5 * plainly(second, bits)
    assert_means(both, values, bits, atol=1e-13)


def test_no_leaf_at_all():
    bits = masks(3)
    assert_means(Conjunctions.of([], [], [], 3, base=2.0), np.full(8, 2.0), bits)
