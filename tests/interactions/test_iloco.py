"""The estimator: sets by name or chosen, targets, predictions, peers' checks."""

import pickle
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from refusals import refusals
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from propopt.base.errors import (
    DegenerateVarianceWarning,
    ImpreciseWarning,
    InvalidInput,
)
from propopt.interactions import ILOCO, DataSplit, Minipatches
from propopt.interactions.features import Features, read_sets
from propopt.interactions.inference import ErrorRange
from propopt.interactions.refits import set_scores


NAMES = ["age", "height", "weight", "income"]
RNG = np.random.default_rng(7)
TABLE = RNG.normal(size=(120, 4))
Y = 4 * TABLE[:, 0] * TABLE[:, 1] + 0.3 * TABLE[:, 2] + 0.1 * RNG.normal(size=120)
X = pd.DataFrame(TABLE, columns=NAMES)
LINE, TREE = LinearRegression(), DecisionTreeRegressor(random_state=0)
FEW = Minipatches(n_patches=450, keep=True)


@pytest.fixture(scope="module")
def results():
    return ILOCO(TREE, FEW).fit(X, Y)


def test_scores_have_names_and_main_effects_and_what_was_done(results):
    result = results.result_
    assert result.names == tuple(NAMES) == tuple(results.feature_names_in_)
    assert len(result) == 6
    assert result.top(1)[["feature_1", "feature_2"]].iloc[0].tolist() == NAMES[:2]
    assert result.main is results.main_effects_
    assert results.main_effects_.order == 1
    assert (result.n_rows, result.n_groups) == (120, 20)
    assert result.method.startswith("450 minipatches of 24 rows and ")
    # further sets are scored from the same predictors
    again = results.interactions()
    assert_array_equal(again.scores, result.scores)
    some = results.interactions([("weight", "age"), ("height", "income")])
    assert_array_equal(some.sets, [[0, 2], [1, 3]])
    assert_allclose(some.scores, again.scores[[1, 4]], rtol=1e-9)
    assert some.n_candidates == 2
    with pytest.warns(ImpreciseWarning, match="contain all 3 features of a set"):
        assert results.interactions(order=3).order == 3
    single = results.interactions(order=1).scores
    assert_array_equal(single, results.main_effects_.scores)
    assert not hasattr(clone(results), "result_")
    loaded = pickle.loads(pickle.dumps(results))
    assert_array_equal(loaded.interactions(order=1).scores, single)


def test_what_is_fitted_is_the_same_for_one_seed_and_groups_are_features():
    def scores(seed):
        model = ILOCO(Ridge(), DataSplit(), random_state=seed)
        return model.fit(X, Y).result_.scores

    assert_array_equal(scores(3), scores(3))
    assert not np.array_equal(scores(3), scores(4))
    assert_array_equal(scores(None), scores(0))
    rng = np.random.default_rng(1)
    assert not np.array_equal(scores(rng), scores(rng))
    assert np.isfinite(scores(2**40 + 3)).all()

    groups = {"body": ["height", "weight"]}
    model = ILOCO(LINE, DataSplit(), groups=groups).fit(X, Y)
    assert model.result_.names == ("age", "body", "income")
    assert len(model.result_) == 3
    assert model.n_features_in_ == 4
    split = model.result_
    assert split.n_groups == 0
    assert not split.monte_carlo.any()


def test_targets_are_those_of_the_mean_of_all(results):
    target = results.target(X, Y, [("age", "height")])
    source = results.refit_errors_.evaluate_on(X, Y)
    errors = source.errors(np.zeros((1, 0), dtype=np.intp))
    mean = np.mean([predict(X) for predict in source.predictors], axis=0)
    full = ((Y - mean) ** 2).mean()
    assert errors.rows.mean() == pytest.approx(full, rel=1e-10)
    assert target.n_rows == 120
    assert target.main is not None
    assert target.method == f"{results.result_.method}, evaluated on new rows"


def test_errors_without_a_bound_have_the_range_of_those_that_were_seen(results):
    sets = Features.of(NAMES).all_sets
    observed = max(
        results.refit_errors_.errors(sets(size)).rows.max() for size in (0, 1)
    )
    assert results.result_.error_range == ErrorRange(0.0, observed, proved=False)
    # where a predictor is never wrong there is no zero width: without the first
    # feature there are errors, and they have been seen
    y = (X["age"] > 0) * 1.0
    y[:2] = 0.0, 1.0
    model = ILOCO(DecisionTreeRegressor(max_depth=1), DataSplit())
    with pytest.warns(DegenerateVarianceWarning):
        frame = model.fit(X.assign(age=y), y).result_.to_frame()
    assert (frame["degenerate"] & (frame["score"] == 0.0)).any()
    assert_array_equal(frame["ci_high"] - frame["ci_low"] > 0, frame["used"])


