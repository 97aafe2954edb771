"""Exact Shapley values of trees: against all orders, and against the shap package."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from orders import all_orders
from random_trees import boxes_of_trees
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.errors import InvalidInput, Refused
from propopt.base.resources import Budget
from propopt.explaining.explainers import TreeShap
from propopt.structures.boxes import boxes
from propopt.structures.boxes.boxes import BoxShapley
from propopt.structures.boxes.sets import Tree


RNG = np.random.default_rng(3)
N, D = 150, 4
X = pd.DataFrame(RNG.normal(size=(N, D)), columns=list("abcd"))
Y = X.a * X.b + np.sin(2 * X.c) + 0.1 * RNG.normal(size=N)
BACKGROUND = X[100:120]
HOLED = X.mask(RNG.random(X.shape) < 0.15)
COLOURED = X.assign(d=RNG.choice(["red", "green", "blue"], N))


def onehot():
    columns = make_column_transformer(
        (OneHotEncoder(), ["d"]), (StandardScaler(), ["a", "b", "c"])
    )
    return make_pipeline(columns, DecisionTreeRegressor(max_depth=6, random_state=0))


CASES = {
    "tree": (DecisionTreeRegressor(random_state=0), X),
    "boosting": (GradientBoostingRegressor(n_estimators=8, random_state=0), X),
    "missing": (HistGradientBoostingRegressor(max_iter=8, min_samples_leaf=5), HOLED),
    "categories": (onehot(), COLOURED),
    "vote": (
        VotingRegressor(
            [
                ("tree", DecisionTreeRegressor(max_depth=4)),
                ("boosting", GradientBoostingRegressor(n_estimators=5)),
            ]
        ),
        X,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_all_orders_give_the_same(case):
    model, table = CASES[case]
    function = po.wrap(model.fit(table, Y), data=table)
    result = TreeShap(background=table[100:120]).explain(function, table[:4])
    wanted = all_orders(function, table[:4], table[100:120])
    np.testing.assert_allclose(result.attributions, wanted, atol=1e-12)
    assert np.abs(result.completeness_gap).max() <= 1e-12
    assert result.units == "output"


def test_the_shap_package_gives_the_same_for_a_forest():
    shap = pytest.importorskip("shap")
    classes = (Y > 0).astype(int)
    model = RandomForestClassifier(n_estimators=20, random_state=0).fit(X, classes)
    result = TreeShap(background=BACKGROUND).explain(po.wrap(model, data=X), X[:30])
    theirs = shap.TreeExplainer(model, BACKGROUND).shap_values(X[:30])[..., 1]
    np.testing.assert_allclose(result.attributions, theirs, atol=1e-9)


def test_the_shap_package_gives_the_same_for_lightgbm():
    shap = pytest.importorskip("shap")
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMRegressor(n_estimators=30, verbose=-1).fit(X, Y)
    result = TreeShap(background=BACKGROUND).explain(po.wrap(model, data=X), X[:30])
    theirs = shap.TreeExplainer(model, BACKGROUND).shap_values(X[:30])
    # the package compares and adds up in single precision
    np.testing.assert_allclose(result.attributions, theirs, atol=2e-6)


def test_columns_that_no_tree_asks_for_have_exactly_zero():
    table = X.assign(unused=RNG.normal(size=N), constant=1.0)
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(table, Y)
    used = model.feature_importances_ > 0.0
    result = TreeShap(background=50).explain(po.wrap(model, data=table), table)
    assert (result.attributions[:, ~used] == 0.0).all()
    assert (result.attributions[:, used] != 0.0).any(axis=0).all()


def test_background_rows_are_drawn_by_the_seed():
    function = po.wrap(DecisionTreeRegressor(random_state=0).fit(X, Y), data=X)
    first, again, other = (
        TreeShap(background=10).explain(function, X, rng=seed).attributions
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


def test_the_whole_table_is_its_own_background_where_fewer_rows_are_there():
    function = po.wrap(DecisionTreeRegressor(random_state=0).fit(X, Y), data=X)
    result = TreeShap(background=10_000).explain(function, X)
    given = TreeShap(background=X).explain(function, X)
    np.testing.assert_allclose(result.attributions, given.attributions, atol=1e-14)


def test_the_mean_is_one_background_row():
    function = po.wrap(DecisionTreeRegressor(random_state=0).fit(X, Y), data=X)
    result = TreeShap(background="mean").explain(function, X)
    given = TreeShap(background=X.mean().to_frame().T).explain(function, X)
    np.testing.assert_array_equal(result.attributions, given.attributions)


def test_a_function_that_is_no_sum_of_trees_is_refused_with_what_would_do():
    function = po.wrap(LinearRegression().fit(X, Y), data=X)
    with pytest.raises(InvalidInput, match="not read as a sum of trees"):
        TreeShap().explain(function, X)


@pytest.mark.parametrize("background", [0, -1, 1.5, "median", [[np.inf] * 4]])
def test_a_background_that_is_none_is_refused(background):
    with pytest.raises(InvalidInput, match="background"):
        TreeShap(background=background)


def test_a_constant_has_no_shapley_values_but_zero():
    constant = boxes_of_trees([], 3.0, n_columns=2)
    values = BoxShapley.of(constant, np.zeros((3, 2))).values(np.ones((2, 2)))
    np.testing.assert_array_equal(values, np.zeros((2, 2)))


def test_paths_of_more_columns_than_bits_are_refused():
    depth = 70  # a chain of splits, each on a column of its own
    feature = [0] * (2 * depth + 1)
    left, right = [-1] * len(feature), [-1] * len(feature)
    for level in range(depth):
        feature[2 * level] = level
        left[2 * level], right[2 * level] = 2 * level + 1, 2 * level + 2
    for node in range(len(feature)):
        if left[node] < 0:
            feature[node] = -1
    tree = Tree.of(
        feature, [0.0] * len(feature), left, right, np.arange(len(feature), dtype=float)
    )
    with pytest.raises(Refused, match="at most 62"):
        BoxShapley.of(boxes_of_trees([tree], n_columns=depth), np.zeros((2, depth)))


# ---- counted once, leaf by leaf


@pytest.fixture(scope="module")
def deep():
    """A forest of full depth and its function."""
    model = RandomForestRegressor(n_estimators=12, random_state=0).fit(X, Y)
    return po.wrap(model, data=X)


@pytest.mark.parametrize("kept", [0, 20_000, 2**28])
def test_blocks_of_leaves_give_what_all_leaves_do(kept, deep, monkeypatch):
    whole = BoxShapley.of(deep.boxes, BACKGROUND.to_numpy()).values(X[:6].to_numpy())
    monkeypatch.setattr(boxes, "AT_ONCE", Budget(20_000))
    monkeypatch.setattr(boxes, "_KEPT", kept)
    parts = BoxShapley.of(deep.boxes, BACKGROUND.to_numpy())
    result = parts.values(X[:6].to_numpy())
    np.testing.assert_allclose(result, whole, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(parts.values(X[:6].to_numpy()), result)
    # and no bit of a row depends on the rows beside it
    for n in range(6):
        one = parts.values(X[n : n + 1].to_numpy())
        np.testing.assert_array_equal(one[0], result[n])


def test_what_is_counted_takes_a_bounded_share_of_memory(deep, monkeypatch):
    monkeypatch.setattr(boxes, "AT_ONCE", Budget(2**18))
    monkeypatch.setattr(boxes, "_KEPT", 2**16)
    exact = BoxShapley.of(deep.boxes, X.to_numpy())
    exact.values(X[:1].to_numpy())
    tracemalloc.start()
    exact.values(X[:1].to_numpy())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    pairs = len(deep.boxes.values) * len(X)
    assert peak < 8 * pairs / 2  # half of one word for each leaf and row


def test_a_second_call_counts_nothing(deep, monkeypatch):
    explainer = TreeShap(background=BACKGROUND)
    first = explainer.explain(deep, X[:3])
    fresh = TreeShap(background=BACKGROUND).explain(deep, X[3:5])
    counted = []
    own = BoxShapley._count  # noqa: SLF001
    monkeypatch.setattr(
        BoxShapley, "_count", lambda *a: counted.append(a) or own(*a), raising=True
    )
    again = explainer.explain(deep, X[:3])
    np.testing.assert_array_equal(again.attributions, first.attributions)
    others = explainer.explain(deep, X[3:5])
    np.testing.assert_array_equal(others.attributions, fresh.attributions)
    assert counted == []


def test_other_functions_and_backgrounds_are_counted_anew(deep):
    explainer = TreeShap(background=10)
    small = po.wrap(DecisionTreeRegressor(max_depth=3).fit(X, Y), data=X)
    for function in (deep, small, deep):
        for rows in (X[:20], X[20:40]):  # whose background rows are others
            result = explainer.explain(function, rows, rng=3).attributions
            fresh = TreeShap(background=10).explain(function, rows, rng=3).attributions
            np.testing.assert_array_equal(result, fresh)


def test_what_is_counted_stays_behind_where_an_explainer_is_pickled(deep):
    explainer = TreeShap(background=BACKGROUND)
    result = explainer.explain(deep, X[:2])
    data = pickle.dumps(explainer)
    assert len(data) < 10_000
    again = pickle.loads(data).explain(deep, X[:2])
    np.testing.assert_array_equal(again.attributions, result.attributions)
    assert explainer.parameters == pickle.loads(data).parameters
