"""Shapley and pair values of boxes: all coalitions, all ways, rows in any block."""

import itertools
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from coalitions import interactions_of, worths
from random_trees import boxes_of_trees, chain_of_splits, random_tree, some_rows

from propopt.base import resources
from propopt.base.resources import Budget
from propopt.structures.boxes import nodes, shapley
from propopt.structures.boxes.boxes import TreeSum
from propopt.structures.boxes.effects import effect_tables, effects_of_players
from propopt.structures.boxes.sets import Tree
from propopt.structures.boxes.shapley import BackgroundRows, BoxShapley
from propopt.structures.products.sums import Game


D, CODED, K = 6, (3,), 4
N_CODES = tuple(K if k in CODED else None for k in range(D))


def boxes_of(seed, n_trees=5, depth=6):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, D, depth, coded=CODED, n_codes=K) for _ in range(n_trees)]
    return boxes_of_trees(trees, 0.5, n_columns=D, n_codes=N_CODES)


def rows_of(seed, n_rows):
    rng = np.random.default_rng(seed)
    return some_rows(rng, n_rows, D, coded=CODED, n_codes=K)


both_orders = pytest.mark.parametrize("order", [1, 2])


def prepared(read, game, order=1):
    """Prepared again, whatever is cached."""
    shapley.RECENT.clear()
    return BoxShapley.of(read, game, order)


def by_coalitions(read, points, game, order=1):
    """The definition, for the sum of boxes."""
    worth = worths(read.value, points, game.background, game.weights, game.players)
    return interactions_of(worth, order)


pytestmark = pytest.mark.usefixtures("kernels")  # compiled, and by NumPy

