"""Sums of boxes are the trees that they were made of."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from random_trees import boxes_of_trees, random_tree, some_rows, walk_all
from sklearn.ensemble import RandomForestRegressor

from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.structures.boxes import boxes, sets
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.sets import Tree


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


@pytest.mark.parametrize("size", [1, 40])
def test_leaves_do_not_depend_on_how_many_trees_are_read_at_once(monkeypatch, size):
    trees = forest(3)
    whole = boxes_of(trees)
    monkeypatch.setattr(sets, "_NODES_AT_ONCE", size)
    parts = boxes_of(trees)
    np.testing.assert_array_equal(parts.values, whole.values)
    np.testing.assert_array_equal(parts.paths, whole.paths)
    for name in ("column", "low", "high", "missing", "group", "members"):
        np.testing.assert_array_equal(
            getattr(parts.sets, name), getattr(whole.sets, name)
        )


def test_values_do_not_depend_on_the_size_of_blocks(monkeypatch):
    trees = forest(0)
    rows = some_rows(np.random.default_rng(1), 50, D, coded=CODED, n_codes=K)
    whole = boxes_of(trees).value(rows)
    monkeypatch.setattr(boxes, "AT_ONCE", Budget(1000))
    np.testing.assert_allclose(boxes_of(trees).value(rows), whole, atol=1e-13)


def test_deep_forests_of_scikit_learn_are_their_boxes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32).astype(float)
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    model = RandomForestRegressor(20, random_state=0).fit(X, y)
    trees = [
        Tree.of(
            np.maximum(each.tree_.feature, -1),
            each.tree_.threshold,
            each.tree_.children_left,
            each.tree_.children_right,
            each.tree_.value[:, 0, 0] / 20,
        )
        for each in model.estimators_
    ]
    values = boxes_of_trees(trees, n_columns=4).value(X)
    np.testing.assert_allclose(values, model.predict(X), rtol=1e-12)


def test_weighted_sums_of_boxes_are_those_of_their_values():
    rows = some_rows(np.random.default_rng(7), 100, D, coded=CODED, n_codes=K)
    one, other = boxes_of(forest(1), 1.0), boxes_of(forest(2), -2.0)
    both = Boxes.sum_of([one.scaled(0.5), other.scaled(-3.0)]).plus(4.0)
    expected = 0.5 * one.value(rows) - 3.0 * other.value(rows) + 4.0
    np.testing.assert_allclose(both.value(rows), expected, atol=1e-12)
    np.testing.assert_allclose(
        Boxes.sum_of([one, one, other.scaled(2.0)]).value(rows),
        2.0 * (one.value(rows) + other.value(rows)),
        atol=1e-12,
    )


def test_boxes_that_are_added_twice_have_the_same_sets():
    one = boxes_of(forest(3))
    twice = Boxes.sum_of([one, one])
    assert len(twice.sets) == len(one.sets)
    collected, products = twice.collected(), one.collected()
    np.testing.assert_array_equal(collected.paths, products.paths)
    np.testing.assert_array_equal(collected.values, 2.0 * products.values)


def test_products_are_collected_alike_in_any_order():
    whole = Boxes.sum_of([boxes_of(forest(3)), boxes_of(forest(4))])
    order = np.random.default_rng(0).permutation(len(whole.values))
    other = replace(whole, values=whole.values[order], paths=whole.paths[order])
    for got, expected in (
        (other.collected().paths, whole.collected().paths),
        (other.collected().values, whole.collected().values),
    ):
        np.testing.assert_array_equal(got, expected)


def test_the_larger_tolerance_of_two_is_that_of_their_sum():
    loose = boxes_of_trees(forest(1), n_columns=D, n_codes=N_CODES, tolerance=1e-5)
    assert Boxes.sum_of([boxes_of(forest(2)), loose]).tolerance == 1e-5


def test_a_constant_has_no_boxes():
    constant = boxes_of_trees([], 2.5, n_columns=3)
    np.testing.assert_array_equal(constant.value(np.zeros((4, 3))), 2.5)
    assert len(constant.columns) == 0
    leaf = boxes_of_trees([Tree.of([-1], [0], [0], [0], [1.5])], n_columns=3)
    total = Boxes.sum_of([constant, leaf])
    np.testing.assert_array_equal(total.value(np.zeros((4, 3))), 4.0)


def test_nodes_that_pruning_left_over_are_no_part_of_the_tree():
    # node 2 is a leaf now; 3, 4 and 5 are what was below it
    tree = Tree.of(
        [0, -1, -1, 1, -1, -1],
        [0.0] * 6,
        [1, 0, 0, 4, 0, 0],
        [2, 0, 0, 5, 0, 0],
        [0.0, 1.0, 2.0, 0.0, 30.0, 40.0],
    )
    rows = np.array([[-1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(
        boxes_of_trees([tree], n_columns=2).value(rows), [1.0, 2.0]
    )


def test_leaves_that_no_value_reaches_are_no_boxes():
    # below x ≤ 0 nothing is above 1
    tree = Tree.of(
        [0, 0, -1, -1, -1], [0, 1, 0, 0, 0], [1, 2, 0, 0, 0], [4, 3, 0, 0, 0], range(5)
    )
    assert len(boxes_of_trees([tree], n_columns=1).values) == 2


def test_boxes_are_pickled():
    one = boxes_of(forest(4))
    rows = some_rows(np.random.default_rng(7), 30, D, coded=CODED, n_codes=K)
    copy = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(copy.value(rows), one.value(rows))


# ---- thresholds behind what a model sees of a column


@pytest.mark.parametrize("mean", [0.1, -1e9, 1e-300])
def test_thresholds_behind_a_step_are_exact_to_the_last_bit(mean):
    rng = np.random.default_rng(3)

    def step(values):
        return (values - mean) / 0.3

    thresholds = step(mean + rng.normal(size=200))
    cuts = sets.largest_at_most(step, thresholds)
    assert (step(cuts) <= thresholds).all()
    assert (step(np.nextafter(cuts, np.inf)) > thresholds).all()


def test_thresholds_beyond_all_values_of_a_step_are_infinite():
    ends = sets.largest_at_most(np.floor, np.array([-np.inf, np.inf]))
    assert ends.tolist() == [-np.inf, np.inf]


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
    with pytest.raises(InvalidInput, match=r"column 0.*declare it categorical"):
        boxes_of_trees([tree], n_columns=1)
