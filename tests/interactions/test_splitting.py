"""Learners without features on held-out rows: exact values, folds, groups, workers."""

import pickle
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from minipatch_cases import fitted, small_table
from numpy.testing import assert_allclose, assert_array_equal
from refit_cases import co_moebius, product_table, read, worth
from refusals import refusals
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from propopt.base.errors import InvalidInput, Refused
from propopt.interactions import ILOCO, DataSplit, fitting
from propopt.interactions.refits import set_scores


X, Y = product_table()
TREE = DecisionTreeRegressor(min_samples_leaf=3, random_state=0)
EMPTY = np.zeros((1, 0), dtype=np.intp)
PAIRS = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
GROUPS = np.array(list("abcdefghijkl"))[np.arange(60) // 5]


def split(scheme, estimator=TREE, **settings):
    """The predictors of our table by a seed."""
    return scheme.fit(read(estimator, X, Y), seed=7, **settings)


def rows_of(scheme):
    """Training rows and test rows of the folds of this seed."""
    return scheme.rows(read(TREE, X, Y), 7)


@pytest.mark.parametrize(
    "estimator", [TREE, LinearRegression(), KNeighborsRegressor(3)]
)
def test_scores_are_the_co_moebius_transform_of_refits(estimator):
    scheme = DataSplit(cv=0.4)
    source, (fold,) = split(scheme, estimator), rows_of(scheme)
    game = worth(estimator, *[(X[rows], Y[rows]) for rows in fold])

    def play(coalitions):
        sets = [frozenset(np.flatnonzero(one).tolist()) for one in coalitions]
        return np.array([game[one] for one in sets])

    for order in (1, 2, 3, 4):
        sets = source.features.all_sets(order)
        result = set_scores(source, sets)["scores"]
        expected = [co_moebius(game, tuple(one)) for one in sets.tolist()]
        assert_allclose(result, expected, rtol=1e-12, atol=1e-12)
        if find_spec("shapiq"):
            from shapiq import ExactComputer

            computer = ExactComputer(game=play, n_players=X.shape[1])
            values = computer("Co-Moebius", order=4)
            theirs = [values[tuple(one)] for one in sets.tolist()]
            assert_allclose(result, theirs, rtol=1e-12, atol=1e-12)


def test_each_row_is_judged_once_by_folds_that_did_not_have_it():
    scheme = DataSplit(cv=4)
    folds = rows_of(scheme)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(60))
    expected = np.empty(60)
    for training, test in folds:
        assert not set(training) & set(test)
        model = LinearRegression().fit(X[training][:, 1:], Y[training])
        expected[test] = (Y[test] - model.predict(X[test][:, 1:])) ** 2
    source = split(scheme, LinearRegression(), sets=np.array([[0]]))
    assert_allclose(source.errors(np.array([[0]])).rows[:, 0], expected, rtol=1e-12)
    again = pickle.loads(pickle.dumps(source))
    assert_array_equal(again.errors(PAIRS).rows, source.errors(PAIRS).rows)


@pytest.mark.parametrize("scheme", [DataSplit(), DataSplit(cv=7)])
def test_new_rows_are_judged_by_the_same_predictors(scheme):
    new, target = product_table(33, seed=5)
    source = split(scheme, Ridge())
    judged = source.evaluate_on(new, target)
    rows = judged.errors(np.array([[2], [3]])).rows
    expected = np.zeros(33)
    folds = rows_of(scheme)
    n_judged = sum(len(test) for _, test in folds)
    for training, test in folds:  # folds of 9 and of 8 rows count as they have rows
        share = len(test) / n_judged
        model = Ridge().fit(X[training][:, [0, 1, 3]], Y[training])
        expected += share * (target - model.predict(new[:, [0, 1, 3]])) ** 2
    assert_allclose(rows[:, 0], expected, rtol=1e-12)
    again = judged.evaluate_on(new, target).errors(np.array([[2]])).rows
    assert_array_equal(again[:, 0], rows[:, 0])


