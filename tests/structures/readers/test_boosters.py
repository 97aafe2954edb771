"""LightGBM, XGBoost and CatBoost are read as what they predict."""

from __future__ import annotations

import numpy as np
import pytest
from tree_cases import (
    CLASSES,
    EXACT,
    GAPS,
    SINGLE,
    THREE,
    WEIGHTS,
    X,
    Y,
    agrees,
    boxes_of,
)

import propopt as po
from propopt.structures.boosters import as_estimator


HALF = slice(0, 200)
INCREASING = [1, 0, 0, 0, 0, 0]
MISLEADING = (X[200:], 0.2 * Y[200:])  # what stops training early
DATA = pytest.mark.parametrize("data", [X, GAPS], ids=["whole", "gaps"])


@pytest.fixture(scope="module")
def lightgbm():
    return pytest.importorskip("lightgbm")


@pytest.fixture(scope="module")
def xgboost():
    return pytest.importorskip("xgboost")


@pytest.fixture(scope="module")
def catboost():
    return pytest.importorskip("catboost")


def light(lightgbm, kind="Regressor", **settings):
    quiet = {"verbose": -1, "n_jobs": 1, "n_estimators": 10}
    return getattr(lightgbm, f"LGBM{kind}")(**{**quiet, **settings})


def extreme(xgboost, kind="XGBRegressor", **settings):
    return getattr(xgboost, kind)(**{"n_jobs": 1, "n_estimators": 10, **settings})


def cat(catboost, kind="Regressor", **settings):
    quiet = {"verbose": 0, "allow_writing_files": False, "iterations": 10}
    return getattr(catboost, f"CatBoost{kind}")(**{**quiet, **settings})


LIGHT = [
    {},
    {"n_estimators": 1},
    {"boosting_type": "dart", "drop_rate": 0.5},
    {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1},
    {"boosting_type": "goss"},
    {"extra_trees": True, "max_depth": 4},
    {"monotone_constraints": INCREASING},
    {"min_child_samples": 1000},
    {"objective": "quantile", "alpha": 0.3},
    {"use_missing": False},
]
EXTREME = [
    {},
    {"n_estimators": 1},
    {"booster": "dart", "rate_drop": 0.5},
    {"tree_method": "exact"},
    {"grow_policy": "lossguide", "max_leaves": 7},
    {"monotone_constraints": (1, 0, 0, 0, 0, 0)},
    {"gamma": 1e9},
    {"base_score": 0.25},
    {"objective": "reg:absoluteerror"},
]
CATS = [
    {},
    {"iterations": 1},
    {"grow_policy": "Depthwise"},
    {"grow_policy": "Lossguide"},
    {"boosting_type": "Ordered"},
    {"monotone_constraints": INCREASING},
    {"nan_mode": "Max"},
    {"min_data_in_leaf": 1000, "grow_policy": "Depthwise"},
    {"loss_function": "MAE"},
]


@DATA
@pytest.mark.parametrize("settings", LIGHT, ids=str)
def test_lightgbm(lightgbm, settings, data):
    model = light(lightgbm, **settings).fit(data, Y, sample_weight=WEIGHTS)
    agrees(boxes_of(model), model.predict(data), data)


@DATA
@pytest.mark.parametrize("settings", EXTREME, ids=str)
def test_xgboost(xgboost, settings, data):
    model = extreme(xgboost, **settings).fit(data, Y, sample_weight=WEIGHTS)
    agrees(boxes_of(model), model.predict(data), data, SINGLE)


@DATA
@pytest.mark.parametrize("settings", CATS, ids=str)
def test_catboost(catboost, settings, data):
    model = cat(catboost, **settings).fit(data, Y, sample_weight=WEIGHTS)
    agrees(boxes_of(model), model.predict(data), data)


@DATA
def test_forests_of_xgboost(xgboost, data):
    model = extreme(xgboost, "XGBRFRegressor").fit(data, Y)
    agrees(boxes_of(model), model.predict(data), data, SINGLE)