GAMES = {
    "rows": Game(rows_of(1, 40)),
    "one row": Game(rows_of(2, 1)),
    "weights": Game(
        rows_of(4, 5), weights=np.array([0.5, 1e-9, 0.125, 0.3, 0.075 - 1e-9])
    ),
    "players": Game(rows_of(5, 20), players=np.array([0, 1, 0, 2, 2, 0])),
    "both": Game(
        rows_of(6, 2),
        weights=np.array([0.9, 0.1]),
        players=np.array([1, 1, 0, 2, 0, 3]),
    ),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", GAMES)
@both_orders
def test_values_are_those_of_all_coalitions(kind, seed, order, monkeypatch):
    read, game, points = boxes_of(seed), GAMES[kind], rows_of(seed + 50, 12)
    exact = by_coalitions(read, points, game, order)
    size = np.abs(read.values).sum()
    assert np.abs(exact).max() > 0.05
    for table_bytes in (0, 4096, 2**28):
        monkeypatch.setattr(shapley, "TABLE_BYTES", table_bytes)
        values = prepared(read, game, order).values(points)
        np.testing.assert_allclose(values, exact, rtol=0, atol=1e-14 * size)


@both_orders
@pytest.mark.parametrize("seed", range(30))
def test_forests_with_shallow_and_deep_leaves_are_exact(seed, order, monkeypatch):
    """Streamed, in any units, with any threads, and rows in any order."""
    monkeypatch.setattr(shapley, "TABLE_BYTES", 0)
    rng = np.random.default_rng(seed)
    depth = int(rng.integers(2, 9))
    trees = [random_tree(rng, 8, depth, at=(-2.5, 2.5)) for _ in range(4)]
    read = boxes_of_trees([*trees, chain_of_splits(rng, 8)], n_columns=8)
    rows, points = (some_rows(rng, n, 8) for n in (60, 9))
    exact = by_coalitions(read, points, Game(rows), order)
    values = prepared(read, Game(rows), order).values(points)
    np.testing.assert_allclose(values, exact, rtol=0, atol=1e-12)
    monkeypatch.setattr(nodes, "_UNIT_NODES", 8)
    monkeypatch.setattr(nodes, "_STEPS_OF_THREADS", 0.0)
    read = replace(read.trees).boxes()
    by_threads = prepared(read, Game(rows), order).values(points)
    monkeypatch.setattr(resources.os, "cpu_count", lambda: 1)
    by_one = prepared(read, Game(rows), order).values(points[::-1])[::-1]
    np.testing.assert_array_equal(by_threads, by_one)
    np.testing.assert_allclose(by_threads, exact, rtol=0, atol=1e-12)


def test_blocks_are_values_against_each_part():
    read, rows, points = boxes_of(0), rows_of(8, 30), rows_of(9, 7)
    parts = prepared(read, Game(rows, 3)).of_blocks(points)
    for k, part in enumerate(np.split(rows, 3)):
        alone = prepared(read, Game(part)).values(points)
        np.testing.assert_array_equal(parts[:, k], alone)
    whole = prepared(read, Game(rows)).values(points)
    np.testing.assert_allclose(parts.mean(axis=1), whole, rtol=0, atol=1e-14)


def by_rows(read, points, background, order):
    """In fractions: what each box gives against each row (Lundberg et al. 2020).

    With n sets that only x is in and q that only b is in, a set or a pair with i and j
    of these gives (−1)^j (n−i)! (q−j)!/(n+q−order+1)!, 0 if they are not all of these.
    """
    held = [read.sets.contain(rows).T for rows in (points, background)]
    terms = np.full((len(points), *(read.n_columns,) * order), Fraction(0))
    factorial = [*map(math.factorial, range(read.n_columns + 1))]
    for value, path in zip(read.values, read.paths, strict=True):
        path = path[path >= 0]
        columns = read.sets.column[path]
        for x, row_terms in zip(held[0][:, path], terms, strict=True):
            for b in held[1][:, path]:
                if not (x | b).all():
                    continue
                n, q = int((x & ~b).sum()), int((b & ~x).sum())
                for term in itertools.permutations(np.flatnonzero(x ^ b), order):
                    i = int(x[list(term)].sum())
                    j = order - i
                    whole = Fraction(value) * factorial[n - i] * factorial[q - j]
                    whole /= factorial[n + q - order + 1] * len(background)
                    row_terms[tuple(columns[list(term)])] += (-1) ** j * whole
    return terms.astype(float)


@pytest.mark.parametrize(
    ("n_points", "n_rows", "order"), [(9, 25, 1), (20, 70, 1), (9, 25, 2)]
)
def test_boxes_of_many_sets(n_points, n_rows, order, monkeypatch):
    """Of 33 columns and more a mask has more bits than a word of 32."""
    rng = np.random.default_rng(0)
    read = boxes_of_trees([chain_of_splits(rng, 40)], n_columns=40)
    assert read.lengths.max() == 40
    points = rng.normal(size=(n_points, 40))
    background = rng.normal(size=(n_rows, 40))
    points[:3] += 2.0  # in boxes of many sets
    exact = by_rows(read, points, background, order)
    assert (np.abs(exact[:, 33:]) > 1e-12).any()
    for table_bytes in (0, 2**20, 2**28):
        monkeypatch.setattr(shapley, "TABLE_BYTES", table_bytes)
        values = prepared(read, Game(background), order).values(points)
        np.testing.assert_allclose(values, exact, rtol=0, atol=1e-14)
        if order == 1:
            np.testing.assert_array_equal(values[exact == 0.0], 0.0)


@both_orders
@pytest.mark.parametrize("kind", GAMES)
def test_all_ways_blocks_and_kernels_have_the_same_digits(
    kind, order, kernels, monkeypatch
):
    """All sums are exact, or in one order, on every machine."""
    boxes, game = boxes_of(3, n_trees=3), GAMES[kind]
    points = np.repeat(rows_of(10, 50), 8, axis=0)  # so many that tables are worth it
    monkeypatch.setenv("PROPOPT_KERNELS", "numpy")
    whole = prepared(boxes, game, order).values(points)
    budgets = [Budget(2**25), Budget(30_000)]
    monkeypatch.setenv("PROPOPT_KERNELS", kernels)
    for table_bytes, budget in itertools.product((0, 20_000, 2**28), budgets):
        monkeypatch.setattr(shapley, "TABLE_BYTES", table_bytes)
        monkeypatch.setattr(shapley, "BATCH_BUDGET", budget)
        exact = prepared(boxes, game, order)
        for some in (slice(None), slice(5, 6), slice(0, 9), slice(8, 98)):
            np.testing.assert_array_equal(exact.values(points[some]), whole[some])


def test_tables_are_cached_for_the_last_three_games():
    made = []
    parts = BackgroundRows.parts

    def counted(*arguments):
        made.append(arguments)
        return parts(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BackgroundRows, "parts", counted)
        shapley.RECENT.clear()
        read, points, rows = boxes_of(0), rows_of(11, 3), rows_of(12, 9)
        first = BoxShapley.of(read, Game(rows)).values(points)
        again = BoxShapley.of(read, Game(rows.copy())).values(points)
        np.testing.assert_array_equal(again, first)
        assert len(made) == 1
        BoxShapley.of(read, Game(rows), order=2).values(points)
        assert len(made) == 2
        others = (
            Game(rows[:8]),
            Game(rows, weights=np.full(9, 1 / 9)),
            Game(rows, players=np.array([0, 0, 1, 2, 3, 4])),
            Game(rows, 3),
        )
        for number, game in enumerate(others, 3):
            BoxShapley.of(read, game).values(points)
            assert len(made) == number + (game.n_blocks - 1)
        BoxShapley.of(boxes_of(0), Game(rows, 3)).values(points)
        assert len(made) == 11
    assert len(shapley.RECENT) <= 3
    del read
    BoxShapley.of(boxes_of(1), Game(rows)).values(points)
    assert all(boxes() is not None for boxes, *_ in shapley.RECENT[1:])


@pytest.mark.parametrize("table_bytes", [0, 2**28])
def test_more_equal_background_rows_than_sixteen_bits_count(table_bytes, monkeypatch):
    monkeypatch.setattr(shapley, "TABLE_BYTES", table_bytes)
    read, row, points = boxes_of(4, 2, 3), rows_of(14, 1), rows_of(15, 5)
    rows = np.repeat(row, 2**16 + 7, axis=0)
    for order in (1, 2):
        wanted = prepared(read, Game(row), order).values(points)
        values = prepared(read, Game(rows), order).values(points)
        np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-14)


