"""Fitted models as functions: values, exact gradients, names, and refusals."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from sklearn import linear_model
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor, RadiusNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from propopt.errors import FlatFunctionWarning, InvalidInput
from propopt.functions import Sine, central_differences, is_piecewise_constant, wrap
from propopt.structures.sklearn_linear import LINEAR_REGRESSORS


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
    final = GaussianNB(var_smoothing=0.5)
    model = CalibratedClassifierCV(final, cv=2).fit(UNIT, THREE)
    probability = model.predict_proba(UNIT)[:, list(model.classes_).index(target)]
    expected = probability if output == "probability" else logit(probability)
    function = wrap(model, target, output)
    assert "differences" in function.gradient_method
    same(function.value(UNIT), expected, 1e-9)


@pytest.mark.parametrize(("target", "sign"), [(None, 1), ("yes", 1), ("no", -1)])
def test_numerical_margins_belong_to_the_target(target, sign):
    model = GradientBoostingClassifier(n_estimators=3).fit(UNIT, BINARY)
    function = wrap(model, target, "margin")
    assert "differences" in function.gradient_method
    same(function.value(UNIT), sign * model.decision_function(UNIT), 1e-15)


def test_numerical_margins_of_three_classes_are_columns():
    model = SVC().fit(UNIT, THREE)
    same(wrap(model, "c").value(UNIT), model.decision_function(UNIT)[:, 2], 1e-15)


def test_other_models_have_a_value_or_a_margin():
    regressor = KNeighborsRegressor(weights="distance").fit(UNIT, Y)
    detector = IsolationForest(n_estimators=5, random_state=0).fit(UNIT)
    same(wrap(regressor).value(UNIT), regressor.predict(UNIT), 1e-15)
    same(wrap(detector).value(UNIT), detector.decision_function(UNIT), 1e-15)


def test_log_odds_of_certain_predictions_name_the_row():
    model = RandomForestClassifier(n_estimators=3, random_state=0).fit(FRAME, BINARY)
    with pytest.raises(InvalidInput, match=r"RandomForestClassifier.*'p\d+'"):
        wrap(model, output="log_odds").value(FRAME)


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
    assert kinds == [np.ndarray] * 3 + [pd.DataFrame] * 3  # two are a trial


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


def rosenbrock(points):
    """Of two columns, real or complex."""
    x, y = np.asarray(points).T[:2]
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


def rosenbrock_gradient(points):
    x, y = np.asarray(points).T[:2]
    return np.stack([-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)], axis=1)


def test_the_complex_step_is_exact_to_rounding():
    function = wrap(rosenbrock, step="complex")
    assert function.gradient_method == "complex step"
    points = np.vstack([X[:, :2], 1e8 * X[:5, :2], 1e-8 * X[:5, :2]])
    same(function.value(points), rosenbrock(points), 1e-15)
    np.testing.assert_allclose(
        function.gradient(points), rosenbrock_gradient(points), rtol=1e-13
    )


def test_the_complex_step_keeps_digits_where_differences_lose_them():
    def bump(points):  # Squire and Trapp's example
        x = points[:, 0]
        return np.exp(x) / (np.sin(x) ** 3 + np.cos(x) ** 3)

    exact = 3.6220337007163259
    complex_, real = (
        wrap(bump, step=step).gradient([[1.5]]) for step in ("complex", None)
    )
    assert abs(complex_[0, 0] / exact - 1) < 1e-14
    assert abs(real[0, 0] / exact - 1) > 1e-13


def test_the_complex_step_reads_one_output_and_the_names_of_a_dataframe():
    function = wrap(
        lambda table: np.stack([table["w"], table["x"] * table["y"]], axis=1),
        target=1,
        step="complex",
    )
    gradient = function.gradient(FRAME)
    assert gradient.index.equals(FRAME.index)
    same(gradient["x"], FRAME["y"], 1e-14)
    same(function.value(FRAME), FRAME["x"] * FRAME["y"], 1e-14)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda P: np.array([math.sin(p[0]) for p in P]), "fails on a complex table"),
        (lambda P: np.abs(P).sum(axis=1), "returned float64.*drops the imaginary"),
        (lambda P: P.real[:, 0], "drops the imaginary"),
        (lambda P: P.sum(), r"shape \(\) for"),
    ],
)
def test_callables_that_lose_the_imaginary_part_are_refused(model, message):
    with pytest.raises(InvalidInput, match=message):
        wrap(model, step="complex").gradient(X)


def test_estimators_take_no_complex_step():
    with pytest.raises(InvalidInput, match="Ridge is an estimator"):
        wrap(linear_model.Ridge().fit(X, Y), step="complex")


def test_a_given_gradient_is_used():
    function = wrap(rosenbrock, gradient=rosenbrock_gradient)
    assert function.gradient_method == "given"
    points = X[:, :2]
    same(function.value(points), rosenbrock(points), 1e-15)
    same(function.gradient(points), rosenbrock_gradient(points), 1e-15)
    same(function.gradient(points), central_differences(function.value, points), 1e-6)


def test_a_given_gradient_gets_the_table_that_the_model_gets():
    model = DecisionTreeRegressor(max_depth=2).fit(FRAME, Y)

    def gradient(table):
        assert list(table.columns) == ["w", "x", "y", "z"]
        return 0.0 * table

    function = wrap(model, gradient=gradient)
    same(function.value(X), model.predict(FRAME), 1e-15)
    assert not function.gradient(FRAME).to_numpy().any()


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        (lambda P: P[:, 0], r"gradient of shape \(60, 4\), got \(60,\)"),
        (lambda P: P[:, :2], r"got \(60, 2\)"),
        (lambda P: [["a"] * 4] * len(P), "gradient: expected numbers"),
        (lambda P: np.full(P.shape, np.nan), "gradient is not finite in 60 of 60"),
    ],
)
def test_given_gradients_of_another_kind_are_refused(gradient, message):
    with pytest.raises(InvalidInput, match=message):
        wrap(lambda P: P[:, 0], gradient=gradient).gradient(X)


@pytest.mark.parametrize(
    ("model", "request_", "message"),
    [
        (rosenbrock, {"gradient": 3.0}, "expected a callable"),
        (rosenbrock, {"gradient": np.sin, "step": 0.1}, "not both"),
        (Sine(), {"gradient": np.sin}, "has its own"),
    ],
)
def test_gradients_that_cannot_be_meant_are_refused(model, request_, message):
    with pytest.raises(InvalidInput, match=message):
        wrap(model, **request_)


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
    few(GradientBoostingRegressor, init=RIDGE),
    few(BaggingRegressor, estimator=RIDGE),
    VotingRegressor([("tree", TREE), ("ridge", RIDGE)]),
    StackingRegressor([("tree", TREE)], RIDGE, cv=2, passthrough=True),
    KNeighborsRegressor(3, weights="distance"),
    make_pipeline(StandardScaler(), RIDGE),
]


@pytest.mark.parametrize("model", FLAT_MODELS, ids=str)
def test_piecewise_constant_models_are_known_and_named(model):
    model = clone(model).fit(X, Y)
    assert is_piecewise_constant(model)
    name = type(model).__name__
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


def test_a_step_of_ones_own_may_be_wide_enough_for_a_tree():
    tree = DecisionTreeRegressor(random_state=0).fit(X, Y)
    assert wrap(tree, step=0.5).gradient(X).any()
    with pytest.warns(FlatFunctionWarning, match="every central difference"):
        wrap(tree, step=1e-9).gradient(X + 0.01)


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