def test_weights_of_rows_are_for_fits_and_for_means():
    weights = np.random.default_rng(3).uniform(0, 2, 60)
    source = DataSplit().fit(read(Ridge(), X, Y, sample_weight=weights), seed=7)
    ((training, test),) = rows_of(DataSplit())
    values = weights[test]
    assert_allclose(source.row_weights, values * 30 / values.sum(), rtol=1e-12)
    model = Ridge().fit(X[training], Y[training], weights[training])
    expected = (Y[test] - model.predict(X[test])) ** 2
    rows = source.errors(EMPTY).rows[:, 0]
    assert_allclose(rows, expected, rtol=1e-12)
    mean = np.average(expected, weights=values)
    assert source.row_weights @ rows / 30 == pytest.approx(mean, rel=1e-12)
    for counted in (0, 1):  # weights of which nothing is held out
        weights[test] = np.arange(30) < counted
        with pytest.raises(
            InvalidInput, match=f"cv: .* sample_weight .* got {counted}"
        ):
            DataSplit().fit(read(Ridge(), X, Y, sample_weight=weights), seed=7)


@pytest.mark.parametrize("cv", [0.5, 2, 5, 12])
def test_drawn_groups_are_whole(cv):
    folds = rows_of(DataSplit(cv=cv, groups=GROUPS))
    assert len(folds) == (1 if cv == 0.5 else cv)
    for training, test in folds:
        assert not set(GROUPS[test]) & set(GROUPS[training])
        assert len(test) + len(training) == 60
        assert len(test) == pytest.approx(30 if cv == 0.5 else 60 / cv, abs=5)
    if cv != 0.5:
        every = np.concatenate([test for _, test in folds])
        assert sorted(every) == list(range(60))


def judged(scheme, **settings):
    """Scores of lines, and which rows were judged by which fits."""
    model = ILOCO(LinearRegression(), scheme, **settings).fit(X, Y)
    return model.result_, model.refit_errors_


@pytest.mark.parametrize(
    ("splitter", "groups"),
    [
        (KFold(3), None),
        (GroupKFold(4), GROUPS),
        (LeaveOneGroupOut(), GROUPS),
        (TimeSeriesSplit(4), None),
        (ShuffleSplit(1, test_size=0.3, random_state=2), None),
    ],
)
def test_a_splitter_says_which_rows_are_fitted_and_judged(splitter, groups):
    scores, _ = judged(DataSplit(cv=splitter, groups=groups), order=1)
    pairs = list(splitter.split(X, Y, groups))
    rows = np.sort(np.concatenate([test for _, test in pairs]))
    z = np.full(60, np.nan)
    for training, test in pairs:
        model = LinearRegression().fit(X[training], Y[training])
        without = LinearRegression().fit(X[training][:, 1:], Y[training])
        z[test] = (Y[test] - without.predict(X[test][:, 1:])) ** 2
        z[test] -= (Y[test] - model.predict(X[test])) ** 2
    assert scores.n_rows == len(rows)
    assert scores.scores[0] == pytest.approx(z[rows].mean(), rel=1e-10)
    every = np.arange(60)
    for given in (
        [(training.tolist(), test) for training, test in pairs],
        [(np.isin(every, a), np.isin(every, b)) for a, b in pairs],
    ):
        again, _ = judged(DataSplit(cv=given, groups=groups), order=1)
        assert_array_equal(again.scores, scores.scores)
        assert_array_equal(again.standard_errors, scores.standard_errors)


