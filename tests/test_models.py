"""Fitted models as functions: values, exact gradients, names, and refusals."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from sklearn import linear_model
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest, RandomForestClassifier, VotingClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeRegressor

from propopt.errors import FlatFunctionWarning, InvalidInput
from propopt.functions import Sine, central_differences, wrap
from propopt.functions.exact import LINEAR_REGRESSORS


RNG = np.random.default_rng(7)
X = RNG.normal([1.0, -2.0, 0.0, 30.0], [1.0, 2.0, 0.5, 4.0], size=(60, 4))
NOISE = RNG.normal(size=60)
Y = 3.0 * X[:, 0] - X[:, 1] * X[:, 2] + 0.1 * X[:, 3] + NOISE
BINARY = np.where(X[:, 0] + NOISE > 1.0, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + NOISE, [0.2, 1.8])]
UNIT = StandardScaler().fit_transform(X)
FRAME = pd.DataFrame(
    X, columns=["w", "x", "y", "z"], index=[f"p{n}" for n in range(60)]
)

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
SETTINGS = {  # what makes an estimator of this size converge without a warning
    "LinearSVR": {"max_iter": 100_000},
    "HuberRegressor": {"max_iter": 1000},
    "LassoLarsIC": {"noise_variance": 1.0},
    "QuantileRegressor": {"alpha": 0.01},
    "RidgeCV": {"alphas": (0.1, 1.0)},
}


def same(actual, expected, rtol):
    """Equal up to ``rtol`` of the largest entry."""
    np.testing.assert_allclose(
        actual, expected, rtol=rtol, atol=rtol * np.abs(expected).max()
    )


def assert_exact(function, points, expected_value, step=None):
    """Its value is the model's own, and its gradient is that of its differences."""
    assert function.gradient_method == "exact"
    same(function.value(points), expected_value, 1e-12)
    differences = central_differences(function.value, points, step)
    same(function.gradient(points), differences, 1e-6)


def mlp(kind, activation="tanh", **settings):
    """A perceptron that stops after three steps, which it takes for convergence."""
    sizes = {"hidden_layer_sizes": (7, 5), "tol": 1e9, "n_iter_no_change": 3}
    return kind(activation=activation, random_state=0, **sizes, **settings)


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


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_perceptron_regressors_are_exact(activation):
    model = mlp(MLPRegressor, activation).fit(UNIT, Y)
    assert_exact(wrap(model), UNIT, model.predict(UNIT), STEPS.get(activation))


def test_perceptron_regressors_of_counts_are_exact():
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


@pytest.mark.parametrize("scaler", [MinMaxScaler(clip=True), PCA(2)], ids=str)
def test_pipelines_of_other_steps_are_numerical(scaler):
    model = make_pipeline(scaler, linear_model.Ridge()).fit(X, Y)
    function = wrap(model)
    assert function.gradient_method.startswith("central differences")
    same(function.value(X), model.predict(X), 1e-15)


def test_pipelines_of_unknown_models_are_numerical():
    model = make_pipeline(StandardScaler(), SVR()).fit(X, Y)
    assert "differences" in wrap(model).gradient_method


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


def test_a_step_asks_for_numerical_gradients():
    model = linear_model.LogisticRegression().fit(UNIT, BINARY)
    exact, numerical = wrap(model), wrap(model, step=1e-5)
    assert numerical.gradient_method == "central differences, step 1e-05 · max(1, |x|)"
    same(numerical.gradient(UNIT), exact.gradient(UNIT), 1e-8)


def test_the_default_step_is_stated():
    method = wrap(lambda X: X[:, 0]).gradient_method
    assert method == "central differences, step 6.1e-06 · max(1, |x|)"


@pytest.mark.parametrize("target", ["a", "b", "c"])
@pytest.mark.parametrize("output", ["probability", "log_odds"])
def test_numerical_probabilities_are_the_models_own(output, target):
    model = GaussianNB(var_smoothing=0.5).fit(UNIT, THREE)
    probability = model.predict_proba(UNIT)[:, list(model.classes_).index(target)]
    expected = probability if output == "probability" else logit(probability)
    same(wrap(model, target, output).value(UNIT), expected, 1e-9)


@pytest.mark.parametrize(("target", "sign"), [(None, 1), ("yes", 1), ("no", -1)])
def test_numerical_margins_belong_to_the_target(target, sign):
    model = SVC().fit(UNIT, BINARY)
    function = wrap(model, target)
    same(function.value(UNIT), sign * model.decision_function(UNIT), 1e-15)


def test_numerical_margins_of_three_classes_are_columns():
    model = SVC().fit(UNIT, THREE)
    same(wrap(model, "c").value(UNIT), model.decision_function(UNIT)[:, 2], 1e-15)


