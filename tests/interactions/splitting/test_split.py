"""Learners without features on held-out rows: exact values, folds, workers."""

from __future__ import annotations

import pickle
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from refit_cases import co_moebius, product_table, read, worth
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from propopt.base.arrays import Array
from propopt.base.errors import InvalidInput, Refused
from propopt.interactions import DataSplit
from propopt.interactions import splitting as splitting_errors
from propopt.interactions.left_out import set_scores
from propopt.interactions.splitting import SplitErrors


X, Y = product_table()
TREE = DecisionTreeRegressor(min_samples_leaf=3, random_state=0)
EMPTY = np.zeros((1, 0), dtype=np.intp)


def fitted(scheme: DataSplit, estimator: Any = TREE, **settings: Any) -> SplitErrors:
    return scheme.fit(read(estimator, X, Y), seed=7, **settings)


@pytest.mark.parametrize(
    "estimator", [TREE, LinearRegression(), KNeighborsRegressor(3)]
)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_scores_are_the_co_moebius_transform_of_refits(
    estimator: Any, order: int
) -> None:
    source = fitted(DataSplit(test_size=0.4), estimator)
    (fold,) = DataSplit(test_size=0.4).drawn_folds(len(Y), 7)
    game = worth(
        estimator, (X[fold.training], Y[fold.training]), (X[fold.test], Y[fold.test])
    )
    sets = source.features.all_sets(order)
    result = set_scores(source, sets)["estimates"]
    expected = [co_moebius(game, tuple(own)) for own in sets.tolist()]
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


def test_scores_are_those_of_shapiq() -> None:
    shapiq = pytest.importorskip("shapiq")
    source = fitted(DataSplit())
    (fold,) = DataSplit().drawn_folds(len(Y), 7)
    training, test = (X[fold.training], Y[fold.training]), (X[fold.test], Y[fold.test])
    game = worth(TREE, training, test)

    def play(coalitions: Any) -> Array:
        sets = [frozenset(np.flatnonzero(own).tolist()) for own in coalitions]
        return np.array([game[own] for own in sets])

    computer = shapiq.ExactComputer(game=play, n_players=X.shape[1])
    values = computer("Co-Moebius", order=4)
    for order in (1, 2, 3, 4):
        sets = source.features.all_sets(order)
        result = set_scores(source, sets)["estimates"]
        expected = [values[tuple(own)] for own in sets.tolist()]
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


def test_each_row_is_judged_once_by_folds_that_did_not_have_it() -> None:
    scheme = DataSplit(n_folds=4)
    source = fitted(scheme, LinearRegression())
    folds = scheme.drawn_folds(len(Y), 7)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(60))
    expected = np.empty(60)
    for fold in folds:
        assert not set(fold.training) & set(fold.test)
        model = LinearRegression().fit(X[fold.training][:, 1:], Y[fold.training])
        expected[fold.test] = (Y[fold.test] - model.predict(X[fold.test][:, 1:])) ** 2
    rows = source.errors(np.array([[0]])).rows[:, 0]
    np.testing.assert_allclose(rows, expected, rtol=1e-12)


def test_new_rows_are_judged_by_the_same_predictors() -> None:
    new, target = product_table(33, seed=5)
    for scheme in (DataSplit(), DataSplit(n_folds=7)):
        source = fitted(scheme, Ridge())
        judged = source.judged_on(new, target)
        rows = judged.errors(np.array([[2], [3]])).rows
        expected = np.zeros(33)
        whole = np.zeros(33)
        folds = scheme.drawn_folds(60, 7)
        n_judged = sum(len(fold.test) for fold in folds)
        for fold in folds:  # folds of 9 and of 8 rows count as they have rows
            share = len(fold.test) / n_judged
            model = Ridge().fit(X[fold.training][:, [0, 1, 3]], Y[fold.training])
            expected += share * (target - model.predict(new[:, [0, 1, 3]])) ** 2
            full = Ridge().fit(X[fold.training], Y[fold.training])
            whole += share * full.predict(new)
        np.testing.assert_allclose(rows[:, 0], expected, rtol=1e-12)
        np.testing.assert_allclose(source.predict(new), whole, rtol=1e-12)
        again = judged.judged_on(new, target).errors(np.array([[2]])).rows
        np.testing.assert_array_equal(again[:, 0], rows[:, 0])


FOREST = RandomForestRegressor(n_estimators=3, max_depth=3)


@pytest.mark.parametrize("scheme", [DataSplit(), DataSplit(n_folds=3)])
def test_numbers_do_not_depend_on_workers_or_on_what_was_asked_before(
    scheme: DataSplit,
) -> None:
    pairs = np.array(list(combinations(range(4), 2)))
    one = fitted(scheme, FOREST).errors(pairs).rows
    two = fitted(scheme, FOREST, n_jobs=2, sets=pairs).errors(pairs).rows
    np.testing.assert_array_equal(one, two)
    later = fitted(scheme, FOREST)
    later.errors(EMPTY)
    backwards = later.errors(pairs[::-1]).rows[:, ::-1]
    np.testing.assert_array_equal(one, backwards)
    other = scheme.fit(read(FOREST, X, Y), seed=8).errors(pairs).rows
    assert not np.array_equal(one, other)


