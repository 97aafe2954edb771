"""Rows that belong together, and folds that a user gives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.tree import DecisionTreeClassifier

from propopt.base.errors import InvalidInput
from propopt.interactions import ILOCO, DataSplit
from propopt.interactions.inference import moments
from propopt.interactions.left_out import inclusion_exclusion


RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=60)
GROUPS = np.array(list("abcdefghijkl"))[np.arange(60) // 5]
COUNTED = np.repeat(np.arange(12), 5)


def judged(scheme, **settings):
    """Scores, and which rows were judged by which fits."""
    model = ILOCO(LinearRegression(), scheme, **settings).fit(X, Y)
    return model.result_, model.left_out_


# ---- theory


def test_the_error_of_groups_is_that_of_their_sums_by_hand(rng):
    z, weights = rng.normal(size=(30, 2)), rng.uniform(0.5, 2.0, size=30)
    weights *= 30 / weights.sum()
    groups = rng.permutation(np.repeat(np.arange(6), [1, 2, 3, 5, 8, 11]))
    means, errors, _ = moments(z, weights, groups)
    for k in range(2):
        mean = weights @ z[:, k] / 30
        sums = [
            sum(weights[i] * (z[i, k] - mean) for i in range(30) if groups[i] == c)
            for c in range(6)
        ]
        variance = 6 / 5 * sum(own**2 for own in sums) / 30**2
        assert means[k] == pytest.approx(mean, rel=1e-12)
        assert errors[k] == pytest.approx(np.sqrt(variance), rel=1e-12)


def test_groups_of_one_row_each_change_nothing(rng):
    z, weights = rng.normal(size=(30, 2)), np.ones(30)
    alone, grouped = moments(z, weights), moments(z, weights, rng.permutation(30))
    for own, expected in zip(grouped, alone, strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-12)


def test_rows_without_weight_leave_their_group(rng):
    z, weights = rng.normal(size=(12, 1)), np.ones(12)
    groups = np.repeat(np.arange(4), 3)
    weights[groups == 1] = 0.0
    kept = groups != 1
    result = moments(z, weights * 12 / 9, groups)
    expected = moments(z[kept], np.ones(9), np.array([0, 0, 0, 1, 1, 1, 2, 2, 2]))
    np.testing.assert_allclose(result[1], expected[1])


def people(n_people, rng):
    """Six visits of each: what is not explained is mostly the person."""
    person = np.repeat(np.arange(n_people), 6)
    x = rng.normal(size=(n_people, 2))[person] + 0.5 * rng.normal(
        size=(6 * n_people, 2)
    )
    own = rng.normal(size=n_people)[person]
    y = x[:, 0] + own + 0.5 * rng.normal(size=6 * n_people)
    return x, y, person


def loco_of_new_people(source):
    """Of the first column: E(y − a − b·x)² = 1.25 ‖(1, 0) − b‖² + a² + 1.25."""
    result = 0.0
    for fold in source.folds:
        for left_out, sign in (((0,), 1.0), ((), -1.0)):
            kept = ~np.isin([0, 1], left_out)
            line = source.refits.fitted(fold.training, kept, source.plan.seed).model
            b = np.zeros(2)
            b[len(left_out) :] = line.coef_
            own = 1.25 * ((np.array([1.0, 0.0]) - b) ** 2).sum() + line.intercept_**2
            result += sign * own * len(fold.test) / len(source.row_weights)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("n_folds", [None, 5])
def test_intervals_hold_for_new_people_as_often_as_they_say(n_folds):
    # 200 tables: 2.7 % for a share of 0.9 to be 4 standard errors of 0.021 below, which
    # happens to 3 tests of 100,000; rows taken as independent cover far less
    held = {"groups": [], "rows": []}
    for seed in range(200):
        rng = np.random.default_rng([seed, 1])
        x, y, person = people(80, rng)
        scheme = DataSplit(n_folds=n_folds, groups=person)
        model = ILOCO(LinearRegression(), scheme, order=1, random_state=seed).fit(x, y)
        truth = loco_of_new_people(model.left_out_)
        low, high = model.result_.intervals(adjust="none")[0]
        held["groups"].append(low <= truth <= high)
        z = inclusion_exclusion(model.left_out_, model.result_.sets).rows[:, 0]
        reach = 1.645 * z.std(ddof=1) / np.sqrt(len(z))
        held["rows"].append(abs(z.mean() - truth) <= reach)
    assert np.mean(held["groups"]) > 0.9 - 4 * np.sqrt(0.9 * 0.1 / 200)
    assert np.mean(held["rows"]) < 0.75


def test_scores_of_groups_have_students_law_of_their_number():
    scores, source = judged(DataSplit(groups=GROUPS), order=1)
    assert scores.n_row_groups == len(np.unique(source.row_groups)) == 6
    low, high = scores.intervals(adjust="none").T
    reach = 2.015048 * scores.standard_errors  # t of 5 degrees, 0.95
    np.testing.assert_allclose(high - low, 2 * reach, rtol=1e-6)
    rows = scores.intervals(adjust="none", errors="rows")
    np.testing.assert_array_equal(rows, scores.intervals(adjust="none"))


# ---- folds


@pytest.mark.parametrize("n_folds", [None, 2, 5, 12])
def test_drawn_groups_are_whole(n_folds):
    scheme = DataSplit(n_folds=n_folds, groups=GROUPS)
    for seed in range(5):
        folds = scheme.drawn_folds(60, seed, None, COUNTED)
        assert len(folds) == (n_folds or 1)
        for fold in folds:
            assert not set(GROUPS[fold.test]) & set(GROUPS[fold.training])
            assert len(fold.test) == (30 if n_folds is None else len(fold.test))
            assert len(fold.test) + len(fold.training) == 60
        if n_folds:
            every = np.concatenate([fold.test for fold in folds])
            assert sorted(every) == list(range(60))
            assert np.ptp([len(fold.test) for fold in folds]) <= 5


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
    scheme = DataSplit(folds=splitter, groups=groups)
    scores, source = judged(scheme, order=1)
    pairs = list(splitter.split(X, Y, groups))
    rows = np.sort(np.concatenate([test for _, test in pairs]))
    z = np.full(60, np.nan)
    for training, test in pairs:
        model = LinearRegression().fit(X[training], Y[training])
        without = LinearRegression().fit(X[training][:, 1:], Y[training])
        z[test] = (Y[test] - without.predict(X[test][:, 1:])) ** 2
        z[test] -= (Y[test] - model.predict(X[test])) ** 2
    assert scores.n_rows == len(rows)
    assert scores.estimates[0] == pytest.approx(z[rows].mean(), rel=1e-10)
    shares = np.array([len(test) for _, test in pairs]) / len(rows)
    parts = [LinearRegression().fit(X[own], Y[own]).predict(X) for own, _ in pairs]
    np.testing.assert_allclose(source.predict(X), shares @ parts, rtol=1e-10)
    given = [(training.tolist(), test) for training, test in pairs]
    again, _ = judged(DataSplit(folds=given, groups=groups), order=1)
    np.testing.assert_array_equal(again.estimates, scores.estimates)
    mask = [(np.isin(np.arange(60), a), np.isin(np.arange(60), b)) for a, b in pairs]
    again, _ = judged(DataSplit(folds=mask, groups=groups), order=1)
    np.testing.assert_array_equal(again.standard_errors, scores.standard_errors)


def test_splitters_without_a_seed_have_that_of_the_fit():
    splitter = KFold(3, shuffle=True)
    one, two, other = (
        judged(DataSplit(folds=splitter), random_state=seed)[0].estimates
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert (one != other).all()
    assert splitter.random_state is None


@pytest.mark.filterwarnings("ignore::propopt.base.errors.DegenerateVarianceWarning")
def test_splitters_see_classes_and_groups_may_be_a_series():
    labels = np.where(Y > 0, "yes", "no")
    learner = DecisionTreeClassifier(max_depth=9)
    ILOCO(learner, DataSplit(folds=StratifiedKFold(3))).fit(X, labels)
    groups = pd.Series(GROUPS, index=np.arange(60)[::-1])
    result = ILOCO(learner, DataSplit(groups=groups)).fit(X, labels)
    assert result.result_.n_row_groups == 6
    assert "6 were judged" in result.result_._repr_html_()
    assert "12 groups" in result.result_.method


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"folds": KFold(3), "n_folds": 5}, "and so does n_folds; give one of both"),
        ({"folds": KFold(3), "test_size": 0.4}, "and so does test_size; give one"),
        ({"folds": KFold}, "folds: expected a splitter such as GroupKFold"),
        ({"folds": 5}, "folds: expected a splitter such as GroupKFold.* got 5"),
        ({"folds": [([0.5], [1])]}, "folds: expected a splitter such as GroupKFold"),
        ({"groups": "customer"}, "groups: expected a label for each row, got 'cus"),
        ({"groups": [[1, 2]]}, r"groups: expected a label for each row, got shape \("),
        ({"groups": [1, None, 2]}, "groups: 1 rows have none, the first is row 1"),
        ({"groups": [1, 2], "stratify": True}, "stratify: groups are drawn whole"),
    ],
)
def test_what_says_nothing_of_rows_is_refused(settings, message):
    with pytest.raises(InvalidInput, match=message):
        DataSplit(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"groups": [1, 2, 3]}, "groups: expected a label for each of 60 rows, got 3"),
        ({"groups": [0] * 30 + [1] * 30}, "groups: expected 3 or more, .* got 2"),
        ({"groups": GROUPS, "n_folds": 13}, "n_folds: expected at most 12, of so many"),
        ({"folds": GroupKFold(3)}, "folds: GroupKFold.* 'groups' parameter should not"),
        ({"folds": ShuffleSplit(3)}, "folds: row .* is judged twice; take folds that"),
        ({"folds": [([0, 1], [1, 2])]}, "folds: row 1 is fitted and judged in fold 0"),
        ({"folds": [([0, 1], [99])]}, "folds: expected rows from 0 to 59"),
        ({"folds": [([], [3, 4])]}, "folds: fold 0 has no rows that are fitted and"),
        (
            {"folds": [([1, 2], [3])]},
            "folds: expected two rows or more that are judged",
        ),
        ({"folds": KFold(7), "groups": GROUPS}, "folds: a group has rows that are fit"),
        (
            {"folds": [(range(10), range(10, 15))], "groups": GROUPS},
            "folds: expected two groups or more that are judged, got 1",
        ),
    ],
)
def test_rows_that_do_not_fit_the_table_are_refused(settings, message):
    with pytest.raises(InvalidInput, match=message):
        judged(DataSplit(**settings))


def test_groups_of_rows_are_not_groups_of_features():
    with pytest.raises(InvalidInput, match=r"those of DataSplit\(groups=\.\.\.\)"):
        judged(DataSplit(), groups=GROUPS)
