"""The background: which rows, of which error, against the theory of finite tables."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from propopt.base.errors import InvalidInput
from propopt.laws.background import (
    N_BACKGROUND,
    N_DRAWN_BLOCKS,
    Background,
    affordable_rows,
    steps_of_row,
)
from propopt.structures.boxes.boxes import Boxes


def table(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


def test_a_digest_is_that_of_rows_and_of_how_many_they_were():
    rows = table(50)
    rows[3, 1] = np.nan
    whole = Background.of_points(rows)
    assert whole.digest == Background.of_points(rows.copy()).digest
    assert whole.digest == Background.of_points(np.asfortranarray(rows)).digest
    zeros, signed = np.zeros((3, 2)), -np.zeros((3, 2))
    assert Background.of_points(zeros).digest == Background.of_points(signed).digest
    moved = rows.copy()
    moved[7, 2] = np.nextafter(moved[7, 2], 9.0)
    assert whole.digest == Background.of_points(rows[::-1]).digest  # a set of rows
    others = [
        Background.of_points(moved),
        Background.of_points(rows[:, ::-1]),
        Background(rows, 500),  # the same rows, drawn from more
    ]
    assert len({x.digest for x in others} | {whole.digest}) == 4


def test_a_thinned_draw_follows_from_the_table_alone():
    rows = table(1_000)
    whole = Background.of_points(rows)
    np.random.default_rng(5).normal(size=9)
    first, again = whole.thinned(205), Background.of_points(rows.copy()).thinned(205)
    assert first.points.shape == (200, 3)  # blocks have as many rows each
    assert first.n_rows == 1_000
    np.testing.assert_array_equal(first.points, again.points)
    assert first.digest == again.digest != whole.digest
    assert not first.is_whole
    assert whole.is_whole
    assert len(np.unique(first.points, axis=0)) == 200  # without replacement
    places = [np.flatnonzero((rows == x).all(axis=1))[0] for x in first.points]
    assert places == sorted(places)
    assert whole.thinned(1_000) is whole
    blocks = first.blocks()
    assert [len(x) for x in blocks] == [20] * N_DRAWN_BLOCKS
    joined = np.concatenate(blocks)
    np.testing.assert_array_equal(
        np.unique(joined, axis=0), np.unique(first.points, axis=0)
    )


def test_a_model_that_is_called_has_a_hundred_rows():
    drawn = Background.of_points(table(700)).thinned(affordable_rows(None))
    assert affordable_rows(None) == N_BACKGROUND == len(drawn.points) == 100
    few = Background.of_points(table(40)).thinned(affordable_rows(None))
    assert few.is_whole
    assert few.in_words() == "40 background rows"
    assert few.correction == 0.0


N_TABLES, M, OF = 400, 100, 300


def error_of_mean(drawn, values):
    """The standard error of a mean over drawn rows, by its ten estimates if weighed."""
    if drawn.traits is None:
        return values.std(ddof=1) / math.sqrt(len(values)) * drawn.correction
    squares = (drawn.deviations @ values) ** 2
    return math.sqrt(squares.mean() / (len(squares) - 1)) * drawn.correction


def gaps():
    """Of many tables the error of the drawn mean, in stated standard errors."""
    result = []
    for seed in range(N_TABLES):
        rows = table(OF, seed)
        drawn = Background.of_points(rows).thinned(M)
        f, known = drawn.points[:, 0], rows[:, 0].mean()
        result.append((f.mean() - known, error_of_mean(drawn, f)))
    return np.array(result)


def test_the_error_of_a_mean_is_that_of_finite_tables():
    """Draws and tables are independent: z has variance one, by tables of a χ² law.

    Means and variances of 400 values of z leave these limits by chance once in 10,000,
    with t of 99 degrees of freedom in place of a normal law.
    """
    errors, stated = gaps().T
    z = errors / stated
    expected = 99.0 / 97.0  # the variance of t
    assert abs(z.mean()) < 3.9 * math.sqrt(expected / N_TABLES)
    kurtosis = 3.0 + 6.0 / 95.0
    spread = expected * math.sqrt((kurtosis - 1.0) / N_TABLES)
    assert abs(z.var() - expected) < 3.9 * spread
    # by theory s²/M (1 − M/M₀); without the correction it is 1.5 times as large
    np.testing.assert_allclose(stated.mean(), math.sqrt((1 - M / OF) / M), rtol=0.02)


def test_blocks_vary_as_much_as_a_finite_table_does():
    drawn = Background.of_points(table(OF)).thinned(M)
    blocks = np.random.default_rng(0).normal(size=(10, 4, 3))
    result = drawn.corrected(blocks)
    np.testing.assert_allclose(result.mean(axis=0), blocks.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(
        result.var(axis=0), blocks.var(axis=0) * (1.0 - M / OF), rtol=1e-12
    )
    assert drawn.correction == pytest.approx(math.sqrt(2 / 3))


@pytest.mark.parametrize("by_weight", [False, True])
def test_calibrated_draws_have_the_means_of_the_table_and_a_true_error(by_weight):
    """Of f and columns. z² of another mean, by t of 9 degrees of freedom, expects 9/7.

    Its mean over 300 tables has a standard error of 0.13 (kurtosis 4.2): it is within
    0.7 and 2 but once in 1e5. The error is that of residuals, about half as large here.
    """
    squares, shares = [], []
    for seed in range(300):
        rows = table(OF, seed)
        weights = np.random.default_rng(seed).gamma(2.0, size=OF) if by_weight else None
        whole = Background.of_points(rows, weights)
        f = np.exp(rows[:, 0] / 2.0) + rows[:, 1] * rows[:, 2]
        plain, drawn = whole.thinned(M), whole.thinned(M, f)
        places = [np.flatnonzero((rows == x).all(axis=1))[0] for x in drawn.points]
        known = np.vstack([f, rows.T])
        np.testing.assert_allclose(drawn.mean(known[:, places]), whole.mean(known))
        assert error_of_mean(drawn, f[places]) < 1e-12
        other = 2.0 * rows[:, 0] + np.sin(2.0 * rows[:, 1]) + 0.5 * rows[:, 2] ** 2
        error = error_of_mean(drawn, other[places])
        gap = drawn.mean(other[places]) - whole.mean(other)
        squares.append((gap / error) ** 2)
        shares.append(error / error_of_mean(plain, other[places]))
        again = plain.calibrated(drawn.traits)
        np.testing.assert_array_equal(again.weights, drawn.weights)
        assert again.digest == drawn.digest != plain.digest
    assert 0.7 < np.mean(squares) < 2.0
    assert np.mean(shares) < 0.6


def test_another_background_is_refused():
    known, other = Background.of_points(table(20)), Background.of_points(table(20, 1))
    known.refuse_another(None, "main effects")
    known.refuse_another(known.digest, "main effects")
    with pytest.raises(InvalidInput, match=f"{other.digest[:12]}.*give the same data"):
        known.refuse_another(other.digest, "main effects")


def of_lengths(counts):
    """Trees with so many leaves of each number of sets, of which no more is asked."""
    boxes = object.__new__(Boxes)
    lengths = np.repeat([*counts], [*counts.values()])
    vars(boxes)["trees"] = SimpleNamespace(nodes=SimpleNamespace(lengths=lengths))
    return boxes


@pytest.mark.parametrize(
    ("counts", "rows"),
    [
        ({8: 3_000, 16: 3}, 60_000),  # boosted trees
        ({6: 30_000}, 60_000),
        ({8: 60_000, 15: 6_000}, 60_000),  # deep ones, too
        ({21: 50_000}, 1_000),  # too deep: every row meets every row
        ({21: 1_000_000}, 100),
        ({8: 3_000_000}, 60_000),  # draws have ten tables of each leaf
        ({8: 6_000_000, 17: 3_000}, 60_000),  # 9 · 1.2e10 > 43,334 · 3e3 · 500
        ({8: 300_000, 17: 10_000}, 5_000),  # 9 · 6.1e8 < 55,000 · 1e4 · 500
        ({14: 90_000, 17: 12_000}, 4_166),  # 9 · 2.1e10 < 55,834 · 1.2e4 · 500
        ({15: 300_000, 17: 10_000}, 60_000),  # 9 · 1.5e11 > 55,000 · 1e4 · 500
    ],
)
def test_trees_afford_all_rows_unless_their_leaves_have_very_many_sets(counts, rows):
    assert affordable_rows(of_lengths(counts)) == rows


def test_a_few_rows_less_are_not_worth_ten_tables():
    trees = of_lengths({14: 90_000, 17: 12_000})
    taken = [affordable_rows(trees, n) for n in (50, 4_000, 30_000, 40_000)]
    assert taken == [50, 4_000, 30_000, 4_166]  # 9 · 2.1e10 > 25,834 · 1.2e4 · 500


def test_a_row_against_more_background_rows_costs_no_more():
    read = of_lengths({8: 3_000, 15: 3})
    assert steps_of_row(read, 10_000) == steps_of_row(read, 100) == 9 * 3_000 + 16 * 3
    deep = of_lengths({19: 10})
    assert steps_of_row(deep, 1_000) == 10 * (1_000 + 20)
