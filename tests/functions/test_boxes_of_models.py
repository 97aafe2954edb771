"""What ``wrap`` reads of trees, in the columns that it explains."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tree_cases import (
    CLASSES,
    EXACT,
    GAPS,
    SINGLE,
    THREE,
    X,
    Y,
    agrees,
    table,
    table_response,
)

import propopt as po
from propopt.base.errors import InexactBoxesWarning
from propopt.base.text import Reason
from propopt.functions import outputs
from propopt.functions.means import Checked
from propopt.tables.frames import Labels


def is_read(function, data, tolerance=EXACT):
    """Its boxes are its values, in its encoded columns."""
    points, _ = function.read(data)
    agrees(function.boxes, function.value(data), points, tolerance)


def boosted_classifiers():
    """With their errors, of the packages that are there."""
    result = [
        (GradientBoostingClassifier(n_estimators=8), EXACT),
        (HistGradientBoostingClassifier(max_iter=8), EXACT),
    ]
    try:
        import lightgbm

        settings = {"n_estimators": 8, "verbose": -1, "n_jobs": 1}
        result.append((lightgbm.LGBMClassifier(**settings), EXACT))
        forest = {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1}
        result.append((lightgbm.LGBMClassifier(**settings, **forest), EXACT))
    except ImportError:
        pass
    try:
        import xgboost

        result.append((xgboost.XGBClassifier(n_estimators=8, n_jobs=1), SINGLE))
    except ImportError:
        pass
    try:
        import catboost

        quiet = {"verbose": 0, "allow_writing_files": False}
        result.append((catboost.CatBoostClassifier(iterations=8, **quiet), EXACT))
    except ImportError:
        pass
    return result


def name(part):
    return "" if isinstance(part, float) else type(part).__name__


BOOSTED = pytest.mark.parametrize(
    ("model", "tolerance"), boosted_classifiers(), ids=name
)


def probability(model, data, target=1):
    return model.predict_proba(data)[:, target].astype(np.float64)


@BOOSTED
def test_margins_and_log_odds_of_two_classes(model, tolerance):
    model = clone(model).fit(X, CLASSES)
    p = probability(model, X)
    log_odds = np.log(p) - np.log1p(-p)
    for target, sign in ((1, 1.0), (0, -1.0)):
        for output in ("margin", "log_odds"):
            function = po.wrap(model, target, output)
            is_read(function, X, tolerance)
            assert function.margin_boxes is function.boxes
        rounding = 1e-4 if tolerance == SINGLE else 1e-12
        np.testing.assert_allclose(
            function.value(X), sign * log_odds, rtol=rounding, atol=rounding
        )


@BOOSTED
def test_margins_of_three_classes(model, tolerance):
    model = clone(model).fit(X, THREE)
    for target in range(3):
        is_read(po.wrap(model, target, "margin"), X, tolerance)
        others = po.wrap(model, target, "log_odds")
        p = probability(model, X, target)
        truth = np.log(p) - np.log(1.0 - p)
        np.testing.assert_allclose(others.value(X), truth, rtol=1e-4, atol=1e-4)
        assert others.boxes is None
        assert others.margin_boxes is not None


@BOOSTED
def test_a_probability_is_a_function_of_the_margin_which_is_read(model, tolerance):
    model = clone(model).fit(X, CLASSES)
    function = po.wrap(model)
    assert function.boxes is None
    margin = po.wrap(model, output="margin").value(X)
    agrees(function.margin_boxes, margin, tolerance=tolerance)
    np.testing.assert_allclose(function.value(X), probability(model, X))


@BOOSTED
def test_margins_behind_steps_and_searches(model, tolerance):
    steps = make_pipeline(StandardScaler(), model)
    for whole in (
        steps.fit(X, CLASSES),
        GridSearchCV(steps, {"standardscaler__with_mean": [True]}, cv=2).fit(
            X, CLASSES
        ),
    ):
        for output in ("margin", "log_odds"):
            function = po.wrap(whole, output=output)
            is_read(function, X, tolerance)
            again = pickle.loads(pickle.dumps(function))
            np.testing.assert_array_equal(again.value(X), function.value(X))


def test_forests_are_read_by_probability():
    model = RandomForestClassifier(5, random_state=0).fit(X, THREE)
    function = po.wrap(model, 2)
    is_read(function, X)
    assert function.margin_boxes is function.boxes
    assert po.wrap(model, 2, "log_odds").boxes is None
    assert po.wrap(model, 2, "log_odds").margin_boxes is None


def test_tables_of_numbers_with_names():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = HistGradientBoostingRegressor(max_iter=5).fit(frame, Y)
    is_read(po.wrap(model), frame)
    is_read(po.wrap(model, data=frame), frame)


def test_gaps_in_numbers():
    is_read(po.wrap(HistGradientBoostingRegressor(max_iter=8).fit(GAPS, Y)), GAPS)
    imputed = make_pipeline(SimpleImputer(add_indicator=True), RandomForestRegressor(4))
    is_read(po.wrap(imputed.fit(GAPS, Y)), GAPS)


def with_gaps(frame):
    """A missing value of each kind in each column."""
    frame = frame.astype({"count": "Int64"})
    for j, name in enumerate(frame.columns.drop("flag")):
        frame.loc[frame.index[j::9], name] = pd.NA if name == "count" else None
    return frame


def test_gaps_in_tables_with_categories():
    whole = table()
    frame = with_gaps(whole)
    numbers = ["size", "count", "weight"]
    text = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="none"),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    )
    encode = ColumnTransformer(
        [
            ("text", text, ["letter", "text"]),
            ("numbers", SimpleImputer(), numbers),
            ("hot", OneHotEncoder(sparse_output=False), ["number", "flag"]),
        ]
    )
    plain = frame.astype({"count": float})
    model = make_pipeline(encode, RandomForestRegressor(4, random_state=0))
    model.fit(plain, table_response(whole))
    is_read(po.wrap(model, data=plain), plain)


def test_gaps_in_categories_that_the_model_takes_itself():
    frame = with_gaps(table()).drop(columns="text").astype({"count": float})
    model = HistGradientBoostingRegressor(
        max_iter=8, categorical_features="from_dtype"
    ).fit(frame, table_response(table()))
    is_read(po.wrap(model, data=frame), frame)


def test_gaps_in_categories_of_boosters():
    lightgbm = pytest.importorskip("lightgbm")
    frame = with_gaps(table()).drop(columns="text").astype({"count": float})
    y = table_response(table())
    model = lightgbm.LGBMRegressor(n_estimators=8, verbose=-1, n_jobs=1)
    is_read(po.wrap(model.fit(frame, y), data=frame), frame)
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBRegressor(n_estimators=8, n_jobs=1, enable_categorical=True)
    is_read(po.wrap(model.fit(frame, y), data=frame), frame, SINGLE)


def test_columns_that_one_hot_encode_one_feature_are_one_column():
    frame = table()[["size", "weight"]]
    letters = pd.get_dummies(table()["letter"], prefix="letter").astype(int)
    whole = pd.concat([frame, letters], axis=1)
    model = RandomForestRegressor(4, random_state=0)
    model.fit(whole, Y + 2.0 * letters["letter_u"])
    schema = po.TableSchema.of(whole, groups={"letter": list(letters.columns)})
    function = po.wrap(model, data=schema)
    is_read(function, whole)
    assert function.boxes.columns.tolist() == [0, 1, 2]


def test_numbers_that_are_declared_to_be_categories():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = RandomForestRegressor(4, random_state=0).fit(frame, Y)
    function = po.wrap(model, data=po.TableSchema.of(frame, categorical=["c"]))
    is_read(function, frame)
    assert function.boxes.sets.coded.any()


def test_native_boosters():
    lightgbm = pytest.importorskip("lightgbm")
    settings = {"objective": "binary", "verbose": -1}
    booster = lightgbm.train(settings, lightgbm.Dataset(X, CLASSES), 8)
    is_read(po.wrap(booster, output="margin"), X)
    function = po.wrap(booster)
    np.testing.assert_allclose(function.value(X), booster.predict(X))
    assert function.boxes is None
    agrees(function.margin_boxes, booster.predict(X, raw_score=True))


def test_native_boosters_of_xgboost():
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(X, CLASSES)
    booster = xgboost.train({"objective": "binary:logistic"}, data, 8)
    is_read(po.wrap(booster, output="margin"), X, SINGLE)
    function = po.wrap(booster)
    np.testing.assert_allclose(function.value(X), booster.predict(data), rtol=1e-6)
    assert function.boxes is None
    margin = booster.predict(data, output_margin=True)
    agrees(function.margin_boxes, margin, tolerance=SINGLE)


def test_other_functions_have_no_boxes():
    linear = LinearRegression().fit(X, Y)
    forest = RandomForestRegressor(2).fit(X, Y)
    for function in (
        po.wrap(linear),
        po.wrap(linear, step=1e-3),
        po.wrap(forest.predict),
        po.functions.Sine(),
    ):
        assert function.boxes is None
        assert function.margin_boxes is None


def test_trees_are_read_once_and_only_when_asked_for(monkeypatch):
    reads = []
    real = outputs.exact_products
    monkeypatch.setattr(
        "propopt.functions.outputs.exact_products",
        lambda *args: reads.append(args) or real(*args),
    )
    function = po.wrap(RandomForestRegressor(2).fit(X, Y))
    function.value(X)
    assert reads == []
    assert function.boxes is function.boxes
    assert len(reads) == 1


def test_trees_that_are_kept_in_another_way_are_sampled_with_a_warning():
    model = HistGradientBoostingRegressor(max_iter=2).fit(X, Y)
    function = po.wrap(model)
    model._baseline_prediction = np.zeros((1, 0))  # noqa: SLF001
    with pytest.warns(InexactBoxesWarning, match=r"cannot be read.*IndexError"):
        assert function.boxes is None
    assert function.boxes is None


def test_functions_of_trees_are_pickled():
    function = po.wrap(RandomForestRegressor(2).fit(X, Y))
    assert function.boxes is not None
    again = pickle.loads(pickle.dumps(function))
    np.testing.assert_array_equal(again.boxes.value(X), function.boxes.value(X))


def test_a_leaf_with_another_value_is_found():
    """The model is another than what was read: 10⁻³ more in one of its leaves."""
    model = HistGradientBoostingRegressor(max_iter=8).fit(X, Y)
    function = po.wrap(model)
    assert Checked.boxes_of(function).at(X, Labels()) is function.boxes
    nodes = model._predictors[3][0].nodes  # noqa: SLF001
    leaf = np.flatnonzero(nodes["is_leaf"])[2]
    nodes["value"][leaf] += 1e-3
    with pytest.warns(InexactBoxesWarning, match=r"differs .* 0\.000\d* of the range"):
        assert isinstance(Checked.boxes_of(function).at(X, Labels()), Reason)


def test_the_margin_of_a_boosted_classifier_is_read_once(monkeypatch):
    model = GradientBoostingClassifier(n_estimators=3).fit(X, Y > 0)
    read, own = [], outputs.exact_products
    monkeypatch.setattr(
        outputs,
        "exact_products",
        lambda *args: read.append(args[1].name) or own(*args),
    )
    result = po.lime.limits(model, X[:1], data=X)
    assert result.source == "exact"
    assert read.count("margin") == 1
