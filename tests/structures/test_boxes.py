"""Sums of boxes are the trees that they were made of, with fans and rounded cuts."""

import pickle
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from random_trees import boxes_of_trees, random_tree, some_rows, walk, walk_all

from propopt.base.errors import InvalidInput
from propopt.structures.boxes import nodes, sets
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.sets import Tree
from propopt.structures.readers import tree_nodes
from propopt.structures.readers.tree_nodes import (
    Split,
    at_most_in_single,
    below_in_single,
    build_tree,
    expand_runs,
    run_split,
)


D, CODED, K = 5, (3,), 4
N_CODES = tuple(K if k in CODED else None for k in range(D))


def forest(seed, n_trees=6, depth=4):
    rng = np.random.default_rng(seed)
    return [random_tree(rng, D, depth, coded=CODED, n_codes=K) for _ in range(n_trees)]


def boxes_of(trees, base=0.0):
    return boxes_of_trees(trees, base, n_columns=D, n_codes=N_CODES)


@pytest.mark.parametrize("seed", range(8))
def test_boxes_are_the_sum_of_their_trees(seed):
    trees = forest(seed)
    rows = some_rows(np.random.default_rng(seed + 100), 300, D, coded=CODED, n_codes=K)
    expected = 0.25 + walk_all(trees, rows)
    np.testing.assert_allclose(boxes_of(trees, 0.25).value(rows), expected, atol=1e-13)


def test_products_are_collected_alike_in_any_order():
    whole = Boxes.sum_of([boxes_of(forest(3)), boxes_of(forest(4))])
    order = np.random.default_rng(0).permutation(len(whole.values))
    other = replace(whole, values=whole.values[order], paths=whole.paths[order])
    for got, expected in (
        (other.combine_equal().paths, whole.combine_equal().paths),
        (other.combine_equal().values, whole.combine_equal().values),
    ):
        np.testing.assert_array_equal(got, expected)


def test_categories_of_a_column_that_is_numeric_are_refused():
    tree = Tree.of(
        [0, -1, -1],
        [0] * 3,
        [1, 0, 0],
        [2, 0, 0],
        [0, 1, 2],
        None,
        {0: np.ones(2, bool)},
    )
    with pytest.raises(InvalidInput, match=r"^left_codes: column 0"):
        boxes_of_trees([tree], n_columns=1)


def test_nothing_depends_on_how_much_is_read_at_once_nor_on_pickling(monkeypatch):
    trees = forest(3)
    rows = some_rows(np.random.default_rng(1), 50, D, coded=CODED, n_codes=K)
    whole = boxes_of(trees)
    values = whole.value(rows)
    copy = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(copy.value(rows), values)
    for size in (1, 40):
        monkeypatch.setattr(nodes, "_UNIT_NODES", size)
        parts = boxes_of(trees)
        np.testing.assert_array_equal(parts.values, whole.values)
        np.testing.assert_array_equal(parts.paths, whole.paths)
        for name in ("column", "low", "high", "missing", "group", "members"):
            np.testing.assert_array_equal(
                getattr(parts.sets, name), getattr(whole.sets, name)
            )


def test_weighted_sums_of_boxes_are_those_of_their_values():
    rows = some_rows(np.random.default_rng(7), 100, D, coded=CODED, n_codes=K)
    one, other = boxes_of(forest(1), 1.0), boxes_of(forest(2), -2.0)
    a, b = one.value(rows), other.value(rows)
    both = Boxes.sum_of([one.scaled(0.5), other.scaled(-3.0)]).plus(4.0)
    np.testing.assert_allclose(both.value(rows), 0.5 * a - 3.0 * b + 4.0, atol=1e-12)
    twice = Boxes.sum_of([one, one])
    assert len(twice.sets) == len(one.sets)
    collected, products = twice.combine_equal(), one.combine_equal()
    np.testing.assert_array_equal(collected.paths, products.paths)
    np.testing.assert_array_equal(collected.values, 2.0 * products.values)
    loose = boxes_of_trees(forest(1), n_columns=D, n_codes=N_CODES, tolerance=1e-5)
    assert Boxes.sum_of([other, loose]).tolerance == 1e-5


