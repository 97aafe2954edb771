"""Means and contrasts of deep trees by their cells, against those of all boxes."""

import numpy as np
import pytest

from propopt.laws.column_laws import CodedLaw, NumericLaw
from propopt.laws.data_law import Means, NoiseLaw
from propopt.structures.boxes import nodes
from propopt.structures.boxes.cells import TreeCells
from tests.support.random_trees import boxes_of_trees, random_tree


D, K, CODED = 5, 4, (1, 3)


class LawOfColumns:
    """Laws of columns without a reference, which missing codes would need."""

    def __init__(self, X, n_codes):
        self.columns = [
            NumericLaw.of(x, "x") if count is None else CodedLaw.of(x, K)
            for x, count in zip(X.T, n_codes, strict=True)
        ]


@pytest.fixture
def used(monkeypatch):
    """The calls by cells, of trees that count as deep."""
    calls, contrasts = [], TreeCells.contrasts

    def counted(self, *measures):
        calls.append(self)
        return contrasts(self, *measures)

    monkeypatch.setattr(TreeCells, "contrasts", counted)
    monkeypatch.setattr(nodes, "_UNIT_NODES", 4)
    return calls


@pytest.mark.parametrize("law", ["data", "noise"])
@pytest.mark.parametrize("seed", range(12))
def test_cells_have_the_means_and_contrasts_of_boxes(seed, law, used, monkeypatch):
    monkeypatch.setenv("PROPOPT_KERNELS", "c")
    rng = np.random.default_rng(seed)
    coded = CODED if seed % 3 else ()
    trees = [random_tree(rng, D, depth, coded=coded) for depth in (1, 7, 3, 5)]
    n_codes = [K if j in coded else None for j in range(D)]
    X = rng.normal(size=(40, D))
    X[rng.random(X.shape) < 0.1] = np.nan
    for j in coded:
        X[:, j] = rng.integers(K - seed % 2, size=len(X))  # a code may not occur
    read = boxes_of_trees(trees, 0.3, n_columns=D, n_codes=n_codes)
    if law == "data":
        law = LawOfColumns(X, n_codes)
    else:
        shares = [None if count is None else np.full(K, 1 / K) for count in n_codes]
        law = NoiseLaw(np.array([0.3, 0, 0.5, 0.2, 0]), tuple(shares))
    means = Means(read, law)
    value, contrasts = means.of(X)
    alone = [means.of(row) for row in X[:, None]]
    np.testing.assert_array_equal(np.concatenate([v for v, _ in alone]), value)
    np.testing.assert_array_equal(np.concatenate([c for _, c in alone]), contrasts)
    assert len(used) == 42
    monkeypatch.setenv("PROPOPT_KERNELS", "numpy")
    expected, of_columns = Means(read, law).of(X)
    assert len(used) == 42
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(contrasts, of_columns, rtol=0, atol=1e-12)
    untested = np.setdiff1d(np.arange(D), read.columns)
    assert not contrasts[:, untested].any()


def test_codes_that_all_go_one_way_have_no_contrast(used):
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 2, 4, coded=(0,))
    for listed in tree.left_codes.values():
        listed[:] = True
    codes = np.repeat(np.arange(K), [1, 2, 7, 11])  # shares that do not add up to 1
    X = np.column_stack([codes, rng.normal(size=len(codes))])
    other = random_tree(rng, 2, 4, coded=(0,), at=(9.0, 9.5))
    for listed in other.left_codes.values():
        listed[:] = True
    read = boxes_of_trees([tree, other], n_columns=2, n_codes=[K, None])
    contrasts = Means(read, LawOfColumns(X, [K, None])).of(X)[1]
    assert len(used) == 1
    assert contrasts[:, 1].any()
    assert not contrasts[:, 0].any()
