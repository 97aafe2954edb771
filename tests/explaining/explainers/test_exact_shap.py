"""Exact Shapley values of products and trees: all orders, the shap package, memory."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from coalitions import all_orders
from estimators import sk
from random_trees import boxes_of_trees, chain_of_splits
from refusals import refusals
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline

import propopt as po
from propopt.base.errors import InexactBoxesWarning, InvalidInput, Refused
from propopt.base.resources import Budget
from propopt.explaining.explainers import ExactShap, TreeShap
from propopt.structures.boxes import shapley
from propopt.structures.boxes.shapley import BoxShapley
from propopt.structures.products.sums import Game


RNG = np.random.default_rng(3)
N, D = 150, 4
X = pd.DataFrame(RNG.normal(size=(N, D)), columns=list("abcd"))
Y = X.a * X.b + np.sin(2 * X.c) + 0.1 * RNG.normal(size=N)
BACKGROUND = X[100:120]
HOLED = X.mask(RNG.random(X.shape) < 0.15)
COLOURED = X.assign(d=RNG.choice(["red", "green", "blue"], N))
TREE = sk.DecisionTreeRegressor(random_state=0)


def onehot(last):
    categories, numbers = (
        (sk.OneHotEncoder(), ["d"]),
        (sk.StandardScaler(), ["a", "b", "c"]),
    )
    columns = make_column_transformer(categories, numbers)
    return make_pipeline(columns, last)


BOOSTING = sk.GradientBoostingRegressor(n_estimators=8, random_state=0)
PARTS = [("tree", sk.DecisionTreeRegressor(max_depth=4)), ("boosting", BOOSTING)]
VOTE = sk.VotingRegressor(PARTS)
HOLED_TREES = sk.HistGradientBoostingRegressor(max_iter=8, min_samples_leaf=5)
CASES = {
    "kernels": (sk.SVR(C=10.0), X),
    "scaled kernels": (make_pipeline(sk.StandardScaler(), sk.SVR(C=10.0)), X),
    "gaussian process": (sk.GaussianProcessRegressor(alpha=0.1), X),
    "polynomial": (make_pipeline(sk.PolynomialFeatures(3), sk.LinearRegression()), X),
    "splines": (make_pipeline(sk.SplineTransformer(), sk.LinearRegression()), X),
    "categories": (onehot(sk.SVR(C=10.0)), COLOURED),
    "tree": (TREE, X),
    "boosting": (BOOSTING, X),
    "missing": (HOLED_TREES, HOLED),
    "categories, tree": (onehot(sk.DecisionTreeRegressor(max_depth=6)), COLOURED),
    "vote": (VOTE, X),
}
TREES = list(CASES)[6:]


@pytest.mark.parametrize("case", CASES)
def test_all_orders_give_the_same(case):
    model, table = CASES[case]
    function = po.wrap(model.fit(table, Y), data=table)
    background = table[50:62]
    result = ExactShap(data=background).explain(function, table[:3])
    wanted = all_orders(function, table[:3], background)
    size = np.abs(wanted).max()
    # products of thousands of kernels are added up, each rounded
    np.testing.assert_allclose(result.attributions, wanted, rtol=0, atol=1e-11 * size)
    assert np.abs(result.additivity_error).max() <= 1e-11 * size
    base = function.value(background).mean()
    np.testing.assert_allclose(result.base_value, base, rtol=1e-12)
    np.testing.assert_array_equal(result.prediction, function.value(table[:3]))
    assert (result.units, result.method) == ("output", "exact_shap")
    if case in TREES:
        tree = TreeShap(data=background).explain(function, table[:3])
        np.testing.assert_array_equal(tree.attributions, result.attributions)
        np.testing.assert_allclose(tree.attributions, wanted, atol=1e-12)


@pytest.mark.parametrize("library", ["sklearn", "lightgbm"])
def test_the_shap_package_gives_the_same(library):
    shap = pytest.importorskip("shap")
    package = pytest.importorskip(library)
    if library == "sklearn":
        model = sk.RandomForestClassifier(n_estimators=20, random_state=0)
        model.fit(X, (Y > 0).astype(int))
    else:
        model = package.LGBMRegressor(n_estimators=30, verbose=-1).fit(X, Y)
    result = TreeShap(data=BACKGROUND).explain(po.wrap(model, data=X), X[:30])
    theirs = shap.TreeExplainer(model, BACKGROUND).shap_values(X[:30])
    theirs = theirs[..., 1] if library == "sklearn" else theirs
    # of LightGBM the package compares and adds up in single precision
    tolerance = 1e-9 if library == "sklearn" else 2e-6
    np.testing.assert_allclose(result.attributions, theirs, atol=tolerance)


def test_columns_that_no_tree_asks_for_have_exactly_zero():
    table = X.assign(unused=RNG.normal(size=N), constant=1.0)
    model = sk.DecisionTreeRegressor(max_depth=3, random_state=0).fit(table, Y)
    used = model.feature_importances_ > 0.0
    result = TreeShap(data=50).explain(po.wrap(model, data=table), table)
    assert (result.attributions[:, ~used] == 0.0).all()
    assert (result.attributions[:, used] != 0.0).any(axis=0).all()
    constant = boxes_of_trees([], 3.0, n_columns=2)
    values = BoxShapley.of(constant, Game(np.zeros((3, 2)))).values(np.ones((2, 2)))
    np.testing.assert_array_equal(values, np.zeros((2, 2)))


def test_background_rows_are_drawn_by_the_seed_or_all_or_their_mean():
    function = po.wrap(TREE.fit(X, Y), data=X)

    def explained(background, seed=0):
        explainer = TreeShap(data=background)
        return explainer.explain(function, X, rng=seed).attributions

    first = explained(10)
    np.testing.assert_array_equal(first, explained(10))
    assert np.abs(first - explained(10, 1)).max() > 1e-3
    np.testing.assert_allclose(explained(10_000), explained(X), atol=1e-14)
    mean = explained(X.mean().to_frame().T)
    np.testing.assert_array_equal(explained("mean"), mean)


def of(kind, model, **settings):
    return kind().explain(po.wrap(model.fit(X, Y), data=X, **settings), X)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("line", "message"), refusals(__file__, "exact values"))
def test_what_is_no_sum_of_trees_or_products_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


def test_paths_of_more_columns_than_bits_are_refused():
    tree = chain_of_splits(RNG, 70)
    with pytest.raises(Refused, match="at most 62"):
        BoxShapley.of(boxes_of_trees([tree], n_columns=70), Game(np.zeros((2, 70))))


@pytest.fixture(scope="module")
def deep():
    """A forest of full depth and its function."""
    model = sk.RandomForestRegressor(n_estimators=12, random_state=0).fit(X, Y)
    return po.wrap(model, data=X)


def test_what_is_made_at_once_takes_a_bounded_share_of_memory(deep, monkeypatch):
    budget = Budget(2**16)
    for name in ("BATCH_BUDGET", "POINTS_AT_ONCE", "_STREAMED", "_CACHE_BUDGET"):
        monkeypatch.setattr(shapley, name, budget)
    monkeypatch.setattr(shapley, "TABLE_BYTES", 2**16)
    shapley.RECENT.clear()
    exact, rows = BoxShapley.of(deep.boxes, Game(X.to_numpy())), X.to_numpy()
    exact.values(rows[:1])
    tracemalloc.start()
    exact.values(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # a budget counts one array, and some twelve of its size are there at once
    pairs = 16 * len(deep.boxes.values) * len(X) ** 2  # bytes
    assert peak < 16 * budget.n_bytes < pairs / 50


@pytest.mark.parametrize("kind", [TreeShap, ExactShap])
def test_a_second_call_asks_the_model_about_its_rows_alone(kind, monkeypatch):
    asked, predict = [], sk.RandomForestRegressor.predict

    def counted(model, rows):
        asked.append(len(rows))
        return predict(model, rows)

    monkeypatch.setattr(sk.RandomForestRegressor, "predict", counted)
    one, other = (
        po.wrap(sk.RandomForestRegressor(3, random_state=n).fit(X, Y), data=X)
        for n in range(2)
    )
    explainer = kind(data=BACKGROUND)
    first = explainer.explain(one, X[:3])
    asked.clear()
    again = explainer.explain(one, X[:3])
    assert asked == [3]  # once, though what was read is compared with its answers
    np.testing.assert_array_equal(again.base_value, first.base_value)
    # each background and each function has its own mean, in whatever order they come
    few = kind(data=BACKGROUND[:2]).explain(one, X[:3])
    assert few.base_value == pytest.approx(one.value(BACKGROUND[:2]).mean())
    assert explainer != kind(data=BACKGROUND)
    for function in (other, one, other):
        result = explainer.explain(function, X[:3])
        assert result.base_value == pytest.approx(function.value(BACKGROUND).mean())
        assert np.abs(result.additivity_error).max() < 1e-12


@pytest.mark.parametrize("off", [0.0, 1e-6])
@pytest.mark.parametrize("row", [0, 149])
@pytest.mark.parametrize("kind", [TreeShap, ExactShap])
def test_a_function_that_is_read_wrongly_at_one_row_is_refused(
    kind, row, off, monkeypatch
):
    predict, place = sk.RandomForestRegressor.predict, X.to_numpy()[row]

    def other(model, rows):
        return predict(model, rows) + off * (np.asarray(rows) == place).all(axis=1)

    monkeypatch.setattr(sk.RandomForestRegressor, "predict", other)
    function = po.wrap(sk.RandomForestRegressor(3, random_state=0).fit(X, Y), data=X)
    explainer, rest = kind(data=BACKGROUND), X.drop(index=row)
    result = explainer.explain(function, rest if off else X)
    assert np.abs(result.additivity_error).max() < 1e-12
    if off:
        with (
            pytest.warns(InexactBoxesWarning, match="differs from its values by"),
            pytest.raises(InvalidInput, match=f"{kind.method}: .*in row {row} of"),
        ):
            explainer.explain(function, X)
