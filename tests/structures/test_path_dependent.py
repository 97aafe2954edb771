"""Path-dependent values and pairs: all subsets, by walking weighted trees."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from random_trees import boxes_of_trees, chain_of_splits, random_tree, some_rows

from propopt.base.errors import Refused
from propopt.base.resources import Budget
from propopt.base.text import Reason
from propopt.structures.boxes import nodes, path_dependent
from propopt.structures.boxes.path_dependent import PathDependent
from propopt.structures.boxes.sets import node_shares


D, CODED, K = 6, (3,), 4
N_CODES = tuple(K if k in CODED else None for k in range(D))

pytestmark = pytest.mark.usefixtures("kernels")  # compiled, and by NumPy


def with_covers(rng, tree, empty=0.1):
    """The tree with weights of training rows at leaves, some of which are empty."""
    n = len(tree.feature)
    cover = rng.integers(1, 50, n) * (rng.random(n) >= empty)
    for node in range(n - 1, -1, -1):
        if tree.feature[node] >= 0:
            cover[node] = cover[tree.left[node]] + cover[tree.right[node]]
    left = np.where(tree.feature >= 0, tree.left, -1)
    right = np.where(tree.feature >= 0, tree.right, -1)
    return replace(tree, share=node_shares(cover.astype(float), left, right))


def trees_of(seed, n_trees=4, depth=6):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, D, depth, coded=CODED, n_codes=K) for _ in range(n_trees)]
    return [with_covers(rng, tree) for tree in trees]


def rows_of(seed, n_rows):
    rng = np.random.default_rng(seed)
    return some_rows(rng, n_rows, D, coded=CODED, n_codes=K)


def boxes_of(trees, base=0.5):
    return boxes_of_trees(trees, base, n_columns=D, n_codes=N_CODES)


def worth(tree, rows, known, node=0):
    """v of the columns that are known, by following both branches elsewhere."""
    k = tree.feature[node]
    if k < 0:
        return np.full(len(rows), tree.value[node])
    below = [tree.left[node], tree.right[node]]
    left, right = (worth(tree, rows, known, child) for child in below)
    if not known[k]:
        return tree.share[below[0]] * left + tree.share[below[1]] * right
    x = rows[:, k]
    goes_left = x <= tree.threshold[node]
    if node in tree.left_codes:
        goes_left = np.isin(x, np.flatnonzero(tree.left_codes[node]))
    goes_left = np.where(np.isnan(x), tree.missing_left[node], goes_left)
    return np.where(goes_left, left, right)


def by_subsets(trees, rows, n_columns=D):
    """Values (N, D), interactions (N, D, D) and v(∅) by all subsets of columns."""
    subsets = (np.arange(2**n_columns)[:, None] >> np.arange(n_columns)) % 2 == 1
    v = np.array([sum(worth(tree, rows, S) for tree in trees) for S in subsets])
    phi = np.zeros((len(rows), n_columns))
    pairs = np.zeros((len(rows), n_columns, n_columns))
    for s, S in enumerate(subsets):
        size = int(S.sum())
        for i in np.flatnonzero(~S):
            others = n_columns - size - 1
            weight = math.factorial(size) * math.factorial(others)
            weight /= math.factorial(n_columns)
            phi[:, i] += weight * (v[s | 1 << i] - v[s])
            for j in np.flatnonzero(~S & (np.arange(n_columns) != i)):
                both = s | 1 << i | 1 << j
                change = v[both] - v[s | 1 << i] - v[s | 1 << j] + v[s]
                pairs[:, i, j] += weight * n_columns / others * change
    return phi, pairs, v[0]


@pytest.mark.parametrize("seed", range(6))
def test_values_and_pairs_are_those_of_all_subsets(seed):
    trees, rows = trees_of(seed, depth=2 + seed), rows_of(seed + 50, 12)
    phi, pairs, empty = by_subsets(trees, rows)
    read = boxes_of(trees)
    game = PathDependent.of(read)
    assert np.abs(phi).max() > 0.05
    assert np.abs(pairs).max() > 0.01
    np.testing.assert_allclose(game.values(rows), phi, rtol=0, atol=1e-13)
    np.testing.assert_allclose(game.pairs(rows), pairs, rtol=0, atol=1e-13)
    np.testing.assert_allclose(game.base, 0.5 + empty, rtol=0, atol=1e-13)
    sums = game.values(rows).sum(axis=1) + game.base
    np.testing.assert_allclose(sums, read.value(rows), rtol=0, atol=1e-13)


def test_a_cover_that_is_one_percent_larger_is_seen():
    trees, rows = trees_of(0), rows_of(50, 12)
    share = trees[0].share.copy()
    children = [trees[0].left[0], trees[0].right[0]]
    share[children] *= [1.01, 1.0]
    share[children] /= share[children].sum()
    phi, _, _ = by_subsets([replace(trees[0], share=share), *trees[1:]], rows)
    assert np.abs(PathDependent.of(boxes_of(trees)).values(rows) - phi).max() > 1e-5


@pytest.mark.parametrize("length", [1, 2, 3, 16, 17, 40, 62])
def test_leaves_of_many_sets_add_up(length):
    """Values to what f changes, pairs to what values change in a smaller game."""
    rng = np.random.default_rng(length)
    tree = with_covers(rng, chain_of_splits(rng, length), empty=0.0)
    read = boxes_of_trees([tree], n_columns=length)
    rows = rng.normal(size=(70, length)) - 0.8
    rows[0] = -1.2  # in all sets of the last leaf
    game = PathDependent.of(read)
    values, pairs = game.values(rows), game.pairs(rows[:40])
    for n in range(3):  # rows by themselves
        np.testing.assert_array_equal(game.values(rows[[n]])[0], values[n])
        np.testing.assert_array_equal(game.pairs(rows[[n]])[0], pairs[n])
    changes = read.value(rows) - game.base
    np.testing.assert_allclose(values.sum(axis=1), changes, rtol=0, atol=1e-14)
    if length == 1:
        assert not pairs.any()
    elif length <= 3:
        phi, wanted, _ = by_subsets([tree], rows[:40], length)
        np.testing.assert_allclose(values[:40], phi, rtol=0, atol=1e-15)
        np.testing.assert_allclose(pairs, wanted, rtol=0, atol=1e-15)
    else:
        # Σ_j I_0j is what the others add up to if column 0 is known, less if it is not
        whole = []
        for below, x in ((tree.left[0], -2.0), (tree.right[0], 2.0)):
            share = tree.share.copy()
            share[[tree.left[0], tree.right[0]]] = 0.0
            share[below] = 1.0
            side = boxes_of_trees([replace(tree, share=share)], n_columns=length)
            moved = np.column_stack([np.full(40, x), rows[:40, 1:]])
            whole.append(PathDependent.of(side).values(moved)[:, 1:].sum(axis=1))
        known = np.where(rows[:40, 0] <= tree.threshold[0], *whole)
        unknown = tree.share[tree.left[0]] * whole[0]
        unknown += tree.share[tree.right[0]] * whole[1]
        sums = pairs[:, 0].sum(axis=1)
        np.testing.assert_allclose(sums, known - unknown, rtol=0, atol=1e-14)


def test_blocks_units_threads_and_kernels_have_the_same_digits(kernels, monkeypatch):
    trees, rows = trees_of(3, 2), np.repeat(rows_of(10, 20), 5, axis=0)
    rng = np.random.default_rng(0)
    trees.append(with_covers(rng, random_tree(rng, D, 4), empty=0.0))
    monkeypatch.setenv("PROPOPT_KERNELS", "numpy")
    game = PathDependent.of(boxes_of(trees))
    wanted = game.values(rows), game.pairs(rows)
    monkeypatch.setenv("PROPOPT_KERNELS", kernels)
    for budget in (Budget(2**25), Budget(400_000)):
        monkeypatch.setattr(path_dependent, "POINTS_AT_ONCE", budget)
        for some in (slice(None), slice(5, 6), slice(0, 9), slice(8, 98)):
            np.testing.assert_array_equal(game.values(rows[some]), wanted[0][some])
            np.testing.assert_array_equal(game.pairs(rows[some]), wanted[1][some])
    monkeypatch.setattr(nodes, "_UNIT_NODES", 8)
    monkeypatch.setattr(nodes, "_STEPS_OF_THREADS", 0.0)
    game = PathDependent.of(boxes_of(trees))
    monkeypatch.setenv("PROPOPT_KERNELS", "numpy")
    wanted = game.values(rows), game.pairs(rows)
    monkeypatch.setenv("PROPOPT_KERNELS", kernels)
    for retained in (2**28, 0):  # what leaves give to any row, or made for each row
        monkeypatch.setattr(path_dependent, "TABLE_BYTES", retained)
        game = PathDependent.of(boxes_of(trees))
        for some in (slice(None), *(slice(n, n + 1) for n in (0, 5, 5, 10))):
            np.testing.assert_array_equal(game.values(rows[some]), wanted[0][some])
            np.testing.assert_array_equal(game.pairs(rows[some]), wanted[1][some])


def test_saabas_values_are_changes_of_means_on_the_path():
    trees, rows = trees_of(5), rows_of(51, 20)
    nobody = np.zeros(D, bool)
    wanted = np.zeros(rows.shape)
    for tree in trees:
        for n in range(len(rows)):
            node = 0
            while (k := tree.feature[node]) >= 0:
                # the side of this node alone, from a tree of its children's numbers
                ends = np.where(
                    np.arange(len(tree.feature)) == tree.left[node], 1.0, 2.0
                )
                feature = np.where(np.arange(len(ends)) == node, k, -1)
                stump = replace(tree, feature=feature, value=ends)
                side = worth(stump, rows[[n]], ~nobody, node)[0]
                after = tree.left[node] if side == 1.0 else tree.right[node]
                means = [worth(tree, rows[:1], nobody, at)[0] for at in (node, after)]
                wanted[n, k] += means[1] - means[0]
                node = after
    values = PathDependent.of(boxes_of(trees)).saabas(rows)
    np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-14)


def test_what_has_no_covers_or_too_long_paths_is_refused():
    rng = np.random.default_rng(0)
    unknown = random_tree(rng, D, 3)
    lost = trees_of(1)[0]
    lost = replace(lost, share=lost.share * 0.9)
    for tree in (unknown, lost):
        reason = PathDependent.of(boxes_of([*trees_of(0), tree]))
        assert isinstance(reason, Reason)
        assert "data=" in reason.reason
    tree = with_covers(rng, chain_of_splits(rng, 63))
    with pytest.raises(Refused, match="uses 63 columns"):
        PathDependent.of(boxes_of_trees([tree], n_columns=63))
    constant = PathDependent.of(boxes_of([]))
    assert constant.base == 0.5
    for n_rows in (1, 3):
        assert not constant.values(rows_of(0, n_rows)).any()


def test_a_saved_game_is_without_what_single_rows_need():
    game = PathDependent.of(boxes_of(trees_of(2)))
    before = len(pickle.dumps(game))
    row = rows_of(3, 1)
    values = game.values(row)
    assert len(pickle.dumps(game)) <= before + 200
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(game)).values(row), values)
