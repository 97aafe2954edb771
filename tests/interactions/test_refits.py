"""Learners of any library, tables and targets of any kind, fitted without features."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from refit_cases import product_table, read
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from propopt.base.errors import InvalidInput
from propopt.interactions import ILOCO, DataSplit, Minipatches
from propopt.interactions.features import Features
from propopt.tables.schema import TableSchema


X, Y = product_table(80)
LABELS = np.where(Y > 0.5, "high", np.where(Y < -0.5, "low", "middle"))
ROWS, REST = np.arange(50), np.arange(50, 80)
ALL = np.ones(4, dtype=bool)
WITHOUT_1 = np.array([True, False, True, True])


def people() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    age = rng.integers(18, 80, 80).astype(float)
    age[::7] = np.nan
    return pd.DataFrame(
        {
            "age": age,
            "city": pd.Categorical(rng.choice(["A", "B", "C"], 80)),
            "score": rng.normal(size=80).astype(np.float32),
            "ok": rng.random(80) < 0.5,
        }
    )


PEOPLE = people()
BY_NAME = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city", "ok"]),
        (StandardScaler(), ["score"]),
        (SimpleImputer(), ["age"]),
    ),
    Ridge(),
)


# what is fitted


def test_a_fit_sees_the_rows_and_columns_that_are_kept() -> None:
    predict = read(LinearRegression(), X, Y).fitted(ROWS, WITHOUT_1, 0)
    expected = LinearRegression().fit(X[:50][:, [0, 2, 3]], Y[:50])
    wanted = expected.predict(X[:, [0, 2, 3]])
    np.testing.assert_allclose(predict(X), wanted, rtol=1e-9)


def test_groups_are_left_out_together() -> None:
    refits = read(LinearRegression(), X, Y, groups={"pair": [1, 3]})
    assert refits.features.names == (0, "pair", 2)
    predict = refits.fitted(ROWS, np.array([True, False, True]), 0)
    expected = LinearRegression().fit(X[:50][:, [0, 2]], Y[:50])
    np.testing.assert_allclose(predict(X), expected.predict(X[:, [0, 2]]), rtol=1e-9)


def test_without_features_it_is_the_mean_or_how_often_classes_come() -> None:
    nothing = np.zeros(4, dtype=bool)
    mean = read(LinearRegression(), X, Y).fitted(ROWS, nothing, 0)(X[50:])
    np.testing.assert_allclose(mean, np.full(30, Y[:50].mean()), rtol=1e-14)
    shares = read(LogisticRegression(), X, LABELS).fitted(ROWS, nothing, 0)(X[50:])
    counts = [(LABELS[:50] == own).mean() for own in ("high", "low", "middle")]
    np.testing.assert_allclose(shares, np.tile(counts, (30, 1)), rtol=1e-14)
    weights = np.arange(80.0)
    weighted = read(LinearRegression(), X, Y, sample_weight=weights)
    result = weighted.fitted(ROWS, nothing, 0)(X[:1])
    assert result == pytest.approx(np.average(Y[:50], weights=weights[:50]))


@pytest.mark.parametrize("classes", [["a", "b", "c"], [0, 1, 2], [3, 5, 9]])
def test_classes_that_a_fit_did_not_see_have_no_probability(classes: list[Any]) -> None:
    y = np.array(classes)[np.arange(80) % 3]
    refits = read(DecisionTreeClassifier(random_state=0), X, y)
    rows = np.flatnonzero(y != classes[1])
    result = refits.fitted(rows, ALL, 0)(X)
    own = DecisionTreeClassifier(random_state=0).fit(X[rows], y[rows])
    np.testing.assert_array_equal(result[:, [0, 2]], own.predict_proba(X))
    assert not result[:, 1].any()
    alone = refits.fitted(np.flatnonzero(y == classes[2]), ALL, 0)(X)
    np.testing.assert_array_equal(alone, np.tile([0.0, 0.0, 1.0], (80, 1)))


def test_weights_of_classes_are_of_the_labels_that_were_given() -> None:
    y = np.arange(80) % 3
    weights = {0: 1.0, 1: 1.0, 2: 50.0}
    tree = DecisionTreeClassifier(max_depth=1, class_weight=weights, random_state=0)
    rows = np.flatnonzero(y != 1)
    result = read(tree, X, y).fitted(rows, ALL, 0)(X)
    own = clone(tree).fit(X[rows], y[rows]).predict_proba(X)
    np.testing.assert_array_equal(result[:, [0, 2]], own)


def test_each_random_state_that_is_free_is_seeded() -> None:
    forest = make_pipeline(StandardScaler(), RandomForestRegressor(3))
    refits = read(forest, X, Y)
    one, two = (refits.fitted(ROWS, ALL, 5)(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, refits.fitted(ROWS, ALL, 6)(X))
    assert forest[-1].random_state is None
    own = read(RandomForestRegressor(3, random_state=1), X, Y)
    np.testing.assert_array_equal(
        own.fitted(ROWS, ALL, 5)(X), own.fitted(ROWS, ALL, 6)(X)
    )


# tables


class Remembers(RegressorMixin, BaseEstimator):
    """Keeps the table that it was fitted on."""

    def fit(self, X: Any, y: Any) -> Remembers:
        self.table_ = X
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X: Any) -> Any:
        assert type(X) is type(self.table_)
        return np.full(len(X), self.mean_)


def test_dtypes_and_missing_values_reach_the_learner() -> None:
    refits = read(Remembers(), PEOPLE, Y)
    predict: Any = refits.fitted(ROWS, WITHOUT_1, 0)
    observed = predict.model.table_
    pd.testing.assert_frame_equal(observed, PEOPLE.loc[:49, ["age", "score", "ok"]])
    assert predict(PEOPLE).shape == (80,)


def test_tables_of_other_libraries_reach_the_learner_as_they_are() -> None:
    frame = pl.DataFrame({name: PEOPLE[name].to_list() for name in PEOPLE.columns})
    predict: Any = read(Remembers(), frame, Y).fitted(ROWS, WITHOUT_1, 0)
    assert predict.model.table_.equals(frame[:50].select("age", "score", "ok"))
    assert predict(frame).shape == (80,)


@pytest.mark.parametrize("rows", [None, ROWS])
def test_without_features_a_table_of_any_library_keeps_its_rows(rows: Any) -> None:
    frame = pl.DataFrame({name: X[:, k] for k, name in enumerate("abcd")})
    nothing = np.zeros(4, dtype=bool)
    rows = np.arange(80) if rows is None else rows
    predict = read(Ridge(), frame, Y).fitted(rows, nothing, 0)
    np.testing.assert_allclose(predict(frame), np.full(80, Y[rows].mean()), rtol=1e-14)
    some = DataSplit(), Minipatches(n_patches=400, columns="bernoulli")
    result, expected = (
        [ILOCO(Ridge(), own).fit(table, Y).result_.estimates for own in some]
        for table in (frame.select("a", "b"), X[:, :2])
    )
    np.testing.assert_allclose(result[0], expected[0], rtol=1e-9)
    np.testing.assert_allclose(result[1], expected[1], rtol=1e-9)


@pytest.mark.filterwarnings("ignore::propopt.base.errors.FewPatchesWarning")
@pytest.mark.parametrize("scheme", [DataSplit(), Minipatches(n_patches=120, rows=30)])
def test_a_pipeline_by_names_gives_the_same_with_any_library(scheme: Any) -> None:
    plain = PEOPLE.assign(
        city=PEOPLE["city"].astype(str), score=PEOPLE["score"].astype(float)
    )
    frame = pl.DataFrame({name: plain[name].to_list() for name in plain.columns})
    result = [
        ILOCO(BY_NAME, scheme, sets=[("city", "score"), ("age", "ok")]).fit(table, Y)
        for table in (plain, frame)
    ]
    np.testing.assert_allclose(
        result[0].result_.estimates, result[1].result_.estimates, rtol=1e-9, atol=1e-12
    )


def test_a_feature_that_no_transformer_has_scores_exactly_zero() -> None:
    numbers = make_pipeline(
        make_column_transformer((StandardScaler(), ["score"])), Ridge()
    )
    result = ILOCO(numbers, DataSplit(), order=1, sets=[("age",)])
    result.fit(PEOPLE, Y)
    assert result.result_.estimates.tolist() == [0.0]
    assert result.result_.intervals().tolist() == [[0.0, 0.0]]
    assert "age" in {result.result_.names[place] for place in result.result_.not_used}


# learners


def test_learners_with_categories_and_missing_values() -> None:
    learner = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3)
    refits = read(learner, PEOPLE, LABELS)
    for kept in (ALL, WITHOUT_1):
        result = refits.fitted(ROWS, kept, 0)(PEOPLE)
        np.testing.assert_allclose(result.sum(axis=1), 1, rtol=1e-12)
    by_name = clone(learner).set_params(categorical_features=["city"])
    np.testing.assert_array_equal(
        read(by_name, PEOPLE, LABELS).fitted(ROWS, ALL, 0)(PEOPLE),
        refits.fitted(ROWS, ALL, 0)(PEOPLE),
    )


def lightgbm(**settings: Any) -> Any:
    package = pytest.importorskip("lightgbm")
    return package.LGBMRegressor(
        n_estimators=3, min_child_samples=3, verbose=-1, **settings
    )


def xgboost(**settings: Any) -> Any:
    return pytest.importorskip("xgboost").XGBRegressor(n_estimators=3, **settings)


def catboost(**settings: Any) -> Any:
    package = pytest.importorskip("catboost")
    return package.CatBoostRegressor(
        iterations=3, verbose=False, allow_writing_files=False, **settings
    )


@pytest.mark.parametrize(
    ("make", "settings", "numbers"),
    [
        (lightgbm, {}, False),
        (lightgbm, {"monotone_constraints": [0, 0, 1, 0]}, False),
        (xgboost, {"enable_categorical": True}, False),
        (xgboost, {"monotone_constraints": (0, 1, 0, 0)}, True),
        (
            xgboost,
            {"feature_types": ["q", "c", "q", "q"], "enable_categorical": True},
            True,
        ),
        (xgboost, {"monotone_constraints": {"score": 1}}, True),
        (catboost, {"cat_features": ["city"]}, False),
        (catboost, {"cat_features": [1]}, False),
        (catboost, {"monotone_constraints": [0, 0, 1, 0]}, True),
    ],
)
def test_libraries_of_boosting(make: Any, settings: Any, numbers: bool) -> None:
    table = PEOPLE.assign(city=PEOPLE["city"].cat.codes) if numbers else PEOPLE
    learner = make(**settings)
    refits = read(learner, table, Y)
    whole = refits.fitted(ROWS, ALL, 0)(table)
    expected = make(**settings).fit(table[:50], Y[:50]).predict(table)
    np.testing.assert_allclose(whole, expected, rtol=1e-6)
    for left_out in range(4):
        kept = np.arange(4) != left_out
        assert np.isfinite(refits.fitted(ROWS, kept, 0)(table)).all()


def test_learners_that_want_classes_without_gaps() -> None:
    package = pytest.importorskip("xgboost")
    y = np.arange(80) % 3
    refits = read(package.XGBClassifier(n_estimators=2), X, y)
    result = refits.fitted(np.flatnonzero(y != 1), ALL, 0)(X)
    assert not result[:, 1].any()
    np.testing.assert_allclose(result.sum(axis=1), 1, rtol=1e-6)


# targets and weights


@pytest.mark.parametrize(
    "target", [LABELS, LABELS.tolist(), pd.Series(LABELS), LABELS == "low"]
)
def test_targets_of_classes(target: Any) -> None:
    refits = read(LogisticRegression(), X, target)
    classes = np.unique(np.asarray(target))
    assert refits.classes is not None
    np.testing.assert_array_equal(refits.classes, classes)
    np.testing.assert_array_equal(classes[refits.y], np.asarray(target))
    table, y = refits.read_rows(X[:3], np.asarray(target)[:3])
    np.testing.assert_array_equal(y, refits.y[:3])
    np.testing.assert_array_equal(table, X[:3])


WEIGHTS = np.random.default_rng(0).uniform(0.1, 3, 80)


@pytest.mark.parametrize(
    ("learner", "expected"),
    [
        (Ridge(), Ridge().fit(X, Y, WEIGHTS)),
        (
            make_pipeline(StandardScaler(), Ridge()),
            make_pipeline(StandardScaler(), Ridge()).fit(
                X, Y, ridge__sample_weight=WEIGHTS
            ),
        ),
        (
            make_pipeline(make_pipeline(StandardScaler(), Ridge())),
            make_pipeline(StandardScaler(), Ridge()).fit(
                X, Y, ridge__sample_weight=WEIGHTS
            ),
        ),
        (
            GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {}, cv=2),
            make_pipeline(StandardScaler(), Ridge()).fit(
                X, Y, ridge__sample_weight=WEIGHTS
            ),
        ),
        (
            TransformedTargetRegressor(Ridge(), transformer=StandardScaler()),
            TransformedTargetRegressor(Ridge(), transformer=StandardScaler()).fit(
                X, Y, sample_weight=WEIGHTS
            ),
        ),
    ],
)
def test_weights_reach_the_last_step(learner: Any, expected: Any) -> None:
    refits = read(learner, X, Y, sample_weight=WEIGHTS)
    result = refits.fitted(np.arange(80), ALL, 0)(X)
    np.testing.assert_allclose(result, expected.predict(X), rtol=1e-12)
    unweighted = read(learner, X, Y).fitted(np.arange(80), ALL, 0)(X)
    assert np.abs(result - unweighted).max() > 1e-4


# what is refused


def test_classes_of_rows_that_were_not_there_are_refused() -> None:
    refits = read(LogisticRegression(), X, LABELS)
    with pytest.raises(
        InvalidInput, match="'other': not among the classes of fit, 'hi"
    ):
        refits.read_rows(X[:1], ["other"])
    with pytest.raises(InvalidInput, match="expected the columns of fit, 0, 1, 2, 3"):
        refits.read_rows(X[:, :2], LABELS)


@pytest.mark.parametrize(
    ("learner", "words"),
    [
        (
            LinearSVC(),
            r"LinearSVC has no predict_proba.*CalibratedClassifierCV\(Linear",
        ),
        (KMeans(), "expected a regressor or classifier .* got KMeans"),
        (Ridge, r"got a class; Ridge\(\) is one"),
        (
            "ridge",
            "expected a regressor or classifier of scikit-learn's kind, got 'rid",
        ),
        (StandardScaler(), "got StandardScaler, which says of itself"),
        (None, "got None"),
    ],
)
def test_learners_that_are_refused(learner: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read(learner, X, LABELS)
    calibrated = CalibratedClassifierCV(LinearSVC(), ensemble=False)
    assert read(calibrated, X, LABELS).classes is not None


@pytest.mark.parametrize(
    ("learner", "y", "words"),
    [
        (
            Ridge(),
            np.column_stack([Y, Y]),
            "expected one target, got 2 columns; fit once",
        ),
        (Ridge(), Y[:79], "expected one value for each of the 80 rows of X, got 79"),
        (Ridge(), np.where(Y[3] == Y, np.nan, Y), "1 of 80 values are missing.*row 3"),
        (Ridge(), np.where(Y[3] == Y, np.inf, Y), "1 of 80 values are not finite"),
        (Ridge(), LABELS, "y: expected numbers"),
        (Ridge(), None, "requires y to be passed"),
        (LogisticRegression(), Y, "Unknown label type: continuous"),
        (LogisticRegression(), np.zeros(80), "two classes or more, got 1 class, 0.0"),
        (Ridge(), np.full(80, 0.1), "all 80 values are 0.1, so that there is nothing"),
        (Ridge(), 1e160 * Y, "y: sums of squares of numbers up to .*e.160 overflow"),
        (LogisticRegression(), np.where(LABELS == "low", None, LABELS), "are missing"),
    ],
)
def test_targets_that_are_refused(learner: Any, y: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read(learner, X, y)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (X[0], "Expected 2D array, got shape"),
        (X[:0], "0 sample"),
        (X[:, :0], "0 feature"),
        (sp.csr_array(X), "a dense table, got a sparse csr_array; give its toarray"),
        (pl.DataFrame(X).lazy(), "collect it first"),
        (X + 1j, "Complex data not supported"),
        (pd.DataFrame(X, columns=list("abca")), "columns appear more than once: 'a'"),
    ],
)
def test_tables_that_are_refused(table: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read(Ridge(), table, Y)


@pytest.mark.parametrize(
    ("learner", "weights", "words"),
    [
        (Ridge(), np.ones(79), "one for each of 80 rows, got 79"),
        (Ridge(), -np.ones(80), "expected numbers >= 0, got -1"),
        (Ridge(), np.zeros(80), "all are zero; two rows at least"),
        (Ridge(), np.arange(80) == 7, "all but one are zero; two rows at least"),
        (
            KNeighborsRegressor(),
            np.ones(80),
            "KNeighborsRegressor.fit takes no weights",
        ),
        (
            make_pipeline(StandardScaler(), KNeighborsRegressor()),
            np.ones(80),
            "KNeighborsRegressor.fit takes no weights",
        ),
    ],
)
def test_weights_that_are_refused(learner: Any, weights: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read(learner, X, Y, sample_weight=weights)


class Wrong(RegressorMixin, BaseEstimator):
    """Predicts what it is told to."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer

    def fit(self, X: Any, y: Any) -> Wrong:
        if self.answer is None and len(X) == len(y):
            raise RuntimeError("no answer")
        return self

    def predict(self, X: Any) -> Any:
        return np.full((len(X), *np.shape(self.answer)), self.answer)


