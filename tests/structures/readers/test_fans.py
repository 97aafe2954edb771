"""Trees whose nodes send several intervals to a side, as trees with one cut a node."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from random_trees import boxes_of_trees

from propopt.structures.boxes.sets import Tree
from propopt.structures.readers import tree_nodes
from propopt.structures.readers.tree_nodes import Split, fan, fanned, written


INF = np.inf
N_CODES = 3
VALUES = np.append(np.arange(-1.0, 8.0, 0.5), np.nan)


def some_fan(rng, most):
    ends = np.sort(rng.choice(np.arange(0.0, 7.0), rng.integers(0, most), False))
    return fan(ends, rng.random(len(ends) + 1) < 0.5)


def some_tree(rng, depth):
    """A tree of two columns of numbers and one of codes, and fans of its nodes."""
    fan_of, nodes = {}, count()

    def read(left):
        node = next(nodes)
        if left == 0 or rng.random() < 0.1:
            return float(rng.normal())
        column = int(rng.integers(0, 3))
        codes = rng.random(N_CODES) < 0.5 if column == 2 else None
        cut, missing = float(rng.integers(0, 7)), bool(rng.random() < 0.5)
        if column < 2 and rng.random() < 0.5:
            fan_of[node] = some_fan(rng, 6)
        return Split(column, cut, missing, left - 1, left - 1, codes)

    return written(depth, read), fan_of


def walk(tree, fan_of, point):
    """The value of the leaf, by what nodes and fans say."""
    node = 0
    while tree.feature[node] >= 0:
        x = point[tree.feature[node]]
        if node in tree.left_codes:
            left = tree.left_codes[node][int(x)]
        elif np.isnan(x):
            left = tree.missing_left[node]
        elif node in fan_of:
            ends, goes_left = fan_of[node]
            left = goes_left[np.searchsorted(ends, x)]
        else:
            left = x <= tree.threshold[node]
        node = tree.left[node] if left else tree.right[node]
    return tree.value[node]


@pytest.mark.parametrize("seed", range(20))
def test_trees_with_fans_are_what_their_fans_say(seed):
    rng = np.random.default_rng(seed)
    tree, fan_of = some_tree(rng, depth=5)
    points = np.column_stack(
        [
            rng.choice(VALUES, 300),
            rng.choice(VALUES, 300),
            rng.integers(0, N_CODES, 300),
        ]
    )
    truth = [walk(tree, fan_of, point) for point in points]
    result = fanned(tree, fan_of)
    boxes = boxes_of_trees([result], n_columns=3, n_codes=(None, None, N_CODES))
    np.testing.assert_array_equal(boxes.value(points), truth)


def test_fans_alternate_and_have_no_empty_runs():
    left = np.array([True, True, False, True, False, False])
    ends, goes_left = fan(np.array([1.0, 2.0, 2.0, 3.0, 4.0]), left)
    # up to 2 left, of which the second 2 has nothing; up to 3 left; beyond right
    np.testing.assert_array_equal(ends, [3.0, INF])
    np.testing.assert_array_equal(goes_left, [True, False])


@pytest.mark.parametrize("side", [True, False])
def test_what_sends_everything_to_one_side_stays_one_node(side):
    tree = Tree.of([0, -1, -1], [0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 2], [1, 0, 0])
    result = fanned(tree, {0: fan(np.array([-INF]), np.array([not side, side]))})
    boxes = boxes_of_trees([result], n_columns=1)
    expected = 1.0 if side else 2.0
    np.testing.assert_array_equal(boxes.value(np.array([[-5.0], [5.0]])), expected)
    np.testing.assert_array_equal(boxes.value(np.array([[np.nan]])), [1.0])


def test_trees_that_would_be_too_large_are_not_made(monkeypatch):
    rng = np.random.default_rng(0)
    tree, _ = some_tree(rng, depth=5)
    wide = {0: fan(np.arange(10.0), np.arange(11) % 2 == 0)}
    assert fanned(tree, wide) is not None
    monkeypatch.setattr(tree_nodes, "MOST_NODES", 10)
    assert fanned(tree, wide) is None
