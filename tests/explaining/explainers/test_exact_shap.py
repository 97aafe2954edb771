"""Exact Shapley values of sums of products: against all orders, and against trees."""

import pickle

import numpy as np
import pandas as pd
import pytest
from orders import all_orders
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVR

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.explainers import ExactShap, TreeShap
from propopt.structures.products.sums import ProductShapley


RNG = np.random.default_rng(3)
N = 80
X = pd.DataFrame(RNG.normal(size=(N, 4)), columns=list("abcd"))
Y = X.a * X.b + np.sin(2 * X.c) + 0.1 * RNG.normal(size=N)
HOLED = X.mask(RNG.random(X.shape) < 0.15)
COLOURED = X.assign(d=RNG.choice(["red", "green", "blue"], N))
CASES = {
    "kernels": (SVR(C=10.0), X),
    "scaled kernels": (make_pipeline(StandardScaler(), SVR(C=10.0)), X),
    "gaussian process": (GaussianProcessRegressor(alpha=0.1), X),
    "polynomial": (make_pipeline(PolynomialFeatures(3), LinearRegression()), X),
    "splines": (make_pipeline(SplineTransformer(), LinearRegression()), X),
    "categories": (
        make_pipeline(
            make_column_transformer(
                (OneHotEncoder(), ["d"]), (StandardScaler(), ["a", "b", "c"])
            ),
            SVR(C=10.0),
        ),
        COLOURED,
    ),
    "trees": (HistGradientBoostingRegressor(max_iter=8, min_samples_leaf=5), HOLED),
}


def made(case):
    model, table = CASES[case]
    return po.wrap(model.fit(table, Y), data=table), table


@pytest.mark.parametrize("case", CASES)
def test_all_orders_give_the_same(case):
    function, table = made(case)
    background = table[50:62]
    result = ExactShap(background=background).explain(function, table[:3])
    wanted = all_orders(function, table[:3], background)
    size = np.abs(wanted).max()
    # products of thousands of kernels are added up, each rounded
    np.testing.assert_allclose(result.attributions, wanted, rtol=0, atol=1e-11 * size)
    assert np.abs(result.completeness_gap).max() <= 1e-11 * size
    base = function.value(background).mean()
    np.testing.assert_allclose(result.base_value, base, rtol=1e-12)
    np.testing.assert_array_equal(result.prediction, function.value(table[:3]))
    assert (result.units, result.method) == ("output", "exact_shap")


def test_trees_have_what_tree_shap_gives_to_the_last_bit():
    function, table = made("trees")
    one, other = (
        kind(background=20).explain(function, table, rng=1).attributions
        for kind in (ExactShap, TreeShap)
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("model", "output", "reason"),
    [
        (MLPRegressor(hidden_layer_sizes=(3,), max_iter=20), "auto", "relu"),
        (LogisticRegression(), "probability", "log_odds"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_sum_of_products_is_refused_with_the_reason(model, output, reason):
    y = Y if isinstance(model, MLPRegressor) else (Y > 0).astype(int)
    function = po.wrap(model.fit(X, y), data=X, output=output)
    with pytest.raises(InvalidInput, match=rf"exact_shap: .*{reason}.*permutation"):
        ExactShap().explain(function, X)


def test_a_second_call_reads_the_background_once_and_others_anew(monkeypatch):
    function, table = made("kernels")
    kept = []
    own = ProductShapley.values
    monkeypatch.setattr(
        ProductShapley, "values", lambda self, *a: kept.append(self) or own(self, *a)
    )
    explainer = ExactShap(background=table[50:60])
    first = explainer.explain(function, table[:2]).attributions
    again = explainer.explain(function, table[:2]).attributions
    np.testing.assert_array_equal(first, again)
    assert kept[0] is kept[1]
    pickled = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(
        pickled.explain(function, table[:2]).attributions, first
    )
    assert kept[2] is not kept[0]