@both_orders
def test_tables_are_bounded_in_bytes(order, monkeypatch):
    read, rows = boxes_of(2), rows_of(13, 8)
    for table_bytes in (0, 5_000, 2**28):
        monkeypatch.setattr(shapley, "TABLE_BYTES", table_bytes)
        for n_blocks in (1, 2):
            shapley.RECENT.clear()
            parts = BoxShapley.of(read, Game(rows, n_blocks), order).parts
            made = [part.tables for (part,) in parts]
            sizes = [0 if tables is None else tables.nbytes for tables in made]
            assert sum(sizes) <= table_bytes
            if table_bytes == 2**28:
                lengths = read.trees.nodes.lengths
                assert sizes == [(8 * (order + 1) << lengths).sum()] * n_blocks


@pytest.mark.parametrize("kind", GAMES)
@pytest.mark.parametrize("kernels", ["c"], indirect=True)
def test_main_effects_are_means_over_the_background(kind):
    read, game, points = boxes_of(5), GAMES[kind], rows_of(17, 30)
    weights = game.weights
    if weights is None:
        weights = np.full(len(game.background), 1 / len(game.background))
    players = np.arange(D) if game.players is None else game.players
    wanted = np.zeros((len(points), game.n_players))
    for n, j in np.ndindex(wanted.shape):
        mixed = np.where(players == j, points[n], game.background)
        wanted[n, j] = (read.value(mixed) - read.value(game.background)) @ weights
    trees = read.trees.nodes.with_players(game.players)
    rows = BackgroundRows.parts(trees, game.background, game.weights)
    G = np.zeros(wanted.shape)
    if game.players is not None:
        G = effects_of_players(rows, points)
    else:
        for j, (ends, values) in effect_tables(rows).items():
            G[:, j] = values[ends.searchsorted(points[:, j])]
    np.testing.assert_allclose(G, wanted, rtol=0, atol=1e-13)
    assert np.abs(G).max() > 0.1


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("kernels", ["c"], indirect=True)
@pytest.mark.parametrize("in_players", [False, True], ids=["columns", "players"])
def test_main_effects_of_rounding_are_zero(in_players):
    """A split into equal values has no effect, whatever the order of the sums."""
    values = np.random.default_rng(2).normal(size=40)
    trees = [
        Tree.of([0, -1, -1], [c, 0, 0], [1, 0, 0], [2, 0, 0], [0, v, v])
        for c, v in zip(np.linspace(-0.9, 0.9, 40), values, strict=True)
    ]
    trees.append(Tree.of([1, -1, -1], [0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 0, 1e-9]))
    nodes = TreeSum(tuple(trees), 0.0, (None, None)).nodes
    points = np.random.default_rng(3).uniform(-1, 1, (23, 2))
    rows = BackgroundRows.parts(nodes, points, None)
    if in_players:
        G = effects_of_players(rows, points)
    else:
        tables = effect_tables(rows)
        G = np.stack(
            [tables[j][1][tables[j][0].searchsorted(points[:, j])] for j in (0, 1)],
            axis=1,
        )
    assert (G[:, 0] == 0.0).all()
    assert np.abs(G[:, 1]).min() > 1e-11  # small, and no rounding


def test_a_pickle_has_no_tables():
    read, game, points = boxes_of(6), GAMES["rows"], rows_of(16, 4)
    exact = prepared(read, game)
    wanted = exact.values(points)
    data, tables = pickle.dumps(exact), exact.parts[0][0].tables.tobytes()
    assert tables in pickle.dumps(exact.parts)
    assert tables not in data
    np.testing.assert_array_equal(pickle.loads(data).values(points), wanted)