def test_other_models_have_a_value_or_a_margin():
    regressor = GaussianProcessRegressor(optimizer=None).fit(UNIT, Y)
    detector = IsolationForest(n_estimators=5, random_state=0).fit(UNIT)
    same(wrap(regressor).value(UNIT), regressor.predict(UNIT), 1e-15)
    same(wrap(detector).value(UNIT), detector.decision_function(UNIT), 1e-15)


def test_log_odds_of_certain_predictions_name_the_row():
    model = RandomForestClassifier(n_estimators=3, random_state=0).fit(FRAME, BINARY)
    with pytest.raises(InvalidInput, match=r"RandomForestClassifier.*'p\d+'"):
        wrap(model, output="log_odds").value(FRAME)


def test_trees_are_reported_as_flat():
    model = DecisionTreeRegressor(random_state=0).fit(X, Y)
    with pytest.warns(FlatFunctionWarning):
        wrap(model).gradient(X + 0.01)


def test_callables_are_differentiated():
    function = wrap(lambda X: np.sin(X).sum(axis=1))
    same(function.gradient(UNIT), np.cos(UNIT), 1e-9)
    assert repr(function).startswith("NumericalModel(<lambda>")


def test_callables_of_several_outputs_take_a_position():
    function = wrap(lambda X: X**2, target=2)
    same(function.value(UNIT), UNIT[:, 2] ** 2, 1e-15)


def test_callables_get_the_kind_of_table_that_was_given():
    kinds = []

    def model(table):
        kinds.append(type(table))
        return np.asarray(table).sum(axis=1)

    wrap(model).gradient(X)
    wrap(model).gradient(FRAME)
    assert kinds == [np.ndarray, pd.DataFrame]


def test_callables_see_the_names_of_a_dataframe():
    function = wrap(lambda table: table["x"] * table["y"])
    gradient = function.gradient(FRAME)
    assert gradient.index.equals(FRAME.index)
    same(gradient["x"], FRAME["y"], 1e-6)
    same(function.value(FRAME), FRAME["x"] * FRAME["y"], 1e-15)


def test_callables_may_write_into_what_they_get():
    def model(points):
        points *= 2.0
        return points.sum(axis=1)

    before = X.copy()
    same(wrap(model).gradient(X), np.full(X.shape, 2.0), 1e-9)
    same(wrap(model).value(X), 2 * X.sum(axis=1), 1e-15)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda X: X[:3, 0], r"shape \(3,\) for 60 rows"),
        (lambda _: 1.0, r"shape \(\) for 60 rows"),
        (lambda X: ["?"] * len(X), "no numbers"),
        (lambda X: X, "4 outputs; give the position"),
    ],
)
def test_callables_that_return_something_else_are_refused(model, message):
    with pytest.raises(InvalidInput, match=message):
        wrap(model).value(X)


def test_a_callable_that_is_nan_somewhere_is_refused():
    with pytest.raises(InvalidInput, match="gradient is not finite in 1 of 60 rows"):
        wrap(lambda P: np.where(P[:, 0] >= X[:, 0].max(), np.nan, P[:, 0])).gradient(X)


MODELS_OF_NAMES = [
    linear_model.LinearRegression(),
    make_pipeline("passthrough", StandardScaler(), linear_model.Ridge()),
    make_pipeline(PCA(2), linear_model.Ridge()),
    make_pipeline(FunctionTransformer(np.asarray), SVR()),
    SVR(),
]


@pytest.mark.parametrize("model", MODELS_OF_NAMES, ids=str)
def test_models_fitted_on_names_take_arrays_and_frames(model):
    function = wrap(model.fit(FRAME, Y))
    same(function.value(X), model.predict(FRAME), 1e-12)
    same(function.value(FRAME), model.predict(FRAME), 1e-12)
    gradient = function.gradient(FRAME)
    assert gradient.index.equals(FRAME.index)
    assert gradient.columns.equals(FRAME.columns)
    np.testing.assert_array_equal(gradient, function.gradient(X))


def test_models_fitted_on_arrays_take_frames_too():
    model = SVR().fit(X, Y)
    same(wrap(model).value(FRAME), model.predict(X), 1e-15)


@pytest.mark.parametrize("kind", [linear_model.Ridge, SVR])
@pytest.mark.parametrize(
    ("table", "message"),
    [
        (FRAME.rename(columns={"x": "q"}), "missing: 'x'; unexpected: 'q'"),
        (FRAME.drop(columns="w"), "missing: 'w'; unexpected: none"),
        (FRAME[["x", "w", "y", "z"]], "another order"),
        (X[:, :3], "fitted on 4 columns, got 3"),
    ],
    ids=["renamed", "dropped", "reordered", "narrow"],
)
def test_tables_with_other_columns_are_refused(kind, table, message):
    function = wrap(kind().fit(FRAME, Y))
    with pytest.raises(InvalidInput, match=message):
        function.value(table)
    with pytest.raises(InvalidInput, match=message):
        function.gradient(table)


