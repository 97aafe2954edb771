"""TreeShap without a background: the numbers of shap, for models of each library."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

import propopt as po
from propopt.base.errors import InvalidInput


shap = pytest.importorskip("shap")
RNG = np.random.default_rng(5)
# numbers that single precision holds, as thresholds of shap do
X = RNG.normal(size=(400, 5)).round(2).astype(np.float32).astype(np.float64)
X[:, 4] = RNG.integers(6, size=400)
MISSING = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
Y = X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 4]) + np.nan_to_num(MISSING[:, 2])
CLASS = np.digitize(Y, [-0.5, 0.8])
WEIGHTS = RNG.integers(1, 5, 400).astype(float)
ROWS = slice(100, 130)


def lightgbm(name, fit=None, **settings):
    package = pytest.importorskip("lightgbm")
    made = {"n_estimators": 15, "verbosity": -1, "n_jobs": 1, "min_child_samples": 5}
    return getattr(package, f"LGBM{name}")(**{**made, **settings}), fit or {}


def xgboost(name, fit=None, **settings):
    package = pytest.importorskip("xgboost")
    made = {"n_estimators": 15, "max_depth": 4, "n_jobs": 1}
    return getattr(package, f"XGB{name}")(**{**made, **settings}), fit or {}


def catboost(name, fit=None, **settings):
    package = pytest.importorskip("catboost")
    made = {"iterations": 15, "verbose": 0, "thread_count": 1}
    made["allow_writing_files"] = False
    return getattr(package, f"CatBoost{name}")(**{**made, **settings}), fit or {}


def sklearn(made, **settings):
    return made(random_state=0, **settings), {}


EQUAL = {"sample_weight": None}
LAST = {"eval_set": [(X[300:], Y[300:])]}
LAST_OF_ALL = {**LAST, "verbose": False}
MODELS = {
    "extra trees": partial(sklearn, ExtraTreesRegressor, n_estimators=8, max_depth=6),
    "forest": partial(sklearn, RandomForestClassifier, n_estimators=8, max_depth=7),
    "histograms": partial(sklearn, HistGradientBoostingRegressor, max_iter=15),
    "histograms of two": partial(sklearn, HistGradientBoostingClassifier, max_iter=9),
    "lightgbm": partial(lightgbm, "Regressor"),
    "lightgbm, codes": partial(
        lightgbm,
        "Regressor",
        {"categorical_feature": [4]},
        min_data_per_group=1,
        max_cat_to_onehot=1,
    ),
    "lightgbm, dart": partial(lightgbm, "Regressor", boosting_type="dart"),
    "lightgbm, classes": partial(lightgbm, "Classifier"),
    "lightgbm, stopped": partial(
        lightgbm, "Regressor", LAST, n_estimators=400, early_stopping_round=2
    ),
    "xgboost": partial(xgboost, "Regressor", base_score=7.5),
    "xgboost, dart": partial(xgboost, "Regressor", booster="dart", rate_drop=0.3),
    "xgboost, classes": partial(xgboost, "Classifier"),
    "xgboost, stopped": partial(
        xgboost, "Regressor", LAST_OF_ALL, n_estimators=400, early_stopping_rounds=2
    ),
    "catboost": partial(catboost, "Regressor"),
    # those of CatBoost do not add up if some of such leaves are less deep than others
    "catboost, full": partial(
        catboost, "Regressor", EQUAL, grow_policy="Depthwise", depth=3
    ),
    "catboost, classes": partial(catboost, "Classifier", depth=4),
}
SINGLE = {name: 3e-6 for name in MODELS if name.startswith("xgboost")}
"""XGBoost computes in single precision."""


@pytest.mark.filterwarnings("ignore:The argument 'eval_set'")
@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_shap(name):
    model, fit = MODELS[name]()
    table = X if name in ("extra trees", "lightgbm, codes") else MISSING
    y = Y
    if "class" in name or name == "forest":
        y = CLASS
    elif "two" in name:
        y = CLASS > 0
    model.fit(table, y, **{"sample_weight": WEIGHTS, **fit})
    explainer = shap.TreeExplainer(model)
    phi = np.asarray(explainer.shap_values(table[ROWS], check_additivity=False))
    phi = phi.reshape(30, 5, -1)
    base = np.ravel(explainer.expected_value)
    assert np.abs(phi).max() > 0.01
    for k in range(phi.shape[2]):
        target = {} if phi.shape[2] == 1 else {"target": k}
        output = "auto" if name in ("forest",) or y is Y else "margin"
        function = po.wrap(model, output=output, data=table, **target)
        made = po.explainers.TreeShap(data=None).explain(function, table[ROWS])
        atol = SINGLE.get(name, 1e-12) * np.abs(phi).max()
        np.testing.assert_allclose(made.attributions, phi[..., k], rtol=0, atol=atol)
        np.testing.assert_allclose(made.base_value, base[k], rtol=0, atol=4 * atol)
        size = max(1.0, np.abs(made.prediction).max())
        assert np.abs(made.additivity_error).max() < SINGLE.get(name, 1e-13) * size


@pytest.mark.parametrize(
    "settings", [{"one_hot_max_size": 9}, {}, {"depth": 7}], ids=str
)
def test_categories_of_catboost_by_one_hot_splits_and_statistics(settings):
    """In training, statistics are of earlier rows: some fell where no category is."""
    catboost_ = pytest.importorskip("catboost")
    table = pd.DataFrame(X, columns=list("abcde"))
    table["k"] = pd.Categorical(RNG.choice(list("pqrstuv"), len(X)))
    table["l"] = pd.Categorical(RNG.choice(list("xyz"), len(X)))
    y = Y + table["k"].cat.codes * table["a"] + (table["l"] == "x")
    fit = {"cat_features": ["k", "l"]}
    model, _ = catboost("Regressor", max_ctr_complexity=1, **settings)
    model.fit(table, y, **fit)
    rows = table[ROWS]
    how = {"type": "ShapValues"}
    phi = model.get_feature_importance(catboost_.Pool(rows, **fit), **how)
    explain = po.explainers.TreeShap(data=None).explain
    made = explain(po.wrap(model, data=table), rows)
    size = np.abs(phi).max()
    np.testing.assert_allclose(
        made.attributions, phi[:, :-1], rtol=0, atol=1e-14 * size
    )
    np.testing.assert_allclose(made.base_value, phi[:, -1], rtol=1e-14)
    assert np.abs(phi[:, 5:7]).max() > 0.5
    # a split on two categories at once belongs to neither
    joint = (table["k"].cat.codes + table["l"].cat.codes) % 2 * 9.0
    several = {"max_ctr_complexity": 2, "model_size_reg": 0, "iterations": 60}
    model, _ = catboost("Regressor", **several)
    model.fit(table, joint, **fit)
    with pytest.raises(InvalidInput, match="by splits on one column"):
        explain(po.wrap(model, data=table), rows)


def test_an_initial_model_of_boosting_is_in_the_base():
    model = GradientBoostingClassifier(n_estimators=9, init=DummyClassifier())
    model.fit(X, CLASS > 0)
    made = po.explainers.TreeShap(data=None).explain(po.wrap(model, data=X), X[ROWS])
    np.testing.assert_allclose(made.additivity_error, 0.0, atol=1e-14)
    explainer = shap.TreeExplainer(
        GradientBoostingClassifier(n_estimators=9).fit(X, CLASS > 0)
    )
    assert made.base_value[0] == pytest.approx(np.ravel(explainer.expected_value)[0])


def test_sums_of_models_have_sums_of_values_and_others_are_refused():
    forest = ExtraTreesRegressor(4, max_depth=4, random_state=0)
    boosted = HistGradientBoostingRegressor(max_iter=5)
    both = VotingRegressor([("a", forest), ("b", boosted)], weights=[3, 1]).fit(X, Y)
    explain = po.explainers.TreeShap(data=None).explain
    phi = [shap.TreeExplainer(one).shap_values(X[ROWS]) for one in both.estimators_]
    made = explain(po.wrap(both, data=X), X[ROWS]).attributions
    np.testing.assert_allclose(made, 0.75 * phi[0] + 0.25 * phi[1], atol=1e-14)
    for other in (LinearRegression(), KNeighborsRegressor()):
        with pytest.raises(InvalidInput, match="not read as a sum of trees"):
            explain(po.wrap(other.fit(X, Y), data=X), X[ROWS])
    from propopt.structures.boxes.boxes import TreeSum
    from propopt.structures.boxes.path_dependent import NO_COVERS, PathDependent
    from propopt.structures.boxes.sets import Tree

    stump = Tree.of([0, -1, -1], [0.0] * 3, [1, -1, -1], [2, -1, -1], [0.0, 1.0, 2.0])
    reason = PathDependent.of(TreeSum((stump,), 0.0, (None,)).boxes())
    assert reason.reason == NO_COVERS


def test_only_trees_and_tables_have_values_without_a_background():
    for made in (po.explainers.Shap, po.explainers.ExactShap):
        with pytest.raises(InvalidInput, match="data: expected numbers, got None"):
            made(data=None)