def test_what_no_value_reaches_is_no_part_of_a_tree():
    # node 2 is a leaf now; 3, 4 and 5 are what was below it before it was pruned
    tree = Tree.of(
        [0, -1, -1, 1, -1, -1],
        [0.0] * 6,
        [1, 0, 0, 4, 0, 0],
        [2, 0, 0, 5, 0, 0],
        [0.0, 1.0, 2.0, 0.0, 30.0, 40.0],
    )
    rows = np.array([[-1.0, 0.0], [1.0, 0.0]])
    result = boxes_of_trees([tree], n_columns=2).value(rows)
    np.testing.assert_array_equal(result, [1.0, 2.0])
    # below x ≤ 0 nothing is above 1
    tree = Tree.of(
        [0, 0, -1, -1, -1], [0, 1, 0, 0, 0], [1, 2, 0, 0, 0], [4, 3, 0, 0, 0], range(5)
    )
    assert len(boxes_of_trees([tree], n_columns=1).values) == 2
    ends = sets.largest_at_most(np.floor, np.array([-np.inf, np.inf]))
    assert ends.tolist() == [-np.inf, np.inf]


# ---- nodes that send several intervals to a side, as trees with one cut a node
CODES = 3
VALUES = np.append(np.arange(-1.0, 8.0, 0.5), np.nan)


def some_fan(rng, most):
    ends = np.sort(rng.choice(np.arange(0.0, 7.0), rng.integers(0, most), False))
    return run_split(ends, rng.random(len(ends) + 1) < 0.5)


def some_tree(rng, depth):
    """A tree of two columns of numbers and one of codes, and fans of its nodes."""
    fan_of, nodes = {}, count()

    def read(left):
        node = next(nodes)
        if left == 0 or rng.random() < 0.1:
            return float(rng.normal())
        column = int(rng.integers(0, 3))
        codes = rng.random(CODES) < 0.5 if column == 2 else None
        cut, missing = float(rng.integers(0, 7)), bool(rng.random() < 0.5)
        if column < 2 and rng.random() < 0.5:
            fan_of[node] = some_fan(rng, 6)
        return Split(column, cut, missing, left - 1, left - 1, codes)

    return build_tree(depth, read), fan_of


@pytest.mark.parametrize("seed", range(20))
def test_trees_with_fans_are_what_their_fans_say(seed):
    rng = np.random.default_rng(seed)
    tree, fan_of = some_tree(rng, depth=5)
    points = np.column_stack(
        [rng.choice(VALUES, 300), rng.choice(VALUES, 300), rng.integers(0, CODES, 300)]
    )
    result = expand_runs(tree, fan_of)
    boxes = boxes_of_trees([result], n_columns=3, n_codes=(None, None, CODES))
    np.testing.assert_array_equal(boxes.value(points), walk(tree, points, fan_of))


def test_fans_alternate_and_have_no_empty_runs():
    left = np.array([True, True, False, True, False, False])
    ends, goes_left = run_split(np.array([1.0, 2.0, 2.0, 3.0, 4.0]), left)
    # up to 2 left, of which the second 2 has nothing; up to 3 left; beyond right
    np.testing.assert_array_equal(ends, [3.0, np.inf])
    np.testing.assert_array_equal(goes_left, [True, False])


def test_trees_that_would_be_too_large_are_not_made(monkeypatch):
    rng = np.random.default_rng(0)
    tree, _ = some_tree(rng, depth=5)
    wide = {0: run_split(np.arange(10.0), np.arange(11) % 2 == 0)}
    assert expand_runs(tree, wide) is not None
    monkeypatch.setattr(tree_nodes, "MOST_NODES", 10)
    assert expand_runs(tree, wide) is None


# ---- thresholds in float64 of comparisons in float32
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
    neighbours = [np.nextafter(exact, np.inf), np.nextafter(exact, -np.inf)]
    far = [1e300, -1e300, LARGEST * 2, -LARGEST * 2, 1e-300, -1e-300]
    return np.concatenate([exact, *neighbours, others, far])


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
