"""Learners of any library, tables and targets of any kind, fitted without features."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp  # noqa: F401  # of refusals.txt
from numpy.testing import assert_allclose, assert_array_equal
from refit_cases import product_table, read
from refusals import refusals
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans  # noqa: F401  # of refusals.txt
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import (
    hinge_loss,
    log_loss,  # noqa: F401  # of refusals.txt
    mean_squared_error,  # noqa: F401  # of refusals.txt
)
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB  # noqa: F401  # of refusals.txt
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from propopt.base.errors import AdditiveErrorWarning, InvalidInput
from propopt.interactions import ILOCO, DataSplit, Minipatches
from propopt.interactions.features import Features
from propopt.interactions.refits import (
    ABSOLUTE,
    HINGE,
    PROBABILITY,
    SQUARED,
    read_error,
)
from propopt.tables.schema import TableSchema


X, Y = product_table(80)
LABELS = np.where(Y > 0.5, "high", np.where(Y < -0.5, "low", "middle"))
ROWS = np.arange(50)
ALL, NOTHING = np.ones(4, dtype=bool), np.zeros(4, dtype=bool)
WITHOUT_1 = np.array([True, False, True, True])
WEIGHTS = np.random.default_rng(0).uniform(0.1, 3, 80)


RNG = np.random.default_rng(2)
AGE = RNG.integers(18, 80, 80).astype(float)
PEOPLE = pd.DataFrame(
    {
        "age": np.where(np.arange(80) % 7 == 0, np.nan, AGE),
        "city": pd.Categorical(RNG.choice(["A", "B", "C"], 80)),
        "score": RNG.normal(size=80).astype(np.float32),
        "ok": RNG.random(80) < 0.5,
    }
)
BY_NAME = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city", "ok"]),
        (StandardScaler(), ["score"]),
        (SimpleImputer(), ["age"]),
    ),
    Ridge(),
)


def test_a_fit_sees_the_rows_and_columns_that_are_kept():
    for groups, retained, columns in [
        (None, WITHOUT_1, [0, 2, 3]),
        ({"pair": [1, 3]}, np.array([True, False, True]), [0, 2]),  # left out together
    ]:
        refits = read(LinearRegression(), X, Y, groups=groups)
        expected = LinearRegression().fit(X[:50][:, columns], Y[:50])
        result = refits.fit_predictor(ROWS, retained, 0)(X)
        assert_allclose(result, expected.predict(X[:, columns]), rtol=1e-9)
    assert refits.features.names == (0, "pair", 2)
    refits = read(BY_NAME, PEOPLE, Y)
    predict = refits.fit_predictor(ROWS, WITHOUT_1, 0)
    again = pickle.loads(pickle.dumps(refits)).fit_predictor(ROWS, WITHOUT_1, 0)
    for other in (again, pickle.loads(pickle.dumps(predict))):
        assert_array_equal(other(PEOPLE), predict(PEOPLE))


def test_without_features_it_is_the_mean_or_how_often_classes_come():
    mean = read(LinearRegression(), X, Y).fit_predictor(ROWS, NOTHING, 0)(X[50:])
    assert_allclose(mean, np.full(30, Y[:50].mean()), rtol=1e-14)
    shares = read(LogisticRegression(), X, LABELS).fit_predictor(ROWS, NOTHING, 0)(
        X[50:]
    )
    counts = [(LABELS[:50] == one).mean() for one in ("high", "low", "middle")]
    assert_allclose(shares, np.tile(counts, (30, 1)), rtol=1e-14)
    weighted = read(LinearRegression(), X, Y, sample_weight=WEIGHTS)
    assert_array_equal(weighted.subset(ROWS).sample_weight, WEIGHTS[:50])
    result = weighted.fit_predictor(ROWS, NOTHING, 0)(X[:1])
    assert result == pytest.approx(np.average(Y[:50], weights=WEIGHTS[:50]))


@pytest.mark.parametrize("classes", [["a", "b", "c"], [0, 1, 2], [3, 5, 9]])
def test_classes_that_a_fit_did_not_see_have_no_probability(classes):
    y = np.array(classes)[np.arange(80) % 3]
    rows = np.flatnonzero(y != classes[1])
    # weights of classes are of the labels that were given
    weights = dict(zip(classes, (1.0, 1.0, 50.0), strict=True))
    for settings in ({}, {"max_depth": 1, "class_weight": weights}):
        tree = DecisionTreeClassifier(random_state=0, **settings)
        refits = read(tree, X, y)
        result = refits.fit_predictor(rows, ALL, 0)(X)
        reference = clone(tree).fit(X[rows], y[rows]).predict_proba(X)
        assert_array_equal(result[:, [0, 2]], reference)
        assert not result[:, 1].any()
    alone = refits.fit_predictor(np.flatnonzero(y == classes[2]), ALL, 0)(X)
    assert_array_equal(alone, np.tile([0.0, 0.0, 1.0], (80, 1)))


def test_each_random_state_that_is_free_is_seeded():
    forest = make_pipeline(StandardScaler(), RandomForestRegressor(3))
    refits = read(forest, X, Y)
    one, two, other = (refits.fit_predictor(ROWS, ALL, seed)(X) for seed in (5, 5, 6))
    assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    assert forest[-1].random_state is None
    reference = read(RandomForestRegressor(3, random_state=1), X, Y)
    assert_array_equal(
        *(reference.fit_predictor(ROWS, ALL, seed)(X) for seed in (5, 6))
    )
    tree = read(DecisionTreeRegressor(max_features=1), X, Y)
    assert (
        len({tree.fit_predictor(ROWS, ALL, seed)(X).tobytes() for seed in range(4)}) > 1
    )


def scaled(learner):
    return make_pipeline(StandardScaler(), learner)


OF_STEPS = scaled(Ridge()).fit(X, Y, ridge__sample_weight=WEIGHTS)
OF_TARGET = TransformedTargetRegressor(Ridge(), transformer=StandardScaler())


@pytest.mark.parametrize(
    ("learner", "expected"),
    [
        (Ridge(), Ridge().fit(X, Y, WEIGHTS)),
        (scaled(Ridge()), OF_STEPS),
        (make_pipeline(scaled(Ridge())), OF_STEPS),
        (GridSearchCV(scaled(Ridge()), {}, cv=2), OF_STEPS),
        (OF_TARGET, clone(OF_TARGET).fit(X, Y, sample_weight=WEIGHTS)),
    ],
)
def test_weights_reach_the_last_step(learner, expected):
    every = np.arange(80)
    result = read(learner, X, Y, sample_weight=WEIGHTS).fit_predictor(every, ALL, 0)(X)
    assert_allclose(result, expected.predict(X), rtol=1e-12)
    unweighted = read(learner, X, Y).fit_predictor(every, ALL, 0)(X)
    assert np.abs(result - unweighted).max() > 1e-4


class Remembers(RegressorMixin, BaseEstimator):
    """Keeps the table that it was fitted on."""

    def fit(self, X, y):
        self.table_ = X
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):
        assert type(X) is type(self.table_)
        return np.full(len(X), self.mean_)


def in_polars(table):
    return pl.DataFrame({name: table[name].to_list() for name in table.columns})


def test_tables_of_any_library_reach_the_learner_as_they_are():
    names = ["age", "score", "ok"]
    predict = read(Remembers(), PEOPLE, Y).fit_predictor(ROWS, WITHOUT_1, 0)
    pd.testing.assert_frame_equal(predict.model.table_, PEOPLE.loc[:49, names])
    assert predict(PEOPLE).shape == (80,)
    frame = in_polars(PEOPLE)
    predict = read(Remembers(), frame, Y).fit_predictor(ROWS, WITHOUT_1, 0)
    assert predict.model.table_.equals(frame[:50].select(*names))
    assert predict(frame).shape == (80,)
    for rows in (np.arange(80), ROWS):  # without features it keeps its rows
        mean = read(Remembers(), frame, Y).fit_predictor(rows, NOTHING, 0)(frame)
        assert_allclose(mean, np.full(80, Y[rows].mean()), rtol=1e-14)


def test_a_pipeline_by_names_gives_the_same_with_any_library():
    plain = PEOPLE.astype({"city": str, "score": float})
    sets = [("city", "score"), ("age", "ok")]
    result, other = (
        ILOCO(BY_NAME, DataSplit(), sets=sets).fit(table, Y).result_.scores
        for table in (plain, in_polars(plain))
    )
    assert_allclose(result, other, rtol=1e-9, atol=1e-12)


def test_learners_that_want_classes_without_gaps():
    package = pytest.importorskip("xgboost")
    y = np.arange(80) % 3
    refits = read(package.XGBClassifier(n_estimators=2), X, y)
    result = refits.fit_predictor(np.flatnonzero(y != 1), ALL, 0)(X)
    assert not result[:, 1].any()
    assert_allclose(result.sum(axis=1), 1, rtol=1e-6)


BOOSTERS = {
    "lightgbm": ("LGBMRegressor", {"min_child_samples": 3, "verbose": -1}),
    "xgboost": ("XGBRegressor", {}),
    "catboost": ("CatBoostRegressor", {"verbose": 0, "allow_writing_files": False}),
}


@pytest.mark.parametrize(
    ("library", "settings", "numbers"),
    [
        ("lightgbm", {}, False),
        ("lightgbm", {"monotone_constraints": [0, 0, 1, 0]}, False),
        ("xgboost", {"enable_categorical": True}, False),
        ("xgboost", {"monotone_constraints": (0, 1, 0, 0)}, True),
        ("xgboost", {"feature_types": list("qcqq"), "enable_categorical": True}, True),
        ("xgboost", {"monotone_constraints": {"score": 1}}, True),
        ("catboost", {"cat_features": ["city"]}, False),
        ("catboost", {"cat_features": [1]}, False),
        ("catboost", {"monotone_constraints": [0, 0, 1, 0]}, True),
    ],
)
def test_libraries_of_boosting(library, settings, numbers):
    name, sizes = BOOSTERS[library]
    reference = getattr(pytest.importorskip(library), name)
    make = partial(reference, n_estimators=3, **sizes, **settings)
    table = PEOPLE.assign(city=PEOPLE["city"].cat.codes) if numbers else PEOPLE
    refits = read(make(), table, Y)
    expected = make().fit(table[:50], Y[:50]).predict(table)
    assert_allclose(refits.fit_predictor(ROWS, ALL, 0)(table), expected, rtol=1e-6)
    for left_out in range(4):
        retained = np.arange(4) != left_out
        assert np.isfinite(refits.fit_predictor(ROWS, retained, 0)(table)).all()


@pytest.mark.parametrize(
    "target", [LABELS, LABELS.tolist(), pd.Series(LABELS), LABELS == "low"]
)
def test_targets_of_classes(target):
    refits, given = read(LogisticRegression(), X, target), np.asarray(target)
    assert_array_equal(refits.classes, np.unique(given))
    assert_array_equal(np.unique(given)[refits.y], given)
    table, y = refits.read_rows(X[:3], given[:3])
    assert_array_equal(y, refits.y[:3])
    assert_array_equal(table, X[:3])
    with pytest.raises(InvalidInput, match="expected the columns of fit, 0, 1, 2, 3"):
        refits.read_rows(X[:, :2], target)
    with pytest.raises(InvalidInput, match="'other': not among the classes of fit, "):
        refits.read_rows(X[:1], ["other"])


RNG = np.random.default_rng(0)
TRUE, KNOWN = RNG.normal(size=6), RNG.normal(size=(6, 3, 1))
PLACES = np.array([0, 2, 1, 0, 2, 1])
SHARES = RNG.dirichlet(np.ones(3), size=(6, 4))
OF_PLACES = 1 - SHARES[np.arange(6), :, PLACES]
ABC = np.array(["a", "b", "c"])


def of_shares(error):
    given = [error.relevant_outputs(SHARES[:, q], PLACES) for q in range(4)]
    return error.compute(PLACES, np.stack(given, axis=1))


def test_formulas_of_errors():
    difference = TRUE[:, None] - KNOWN[:, :, 0]
    assert_allclose(SQUARED.compute(TRUE, KNOWN), difference**2, rtol=1e-15)
    assert_allclose(ABSOLUTE.compute(TRUE, KNOWN), np.abs(difference), rtol=1e-15)
    assert_allclose(of_shares(PROBABILITY), OF_PLACES, rtol=1e-15)
    # of two classes it is the distance to the probability of one
    p, y = RNG.uniform(size=6), np.array([0, 1, 1, 0, 1, 0])
    given = PROBABILITY.relevant_outputs(np.column_stack([1 - p, p]), y)
    assert_allclose(
        PROBABILITY.compute(y, given[:, None])[:, 0],
        np.abs(y - p),
        rtol=1e-15,
    )
    assert read_error("auto", None, Ridge()) == SQUARED
    assert read_error("auto", LABELS, LogisticRegression()) == PROBABILITY
    with pytest.warns(AdditiveErrorWarning, match=r"0\.077 for.*0\.38"):
        read_error("absolute", None, Ridge())
    for effect, printed in ((1.0, "0.077"), (2.0, "0.38")):
        roots = 2 * np.sqrt(1 + effect**2) - 1 - np.sqrt(1 + 2 * effect**2)
        assert printed == f"{np.sqrt(2 / np.pi) * roots:.2g}"


def test_two_classes_without_probabilities_have_the_hinge_of_their_decisions():
    signs = np.median(Y) < Y
    labels = np.where(signs, "yes", "no")
    machine = SVC(C=2.0)
    refits = read(machine, X, labels)
    assert refits.error == HINGE
    left = np.array([True, *[False] * (X.shape[1] - 2), True])
    for included in (ALL, left):
        d = clone(machine).fit(X[ROWS][:, included], labels[ROWS])
        d = d.decision_function(X[:, included])
        result = refits.fit_predictor(ROWS, included, 0)(X)
        assert_allclose(result, np.column_stack([-d, d]), rtol=1e-12)
        outputs = refits.error.relevant_outputs(result, refits.y)
        errors = refits.error.compute(refits.y, outputs[:, None])
        assert errors.mean() == pytest.approx(hinge_loss(signs, d), rel=1e-12)
    # a model that knows the shares alone, and one of a single class
    share = signs[:50].mean()
    known = refits.fit_predictor(ROWS, NOTHING, 0)(X[:1])
    assert_allclose(known, [[1 - 2 * share, 2 * share - 1]], rtol=1e-12)
    alone = refits.fit_predictor(np.flatnonzero(signs), ALL, 0)(X[:1])
    assert_array_equal(alone, [[-1.0, 1.0]])
    shares = np.array([1 - signs.mean(), signs.mean()])
    expected = 1.0 - (shares[1] - shares[0]) ** 2
    assert refits.constant_error == pytest.approx(expected, rel=1e-12)
    # asked for by its name, it is taken where there are probabilities, too
    assert read_error("hinge", np.arange(2), LogisticRegression()) == HINGE
    assert read_error("auto", np.arange(2), LogisticRegression()) == PROBABILITY


def test_a_support_vector_machine_has_scores_of_pairs():
    points = np.random.default_rng(3).normal(size=(400, 4))
    product = points[:, 0] * points[:, 1] > 0
    for scheme in (DataSplit(), Minipatches(n_patches=1500)):
        model = ILOCO(SVC(), scheme).fit(points, product)
        best = model.result_.to_frame().nlargest(1, "score")
        assert best[["feature_1", "feature_2"]].to_numpy().tolist() == [[0, 1]]
        assert model.result_.error == "hinge"


def test_errors_of_users_get_what_they_need():
    def wrong(y, p):
        assert p.shape == (len(y), 3)
        return 1 - p[np.arange(len(y)), np.searchsorted(ABC, y)]

    error = read_error(wrong, ABC, LogisticRegression())
    assert_allclose(of_shares(error), OF_PLACES, rtol=1e-15)
    assert error.name == "wrong"

    def up(t, p):
        return 1 - np.where(t == "up", p[:, 1], p[:, 0])

    labels = np.where(Y > 0, "up", "down")
    for learner, target, item, ours in [
        (LinearRegression(), Y, lambda t, p: (t - p) ** 2, "squared"),
        (LogisticRegression(), labels, up, "auto"),
    ]:  # through a fit
        rows, expected = (
            DataSplit().fit(read(learner, X, target, error=one), seed=0)
            .errors(np.array([[0, 1], [1, 2]])).rows for one in (item, ours)
        )  # fmt: skip
        assert_allclose(rows, expected, rtol=1e-13)


class Wrong(RegressorMixin, BaseEstimator):
    """Predicts what it is told to."""

    def __init__(self, answer=None):
        self.answer = answer

    def fit(self, X, y):
        if self.answer is None and len(X) == len(y):
            raise RuntimeError("no answer")
        return self

    def predict(self, X):
        return np.full((len(X), *np.shape(self.answer)), self.answer)


def test_predictions_and_errors_of_learners():
    for answer, words in [
        (
            np.nan,
            r"1 finite number for each row from Wrong, got shape \(80, 1\), with 80",
        ),
        ([1.0, 2.0], r"1 finite number for each row from Wrong, got shape \(80, 2\)"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            read(Wrong(answer), X, Y).fit_predictor(ROWS, ALL, 0)(X)
    for scheme in (DataSplit(), Minipatches(n_patches=500)):
        with pytest.raises(InvalidInput, match="predictions: sums of squares"):
            ILOCO(Wrong(1e160), scheme).fit(X, Y)
    assert_array_equal(
        read(Wrong([1.5]), X, Y).fit_predictor(ROWS, ALL, 0)(X), 80 * [1.5]
    )
    with pytest.raises(RuntimeError, match="no answer") as caught:
        read(Wrong(), X, Y).fit_predictor(ROWS, WITHOUT_1, 0)
    message = ["while Wrong was fitted to 50 rows, without features: 1"]
    assert caught.value.__notes__ == message
    calibrated = CalibratedClassifierCV(LinearSVC(), ensemble=False)
    assert read(calibrated, X, LABELS).classes is not None


NEAR = KNeighborsRegressor()
ONE = Y[3] == Y
SOME = np.where(LABELS == "low", None, LABELS)


@pytest.mark.parametrize(("line", "words"), refusals(__file__, "what is fitted"))
def test_what_is_refused(line, words):
    with pytest.raises(InvalidInput, match=words):
        eval(line)


def test_groups_of_a_schema_are_features():
    table = pd.get_dummies(PEOPLE[["city", "score"]], dtype=float)
    groups = {"city": ["city_A", "city_B", "city_C"]}
    schema = TableSchema.of(table, groups=groups)
    result = Features.of(list(table.columns), schema)
    assert result.names == ("score", "city")
    assert result.columns == ((0,), (1, 2, 3))