def test_predictions_that_cannot_be_used() -> None:
    with pytest.raises(InvalidInput, match="predictions of Wrong: sums of squares"):
        read(Wrong(1e160), X, Y).fitted(ROWS, ALL, 0)(X)
    with pytest.raises(
        InvalidInput, match="Wrong predicts numbers that are not finite"
    ):
        read(Wrong(np.nan), X, Y).fitted(ROWS, ALL, 0)(X)
    with pytest.raises(
        InvalidInput, match=r"1 numbers for each row from Wrong, got sh"
    ):
        read(Wrong([1.0, 2.0]), X, Y).fitted(ROWS, ALL, 0)(X)
    np.testing.assert_array_equal(
        read(Wrong([1.5]), X, Y).fitted(ROWS, ALL, 0)(X), np.full(80, 1.5)
    )


def test_errors_of_learners_say_what_was_fitted() -> None:
    with pytest.raises(RuntimeError, match="no answer") as caught:
        read(Wrong(), X, Y).fitted(ROWS, WITHOUT_1, 0)
    assert caught.value.__notes__ == [
        "while Wrong was fitted to 50 rows, without features: 1"
    ]


# features


def test_groups_of_a_schema_are_features() -> None:
    table = pd.get_dummies(PEOPLE[["city", "score"]], dtype=float)
    groups = {"city": ["city_A", "city_B", "city_C"]}
    schema = TableSchema.of(table, groups=groups)
    result = Features.of(list(table.columns), schema)
    assert result.names == ("score", "city")
    assert result.columns == ((0,), (1, 2, 3))
    with pytest.raises(
        InvalidInput, match="the schema has the columns 'score', 'city_A"
    ):
        Features.of(["a", "b"], schema)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"g": []}, "'g': expected a list of its columns"),
        ({"g": "ab"}, "'g': expected a list of its columns"),
        ({"g": 0}, "'g': expected a list of its columns, got 0"),
        (
            {"g": ["aeg"]},
            r"'g' has the column 'aeg' \(did you mean 'age'\?\), and the co",
        ),
        ({"g": ["age"], "h": ["age"]}, "'age' is in two groups"),
        ({"size": ["age"]}, "'size': a column of no group is called so too"),
        (["age"], r"expected a mapping of a feature to its columns, or a TableSchema"),
    ],
)
def test_groups_that_are_refused(groups: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Features.of(["age", "size"], groups)


def test_refits_survive_pickling() -> None:
    refits = read(BY_NAME, PEOPLE, Y)
    predict = refits.fitted(ROWS, WITHOUT_1, 0)
    again = pickle.loads(pickle.dumps(refits)).fitted(ROWS, WITHOUT_1, 0)
    np.testing.assert_array_equal(again(PEOPLE), predict(PEOPLE))
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(predict))(PEOPLE), predict(PEOPLE)
    )


def test_trees_of_integers_are_seeded_by_the_fit() -> None:
    refits = read(DecisionTreeRegressor(max_features=1), X, Y)
    result = {refits.fitted(ROWS, ALL, seed)(X).tobytes() for seed in range(4)}
    assert len(result) > 1
