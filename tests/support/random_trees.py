"""Trees made at random, and what they answer by walking from node to node."""

import numpy as np

from propopt.structures.boxes.boxes import DOUBLE_TOLERANCE, TreeSum
from propopt.structures.boxes.sets import Tree


def boxes_of_trees(
    trees, base=0.0, *, n_columns, n_codes=None, tolerance=DOUBLE_TOLERANCE
):
    """The sum of trees as boxes; columns have so many codes, or are numbers."""
    codes = (None,) * n_columns if n_codes is None else tuple(n_codes)
    return TreeSum(tuple(trees), base, codes, tolerance).boxes()


def random_tree(rng, n_features, depth, *, coded=(), n_codes=4, at=(-1.5, 1.5)):
    """A tree of columns of numbers, and of codes where they are ``coded``."""
    feature, threshold, missing_left = [], [], []
    left, right, value, left_codes = [], [], [], {}

    def grow(levels):
        node = len(feature)
        inner = levels > 0 and (levels == depth or rng.random() < 0.8)
        k = int(rng.integers(n_features)) if inner else -1
        feature.append(k)
        threshold.append(round(rng.uniform(*at), 1))
        missing_left.append(rng.random() < 0.5)
        value.append(rng.normal())
        left.append(-1)
        right.append(-1)
        if k in coded:
            left_codes[node] = rng.random(n_codes) < 0.5
        if inner:
            left[node] = grow(levels - 1)
            right[node] = grow(levels - 1)
        return node

    grow(depth)
    return Tree.of(feature, threshold, left, right, value, missing_left, left_codes)


def chain_of_splits(rng, depth):
    """A tree with a box of each number of sets up to so many, a column for each."""
    nodes, leaf = np.arange(2 * depth + 1), -np.ones(2 * depth + 1, int)
    feature, left, right = leaf.copy(), leaf.copy(), leaf.copy()
    splits = nodes[: 2 * depth : 2]
    feature[splits], left[splits], right[splits] = splits // 2, splits + 1, splits + 2
    cuts = np.full(len(nodes), -1.3)
    return Tree.of(feature, cuts, left, right, rng.normal(size=len(nodes)))


def walk(tree, rows, run_splits=None):
    """Values of the leaves that rows, as the model sees them, end in; node by node.

    Some nodes may send several runs of numbers to each side, by their ends.
    """
    values = np.empty(len(rows))
    stack = [(0, np.arange(len(rows)))]
    while stack:
        node, here = stack.pop()
        k = tree.feature[node]
        if k < 0:
            values[here] = tree.value[node]
            continue
        x = rows[here, k]
        left = x <= tree.threshold[node]
        if node in tree.left_codes:
            listed = np.flatnonzero(tree.left_codes[node])
            left = np.isin(x, listed)
        elif node in (run_splits or {}):
            ends, goes_left = run_splits[node]
            left = goes_left[np.minimum(np.searchsorted(ends, x), len(ends) - 1)]
        left = np.where(np.isnan(x), tree.missing_left[node], left)
        stack += [(tree.left[node], here[left]), (tree.right[node], here[~left])]
    return values


def walk_all(trees, rows):
    """Sums over trees at each row."""
    return sum(walk(tree, rows) for tree in trees)


def some_rows(rng, n_rows, n_features, *, coded=(), n_codes=4, missing=0.2):
    """Rows of numbers with one decimal, some of them missing, and of codes."""
    rows = rng.normal(size=(n_rows, n_features)).round(1)
    rows[rng.random(rows.shape) < missing] = np.nan
    for k in coded:
        rows[:, k] = rng.integers(n_codes, size=n_rows)
    return rows