def test_features_that_a_learner_does_not_use_score_zero_exactly():
    model = ILOCO(Lasso(alpha=0.5), DataSplit()).fit(X, Y)
    rows, used = model.refit_errors_.plan.folds[0].training, set()
    for left_out in [
        values for size in range(3) for values in combinations(range(4), size)
    ]:
        retained = [j for j in range(4) if j not in left_out]
        line = Lasso(alpha=0.5).fit(TABLE[rows][:, retained], Y[rows]).coef_
        used |= set(np.array(retained)[line != 0.0])
    assert set(model.result_.not_used) == {0, 1, 2, 3} - used != set()
    frame = model.result_.to_frame()
    values = frame[frame["used"]]
    assert {NAMES[j] for j in used} == set(values["feature_1"]) | set(
        values["feature_2"]
    )
    values = frame[~frame["used"]]
    for column in ("score", "se", "ci_low", "ci_high"):
        assert (values[column] == 0.0).all()
    assert (values["p_two"] == 1.0).all()
    cells = model.main_effects_.document().blocks[0].frame["interval"].tolist()
    assert cells.count("not used") == 4 - len(used)


def test_patches_without_a_feature_that_no_tree_uses_do_not_score_it():
    table, y = make_friedman1(n_samples=80, n_features=6, random_state=0)
    table[:, 3] = 7.0
    model = ILOCO(TREE, Minipatches(n_patches=600, n_features=3)).fit(table, y)
    assert model.refit_errors_.used == {0, 1, 2, 4, 5}
    result = model.result_
    assert result.not_used == model.main_effects_.not_used == (3,)
    raw = set_scores(model.refit_errors_, result.sets)["scores"]
    mask = (result.sets == 3).any(axis=1)
    assert np.abs(raw[mask]).min() > 0.01  # what the patches that have it happen to be
    assert not result.scores[mask].any()
    assert_array_equal(result.scores[~mask], raw[~mask])
    assert not result.intervals()[mask].any()
    assert_array_equal(result.to_frame()["used"], ~mask)


@pytest.mark.filterwarnings("ignore::propopt.base.errors.DegenerateVarianceWarning")
def test_features_of_one_row_and_copies_of_others_are_used():
    rng = np.random.default_rng(3)
    table = np.column_stack([rng.normal(size=(120, 2)), np.zeros(120)])
    table[17, 2], y = 1.0, table[:, 0] + 30.0 * (np.arange(120) == 17)
    for scheme in (Minipatches(n_patches=300, rows=0.5), DataSplit(cv=2)):
        model = ILOCO(DecisionTreeRegressor(max_depth=2), scheme, order=1)
        assert 2 not in model.fit(table, y).result_.not_used
    table = rng.normal(size=(100, 3))
    table[:, 1] = table[:, 0]
    y = 3.0 * table[:, 0] + 0.1 * rng.normal(size=100)
    model = ILOCO(DecisionTreeRegressor(max_depth=1), DataSplit(), order=1)
    result = model.fit(table, y).result_
    # each does the work of the other
    assert_allclose(result.scores[:2], 0.0, atol=1e-12)
    assert not {0, 1} & set(result.not_used)


@pytest.mark.filterwarnings("ignore::propopt.base.errors.ImpreciseWarning")
@pytest.mark.parametrize("scheme", [replace(FEW, n_patches=150), DataSplit()])
def test_classes_are_those_that_were_given(scheme):
    labels = np.where(Y > 0.5, "high", np.where(Y < -0.5, "low", "middle"))
    model = ILOCO(GaussianNB(), scheme).fit(X, labels)
    assert list(model.classes_) == ["high", "low", "middle"]
    assert model.result_.error_range == ErrorRange(0.0, 1.0, proved=True)
    assert model.target(X, labels).error == "probability"


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "estimators"))
def test_what_cannot_be_used_is_refused(results, line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line, globals() | {"results": results})


def test_sets_are_read_in_any_order_and_names_of_any_type():
    features = Features.of([("a", 1), 2, "c"])  # sets are read in any order
    sets = read_sets([["c", ("a", 1)], (2, "c")], 7, features)
    assert_array_equal(sets, [[0, 2], [1, 2]])
    with pytest.raises(InvalidInput, match=r"no feature '1' \(did you mean 1\?\)"):
        read_sets([(0, "1")], 2, Features.of([0, 1]))


def test_nothing_is_asked_before_a_fit():
    model = ILOCO(LINE, DataSplit())
    for ask in (model.interactions, lambda: model.target(X, Y)):
        with pytest.raises(NotFittedError):
            ask()


SPLIT = ILOCO(LogisticRegression(), DataSplit(), order=1)
OF_PATCHES = ILOCO(
    Ridge(),
    Minipatches(n_patches=80, n_features=0.8),
    order=1,
)


def not_expected(_):
    """Before scikit-learn 1.7 a check of weights gives sparse tables."""
    old = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7)
    name = "check_sample_weight_equivalence_on_sparse_data"
    return {name: "tables are dense"} if old else {}


@pytest.mark.filterwarnings("ignore")  # checks fit tables too small to say much
@parametrize_with_checks([SPLIT], expected_failed_checks=not_expected)
def test_scikit_learns_own_checks_by_a_split(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([OF_PATCHES], expected_failed_checks=not_expected)
def test_scikit_learns_own_checks_by_patches(estimator, check):
    check(estimator)
