"""Bins of numbers, by what they are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import truncnorm

from propopt.lime.laws.binned_columns import BinnedColumn, BinRule


def test_a_bin_of_one_value_draws_that_value() -> None:
    column = np.repeat([0.1, 7.0, 9.0], [30, 3, 2])
    bins = BinnedColumn.of_data(column, np.array([0.1, 8.0]))
    assert bins.pieces.single.all()
    np.testing.assert_array_equal(bins.pieces.mean, [0.1, 7.0, 9.0])


def test_edges_of_ties_end_no_bin_without_data(rng: np.random.Generator) -> None:
    column = rng.choice([1.0, 2.0, 3.0], p=[0.1, 0.2, 0.7], size=200)
    bins = BinnedColumn.of_data(column, BinRule(4).inner_edges(column))
    np.testing.assert_array_equal(bins.edges, [2.0])
    counts = [(column < 3).sum(), (column > 2).sum()]
    np.testing.assert_array_equal(bins.shares * 200, counts)


@pytest.mark.parametrize("p", [2, 3, 4, 7, 10])
def test_statistics_are_those_of_the_rows_between_quantiles(
    p: int, rng: np.random.Generator
) -> None:
    column = rng.lognormal(size=211)
    bins = BinnedColumn.of_data(column, BinRule(p).inner_edges(column))
    ends = np.quantile(column, np.arange(p + 1) / p)
    np.testing.assert_allclose(bins.pieces.low, ends[:-1], rtol=1e-14)
    np.testing.assert_allclose(bins.pieces.high, ends[1:], rtol=1e-14)
    for b in range(p):
        above = column >= ends[0] if b == 0 else column > ends[b]
        part = column[above & (column <= ends[b + 1])]
        assert bins.shares[b] * 211 == pytest.approx(len(part), rel=1e-14)
        assert bins.pieces.mean[b] == pytest.approx(part.mean(), rel=1e-14)
        assert bins.pieces.sd[b] == pytest.approx(part.std(), rel=1e-12)


def test_truncation_moves_the_mean_of_a_skewed_end_bin() -> None:
    column = np.random.default_rng(0).lognormal(0.0, 1.5, 20_000)
    bins = BinnedColumn.of_data(column, BinRule(4).inner_edges(column))
    normals = bins.pieces.normals
    start, stop = normals.standardised(normals.low), normals.standardised(normals.high)
    means = truncnorm.mean(start, stop, loc=normals.mean, scale=normals.sd)
    np.testing.assert_allclose(normals.means, means, rtol=1e-9)
    assert normals.means[-1] > 1.3 * bins.pieces.mean[-1]


def test_missing_numbers_are_a_bin_behind_the_others() -> None:
    bins = BinnedColumn.of_data(
        np.array([1.0, np.nan, 2.0, 3.0, np.nan]), np.array([1.5])
    )
    np.testing.assert_array_equal(bins.shares, [0.2, 0.4, 0.4])
    assert bins.missing == 2
    assert np.isnan(bins.pieces.mean[2])
    assert bins.bins == ("≤ 1.5", "> 1.5", "missing")


def test_a_column_that_is_missing_throughout_has_one_bin_that_is_drawn() -> None:
    bins = BinnedColumn.of_data(np.full(3, np.nan), np.zeros(0))
    np.testing.assert_array_equal(bins.shares, [0.0, 1.0])


def test_a_bin_without_data_has_no_share_and_stands_at_its_middle() -> None:
    bins = BinnedColumn.of_data(np.array([0.0, 0.5, 3.0, 4.0]), np.array([1.0, 2.0]))
    np.testing.assert_array_equal(bins.shares, [0.5, 0.0, 0.5])
    assert bins.pieces.single[1]
    assert bins.pieces.mean[1] == 1.5


@pytest.mark.parametrize(
    "edges",
    [
        [1.000001, 1.000002],
        [0.1, 0.1 + 1e-15],
        [-1e-30, 1e-30],
        [123456.25, 123456.75, 2e9],
    ],
)
def test_words_tell_edges_apart(edges: list[float]) -> None:
    column = np.array([*edges, edges[-1] + 1.0, edges[0] - 1.0])
    words = BinnedColumn.of_data(column, np.array(edges)).bins
    ends = [float(word.split()[-1]) for word in words[:-1]]
    assert len(set(ends)) == len(edges)
    np.testing.assert_allclose(ends, edges, atol=0.1 * np.diff(edges).min())