def test_a_function_is_returned_as_it_is():
    function = Sine()
    assert wrap(function) is function
    with pytest.raises(InvalidInput, match="already"):
        wrap(function, target=1)


def test_wrapped_models_survive_pickling():
    for model in (linear_model.Ridge().fit(FRAME, Y), SVR().fit(FRAME, Y)):
        function = wrap(model)
        again = pickle.loads(pickle.dumps(function))
        np.testing.assert_array_equal(again.gradient(X), function.gradient(X))


def test_wrapped_models_have_a_short_repr():
    model = make_pipeline(StandardScaler(), linear_model.LogisticRegression())
    text = repr(wrap(model.fit(X, BINARY), "yes"))
    assert text == "ExactModel(Pipeline, output='probability', target='yes')"


REFUSED = [
    (linear_model.Ridge(), {}, "Ridge is not fitted"),
    (make_pipeline(StandardScaler(), SVR()), {}, "Pipeline is not fitted"),
    (linear_model.Ridge, {}, "is a class"),
    (3, {}, "no numbers to explain"),
    (PCA().fit(X), {}, "no numbers to explain"),
    (lambda X: X, {"output": "probability"}, "has no 'probability'; it has 'value'"),
    (lambda X: X, {"output": "logits"}, "expected one of 'auto'"),
    (lambda X: X, {"target": "a"}, "position"),
    (lambda X: X, {"target": -1}, "position"),
    (SVR().fit(X, Y), {"output": "margin"}, "SVR has no 'margin'; it has 'value'"),
    (SVR().fit(X, Y), {"step": 0.0}, "step"),
    (LinearSVC().fit(UNIT, THREE), {"output": "value"}, "it has 'margin'"),
    (LinearSVC().fit(UNIT, THREE), {}, "classes 'a', 'b', 'c'"),
    (LinearSVC().fit(UNIT, THREE), {"target": "d"}, "'c', got 'd'"),
    (
        SVC(decision_function_shape="ovo").fit(X, THREE),
        {"target": "a"},
        "pair of classes",
    ),
    (
        linear_model.Ridge().fit(X, np.column_stack([Y, NOISE])),
        {},
        "2 outputs; give the position",
    ),
    (linear_model.Ridge().fit(X, Y), {"target": 1}, "no output at position 1"),
]
TWO_LABELS = np.column_stack([Y > 0, NOISE > 0]).astype(int)


@pytest.mark.parametrize(("model", "request_", "message"), REFUSED)
def test_requests_that_cannot_be_met_are_refused_at_once(model, request_, message):
    with pytest.raises(InvalidInput, match=message):
        wrap(model, **request_)


@pytest.mark.parametrize(
    "model",
    [
        mlp(MLPClassifier),
        RandomForestClassifier(n_estimators=2),
        OneVsRestClassifier(linear_model.LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_classifiers_of_several_labels_are_refused(model):
    with pytest.raises(InvalidInput, match="several labels"):
        wrap(model.fit(UNIT, TWO_LABELS), target=1)


def test_classifiers_that_only_name_a_class_are_refused():
    voters = [("nb", GaussianNB()), ("svc", LinearSVC())]
    model = VotingClassifier(voters, voting="hard").fit(UNIT, BINARY)
    with pytest.raises(InvalidInput, match="no numbers to explain"):
        wrap(model)


def test_several_outputs_of_a_numerical_model_need_a_position():
    model = DecisionTreeRegressor(max_depth=2).fit(X, np.column_stack([Y, NOISE]))
    with pytest.raises(InvalidInput, match="2 outputs; give the position"):
        wrap(model).value(X)
    same(wrap(model, target=1).value(X), model.predict(X)[:, 1], 1e-15)


def test_meta_estimators_and_clusterers_can_be_called():
    calibrated = CalibratedClassifierCV(LinearSVC(), cv=2).fit(UNIT, BINARY)
    expected = calibrated.predict_proba(UNIT)[:, 1]
    same(wrap(calibrated).value(UNIT), expected, 1e-15)
    clusters = KMeans(2, n_init=1, random_state=0).fit(UNIT)
    same(wrap(clusters).value(UNIT), clusters.predict(UNIT), 1e-15)


def test_linear_support_vector_regression_is_a_value():
    model = LinearSVR(max_iter=100_000).fit(UNIT, Y)
    assert repr(wrap(model)) == "ExactModel(LinearSVR, output='value', target=None)"