def test_where_nothing_was_missing_lightgbm_takes_it_for_zero(lightgbm):
    model = light(lightgbm).fit(X, Y)
    agrees(boxes_of(model), model.predict(GAPS), GAPS)


def test_rounds_after_the_best_are_left_out(lightgbm, xgboost, catboost):
    stop = lightgbm.early_stopping(2, verbose=False)
    model = light(lightgbm, n_estimators=60)
    model.fit(X[HALF], Y[HALF], eval_X=X[200:], eval_y=MISLEADING[1], callbacks=[stop])
    assert model.booster_.num_trees() < 60
    agrees(boxes_of(model), model.predict(X))

    model = extreme(xgboost, n_estimators=60, early_stopping_rounds=2)
    model.fit(X[HALF], Y[HALF], eval_set=[MISLEADING], verbose=False)
    assert model.get_booster().num_boosted_rounds() > model.best_iteration + 1
    agrees(boxes_of(model), model.predict(X), tolerance=SINGLE)

    model = cat(catboost, iterations=60, early_stopping_rounds=2)
    model.fit(X[HALF], Y[HALF], eval_set=MISLEADING)
    agrees(boxes_of(model), model.predict(X))


def test_rounds_of_several_trees_and_classes_after_the_best_are_left_out(xgboost):
    settings = {"num_parallel_tree": 2, "subsample": 0.5, "early_stopping_rounds": 2}
    model = extreme(xgboost, "XGBClassifier", n_estimators=60, **settings)
    others = THREE[::-1][200:]
    model.fit(X[HALF], THREE[HALF], eval_set=[(X[200:], others)], verbose=False)
    assert model.get_booster().num_boosted_rounds() > model.best_iteration + 1
    for target in range(3):
        margin = model.predict(X, output_margin=True)[:, target]
        agrees(boxes_of(model, "margin", target), margin, tolerance=SINGLE)


def classifiers(lightgbm, xgboost, catboost):
    return [
        (light(lightgbm, "Classifier"), {"raw_score": True}, EXACT),
        (extreme(xgboost, "XGBClassifier"), {"output_margin": True}, SINGLE),
        (
            cat(catboost, "Classifier"),
            {"prediction_type": "RawFormulaVal"},
            EXACT,
        ),
    ]


@DATA
def test_two_classes_share_a_margin(lightgbm, xgboost, catboost, data):
    for model, raw, tolerance in classifiers(lightgbm, xgboost, catboost):
        model.fit(data, CLASSES)
        margin = model.predict(data, **raw)
        for output in ("margin", "log_odds"):
            agrees(boxes_of(model, output, 1, data), margin, data, tolerance)
            agrees(boxes_of(model, output, 0, data), -margin, data, tolerance)
        assert boxes_of(model, "probability", 1, data) is None


@DATA
def test_each_of_three_classes_has_a_margin(lightgbm, xgboost, catboost, data):
    for model, raw, tolerance in classifiers(lightgbm, xgboost, catboost):
        model.fit(data, THREE)
        margins = model.predict(data, **raw)
        for target in range(3):
            boxes = boxes_of(model, "margin", target, data)
            agrees(boxes, margins[:, target], data, tolerance)
        assert boxes_of(model, "log_odds", 0, data) is None


def test_log_odds_of_lightgbm_are_as_steep_as_its_sigmoid(lightgbm):
    model = light(lightgbm, "Classifier", sigmoid=2.0).fit(X, CLASSES)
    p = model.predict_proba(X)[:, 1]
    log_odds = np.log(p / (1.0 - p))
    agrees(boxes_of(model, "log_odds", 1), log_odds, tolerance=1e-12)
    agrees(boxes_of(model, "margin", 1), log_odds / 2.0, tolerance=1e-12)


@pytest.mark.parametrize("rate", ["poisson", "tweedie"])
def test_behind_a_logarithm_only_the_score_is_a_sum(lightgbm, rate):
    model = light(lightgbm, objective=rate).fit(X, np.exp(Y))
    assert boxes_of(model) is None
    agrees(boxes_of(model, "margin"), np.log(model.predict(X)), tolerance=1e-13)


