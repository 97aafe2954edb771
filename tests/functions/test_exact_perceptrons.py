"""Perceptrons, and pipelines that end in an exact model: values and gradients."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.calibration import CalibratedClassifierCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from small_data import BINARY, NOISE, THREE, UNIT, X, Y, assert_exact, mlp, same

from propopt.functions import wrap


ACTIVATIONS = ["identity", "logistic", "tanh", "relu"]
STEPS = {"relu": 1e-8}  # short, for none of its kinks to lie between shifted points
SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    StandardScaler(with_mean=False, with_std=False),
    MinMaxScaler((-1, 3)),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False),
    RobustScaler(with_scaling=False, unit_variance=True),
    "passthrough",
]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_perceptron_regressors_are_exact(activation):
    model = mlp(MLPRegressor, activation).fit(UNIT, Y)
    assert_exact(wrap(model), UNIT, model.predict(UNIT), STEPS.get(activation))


def test_perceptron_regressors_of_counts_are_exact():
    pytest.importorskip("sklearn", minversion="1.7")  # loss
    model = mlp(MLPRegressor, loss="poisson").fit(UNIT, np.abs(Y))
    assert_exact(wrap(model), UNIT, model.predict(UNIT))


def test_perceptron_regressors_of_several_outputs_are_exact():
    model = mlp(MLPRegressor).fit(UNIT, np.column_stack([Y, NOISE]))
    assert_exact(wrap(model, target=1), UNIT, model.predict(UNIT)[:, 1])


def test_perceptrons_without_hidden_layers_are_exact():
    model = mlp(MLPRegressor).set_params(hidden_layer_sizes=()).fit(UNIT, Y)
    assert_exact(wrap(model), UNIT, model.predict(UNIT))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("output", ["probability", "log_odds"])
@pytest.mark.parametrize(
    ("y", "target"), [(BINARY, "yes"), (BINARY, "no"), (THREE, "b")]
)
def test_perceptron_classifiers_are_exact(activation, output, y, target):
    model = mlp(MLPClassifier, activation).fit(UNIT, y)
    column = list(model.classes_).index(target)
    function = wrap(model, target, output)
    probability = model.predict_proba(UNIT)[:, column]
    values = function.value(UNIT)
    as_probability = values if output == "probability" else 1 / (1 + np.exp(-values))
    same(as_probability, probability, 1e-12)
    assert_exact(function, UNIT, values, STEPS.get(activation))


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_pipelines_of_scalers_and_exact_models_are_exact(scaler):
    model = make_pipeline(scaler, "passthrough", mlp(MLPRegressor)).fit(X, Y)
    assert_exact(wrap(model), X, model.predict(X))


def test_pipelines_of_two_scalers_are_exact():
    final = linear_model.LogisticRegression()
    model = make_pipeline(MinMaxScaler(), StandardScaler(), final).fit(X, BINARY)
    assert_exact(wrap(model), X, model.predict_proba(X)[:, 1])


def test_nested_pipelines_are_exact():
    inner = make_pipeline(StandardScaler(), linear_model.Ridge())
    model = make_pipeline(RobustScaler(), inner).fit(X, Y)
    assert_exact(wrap(model), X, model.predict(X))


OTHER_STEPS = [MinMaxScaler(clip=True), PowerTransformer(), SplineTransformer()]


@pytest.mark.parametrize("scaler", OTHER_STEPS, ids=str)
def test_pipelines_of_other_steps_are_numerical(scaler):
    model = make_pipeline(scaler, linear_model.Ridge()).fit(X, Y)
    function = wrap(model)
    assert function.gradient_method.startswith("central differences")
    same(function.value(X), model.predict(X), 1e-15)


def test_pipelines_of_unknown_models_are_numerical():
    final = CalibratedClassifierCV(LinearSVC(), cv=2)
    model = make_pipeline(StandardScaler(), final).fit(X, BINARY)
    assert "differences" in wrap(model).gradient_method
