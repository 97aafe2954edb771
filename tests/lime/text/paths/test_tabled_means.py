"""Sums over sizes at all bandwidths, from those of a few directions of weights."""

from __future__ import annotations

import numpy as np
import pytest

from propopt.lime.paths import TabledMeans
from propopt.lime.text.text_reading import TextLaw, WordRegression
from propopt.structures.subsets.conjunctions import Conjunctions


WIDTHS = np.append(np.geomspace(2e-3, 500.0, 97), np.inf)
"""None is one of those that the directions are made of, but the last."""


class Counted:
    """A function that counts for how many weights it is asked for means."""

    def __init__(self, function):
        self.function, self.n_weights = function, 0

    @property
    def n_words(self):
        return self.function.n_words

    def mean_by_size(self):
        return self.function.mean_by_size()

    def kept(self, weights):
        self.n_weights += len(weights)
        return self.function.kept(weights)


def some_conjunctions(d, seed=0):
    rng = np.random.default_rng(seed)
    rows = [rng.permutation(d)[: rng.integers(1, min(d, 6) + 1)] for _ in range(30)]
    cuts = [rng.integers(0, len(row) + 1) for row in rows]
    return Conjunctions.of(
        rng.normal(size=30).tolist(),
        [row[:cut].tolist() for row, cut in zip(rows, cuts, strict=True)],
        [row[cut:].tolist() for row, cut in zip(rows, cuts, strict=True)],
        d,
    )


@pytest.mark.parametrize("d", [2, 7, 60, 400])
def test_limits_are_those_of_all_sizes(d):
    f = some_conjunctions(d)
    tabled = TabledMeans(WordRegression(f))
    result = WordRegression(tabled).at(WIDTHS)
    known = WordRegression(f).at(WIDTHS)
    np.testing.assert_allclose(
        result.coefficients, known.coefficients, rtol=0, atol=1e-14 * d
    )
    np.testing.assert_array_equal(result.intercept, known.intercept)


def test_so_many_bandwidths_cost_some_dozens_of_means():
    f = Counted(some_conjunctions(400))
    tabled = TabledMeans(WordRegression(f))
    for _ in range(3):
        WordRegression(tabled).at(np.geomspace(0.01, 10.0, 1000))
    assert 40 < f.n_weights < 100


def test_weights_of_no_bandwidth_have_means_of_their_own():
    f = some_conjunctions(60)
    weights = np.random.default_rng(1).random((5, 61))
    weights[2] = TextLaw(0.25).shares(60)
    result = TabledMeans(WordRegression(f)).kept(weights)
    np.testing.assert_allclose(result, f.kept(weights), rtol=0, atol=1e-12)
