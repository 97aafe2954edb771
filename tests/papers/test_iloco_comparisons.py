"""Scores of other methods: formulas by loops, closed forms, and other libraries."""

from inspect import signature
from itertools import combinations
from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.inspection import partial_dependence
from sklearn.tree import DecisionTreeRegressor

from papers.iloco import comparisons
from papers.iloco.comparisons import (
    MarginalGames,
    faith_shap,
    h_statistic,
    shap_interactions,
)
from propopt.base.errors import InvalidInput


SUBSETS = [set(s) for size in range(5) for s in combinations(range(4), size)]
FEW = {"n_rows": 3, "n_background": 5}


def curved(X):
    return X[:, 0] * X[:, 1] + np.sin(X[:, 1] * X[:, 2]) * X[:, 3] + X[:, 0] ** 2


@pytest.fixture
def X(rng):
    return rng.normal(size=(25, 4))


def games_of(X, function=curved, rng=0, **sizes):
    sizes = {**FEW, **sizes}
    return MarginalGames.of(function, X, target=None, rng=rng, **sizes)


def literal(own, row, known):
    mixed = own.background.copy()
    mixed[:, list(known)] = own.points[row, list(known)]
    return float(curved(mixed).mean())


def test_games_are_means_over_the_background(X, monkeypatch):
    own = games_of(X)
    for row in range(3):
        for known in SUBSETS:
            place = sum(2**j for j in known)
            expected = pytest.approx(literal(own, row, known), rel=1e-13)
            assert own.table[row, place] == expected
    one = comparisons.MODEL_CALLS.__class__(1, 1)  # however few rows go into a call
    monkeypatch.setattr(comparisons, "MODEL_CALLS", one)
    assert_array_equal(games_of(X).table, own.table)


@pytest.mark.skipif(
    "custom_values" not in signature(partial_dependence).parameters,
    reason="partial dependence takes its grid from scikit-learn 1.7 on",
)
def test_h_is_what_partial_dependence_of_scikit_learn_gives(X):
    tree = DecisionTreeRegressor(random_state=0).fit(X, curved(X))
    result = h_statistic(tree, X, n_rows=25, n_background=25)

    def dependence(columns):
        how = {"method": "brute", "kind": "average"}
        values = {j: X[:, j] for j in columns}
        got = partial_dependence(tree, X, columns, custom_values=values, **how)
        got = got["average"][0]
        at_rows = got if got.ndim == 1 else np.diag(got)
        return at_rows - at_rows.mean()

    for (j, k), h in zip(result.sets.tolist(), result.estimates, strict=True):
        both = dependence([j, k])
        beyond = both - dependence([j]) - dependence([k])
        assert h == pytest.approx((beyond**2).sum() / (both**2).sum(), rel=1e-9)


def test_h_of_a_product_of_centred_columns_is_one(rng, X):
    corners = rng.permuted(np.repeat([-1.0, 1.0], 8))[:, None] * np.ones((1, 3))
    corners[:, 1] = np.tile([-1.0, 1.0], 8)
    corners[:, 2] = np.repeat([-1.0, 1.0], 8)
    result = h_statistic(lambda X: 3.0 * X[:, 0] * X[:, 1], corners)
    assert result.sets.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert_allclose(result.estimates, [1.0, 0.0, 0.0], atol=1e-14)
    # a pair without any effect has zero, and no division
    result = h_statistic(lambda X: 1e6 + X[:, 0], X)
    assert result.estimates.max() < 1e-12


def taylor_interactions(values):
    """The sum of the definition, for all pairs of four players."""
    return {
        pair: sum(
            2 / 4 / comb(3, len(s))
            * (-1) ** len(part) * values[frozenset(s | set(part))]
            for s in SUBSETS if not s & set(pair)
            for part in [pair, pair[:1], pair[1:], ()]
        )
        for pair in combinations(range(4), 2)
    }  # fmt: skip


def faithful_interactions(values):
    """Möbius coefficients of pairs, and what larger sets add (Tsai et al., Eq. 19)."""
    moebius = {
        frozenset(s): sum(
            (-1) ** (len(s) - len(part)) * values[frozenset(part)]
            for part in SUBSETS if part <= s
        )
        for s in SUBSETS
    }  # fmt: skip
    return {
        pair: moebius[frozenset(pair)]
        + 2 / 4 * sum(
            comb(len(s) - 1, 2) / comb(len(s) + 1, 4) * m
            for s, m in moebius.items() if len(s) > 2 and set(pair) < s
        )
        for pair in combinations(range(4), 2)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("package", "index", "definition"),
    [
        ("shapiq", faith_shap, faithful_interactions),
        pytest.param("shap", shap_interactions, taylor_interactions,
                     marks=pytest.mark.slow),  # it compiles for some seconds
    ],
)  # fmt: skip
def test_indices_are_their_definitions(package, index, definition, X):
    pytest.importorskip(package)
    own = games_of(X)
    rows = [
        definition({frozenset(s): literal(own, row, s) for s in SUBSETS})
        for row in range(3)
    ]
    signed = np.array([list(row.values()) for row in rows])
    result = index(curved, X, **FEW)
    close = {"rtol": 1e-9, "atol": 1e-11}
    assert_allclose(result.at_rows, signed, **close)
    assert_allclose(result.estimates, np.abs(signed).mean(axis=0), **close)
    assert_allclose(result.sizes_of_means, np.abs(signed.mean(axis=0)), **close)


def test_too_many_features_are_refused_with_what_would_do(rng):
    pytest.importorskip("shapiq")
    with pytest.raises(InvalidInput, match=r"2\^16 .* at most 15 columns"):
        faith_shap(lambda X: X[:, 0], rng.normal(size=(4, 16)))
