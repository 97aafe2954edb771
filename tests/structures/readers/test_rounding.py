"""Thresholds in float64 of comparisons in float32."""

from __future__ import annotations

import numpy as np
import pytest

from propopt.structures.readers.tree_nodes import at_most_in_single, below_in_single


LARGEST = float(np.finfo(np.float32).max)


def singles():
    """Every kind of float32: all exponents, even and odd, zeros, the ends."""
    bits = np.arange(0, 2**31 - 2**23, 2**13 - 1, dtype=np.uint32)
    bits = np.concatenate([bits, np.array([0, 1, 2, 3, 2**23 - 1, 2**23, 2**23 + 1])])
    positive = bits.astype(np.uint32).view(np.float32)
    powers = np.float32(2.0) ** np.arange(-149, 128, dtype=np.float32)
    some = np.concatenate([positive, powers, [np.finfo(np.float32).max]])
    return np.concatenate([-some, some]).astype(np.float32)


def single(numbers):
    with np.errstate(over="ignore"):
        return np.asarray(numbers, dtype=np.float64).astype(np.float32)


def thresholds():
    exact = singles().astype(np.float64)
    others = np.random.default_rng(0).normal(size=1000) * 10.0 ** (np.arange(1000) % 38)
    near = [np.nextafter(exact, np.inf), np.nextafter(exact, -np.inf)]
    far = [1e300, -1e300, LARGEST * 2, -LARGEST * 2, 1e-300, -1e-300]
    return np.concatenate([exact, *near, others, far])


def test_what_rounds_to_at_most_the_threshold_is_at_most_the_cut():
    t = thresholds()
    cut = at_most_in_single(t)
    assert (single(cut) <= t).all()
    assert not (single(np.nextafter(cut, np.inf)) <= t).any()


def test_what_rounds_below_the_threshold_is_at_most_the_cut():
    t = singles()
    t = t[t > -LARGEST]
    cut = below_in_single(t)
    assert (single(cut) < t).all()
    assert not (single(np.nextafter(cut, np.inf)) < t).any()


@pytest.mark.parametrize("t", [1.0, 1.0 + 2.0**-23])
def test_ties_go_to_the_even_neighbour(t):
    middle = t + 2.0**-24
    even = t == 1.0
    assert at_most_in_single(t) == (middle if even else np.nextafter(middle, 0.0))


def test_infinite_thresholds_stay():
    np.testing.assert_array_equal(
        at_most_in_single([np.inf, -np.inf]), [np.inf, -np.inf]
    )
