"""LightGBM, XGBoost and CatBoost are read as what they predict, and so wrapped."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from estimators import sk
from library_margins import margin_of
from model_answers import is_read
from quiet_boosters import QUIET, booster
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
    table,
    table_response,
)

import propopt as po
from propopt.structures import fitted_model
from propopt.structures.registry import as_estimator


HALF = slice(0, 200)
MISLEADING = (X[200:], 0.2 * Y[200:])  # what stops training early
DATA = pytest.mark.parametrize("data", [X, GAPS], ids=["whole", "gaps"])


@pytest.fixture(scope="module")
def lightgbm():
    return pytest.importorskip("lightgbm")


@pytest.fixture(scope="module")
def xgboost():
    return pytest.importorskip("xgboost")


def few(library, kind="Regressor", **settings):
    return booster(library, kind, **{"n_estimators": 10, **settings})


light, extreme, cat = (partial(few, library) for library in QUIET)

LIGHT = [
    {},
    {"boosting_type": "dart", "drop_rate": 0.5},
    {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1},
    {"min_child_samples": 1000},
    {"objective": "quantile", "alpha": 0.3},
    {"use_missing": False},
]
EXTREME = [
    {},
    {"booster": "dart", "rate_drop": 0.5},
    {"gamma": 1e9},
    {"base_score": 0.25},
    {"objective": "reg:absoluteerror"},
]
CATS = [
    {},
    {"grow_policy": "Depthwise"},
    {"nan_mode": "Max"},
    {"min_data_in_leaf": 1000, "grow_policy": "Depthwise"},
    {"loss_function": "MAE"},
]

SETTINGS = [
    *(("lightgbm", "Regressor", settings) for settings in LIGHT),
    *(("xgboost", "Regressor", settings) for settings in EXTREME),
    ("xgboost", "RFRegressor", {}),
    *(("catboost", "Regressor", settings) for settings in CATS),
]
# whatever has a margin; the packages may not be there
CLASSIFIERS = {
    "gradient boosting": lambda: sk.GradientBoostingClassifier(n_estimators=8),
    "histograms": lambda: sk.HistGradientBoostingClassifier(max_iter=8),
    "lightgbm": lambda: light("Classifier"),
    "forest of lightgbm": lambda: light("Classifier", **LIGHT[2]),
    "xgboost": lambda: extreme("Classifier"),
    "catboost": lambda: cat("Classifier"),
}
each_classifier = pytest.mark.parametrize("name", CLASSIFIERS)


def library_margin(name, model, data):
    """By the library itself, which predicts from the mean of a forest, not its sum."""
    count = model.booster_.current_iteration() if name.startswith("forest") else 1
    return margin_of(model, data) / count


def digits(name):
    return SINGLE if name == "xgboost" else EXACT


def data_of(name):
    return [X] if name == "gradient boosting" else [X, GAPS]


# ---- what readers make of them
@DATA
@pytest.mark.parametrize(("library", "kind", "settings"), SETTINGS, ids=str)
def test_regressors(library, kind, settings, data):
    model = few(library, kind, **settings)
    model.fit(data, Y, sample_weight=None if "RF" in kind else WEIGHTS)
    agrees(boxes_of(model, data=data), model.predict(data), data, digits(library))


def test_where_nothing_was_missing_lightgbm_takes_it_for_zero():
    model = light().fit(X, Y)
    agrees(boxes_of(model), model.predict(GAPS), GAPS)


def test_rounds_after_the_best_are_left_out(lightgbm):
    stop = lightgbm.early_stopping(2, verbose=False)
    model = light(n_estimators=60)
    model.fit(X[HALF], Y[HALF], eval_X=X[200:], eval_y=MISLEADING[1], callbacks=[stop])
    assert model.booster_.num_trees() < 60
    agrees(boxes_of(model), model.predict(X))

    model = extreme(n_estimators=60, early_stopping_rounds=2)
    model.fit(X[HALF], Y[HALF], eval_set=[MISLEADING], verbose=False)
    assert model.get_booster().num_boosted_rounds() > model.best_iteration + 1
    agrees(boxes_of(model), model.predict(X), tolerance=SINGLE)

    model = cat(n_estimators=60, early_stopping_rounds=2)
    model.fit(X[HALF], Y[HALF], eval_set=MISLEADING)
    agrees(boxes_of(model), model.predict(X))


def test_rounds_of_several_trees_and_classes_after_the_best_are_left_out():
    settings = {"num_parallel_tree": 2, "subsample": 0.5, "early_stopping_rounds": 2}
    model = extreme("Classifier", n_estimators=60, **settings)
    others = THREE[::-1][200:]
    model.fit(X[HALF], THREE[HALF], eval_set=[(X[200:], others)], verbose=False)
    assert model.get_booster().num_boosted_rounds() > model.best_iteration + 1
    for target in range(3):
        margin = model.predict(X, output_margin=True)[:, target]
        agrees(boxes_of(model, "margin", target), margin, tolerance=SINGLE)


def test_log_odds_of_lightgbm_are_as_steep_as_its_sigmoid():
    model = light("Classifier", sigmoid=2.0).fit(X, CLASSES)
    p = model.predict_proba(X)[:, 1]
    log_odds = np.log(p / (1.0 - p))
    agrees(boxes_of(model, "log_odds", 1), log_odds, tolerance=1e-12)
    agrees(boxes_of(model, "margin", 1), log_odds / 2.0, tolerance=1e-12)


def test_behind_a_logarithm_only_the_score_is_a_sum():
    counts = np.random.default_rng(0).poisson(np.exp(0.3 * Y))
    for model, y, tolerance in (
        (light(objective="poisson"), np.exp(Y), 1e-13),
        (light(objective="tweedie"), np.exp(Y), 1e-13),
        (extreme(objective="count:poisson"), counts, SINGLE),
        (cat(loss_function="Poisson"), counts, 1e-13),
        *(
            (sk.HistGradientBoostingRegressor(loss=loss, max_iter=10), np.exp(Y), 1e-13)
            for loss in ("poisson", "gamma")
        ),
    ):
        model.fit(X, y)
        assert boxes_of(model) is None
        log_mean = np.log(model.predict(X))
        agrees(boxes_of(model, "margin"), log_mean, tolerance=tolerance)


@DATA
@pytest.mark.parametrize("kind", ["gbtree", "dart"])
def test_native_boosters_of_xgboost_predict_by_all_rounds(xgboost, kind, data):
    settings = {"objective": "binary:logistic", "booster": kind, "rate_drop": 0.3}
    matrix = xgboost.DMatrix(data, CLASSES)
    others = xgboost.DMatrix(data, CLASSES[::-1])
    native = xgboost.train(
        settings if kind == "dart" else {"objective": "binary:logistic"},
        matrix,
        30,
        evals=[(others, "others")],
        early_stopping_rounds=3,
        verbose_eval=False,
    )
    assert native.num_boosted_rounds() > native.best_iteration + 1
    boxes = boxes_of(as_estimator(native), "margin", None, data)
    agrees(boxes, native.predict(matrix, output_margin=True), data, SINGLE)


def sum_of_two(kind, *targets, data=X, **settings):
    """A weighted sum of two CatBoost models, which has no parameters of a fit."""
    from catboost import sum_models

    each = [
        cat(kind, random_seed=seed, **settings).fit(data, target)
        for seed, target in enumerate(targets)
    ]
    return sum_models(each, weights=[0.3, 0.7])


SUMMED = {
    "numbers": ("Regressor", (Y + 4.0, Y - 1.0), {}),
    "categories": ("Regressor", (Y + 4.0, Y), {"cat_features": [0]}),
    "two classes": ("Classifier", (CLASSES, 1 - CLASSES[::-1]), {}),
    "three classes": ("Classifier", (THREE, THREE[::-1]), {}),
}


@pytest.mark.parametrize("name", SUMMED)
def test_sums_of_models_of_catboost_are_read(name, tmp_path):
    catboost = pytest.importorskip("catboost")
    kind, targets, settings = SUMMED[name]
    data = pd.DataFrame(X, columns=list("abcdef"))
    if "cat_features" in settings:
        data["a"] = np.where(data["a"] > 0.0, "up", "down")
    model = sum_of_two(kind, *targets, data=data, **settings)
    target = 2 if name == "three classes" else None
    truth = np.atleast_2d(model.predict(data).T)[target or 0]
    function = po.wrap(model, target, data=data)
    both_are_read(function, data)
    np.testing.assert_allclose(function.value(data), truth, rtol=1e-12)

    best = po.explain(model, data[:9], data=data[100:130], target=target)
    assert best.sampling_excess == 0.0
    totals = best.contributions.sum(axis=1) + best.base_value
    np.testing.assert_allclose(totals, truth[:9], rtol=1e-12, atol=1e-12)
    mean = truth[100:130].mean()
    np.testing.assert_allclose(best.base_value, mean, rtol=1e-12, atol=1e-12)
    given = best.contributions, model, data[:9]
    audit = po.audit(*given, data=data[100:130], target=target)
    assert audit["values"].verdict == "exact"
    if name == "numbers":
        limits = po.lime.limits(model, X[:3], data=X)
        assert np.isfinite(limits.coefficients).all()

    # saved and loaded, a sum has the methods of its class
    loaded = getattr(catboost, f"CatBoost{kind}")()
    model.save_model(str(tmp_path / "sum.cbm"))
    loaded.load_model(str(tmp_path / "sum.cbm"))
    output, index = ("value", 0) if kind == "Regressor" else ("margin", target or 1)
    agrees(boxes_of(loaded, output, index, data), truth, function.read(data)[0])


def test_a_sum_of_models_with_different_losses_is_their_score():
    catboost = pytest.importorskip("catboost")
    means, low = cat().fit(X, Y), cat(loss_function="Quantile:alpha=0.2").fit(X, Y)
    model = catboost.sum_models([means, low])
    agrees(boxes_of(model), means.predict(X) + low.predict(X))


def test_what_is_no_sum_of_trees_is_not_read():
    linear_leaves = light(linear_tree=True).fit(X, Y)
    assert boxes_of(linear_leaves) is None
    assert "linear models in leaves" in po.wrap(linear_leaves).products.reason
    zero_is_missing = light(zero_as_missing=True).fit(X, Y)
    assert boxes_of(zero_is_missing) is None
    assert boxes_of(extreme(booster="gblinear").fit(X, Y)) is None
    pairs = np.column_stack([X[:, 0], X[:, 2].astype(int)]).astype(object)
    pairs[:, 1] = pairs[:, 1].astype(int).astype(str)
    statistics = cat(cat_features=[1]).fit(pairs, Y)
    assert boxes_of(statistics, data=X[:, :2]) is None


def test_outputs_of_xgboost_for_several_targets():
    model = extreme().fit(X, np.column_stack([Y, -(Y**2)]))
    for index in (0, 1):
        truth = model.predict(X)[:, index]
        agrees(boxes_of(model, index=index), truth, tolerance=SINGLE)


# ---- categories, told by their names, not by their positions in the dtype
LISTS = {"min_data_per_group": 1, "cat_smooth": 0.1, "max_cat_to_onehot": 1}
FRAME = table().drop(columns="text")


def reordered(frame: pd.DataFrame) -> pd.DataFrame:
    """The same cells, with the categories of each dtype in another order."""
    letters = frame["letter"].cat.set_categories(list("yxwvu"))
    numbers = frame["number"].cat.set_categories([11, 3, 7, 5])
    return frame.assign(letter=letters, number=numbers)


DART = {"enable_categorical": True, "booster": "dart", "max_cat_to_onehot": 1}


@pytest.mark.parametrize(
    ("library", "settings"), [("lightgbm", LISTS), ("xgboost", DART)]
)
def test_categories_of_a_table(library, settings):
    model, tolerance = few(library, **settings), digits(library)
    other, gaps = reordered(FRAME), with_gaps(FRAME).astype({"count": float})
    for given in (FRAME, gaps):
        model.fit(given, table_response(FRAME))
        boxes = boxes_of(model, data=given)
        agrees(boxes, model.predict(given), given, tolerance)
        assert {3, 4} <= set(boxes.columns.tolist())
        both_are_read(po.wrap(model, data=given), given, tolerance)
    model.fit(FRAME, table_response(FRAME))
    if library == "lightgbm":
        np.testing.assert_array_equal(model.predict(other), model.predict(FRAME))
    agrees(boxes_of(model, data=other), model.predict(other), other, tolerance)


def test_whole_numbers_as_categories_of_an_array():
    """A set of numbers of a column of numbers is a set of intervals."""
    model = light(categorical_feature=[2], **LISTS)
    with pytest.warns(UserWarning, match="categorical"):
        model.fit(X, Y)
    agrees(boxes_of(model), model.predict(X))
    unknown = X - np.array([0.0, 0.0, 3.0, 0.0, 0.0, 0.0])  # some below zero
    agrees(boxes_of(model), model.predict(unknown), unknown)
    gaps = np.where(np.arange(6) == 2, np.nan, X)
    agrees(boxes_of(model), model.predict(gaps), gaps)

    kinds = ["q", "q", "c", "q", "q", "q"]
    model = extreme(feature_types=kinds, max_cat_to_onehot=1).fit(X, Y)
    agrees(boxes_of(model), model.predict(X), tolerance=SINGLE)
    agrees(boxes_of(model), model.predict(gaps), gaps, SINGLE)


# ---- what ``wrap`` reads of them, in the columns that it explains
def both_are_read(function, data, tolerance=EXACT):
    """Its boxes and products are its values, in its encoded columns."""
    points, _ = function.read(data)
    agrees(function.boxes, function.value(data), points, tolerance)
    is_read(function, data, max(1e-12, tolerance))


def probability(model, data, target=1):
    return model.predict_proba(data)[:, target].astype(np.float64)


def with_gaps(frame):
    """A missing value of each kind in each column."""
    frame = frame.astype({"count": "Int64"})
    for j, name in enumerate(frame.columns.drop("flag")):
        frame.loc[frame.index[j::9], name] = pd.NA if name == "count" else None
    return frame


@each_classifier
def test_margins_and_log_odds_of_two_classes(name):
    for data in data_of(name):
        model, tolerance = CLASSIFIERS[name](), digits(name)
        p = probability(model.fit(data, CLASSES), data)
        log_odds, margin = np.log(p) - np.log1p(-p), library_margin(name, model, data)
        rounding = 1e-4 if tolerance == SINGLE else 1e-12
        for target, sign in ((1, 1.0), (0, -1.0)):
            for output in ("margin", "log_odds"):
                function = po.wrap(model, target, output)
                both_are_read(function, data, tolerance)
                if output == "margin":
                    agrees(function.boxes, sign * margin, data, tolerance)
                assert function.margin_boxes is function.boxes
            np.testing.assert_allclose(
                function.value(data), sign * log_odds, rtol=rounding, atol=rounding
            )
        assert po.wrap(model).quantity == po.wrap(model, output="margin").quantity
        # a probability is a function of the margin
        function = po.wrap(model, output="probability")
        assert function.boxes is None
        assert "wrap(model, output='log_odds') is exact" in function.products.reason
        agrees(function.margin_boxes, margin, data, tolerance)
        np.testing.assert_allclose(function.value(data), p)


@each_classifier
def test_margins_of_three_classes(name):
    for data in data_of(name):
        model, tolerance = CLASSIFIERS[name](), digits(name)
        margins = library_margin(name, model.fit(data, THREE), data)
        for target in range(3):
            function = po.wrap(model, target, "margin")
            both_are_read(function, data, tolerance)
            agrees(function.boxes, margins[:, target], data, tolerance)
            others = po.wrap(model, target, "log_odds")
            p = probability(model, data, target)
            truth = np.log(p) - np.log(1.0 - p)
            np.testing.assert_allclose(others.value(data), truth, rtol=1e-4, atol=1e-4)
            assert others.boxes is None
            assert others.margin_boxes is not None


def test_gaps_in_categories_that_the_model_takes_itself():
    frame = with_gaps(table()).drop(columns="text").astype({"count": float})
    model = sk.HistGradientBoostingRegressor(
        max_iter=8, categorical_features="from_dtype"
    ).fit(frame, table_response(table()))
    both_are_read(po.wrap(model, data=frame), frame)


def test_columns_that_one_hot_encode_one_feature_are_one_column():
    frame = table()[["size", "weight"]]
    letters = pd.get_dummies(table()["letter"], prefix="letter").astype(int)
    whole = pd.concat([frame, letters], axis=1)
    model = sk.RandomForestRegressor(4, random_state=0)
    model.fit(whole, Y + 2.0 * letters["letter_u"])
    schema = po.functions.TableSchema.of(
        whole, groups={"letter": list(letters.columns)}
    )
    function = po.wrap(model, data=schema)
    both_are_read(function, whole)
    assert function.boxes.columns.tolist() == [0, 1, 2]


# ---- boxes are read once, checked, and kept
def test_trees_are_read_once_and_only_when_asked_for(monkeypatch):
    read, real = [], fitted_model.exact_boxes
    monkeypatch.setattr(
        fitted_model,
        "exact_boxes",
        lambda *args: read.append(args[1].name) or real(*args),
    )
    function = po.wrap(sk.RandomForestRegressor(2).fit(X, Y))
    function.value(X)
    assert read == []
    assert function.boxes is function.boxes is not None
    assert len(read) == 1
    again = pickle.loads(pickle.dumps(function))
    np.testing.assert_array_equal(again.boxes.value(X), function.boxes.value(X))
    read.clear()
    model = sk.GradientBoostingClassifier(n_estimators=3).fit(X, Y > 0)
    assert po.lime.limits(model, X[:1], data=X).source == "exact"
    assert read.count("margin") == 1


def test_vectors_in_leaves_that_the_library_keeps_otherwise_are_not_read(monkeypatch):
    library = pytest.importorskip("xgboost")
    vectors = {**QUIET["xgboost"][1], "multi_strategy": "multi_output_tree"}
    model = library.XGBRegressor(n_estimators=2, **vectors).fit(X, np.stack([Y, -Y], 1))
    assert po.wrap(model, data=X, target=0).boxes is not None
    way = "propopt.structures.readers.xgboost._trees_of_score"
    monkeypatch.setattr(way, lambda *_: None)
    assert po.wrap(model, data=X, target=0).boxes is None
