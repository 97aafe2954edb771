"""Linear models: values and exact gradients, of whatever output is meant."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logit
from sklearn import linear_model
from sklearn.svm import LinearSVC, LinearSVR
from small_data import BINARY, NOISE, THREE, UNIT, X, Y, assert_exact, same

from propopt.functions import wrap
from propopt.structures.readers.fitted_networks import LINEAR_REGRESSORS


SETTINGS = {  # what makes an estimator of this size converge without a warning
    "LinearSVR": {"max_iter": 100_000},
    "HuberRegressor": {"max_iter": 1000},
    "LassoLarsIC": {"noise_variance": 1.0},
    "QuantileRegressor": {"alpha": 0.01},
    "RidgeCV": {"alphas": (0.1, 1.0)},
}


@pytest.mark.parametrize(
    "kind", sorted(LINEAR_REGRESSORS, key=lambda kind: kind.__name__)
)
def test_linear_regressors_are_exact(kind):
    many = kind.__name__.startswith("MultiTask")
    y = np.column_stack([Y, NOISE]) if many else Y
    model = kind(**SETTINGS.get(kind.__name__, {})).fit(UNIT, y)
    expected = model.predict(UNIT)
    function = wrap(model, target=1 if many else None)
    assert_exact(function, UNIT, expected[:, 1] if many else expected)


def test_regressors_of_one_column_need_no_target():
    model = linear_model.Ridge().fit(X, Y[:, None])
    assert_exact(wrap(model), X, model.predict(X).ravel())


@pytest.mark.parametrize("output", ["probability", "log_odds", "margin"])
@pytest.mark.parametrize("target", [None, "yes", "no"])
def test_binary_logistic_regression_is_exact(output, target):
    model = linear_model.LogisticRegression().fit(UNIT, BINARY)
    column = 0 if target == "no" else 1
    probability = model.predict_proba(UNIT)[:, column]
    margin = model.decision_function(UNIT) * (2 * column - 1)
    expected = probability if output == "probability" else margin
    assert_exact(wrap(model, target, output), UNIT, expected)


@pytest.mark.parametrize("target", [0, 1, 2])
@pytest.mark.parametrize("output", ["probability", "log_odds", "margin"])
def test_multinomial_logistic_regression_is_exact(output, target):
    model = linear_model.LogisticRegression().fit(UNIT, THREE)
    probability = model.predict_proba(UNIT)[:, target]
    expected = {
        "probability": probability,
        "log_odds": logit(probability),
        "margin": model.decision_function(UNIT)[:, target],
    }
    label = model.classes_[target]
    assert_exact(wrap(model, label, output), UNIT, expected[output])


@pytest.mark.parametrize("y", [BINARY, THREE], ids=["two", "three"])
def test_cross_validated_logistic_regression_is_exact(y):
    pytest.importorskip("sklearn", minversion="1.8")  # use_legacy_attributes
    model = linear_model.LogisticRegressionCV(
        Cs=2, cv=2, l1_ratios=(0,), scoring="accuracy", use_legacy_attributes=False
    ).fit(UNIT, y)
    function = wrap(model, target=y[0])
    column = list(model.classes_).index(y[0])
    assert_exact(function, UNIT, model.predict_proba(UNIT)[:, column])


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        linear_model.SGDClassifier(random_state=0),
        linear_model.Perceptron(random_state=0),
        linear_model.RidgeClassifier(),
        linear_model.RidgeClassifierCV(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("y", [BINARY, THREE], ids=["two", "three"])
def test_margins_of_linear_classifiers_are_exact(model, y):
    model.fit(UNIT, y)
    expected = model.decision_function(UNIT)
    label = model.classes_[1]
    expected = expected if expected.ndim == 1 else expected[:, 1]
    assert_exact(wrap(model, label), UNIT, expected)


def test_subclasses_of_exact_models_are_numerical_for_they_may_predict_otherwise():
    class Squared(linear_model.LinearRegression):
        def predict(self, X):
            return super().predict(X) ** 2

    model = Squared().fit(X, Y)
    fitted = linear_model.LinearRegression().fit(X, Y)
    expected = 2 * fitted.predict(X)[:, None] * fitted.coef_
    same(wrap(model).gradient(X), expected, 1e-6)


def test_one_vs_rest_logistic_regression_is_numerical():
    model = linear_model.LogisticRegression().fit(UNIT, THREE)
    model.solver = "liblinear"  # its probabilities were no softmax before version 1.8
    assert "differences" in wrap(model, "a").gradient_method
    assert wrap(model, "a", "margin").gradient_method == "exact"


def test_sparsified_models_are_exact():
    model = linear_model.SGDClassifier(penalty="l1", random_state=0).fit(UNIT, BINARY)
    dense = model.coef_.copy()
    same(wrap(model.sparsify()).gradient(UNIT), np.tile(dense, (60, 1)), 1e-15)


def test_an_exact_function_keeps_the_parameters_of_its_wrapping():
    model = linear_model.Ridge().fit(X, Y)
    function, before = wrap(model), model.predict(X)
    model.fit(X, -Y)
    same(function.value(X), before, 1e-12)


def test_linear_support_vector_regression_is_a_value():
    model = LinearSVR(max_iter=100_000).fit(UNIT, Y)
    assert repr(wrap(model)) == "ExactModel(prediction of LinearSVR)"