def test_each_set_is_fitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[tuple[int, ...]] = []
    original = splitting_errors.SetPlan.known

    def counted(plan: Any, k: int, *settings: Any) -> Any:
        fits.append(plan.left_out[k])
        return original(plan, k, *settings)

    monkeypatch.setattr(splitting_errors.SetPlan, "known", counted)
    pairs = np.array(list(combinations(range(4), 2)))
    source = fitted(DataSplit(), LinearRegression(), sets=pairs)
    assert len(fits) == len(set(fits)) == 1 + 4 + 6
    set_scores(source, pairs)
    assert len(fits) == 11
    set_scores(source, np.array([[0, 1, 2]]))
    assert fits[11:] == [(0, 1, 2)]


def test_what_is_fitted_survives_pickling() -> None:
    source = fitted(DataSplit(), LinearRegression(), sets=np.array([[0, 1]]))
    again = pickle.loads(pickle.dumps(source))
    pairs = np.array([[0, 1], [1, 3]])
    np.testing.assert_array_equal(again.errors(pairs).rows, source.errors(pairs).rows)


LABELS = np.repeat(["no", "perhaps", "yes"], [30, 20, 10])


@pytest.mark.parametrize("seed", range(5))
def test_stratified_parts_have_the_shares_of_the_classes(seed: int) -> None:
    (fold,) = DataSplit(test_size=0.3, stratify=True).drawn_folds(60, seed, LABELS)
    counts = np.unique(LABELS[fold.test], return_counts=True)[1]
    np.testing.assert_array_equal(counts, [9, 6, 3])
    for part in DataSplit(n_folds=7, stratify=True).drawn_folds(60, seed, LABELS):
        counts = np.unique(LABELS[part.test], return_counts=True)[1]
        assert (np.abs(counts - [30 / 7, 20 / 7, 10 / 7]) < 1).all()
        assert len(part.test) in (8, 9)


def test_stratified_classes_of_a_classifier() -> None:
    refits = read(LogisticRegression(), X, LABELS)
    source = DataSplit(test_size=0.3, stratify=True).fit(refits, seed=0)
    assert np.bincount(refits.y[source.folds[0].test]).tolist() == [9, 6, 3]
    assert np.bincount(refits.y[source.folds[0].training]).tolist() == [21, 14, 7]


def test_rows_are_drawn_alike() -> None:
    # of 4,000 draws each row is held out 0.4 of the time, within 5 sigma
    drawn = [
        DataSplit(test_size=0.4).drawn_folds(10, seed)[0].test for seed in range(4000)
    ]
    shares = np.bincount(np.concatenate(drawn), minlength=10) / 4000
    assert np.abs(shares - 0.4).max() < 5 * np.sqrt(0.24 / 4000)
    assert {len(test) for test in drawn} == {4}


def test_weights_of_rows_are_for_fits_and_for_means() -> None:
    weights = np.random.default_rng(3).uniform(0, 2, 60)
    refits = read(Ridge(), X, Y, sample_weight=weights)
    source = DataSplit().fit(refits, seed=7)
    (fold,) = DataSplit().drawn_folds(60, 7)
    own = weights[fold.test]
    np.testing.assert_allclose(source.row_weights, own * 30 / own.sum(), rtol=1e-12)
    model = Ridge().fit(X[fold.training], Y[fold.training], weights[fold.training])
    expected = (Y[fold.test] - model.predict(X[fold.test])) ** 2
    np.testing.assert_allclose(source.errors(EMPTY).rows[:, 0], expected, rtol=1e-12)
    mean = np.average(expected, weights=own)
    result = source.row_weights @ source.errors(EMPTY).rows[:, 0] / 30
    assert result == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"test_size": 0.0}, "test_size: expected a share between 0 and 1, got 0.0"),
        ({"test_size": 1}, "test_size: expected a share between 0 and 1, got 1"),
        ({"test_size": True}, "test_size: expected a share between 0 and 1, got True"),
        ({"n_folds": 1}, "n_folds: expected an integer >= 2, got 1"),
        ({"n_folds": 2.0}, "n_folds: expected an integer >= 1, got 2.0"),
        ({"stratify": "no"}, "stratify: expected True or False, got 'no'"),
        ({"n_folds": 5, "test_size": 0.2}, "test_size: with n_folds=5 each row"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        DataSplit(**settings)


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        (
            DataSplit(n_folds=61),
            "n_folds: expected at most 60, of so many rows, got 61",
        ),
        (DataSplit(test_size=0.02), "0.02 of 60 rows holds out 1"),
        (DataSplit(test_size=0.999), "0.999 of 60 rows holds out 60"),
        (
            DataSplit(stratify=True),
            "stratify: rows are drawn by class, and a regressor",
        ),
    ],
)
def test_tables_that_cannot_be_split(scheme: DataSplit, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        fitted(scheme)


def test_held_out_rows_of_no_weight_are_refused() -> None:
    (fold,) = DataSplit().drawn_folds(60, 7)
    weights = np.ones(60)
    for counted in (0, 1):
        weights[fold.test] = np.arange(30) < counted
        with pytest.raises(InvalidInput, match="of the 30 rows that are held out it"):
            DataSplit().fit(read(Ridge(), X, Y, sample_weight=weights), seed=7)


def test_too_many_sets_are_refused_with_a_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("propopt.base.resources.free_memory", lambda: 100.0)
    with pytest.raises(Refused, match="errors of 6 sets at 30 rows needs about"):
        fitted(DataSplit(), sets=np.array([[0, 1]]))