def test_counts_of_xgboost_and_catboost(xgboost, catboost):
    counts = np.random.default_rng(0).poisson(np.exp(0.3 * Y))
    model = extreme(xgboost, objective="count:poisson").fit(X, counts)
    assert boxes_of(model) is None
    log_mean = np.log(model.predict(X))
    agrees(boxes_of(model, "margin"), log_mean, tolerance=SINGLE)
    model = cat(catboost, loss_function="Poisson").fit(X, counts)
    assert boxes_of(model) is None
    raw = model.predict(X, prediction_type="RawFormulaVal")
    agrees(boxes_of(model, "margin"), raw)


@DATA
@pytest.mark.parametrize("boosting", ["gbdt", "dart", "rf"])
def test_native_boosters_of_lightgbm(lightgbm, boosting, data):
    settings = {"objective": "binary", "verbose": -1, "boosting": boosting}
    bagging = {"bagging_freq": 1, "bagging_fraction": 0.5}
    sampled = lightgbm.Dataset(data, CLASSES)
    booster = lightgbm.train({**settings, **bagging}, sampled, 10)
    boxes = boxes_of(as_estimator(booster), "margin", None, data)
    agrees(boxes, booster.predict(data, raw_score=True), data)


@DATA
@pytest.mark.parametrize("kind", ["gbtree", "dart"])
def test_native_boosters_of_xgboost_predict_by_all_rounds(xgboost, kind, data):
    settings = {"objective": "binary:logistic", "booster": kind, "rate_drop": 0.3}
    known = xgboost.DMatrix(data, CLASSES)
    others = xgboost.DMatrix(data, CLASSES[::-1])
    booster = xgboost.train(
        settings if kind == "dart" else {"objective": "binary:logistic"},
        known,
        30,
        evals=[(others, "others")],
        early_stopping_rounds=3,
        verbose_eval=False,
    )
    assert booster.num_boosted_rounds() > booster.best_iteration + 1
    boxes = boxes_of(as_estimator(booster), "margin", None, data)
    agrees(boxes, booster.predict(known, output_margin=True), data, SINGLE)


def test_what_is_no_sum_of_trees_is_not_read(lightgbm, xgboost, catboost):
    linear_leaves = light(lightgbm, linear_tree=True).fit(X, Y)
    assert boxes_of(linear_leaves) is None
    zero_is_missing = light(lightgbm, zero_as_missing=True).fit(X, Y)
    assert boxes_of(zero_is_missing) is None
    assert boxes_of(extreme(xgboost, booster="gblinear").fit(X, Y)) is None
    assert boxes_of(extreme(xgboost, missing=-1.0).fit(X, Y)) is None
    several = extreme(xgboost, multi_strategy="multi_output_tree", tree_method="hist")
    several.fit(X, np.column_stack([Y, Y]))
    assert boxes_of(several, index=1) is None
    pairs = np.column_stack([X[:, 0], X[:, 2].astype(int)]).astype(object)
    pairs[:, 1] = pairs[:, 1].astype(int).astype(str)
    statistics = cat(catboost, cat_features=[1]).fit(pairs, Y)
    assert boxes_of(statistics, data=X[:, :2]) is None


def test_outputs_of_xgboost_for_several_targets(xgboost):
    model = extreme(xgboost).fit(X, np.column_stack([Y, -(Y**2)]))
    for index in (0, 1):
        truth = model.predict(X)[:, index]
        agrees(boxes_of(model, index=index), truth, tolerance=SINGLE)


def test_scores_of_objectives_of_the_user_are_read_without_a_name():
    lightgbm = pytest.importorskip("lightgbm")
    X = np.random.default_rng(0).normal(size=(200, 3))

    def logistic(y, score):
        return 1 / (1 + np.exp(-score)) - y, np.ones_like(score)

    model = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, objective=logistic)
    boxes = po.wrap(model.fit(X, X[:, 0] > 0), output="margin").boxes
    scores = model.predict(X, raw_score=True)
    np.testing.assert_allclose(boxes.value(X), scores, rtol=1e-12)
