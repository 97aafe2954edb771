"""Piecewise-constant models are known, and named in a warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor, RadiusNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor
from small_data import BINARY, X, Y

from propopt.base.errors import FlatFunctionWarning, JumpsWarning
from propopt.functions import Sine, wrap
from propopt.structures.boosters import is_piecewise_constant, last_step


def few(kind, **settings):
    return kind(n_estimators=3, random_state=0, **settings)


TREE = DecisionTreeRegressor(max_depth=3, random_state=0)
RIDGE = linear_model.Ridge()
FLAT_MODELS = [
    TREE,
    ExtraTreeRegressor(random_state=0),
    few(RandomForestRegressor),
    few(ExtraTreesRegressor),
    few(GradientBoostingRegressor),
    few(GradientBoostingRegressor, init="zero"),
    HistGradientBoostingRegressor(max_iter=3),
    few(AdaBoostRegressor),
    few(BaggingRegressor),
    VotingRegressor([("tree", TREE), ("forest", few(RandomForestRegressor))]),
    StackingRegressor([("tree", TREE), ("k", KNeighborsRegressor())], RIDGE, cv=2),
    few(IsolationForest),
    KNeighborsRegressor(3),
    RadiusNeighborsRegressor(10.0),
    GridSearchCV(TREE, {"max_depth": [2, 3]}, cv=2),
    make_pipeline(StandardScaler(), "passthrough", TREE),
]
STEEP_MODELS = [
    RIDGE,
    few(BaggingRegressor, estimator=RIDGE),
    make_pipeline(StandardScaler(), RIDGE),
]
MIXED_MODELS = [
    few(GradientBoostingRegressor, init=RIDGE),
    VotingRegressor([("tree", TREE), ("ridge", RIDGE)]),
    KNeighborsRegressor(3, weights="distance"),
]


@pytest.mark.parametrize("model", FLAT_MODELS, ids=str)
def test_piecewise_constant_models_are_known_and_named(model):
    model = clone(model).fit(X, Y)
    assert is_piecewise_constant(model)
    name = type(last_step(model)).__name__
    with pytest.warns(FlatFunctionWarning, match=rf"{name}.*po\.smoothed") as caught:
        gradient = wrap(model).gradient(X + 0.01)
    assert len(caught) == 1
    assert (gradient == 0.0).mean() > 0.9


@pytest.mark.parametrize("model", STEEP_MODELS, ids=str)
def test_other_models_are_not_taken_for_piecewise_constant(model):
    model = clone(model).fit(X, Y)
    assert not is_piecewise_constant(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wrap(model).gradient(X + 0.01).any()


@pytest.mark.parametrize("model", MIXED_MODELS, ids=str)
def test_models_with_slopes_and_jumps_are_named_for_their_jumps(model):
    model = clone(model).fit(X, Y)
    assert not is_piecewise_constant(model)
    function = wrap(model)
    with pytest.warns(JumpsWarning, match=r'po\.smoothed\(.*law="data"') as caught:
        assert function.gradient(X + 0.01).any()
    assert len(caught) == 1
    assert function.jumps.kind == "jumps"
    assert wrap(model, step=1e-5).gradient(X + 0.01).any()  # as was asked for


def test_a_step_of_ones_own_may_be_wide_enough_for_a_tree():
    tree = DecisionTreeRegressor(random_state=0).fit(X, Y)
    assert wrap(tree, step=0.5).gradient(X).any()
    with pytest.warns(FlatFunctionWarning, match="every central difference"):
        wrap(tree, step=1e-9).gradient(X + 0.01)


def test_a_stack_that_sees_the_features_is_not_known_to_be_flat():
    model = StackingRegressor([("tree", TREE)], RIDGE, cv=2, passthrough=True)
    assert not is_piecewise_constant(model.fit(X, Y))


def test_callables_and_functions_are_not_known_to_be_flat():
    assert not is_piecewise_constant(np.round)
    assert not is_piecewise_constant(Sine())


def test_lightgbm_is_piecewise_constant_unless_its_trees_are_linear():
    lightgbm = pytest.importorskip("lightgbm")
    quiet = {"n_estimators": 3, "min_child_samples": 3, "verbose": -1}
    model = lightgbm.LGBMRegressor(**quiet).fit(X, Y)
    assert is_piecewise_constant(model)
    assert is_piecewise_constant(model.booster_)
    linear = lightgbm.LGBMRegressor(linear_tree=True, **quiet).fit(X, Y)
    assert not is_piecewise_constant(linear)
    assert not is_piecewise_constant(linear.booster_)


def test_xgboost_is_piecewise_constant_unless_it_is_linear():
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=3).fit(X, BINARY == "yes")
    assert is_piecewise_constant(model)
    dart = xgboost.XGBRegressor(n_estimators=3, booster="dart").fit(X, Y)
    assert is_piecewise_constant(dart)
    linear = xgboost.XGBRegressor(n_estimators=3, booster="gblinear").fit(X, Y)
    assert not is_piecewise_constant(linear)


def test_catboost_is_piecewise_constant():
    catboost = pytest.importorskip("catboost")
    quiet = {"iterations": 3, "verbose": 0, "allow_writing_files": False}
    assert is_piecewise_constant(catboost.CatBoostRegressor(**quiet).fit(X, Y))
    assert is_piecewise_constant(catboost.CatBoostClassifier(**quiet).fit(X, BINARY))