@pytest.mark.filterwarnings("ignore::propopt.base.errors.DegenerateVarianceWarning")
def test_splitters_see_seeds_classes_and_groups():
    splitter = KFold(3, shuffle=True)
    one, two, other = (
        judged(DataSplit(cv=splitter), random_state=seed)[0].scores
        for seed in (1, 1, 2)
    )
    assert_array_equal(one, two)
    assert (one != other).all()
    assert splitter.random_state is None
    labels, learner = np.where(Y > 0, "yes", "no"), DecisionTreeClassifier(max_depth=9)
    ILOCO(learner, DataSplit(cv=StratifiedKFold(3))).fit(X, labels)
    groups = pd.Series(GROUPS, index=np.arange(60)[::-1])
    result = ILOCO(learner, DataSplit(groups=groups)).fit(X, labels).result_
    assert result.n_row_groups == 6
    assert "6 tested" in result.document().facts["interval"].note
    assert "12 groups" in result.method
    # scores have Student's law of the number of groups
    scores, source = judged(DataSplit(groups=GROUPS), order=1)
    assert scores.n_row_groups == len(np.unique(source.row_groups)) == 6
    low, high = scores.intervals(adjust="none").T
    reach = 2.015048 * scores.standard_errors  # t of 5 degrees, 0.95
    assert_allclose(high - low, 2 * reach, rtol=1e-6)
    rows = scores.intervals(adjust="none", errors="rows")
    assert_array_equal(rows, scores.intervals(adjust="none"))


FOREST = RandomForestRegressor(n_estimators=3, max_depth=3)


@pytest.mark.parametrize("scheme", [DataSplit(), DataSplit(cv=3)])
def test_numbers_do_not_depend_on_workers_or_on_what_was_asked_before(scheme):
    one = split(scheme, FOREST).errors(PAIRS).rows
    two = split(scheme, FOREST, n_jobs=2, sets=PAIRS).errors(PAIRS).rows
    assert_array_equal(one, two)
    later = split(scheme, FOREST)
    later.errors(EMPTY)
    assert_array_equal(one, later.errors(PAIRS[::-1]).rows[:, ::-1])
    other = scheme.fit(read(FOREST, X, Y), seed=8).errors(PAIRS).rows
    assert not np.array_equal(one, other)


def test_what_was_finished_before_an_interruption_is_not_fitted_again(monkeypatch):
    table, learner = small_table(), DecisionTreeRegressor(max_features=1)
    source = fitted(DataSplit(), *table, learner, order=1)  # larger sets are asked
    run, begun = fitting.fit_part, []

    def stop(most):
        begun.clear()

        def counted(plan, *settings):
            if len(begun) == most:
                raise KeyboardInterrupt
            begun.append(tuple(plan.left_out))
            return run(plan, *settings)

        monkeypatch.setattr(fitting, "fit_part", counted)

    pairs = source.features.all_sets(2)
    stop(3)
    with pytest.raises(KeyboardInterrupt):
        source.errors(pairs)
    before = [left_out for part in begun for left_out in part]
    stop(1000)
    rows = source.errors(pairs).rows
    after = [left_out for part in begun for left_out in part]
    assert before
    assert sorted(before + after) == sorted(map(tuple, pairs.tolist()))  # each once
    whole = fitted(DataSplit(), *table, learner).errors(pairs).rows
    assert rows.tobytes() == whole.tobytes()
    begun.clear()
    set_scores(source, pairs)
    assert not begun


@pytest.mark.parametrize(("settings", "words"), refusals(__file__, "rows"))
def test_rows_that_do_not_fit_the_table_are_refused(settings, words):
    with pytest.raises(InvalidInput, match=words):
        judged(DataSplit(**eval(settings)))


def test_more_that_cannot_be_fitted(monkeypatch):
    with pytest.raises(InvalidInput, match=r"go to DataSplit\(groups=\.\.\.\)"):
        judged(DataSplit(), groups=GROUPS)  # which are those of features
    monkeypatch.setattr("propopt.base.resources.free_memory", lambda: 100.0)
    with pytest.raises(Refused, match="errors of 6 sets at 30 rows needs about"):
        split(DataSplit(), sets=np.array([[0, 1]]))
