"""The estimator: sets by name, further sets without a fit, targets, predictions."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor

from propopt.base.errors import (
    DegenerateVarianceWarning,
    FewPatchesWarning,
    InvalidInput,
)
from propopt.interactions import ILOCO, DataSplit, InteractionScores, Minipatches
from propopt.interactions.errors_of_rows import SQUARED
from propopt.interactions.features import Features, read_sets
from propopt.interactions.inference import ErrorRange
from propopt.interactions.left_out import inclusion_exclusion, set_scores
from propopt.interactions.patch_draws import additive_leak
from propopt.interactions.splitting import held_out


NAMES = ["age", "height", "weight", "income"]
FEW = Minipatches(n_patches=450, columns="bernoulli", keep=True)


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(120, 4))
    y = 4 * X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + 0.1 * rng.normal(size=120)
    return pd.DataFrame(X, columns=NAMES), y


@pytest.fixture(scope="module")
def found(table) -> ILOCO:
    return ILOCO(DecisionTreeRegressor(random_state=0), FEW).fit(*table)


def test_scores_have_names_and_main_effects_and_what_was_done(found):
    result = found.result_
    assert result.names == tuple(NAMES)
    assert len(result) == 6
    assert result.top(1)[["feature_1", "feature_2"]].iloc[0].tolist() == NAMES[:2]
    assert result.main is found.main_effects_
    assert found.main_effects_.order == 1
    assert result.n_rows == 120
    assert result.n_groups == 20
    assert result.method.startswith("450 minipatches of 24 rows and ")
    assert list(found.feature_names_in_) == NAMES


def test_further_sets_are_scored_from_the_same_predictors(found):
    again = found.interactions()
    np.testing.assert_array_equal(again.estimates, found.result_.estimates)
    some = found.interactions([("weight", "age"), ("height", "income")])
    np.testing.assert_array_equal(some.sets, [[0, 2], [1, 3]])
    np.testing.assert_allclose(some.estimates, again.estimates[[1, 4]], rtol=1e-9)
    assert some.n_candidates == 2
    with pytest.warns(FewPatchesWarning, match="a set of 3 features is seen whole by"):
        assert found.interactions(order=3).order == 3
    single = found.interactions(order=1)
    np.testing.assert_array_equal(single.estimates, found.main_effects_.estimates)


def test_what_is_fitted_is_the_same_for_one_seed_and_another_for_others(table):
    X, y = table

    def scores(seed: Any) -> np.ndarray:
        model = ILOCO(LinearRegression(), DataSplit(), random_state=seed)
        return model.fit(X, y).result_.estimates

    np.testing.assert_array_equal(scores(3), scores(3))
    assert not np.array_equal(scores(3), scores(4))
    np.testing.assert_array_equal(scores(None), scores(0))
    rng = np.random.default_rng(1)
    assert not np.array_equal(scores(rng), scores(rng))


def test_fixed_columns_leak_what_theory_says_of_the_main_effects():
    X, y = make_friedman1(n_samples=80, n_features=6, random_state=0)
    scheme = Minipatches(n_patches=600, n_features=3, columns="fixed")
    result = ILOCO(DecisionTreeRegressor(random_state=0), scheme).fit(X, y)
    expected = additive_leak(
        result.main_effects_.estimates, 3, result.result_.sets, SQUARED
    )
    np.testing.assert_array_equal(result.result_.leak, expected)
    assert expected.any()
    assert "columns='bernoulli'" in result.result_.cautions[0]
    assert result.interactions([(0, 1)]).leak == pytest.approx(expected[0])


def test_nothing_leaks_by_other_schemes(found, table):
    X, y = table
    assert not found.result_.leak.any()
    split = ILOCO(LinearRegression(), DataSplit()).fit(X, y)
    assert not split.result_.leak.any()
    assert split.result_.n_groups == 0
    assert not split.result_.monte_carlo.any()


def test_targets_are_scores_of_new_rows_by_hand(table):
    # of a split: fit f^(−T) to the same rows again, and judge it on others
    X, y = table
    model = ILOCO(LinearRegression(), DataSplit()).fit(X[:80], y[:80])
    new = X[80:].to_numpy()
    errors = {}
    training = held_out(80, 40, seed=0).training
    for left_out in [(), (0,), (1,), (0, 1)]:
        kept = [j for j in range(4) if j not in left_out]
        fitted = LinearRegression().fit(
            X.to_numpy()[training][:, kept], np.asarray(y)[training]
        )
        errors[left_out] = (y[80:] - fitted.predict(new[:, kept])) ** 2
    z = errors[(0,)] + errors[(1,)] - errors[(0, 1)] - errors[()]
    target = model.target(X[80:], y[80:], [("age", "height")])
    assert target.estimates[0] == pytest.approx(z.mean(), rel=1e-10)
    assert target.standard_errors[0] == pytest.approx(
        z.std(ddof=1) / np.sqrt(40), rel=1e-9
    )
    assert target.n_rows == 40


def test_targets_of_patches_are_those_of_the_mean_of_all(found, table):
    X, y = table
    target = found.target(X, y, [("age", "height")])
    full = ((y - found.predict(X)) ** 2).mean()
    source = found.left_out_.judged_on(X, y)
    errors = source.errors(np.zeros((1, 0), dtype=np.intp))
    assert errors.rows.mean() == pytest.approx(full, rel=1e-10)
    assert target.n_rows == 120
    assert target.main is not None
    assert target.method == f"{found.result_.method}, judged on new rows"
    with pytest.raises(InvalidInput, match="X: expected at least 2 rows, got 1"):
        found.target(X[:1], y[:1])


def test_errors_without_a_bound_have_the_range_of_those_that_were_seen(found):
    sets = Features.of(NAMES).all_sets
    observed = max(found.left_out_.errors(sets(size)).rows.max() for size in (0, 1))
    assert found.result_.error_range == ErrorRange(0.0, observed, proved=False)


def test_where_a_predictor_is_never_wrong_there_is_no_zero_width(table):
    # without the first feature there are errors: they have been seen
    X, _ = table
    y = (X["age"] > 0) * 1.0
    y[:2] = 0.0, 1.0
    X = X.assign(age=y)
    with pytest.warns(DegenerateVarianceWarning):
        model = ILOCO(DecisionTreeRegressor(max_depth=1), DataSplit()).fit(X, y)
    frame = model.result_.to_frame()
    assert (frame["degenerate"] & (frame["estimate"] == 0.0)).any()
    np.testing.assert_array_equal(frame["ci_high"] - frame["ci_low"] > 0, frame["used"])


def test_rows_without_weight_count_as_if_they_were_not_there(table):
    X, y = table
    weights = np.resize([1.0, 0.0], 120)
    model = ILOCO(LinearRegression(), DataSplit(n_folds=3))
    result = model.fit(X, y, sample_weight=weights).result_
    z = inclusion_exclusion(model.left_out_, result.sets).rows[::2]
    assert result.n_rows == 60
    np.testing.assert_allclose(result.estimates, z.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(
        result.standard_errors, z.std(axis=0, ddof=1) / np.sqrt(60), rtol=1e-12
    )


@pytest.mark.parametrize("seed", [np.random.default_rng(0), 2**40 + 3])
def test_seeds_of_any_size_reach_learners_as_they_take_them(table, seed):
    X, y = table
    split = ILOCO(Ridge(), DataSplit(), random_state=seed).fit(X, y)
    assert np.isfinite(split.result_.estimates).all()


def test_features_that_a_learner_does_not_use_score_zero_exactly(table):
    X, y = table
    model = ILOCO(Lasso(alpha=0.5), DataSplit()).fit(X, y)
    unused = set(model.result_.not_used)
    rows = held_out(120, 60, seed=0).training
    table = X.to_numpy()[rows]
    kept = [[j for j in range(4) if j not in own] for own in read_left_out(4)]
    lines = [Lasso(alpha=0.5).fit(table[:, own], y[rows]).coef_ for own in kept]
    of_zero = [
        set(np.array(own)[line != 0.0]) for own, line in zip(kept, lines, strict=True)
    ]
    assert unused == {0, 1, 2, 3} - set().union(*of_zero) != set()
    frame = model.result_.to_frame()
    assert set(map(X.columns.get_loc, set(X) - used_in(frame))) == unused
    own = frame[~frame["used"]]
    for column in ("estimate", "se", "ci_low", "ci_high"):
        assert (own[column] == 0.0).all()
    assert (own["p_two"] == 1.0).all()
    assert "not used by any fit" in " ".join(model.result_.cautions)


def read_left_out(n_features):
    """No feature, each, and each pair."""
    return [own for size in range(3) for own in combinations(range(n_features), size)]


def used_in(frame):
    """Features of which some set is used."""
    own = frame[frame["used"]]
    return set(own["feature_1"]) | set(own["feature_2"])


def test_patches_without_a_feature_that_no_tree_uses_do_not_score_it():
    X, y = make_friedman1(n_samples=80, n_features=6, random_state=0)
    X[:, 3] = 7.0
    learner = DecisionTreeRegressor(random_state=0)
    fixed = Minipatches(n_patches=600, n_features=3, columns="fixed")
    of_one_size = ILOCO(learner, fixed).fit(X, y)
    assert of_one_size.result_.estimates.all()  # whose target is a leak, and not zero
    assert of_one_size.left_out_.used == {0, 1, 2, 4, 5}
    scheme = Minipatches(n_patches=600, n_features=3)
    result = ILOCO(learner, scheme).fit(X, y)
    assert result.result_.not_used == result.main_effects_.not_used == (3,)
    raw = set_scores(result.left_out_, result.result_.sets)["estimates"]
    own = (result.result_.sets == 3).any(axis=1)
    assert np.abs(raw[own]).min() > 0.01  # what the patches that have it happen to be
    assert not result.result_.estimates[own].any()
    np.testing.assert_array_equal(result.result_.estimates[~own], raw[~own])
    assert not result.result_.intervals()[own].any()
    np.testing.assert_array_equal(result.result_.to_frame()["used"], ~own)


@pytest.mark.filterwarnings("ignore::propopt.base.errors.DegenerateVarianceWarning")
def test_a_feature_that_one_row_of_all_tells_something_of_is_used():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(120, 2)), np.zeros(120)])
    X[17, 2], y = 1.0, X[:, 0] + 30.0 * (np.arange(120) == 17)
    for scheme in (Minipatches(n_patches=300, rows=0.5), DataSplit(n_folds=2)):
        result = ILOCO(DecisionTreeRegressor(max_depth=2), scheme, order=1).fit(X, y)
        assert 2 not in result.result_.not_used


@pytest.mark.filterwarnings("ignore::propopt.base.errors.DegenerateVarianceWarning")
def test_copies_of_a_feature_are_used_where_either_is():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(100, 3))
    X[:, 1] = X[:, 0]
    y = 3.0 * X[:, 0] + 0.1 * rng.normal(size=100)
    learner = DecisionTreeRegressor(max_depth=1)
    result = ILOCO(learner, DataSplit(), order=1).fit(X, y)
    # each does the work of the other
    np.testing.assert_allclose(result.result_.estimates[:2], 0.0, atol=1e-12)
    assert 0 not in result.result_.not_used
    assert 1 not in result.result_.not_used


@pytest.mark.filterwarnings("ignore::propopt.base.errors.FewPatchesWarning")
def test_the_number_of_patches_that_would_do_does():
    X, y = make_friedman1(n_samples=100, n_features=5, random_state=0)
    tree = DecisionTreeRegressor(min_samples_leaf=5)
    few = ILOCO(tree, Minipatches(n_patches=200)).fit(X, y).result_
    (caution,) = (own for own in few.cautions if own.startswith("Few patches limit"))
    n_patches = int(re.search(r"n_patches=(\d+)", caution).group(1))
    assert n_patches >= 8 * 200
    more = ILOCO(tree, Minipatches(n_patches=n_patches)).fit(X, y).result_
    # 20 groups know a variance as χ² of 19 degrees: above 1.75² its mean 7 times of 10⁶
    assert (more.monte_carlo <= 1.75 * few.standard_errors).all()


def test_a_copy_is_not_fitted_and_a_pickle_scores_the_same(found, table):
    assert not hasattr(clone(found), "result_")
    loaded = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(
        loaded.interactions(order=1).estimates, found.main_effects_.estimates
    )
    np.testing.assert_array_equal(loaded.predict(table[0]), found.predict(table[0]))


def test_results_of_a_fit_are_saved_with_their_main_effects(found, tmp_path):
    found.result_.save(tmp_path / "scores.npz")
    loaded = InteractionScores.load(tmp_path / "scores.npz")
    pd.testing.assert_frame_equal(loaded.to_frame(), found.result_.to_frame())
    assert loaded.main is not None
    np.testing.assert_array_equal(loaded.main.estimates, found.main_effects_.estimates)


def test_groups_are_features(table):
    X, y = table
    groups = {"body": ["height", "weight"]}
    model = ILOCO(LinearRegression(), DataSplit(), groups=groups).fit(X, y)
    assert model.result_.names == ("age", "body", "income")
    assert len(model.result_) == 3
    assert model.n_features_in_ == 4


# what cannot be used


SETS: list[tuple[Any, str]] = [
    ([("age", "hight")], r"no feature 'hight' \(did you mean 'height'\?\); there are"),
    ("pairs", "sets: expected 'all' or sets of names, got 'pairs'"),
    ([], "sets: expected at least one set, got none"),
    (["ab"], "sets: a set: expected names in a list, got 'ab'"),
    ([("age",), ("age", "height")], "expected sets of one size, got sizes 1, 2"),
    ([("age", "age")], r"\('age', 'age'\) names a feature twice"),
    ([("age", "height"), ("height", "age")], r"\('age', 'height'\) appears more than"),
    ([()], "expected features in each set, got an empty one"),
    (3, "sets: expected names in a list, got 3"),
]


@pytest.mark.parametrize(("sets", "message"), SETS)
def test_sets_that_are_not_there_are_refused_before_and_after_the_fit(
    found, table, sets, message
):
    with pytest.raises(InvalidInput, match=message):
        found.interactions(sets)
    with pytest.raises(InvalidInput, match=message):
        ILOCO(DecisionTreeRegressor(), FEW, sets=sets).fit(*table)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (5, r"order: expected at most 4, of 4 feature\(s\), got 5"),
        (0, "order: expected an integer >= 1, got 0"),
        (True, "order: expected an integer >= 1, got True"),
    ],
)
def test_orders_that_are_not_there_are_refused(found, order, message):
    with pytest.raises(InvalidInput, match=message):
        found.interactions(order=order)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"random_state": -1}, "random_state: expected an integer >= 0 or a numpy"),
        ({"n_jobs": "two"}, "n_jobs: expected a number of workers.* got 'two'"),
        ({"n_jobs": 1.5}, "n_jobs: expected a number of workers.* got 1.5"),
        ({"scheme": "split"}, r"scheme: expected Minipatches\(\) or DataSplit\(\)"),
        ({"scheme": Minipatches}, r"scheme: expected Minipatches\(\) or"),
        ({"scheme": LinearRegression}, r"scheme: expected Minipatches\(\) or"),
    ],
)
def test_settings_that_are_none_are_refused(table, settings, message):
    with pytest.raises(InvalidInput, match=message):
        ILOCO(LinearRegression(), **{"scheme": DataSplit(), **settings}).fit(*table)


def test_numbers_that_came_as_text_are_told_apart():
    with pytest.raises(InvalidInput, match=r"no feature '1' \(did you mean 1\?\)"):
        read_sets([(0, "1")], 2, Features.of([0, 1]))


def test_sets_are_read_in_any_order_and_of_any_names():
    features = Features.of([("a", 1), 2, "c"])
    np.testing.assert_array_equal(
        read_sets([["c", ("a", 1)], (2, "c")], 7, features), [[0, 2], [1, 2]]
    )


def test_patches_are_not_asked_for_sets_that_none_of_them_can_see(table):
    X, y = table
    scheme = Minipatches(n_patches=700, n_features=2, columns="fixed", keep=True)
    model = ILOCO(LinearRegression(), scheme).fit(X.to_numpy(), y)
    for ask in (model.interactions, lambda **how: model.target(X.to_numpy(), y, **how)):
        with pytest.raises(
            InvalidInput, match="3 features never co-occur in a patch of"
        ):
            ask(order=3)


def test_before_a_fit_nothing_is_scored(table):
    model = ILOCO(LinearRegression(), DataSplit())
    for ask in (model.interactions, lambda: model.target(*table)):
        with pytest.raises(NotFittedError):
            ask()


def test_other_columns_are_refused_in_scikit_learns_words(found, table):
    X, y = table
    with pytest.raises(InvalidInput, match="feature names should match"):
        found.predict(X[NAMES[::-1]])
    plain = ILOCO(LinearRegression(), DataSplit(), order=1).fit(X.to_numpy(), y)
    with pytest.raises(
        InvalidInput, match="X has 3 features, but ILOCO is expecting 4"
    ):
        plain.predict(X.to_numpy()[:, :3])
    with pytest.raises(InvalidInput, match="expected the columns of fit"):
        found.target(X[NAMES[::-1]], y)


def test_names_that_are_not_all_text_are_those_of_scores_alone(table):
    X, y = table
    mixed = X.set_axis(["age", 1, 2, 3], axis=1)
    model = ILOCO(_OnNumbers(), DataSplit()).fit(mixed, y)
    assert not hasattr(model, "feature_names_in_")
    assert model.result_.names == ("age", 1, 2, 3)
    assert len(model.predict(mixed)) == 120


class _OnNumbers(LinearRegression):
    """A learner that takes any names."""

    def fit(self, X: Any, y: Any) -> Any:
        return super().fit(np.asarray(X), y)

    def predict(self, X: Any) -> Any:
        return super().predict(np.asarray(X))


def test_one_row_is_none(table):
    X, y = table
    with pytest.raises(InvalidInput, match="expected at least 2 rows, got 1 sample"):
        ILOCO(LinearRegression(), DataSplit()).fit(X[:1], y[:1])


def test_predictions_are_there_where_learners_were_kept(found, table):
    X, y = table
    assert is_regressor(found)
    assert found.score(X, y) == r2_score(y, found.predict(X))
    plain = ILOCO(DecisionTreeRegressor())
    assert not is_regressor(plain)
    assert not hasattr(plain, "predict")
    with pytest.raises(AttributeError) as caught:
        plain.predict  # noqa: B018  # the access is what raises
    assert "Minipatches(keep=True)" in str(caught.value.__cause__)
    assert not hasattr(found, "predict_proba")


@pytest.mark.filterwarnings("ignore::propopt.base.errors.FewPatchesWarning")
@pytest.mark.parametrize("scheme", [replace(FEW, n_patches=150), DataSplit()])
def test_classes_are_predicted_as_they_were_given(table, scheme):
    X, y = table
    labels = np.where(y > 0.5, "high", np.where(y < -0.5, "low", "middle"))
    model = ILOCO(GaussianNB(), scheme).fit(X, labels)
    assert is_classifier(model)
    assert list(model.classes_) == ["high", "low", "middle"]
    shares = model.predict_proba(X)
    assert shares.shape == (120, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    predicted = model.predict(X)
    np.testing.assert_array_equal(predicted, model.classes_[shares.argmax(axis=1)])
    assert model.score(X, labels) == accuracy_score(labels, predicted)
    assert model.result_.error_range == ErrorRange(0.0, 1.0, proved=True)
    assert model.target(X, labels).error == "probability"
