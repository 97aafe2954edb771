"""Scores of other methods: formulas by loops, closed forms, and other libraries."""

from inspect import signature
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import partial_dependence
from sklearn.tree import DecisionTreeRegressor

from propopt.base.errors import InvalidInput
from propopt.base.text import Quantity
from propopt.interactions import (
    PairScores,
    comparisons,
    faith_shap,
    h_statistic,
    shap_interactions,
)
from propopt.interactions.comparisons import RowGames


SUBSETS = [set(s) for size in range(5) for s in combinations(range(4), size)]
FEW = {"n_rows": 3, "n_background": 5}


def curved(X):
    return X[:, 0] * X[:, 1] + np.sin(X[:, 1] * X[:, 2]) * X[:, 3] + X[:, 0] ** 2


@pytest.fixture
def X(rng):
    return rng.normal(size=(25, 4))


def games_of(X, function=curved, rng=0, **sizes):
    sizes = {**FEW, **sizes}
    return RowGames.of(function, X, target=None, groups=None, rng=rng, **sizes)


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
    result = h_statistic(lambda X: 3.0 * X[:, 0] * X[:, 1], corners).matrix()
    assert result[0, 1] == pytest.approx(1.0, abs=1e-14)
    sizes = h_statistic(lambda X: 3.0 * X[:, 1] * X[:, 2], corners, scaled=False)
    assert sizes.matrix()[1, 2] == pytest.approx(3.0, abs=1e-14)
    assert sizes.matrix()[0, 1] == pytest.approx(0.0, abs=1e-14)
    # of pairs without any effect it is zero and no division
    result = h_statistic(lambda X: 1e6 + X[:, 0], X).matrix()
    assert np.nanmax(result) < 1e-12
    assert (np.isnan(result) == np.eye(4, dtype=bool)).all()


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
    expected = np.mean([np.abs(list(row.values())) for row in rows], axis=0)
    result = index(curved, X, **FEW)
    assert_allclose(result.estimates, expected, rtol=1e-9, atol=1e-11)


def test_groups_classes_and_seeds_are_those_that_are_given(X, rng):
    def products(table):
        return table["a"] * table["b"] + table["c"] * table["d"]

    table = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    result = h_statistic(products, table, groups={"a and b": ["a", "b"]})
    assert result.names == ("a and b", "c", "d")
    assert result.top(1).iloc[0, :2].tolist() == ["c", "d"]
    assert result.matrix()[0, 1:].max() < 1e-20
    T = rng.normal(size=(120, 3))
    y = np.where(T[:, 0] * T[:, 1] > 0.3, "x", np.where(T[:, 2] > 0, "y", "z"))
    forest = RandomForestClassifier(20, random_state=0).fit(T, y)
    result = h_statistic(forest, T, target="x", scaled=False)
    known = h_statistic(lambda X: forest.predict_proba(X)[:, 0], T, scaled=False)
    assert_allclose(result.estimates, known.estimates, rtol=1e-12)
    assert result.top(1).iloc[0, :2].tolist() == [0, 1]
    few = {"n_rows": 7, "n_background": 8}
    first, same, other = (h_statistic(curved, X, rng=k, **few) for k in (3, 3, 4))
    assert_array_equal(first.estimates, same.estimates)
    assert (first.estimates != other.estimates).all()
    assert first.n_rows == 7
    with pytest.raises(InvalidInput, match="k: expected an integer >= 1"):
        first.top(0)


def test_too_many_features_are_refused_with_what_would_do(rng):
    pytest.importorskip("shapiq")
    with pytest.raises(InvalidInput, match=r"2\^16 .* at most 15 .* groups"):
        faith_shap(lambda X: X[:, 0], rng.normal(size=(4, 16)))


def pair_scores(**fields):
    given = {
        "sets": np.array([(0, 1), (0, 2), (1, 2)]),
        "names": ("a", "<b>\x1b", "c"),
        "estimates": np.array([1.0, 2.0, 2.0]),
        "method": "some method",
        "units": "units of the output",
        "n_rows": 7,
    }
    return PairScores(**{**given, **fields})


def broken(*values):
    return {"estimates": np.array(values)}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sets": np.array([(0, 1), (0, 2), (1, 3)])}, "sets: expected ascending"),
        ({"sets": np.array([(0, 1), (0, 2), (2, 1)])}, "sets: expected ascending"),
        ({"sets": np.array([(0, 1, 2)] * 3)}, r"sets: expected shape \(3, 2\)"),
        (broken(1.0, -1.0, 0.0), "estimates: expected numbers >= 0"),
        (broken(1.0, np.nan, 0.0), "estimates: 1 of 3 values are not finite"),
        (broken(1.0, 1.0), "estimates: expected shape"),
        ({"n_rows": 0}, "n_rows: expected an integer >= 1"),
        ({"method": None}, "method: expected text"),
    ],
)
def test_what_is_no_score_of_pairs_is_not_saved(tmp_path, fields, message):
    with pytest.raises(InvalidInput, match=rf"^(.* cannot be saved: )?{message}"):
        pair_scores(**fields).save(tmp_path / "pairs.npz")
    assert not list(tmp_path.iterdir())


def test_a_card_tells_which_pair_is_first_of_whom_and_that_no_error_is_known(X):
    scores = pair_scores(quantity=Quantity(model="Ridge"))
    assert str(scores) == (
        "a × c interact most in the prediction of Ridge, of 3 pairs\n"
        "some method: units of the output; 7 rows\n"
        "  a × c        +2\n"
        "  <b>\\x1b × c  +2\n"
        "  a × <b>\\x1b  +1\n"
        "of one fitted model, without intervals: no error is known"
    )
    assert "<b>" not in scores._repr_html_()
    assert scores.top(2).index.tolist() == [1, 2]  # ties keep the order of the pairs
    none = pair_scores(estimates=np.zeros(3))
    assert none.card().title == "None of 3 pairs interacts"
    assert repr(scores) == "PairScores(3 pairs; 3 features; 7 rows; some method)"
    many = h_statistic(lambda X: X.prod(axis=1), np.hstack([X, X[:, :2] ** 2]))
    card = many.card()
    assert [row.value for row in card.rows] == sorted(many.estimates, reverse=True)[:10]
    assert card.rest.startswith("5 others, at most ")
    assert many.quantity is not None
