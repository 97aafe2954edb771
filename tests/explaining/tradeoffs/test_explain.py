"""One line from a model and a table to an explanation with its names."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.explainers import Gradient, Lime, LimePackage, Shap, SmoothGrad


N = 60


@pytest.fixture
def X(rng):
    columns = {
        "age": rng.integers(20, 80, N),
        "income": rng.lognormal(3, 1, N),
        "city": rng.choice(["Bonn", "Oslo", "Rome"], N),
    }
    return pd.DataFrame(columns, index=[f"c{i}" for i in range(N)])


@pytest.fixture
def y(X, rng):
    return (X["age"] / 30 + (X["city"] == "Rome") + rng.normal(size=N) > 2).astype(int)


@pytest.fixture
def pipeline(X, y):
    numbers = ("numbers", StandardScaler(), ["age", "income"])
    columns = ColumnTransformer([numbers, ("city", OneHotEncoder(), ["city"])])
    return make_pipeline(columns, LogisticRegression()).fit(X, y)


def lightgbm_model(X, y):
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=15, min_child_samples=5, verbose=-1)
    return model.fit(X.astype({"city": "category"}), y)


def torch_mlp(X):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = torch.nn.Linear(X.shape[1], 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
    return torch.nn.Sequential(*layers).double()


def every_baseline(data):
    return [
        Gradient(),
        SmoothGrad(scale=0.3, n_samples=8),
        Lime(scale=0.3, n_samples=60),
        Shap(background=data.iloc[:3]),
        LimePackage(n_samples=60, background=data),
    ]


def check_names(result, X):
    frame = result.to_frame()
    assert list(frame.index) == list(X.index)
    assert list(frame.columns) == list(X.columns)
    assert np.isfinite(frame.to_numpy()).all()


def goes_through_everything(model, X, **settings):
    """``explain``, ``sweep`` and each baseline keep the names of the table."""
    best = po.explain(model, X, **settings)
    check_names(best, X)
    assert best.gap < 1e-6
    function = po.wrap(model, data=X, **settings)
    if function.piecewise_constant:
        scale = 0.5 * function.schema.scales("std")
        function = po.smoothed(function, scale, n_samples=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a tiny fit inside lime
        result = [b.explain(function, X.iloc[:9]) for b in every_baseline(X)]
    for explanation in result:
        check_names(explanation, X.iloc[:9])
    objective = po.GradientMatching(result[0].to_frame()) + po.PairwiseRobustness(
        po.knn_graph(function.schema.coordinates(X.iloc[:9]), 3)
    )
    curve = po.sweep(objective, {"pairwise_robustness": [0.1, 1.0]}, result)
    for explanation in curve.explanations:
        check_names(explanation, X.iloc[:9])
    assert (curve.distances()["excess"] >= -1e-6).all()


def test_a_pipeline_with_one_hot_columns_goes_through_everything(pipeline, X):
    goes_through_everything(pipeline, X, output="log_odds")


def test_a_lightgbm_model_goes_through_everything(X, y):
    X = X.astype({"city": "category"})
    goes_through_everything(lightgbm_model(X, y), X)


def test_a_torch_network_goes_through_everything(X):
    X = X[["age", "income"]] / [50.0, 20.0]
    goes_through_everything(torch_mlp(X), X, target=1)


def test_attributions_are_effects_of_a_standard_deviation(pipeline, X):
    result = po.explain(pipeline, X, output="log_odds", robustness=0.0)
    slopes = pipeline[-1].coef_[0]
    exact = np.tile(slopes[:2], (N, 1))  # the scaler divides by the same deviations
    np.testing.assert_allclose(result.attributions[:, :2], exact, rtol=1e-6)
    shares = X["city"].value_counts(normalize=True).sort_index()
    effect = slopes[2:] - shares @ slopes[2:]
    expected = X["city"].map(dict(zip(shares.index, effect, strict=True)))
    np.testing.assert_allclose(result.attributions[:, 2], expected, rtol=1e-9)


def test_no_scale_leaves_plain_gradients(rng):
    X = rng.normal(size=(12, 2)) * [1.0, 50.0]
    function = po.functions.Power(3)
    result = po.explain(function, X, scale=None, robustness=0.0)
    np.testing.assert_allclose(result.attributions, function.gradient(X), rtol=1e-12)


def test_the_knee_is_neither_end_of_the_curve(rng):
    X = rng.normal(size=(40, 3))
    function = po.functions.Sine()
    result = po.explain(function, X)
    gradient = po.explain(function, X, robustness=0.0)
    constant = po.explain(function, X, robustness=1e6)
    for loss in result.losses:
        ends = sorted([gradient.losses[loss], constant.losses[loss]])
        assert ends[0] < result.losses[loss] < 0.8 * ends[1]


def test_a_forest_is_explained_by_its_mean_over_observed_values(rng):
    X = rng.normal(size=(50, 2))
    forest = RandomForestRegressor(20, random_state=0).fit(X, X[:, 0])
    result = po.explain(forest, X)
    assert result.parameters["gradient"] == "exact (boxes)"
    assert result.target_error == 0.0
    noise = po.explain(forest, X, law="gaussian")
    assert noise.gradient.shape == result.gradient.shape
    assert (noise.gradient != result.gradient).any()
    assert (result.attributions[:, 0] > np.abs(result.attributions[:, 1])).mean() > 0.9


def test_permuting_rows_permutes_the_explanation(pipeline, X, rng):
    order = rng.permutation(N)
    result = po.explain(pipeline, X, robustness=0.3).to_frame()
    permuted = po.explain(pipeline, X.iloc[order], robustness=0.3).to_frame()
    difference = (permuted - result.iloc[order]).abs().to_numpy().max()
    assert difference < 1e-6 * result.abs().to_numpy().max()


def test_one_row_is_refused_with_what_would_do(pipeline, X):
    with pytest.raises(InvalidInput, match=r"give more, or .*Gradient"):
        po.explain(pipeline, X.iloc[:1])


def test_columns_that_the_model_does_not_know_are_named(X, y):
    model = LogisticRegression(max_iter=500).fit(X[["age", "income"]], y)
    with pytest.raises(InvalidInput, match="unexpected: 'city'"):
        po.explain(model, X)


def test_a_scale_of_another_length_is_refused(rng):
    with pytest.raises(InvalidInput, match="2 positive numbers"):
        po.explain(po.functions.Sine(), rng.normal(size=(5, 2)), scale=[1.0])


def test_a_linear_model_has_one_explanation_for_all_rows(rng):
    X = rng.normal(size=(400, 2))
    result = po.explain(LinearRegression().fit(X, X @ [1.0, 0.5]), X, scale=None)
    np.testing.assert_allclose(result.attributions, [[1.0, 0.5]] * 400, rtol=1e-9)


def test_what_belongs_to_wrap_is_refused_for_a_function(pipeline, X):
    with pytest.raises(InvalidInput, match="belongs to wrap"):
        po.explain(po.wrap(pipeline, data=X), X, data=po.TableSchema.of(X))


def test_a_forest_on_many_features_gets_samples_enough(rng):
    X = rng.normal(size=(12, 260))
    forest = RandomForestRegressor(2, random_state=0).fit(X, X[:, 0])
    assert po.explain(forest, X).attributions.shape == (12, 260)
