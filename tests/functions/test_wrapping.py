"""What ``wrap`` takes, what the model is given, how it is differentiated; refusals."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from differentiated import central_differences, jump_test
from estimators import sk
from quiet_boosters import booster
from refusals import refusals
from sklearn import ensemble, linear_model
from sklearn.base import clone
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from small_data import (
    BINARY,
    FRAME,
    NOISE,
    THREE,
    UNIT,
    X,
    Y,
    mlp,  # noqa: F401  # of refusals.txt
    same,
)

import propopt as po
from propopt.base.errors import FlatFunctionWarning, InvalidInput
from propopt.explaining.explainers import Lime
from propopt.functions import Sine, wrap
from propopt.structures.fitted_model import FittedModel


MODELS_OF_NAMES = [
    linear_model.LinearRegression(),
    make_pipeline("passthrough", sk.StandardScaler(), linear_model.Ridge()),
    make_pipeline(sk.PCA(2), linear_model.Ridge()),
    make_pipeline(sk.FunctionTransformer(np.asarray), sk.SVR()),
    sk.SVR(),
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
    again = pickle.loads(pickle.dumps(function))
    np.testing.assert_array_equal(again.gradient(X), function.gradient(X))


LABELS = np.column_stack([Y > 0, NOISE > 0]).astype(int)
TWO = np.column_stack([Y, NOISE])
VOTERS = [("nb", sk.GaussianNB()), ("svc", sk.LinearSVC())]
OF_PAIRS = sk.SVC(decision_function_shape="ovo").fit(X, THREE)
DETECTOR = ensemble.IsolationForest(n_estimators=5, random_state=0).fit(UNIT)
RIDGE = linear_model.Ridge()
HIGH = X[:, 0].max()


def sloped(gradient):
    return wrap(lambda P: P[:, 0], gradient=gradient)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "wrapping"))
def test_requests_that_cannot_be_met_are_refused_at_once(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "answers"))
def test_answers_that_cannot_be_used_are_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line).gradient(X)


def test_log_odds_of_certain_predictions_name_the_row():
    model = ensemble.RandomForestClassifier(n_estimators=3, random_state=0).fit(
        FRAME, BINARY
    )
    with pytest.raises(InvalidInput, match=r"RandomForestClassifier.*'p\d+'"):
        wrap(model, output="log_odds").value(FRAME)


def test_a_step_asks_for_numerical_gradients_and_is_stated():
    model = linear_model.LogisticRegression().fit(UNIT, BINARY)
    exact, numerical = wrap(model), wrap(model, step=1e-5)
    assert numerical.gradient_method == "central differences, step 1e-05 · max(1, |x|)"
    same(numerical.gradient(UNIT), exact.gradient(UNIT), 1e-8)
    method = wrap(lambda X: X[:, 0]).gradient_method
    assert method == "central differences, step 6.1e-06 · max(1, |x|)"


def test_values_of_numerical_models_are_their_own():
    boosted = ensemble.GradientBoostingClassifier(n_estimators=3).fit(UNIT, BINARY)
    margin = boosted.decision_function(UNIT)
    votes = sk.SVC().fit(UNIT, THREE)
    nearest = sk.KNeighborsRegressor(weights="distance").fit(UNIT, Y)
    tree = sk.DecisionTreeRegressor(max_depth=2).fit(UNIT, TWO)
    calibrated = sk.CalibratedClassifierCV(sk.LinearSVC(), cv=2).fit(UNIT, BINARY)
    mixture = GaussianMixture(2, random_state=0).fit(UNIT)
    bayes = sk.CalibratedClassifierCV(sk.GaussianNB(var_smoothing=0.5), cv=2)
    p = bayes.fit(UNIT, THREE).predict_proba(UNIT)[:, 1]
    for function, expected in (
        (wrap(boosted, None, "margin"), margin),
        (wrap(boosted, "yes", "margin"), margin),
        (wrap(boosted, "no", "margin"), -margin),
        (wrap(votes, "c"), votes.decision_function(UNIT)[:, 2]),
        (wrap(nearest), nearest.predict(UNIT)),
        (wrap(DETECTOR), DETECTOR.decision_function(UNIT)),
        (wrap(tree, target=1), tree.predict(UNIT)[:, 1]),
        (wrap(calibrated), calibrated.predict_proba(UNIT)[:, 1]),
        (wrap(mixture, target=1), mixture.predict_proba(UNIT)[:, 1]),
        (wrap(lambda X: X**2, target=2), UNIT[:, 2] ** 2),
        (wrap(bayes, "b"), p),
    ):
        assert "differences" in function.gradient_method
        same(function.value(UNIT), expected, 1e-15)
    same(wrap(bayes, "b", "log_odds").value(UNIT), np.log(p / (1.0 - p)), 1e-9)


def test_callables_see_names_and_may_write_into_what_they_get():
    function = wrap(lambda table: table["x"] * table["y"])
    gradient = function.gradient(FRAME)
    assert gradient.index.equals(FRAME.index)
    same(gradient["x"], FRAME["y"], 1e-6)
    same(function.value(FRAME), FRAME["x"] * FRAME["y"], 1e-15)

    def model(points):
        points *= 2.0
        return points.sum(axis=1)

    before = X.copy()
    same(wrap(model).gradient(X), np.full(X.shape, 2.0), 1e-9)
    same(wrap(model).value(X), 2 * X.sum(axis=1), 1e-15)
    np.testing.assert_array_equal(X, before)


def rosenbrock(points):
    """Of two columns."""
    x, y = np.asarray(points).T[:2]
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


def rosenbrock_gradient(points):
    x, y = np.asarray(points).T[:2]
    return np.stack([-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)], axis=1)


def test_a_given_gradient_is_used_and_gets_the_table_that_the_model_gets():
    function = wrap(rosenbrock, gradient=rosenbrock_gradient)
    assert function.gradient_method == "given"
    points = X[:, :2]
    same(function.value(points), rosenbrock(points), 1e-15)
    same(function.gradient(points), rosenbrock_gradient(points), 1e-15)
    same(function.gradient(points), central_differences(function.value, points), 1e-6)
    model = sk.DecisionTreeRegressor(max_depth=2).fit(FRAME, Y)

    def gradient(table):
        assert list(table.columns) == ["w", "x", "y", "z"]
        return 0.0 * table

    function = wrap(model, gradient=gradient)
    same(function.value(X), model.predict(FRAME), 1e-15)
    assert not function.gradient(FRAME).to_numpy().any()


def few(kind, **settings):
    return kind(n_estimators=3, random_state=0, **settings)


TREE = sk.DecisionTreeRegressor(max_depth=3, random_state=0)
FLAT_MODELS = [
    TREE,
    sk.ExtraTreeRegressor(random_state=0),
    few(ensemble.RandomForestRegressor),
    few(ensemble.ExtraTreesRegressor),
    few(ensemble.GradientBoostingRegressor),
    few(ensemble.GradientBoostingRegressor, init="zero"),
    ensemble.HistGradientBoostingRegressor(max_iter=3),
    few(ensemble.AdaBoostRegressor),
    few(ensemble.BaggingRegressor),
    ensemble.VotingRegressor(
        [("tree", TREE), ("forest", few(ensemble.RandomForestRegressor))]
    ),
    ensemble.StackingRegressor(
        [("tree", TREE), ("k", sk.KNeighborsRegressor())], RIDGE, cv=2
    ),
    few(ensemble.IsolationForest),
    sk.KNeighborsRegressor(3),
    sk.RadiusNeighborsRegressor(10.0),
    sk.GridSearchCV(TREE, {"max_depth": [2, 3]}, cv=2),
    make_pipeline(sk.StandardScaler(), "passthrough", TREE),
]
STEEP_MODELS = [
    RIDGE,
    few(ensemble.BaggingRegressor, estimator=RIDGE),
    make_pipeline(sk.StandardScaler(), RIDGE),
]


@pytest.mark.parametrize("model", FLAT_MODELS, ids=str)
def test_piecewise_constant_models_are_known_and_named(model):
    model = clone(model).fit(X, Y)
    assert FittedModel.of(model).is_piecewise_constant
    name = type(FittedModel.of(model).final).__name__
    with pytest.warns(
        FlatFunctionWarning, match=rf"{name}.*functions\.smoothed"
    ) as caught:
        gradient = wrap(model).gradient(X + 0.01)
    assert len(caught) == 1
    assert (gradient == 0.0).mean() > 0.9


@pytest.mark.parametrize("model", STEEP_MODELS, ids=str)
def test_other_models_are_not_taken_for_piecewise_constant(model):
    model = clone(model).fit(X, Y)
    assert not FittedModel.of(model).is_piecewise_constant
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wrap(model).gradient(X + 0.01).any()


def test_a_step_of_ones_own_may_be_wide_enough_for_a_tree():
    tree = sk.DecisionTreeRegressor(random_state=0).fit(X, Y)
    assert wrap(tree, step=0.5).gradient(X).any()
    with pytest.warns(FlatFunctionWarning, match="every central difference"):
        wrap(tree, step=1e-9).gradient(X + 0.01)


def test_what_is_not_known_to_be_flat_and_what_is_inside_other_models():
    seen = ensemble.StackingRegressor([("tree", TREE)], RIDGE, cv=2, passthrough=True)
    for other in (seen.fit(X, Y), np.round, Sine()):
        assert not FittedModel.of(other).is_piecewise_constant
    calibrated = sk.CalibratedClassifierCV(few(ensemble.RandomForestClassifier), cv=2)
    transformed = sk.TransformedTargetRegressor(few(ensemble.RandomForestRegressor))
    assert wrap(calibrated.fit(X, BINARY)).piecewise_constant
    assert wrap(transformed.fit(X, Y)).piecewise_constant


BOOSTERS = [
    ("lightgbm", "Regressor", {"min_child_samples": 3}, True),
    ("lightgbm", "Regressor", {"min_child_samples": 3, "linear_tree": True}, False),
    ("xgboost", "Classifier", {}, True),
    ("xgboost", "Regressor", {"booster": "dart"}, True),
    ("xgboost", "Regressor", {"n_estimators": 50, "booster": "gblinear"}, False),
    ("catboost", "Regressor", {}, True),
    ("catboost", "Classifier", {}, True),
]
PEOPLE = pd.DataFrame({"age": [31.0, 47.0, 60.0], "colour": ["red", "blue", "red"]})
POINTS = np.random.default_rng(4).normal(size=(15, 3))
JOBS = pd.DataFrame(POINTS, columns=list("abc")).assign(
    job=["x", "y", "x", "z", "y"] * 3
)
MOST = 7


@pytest.mark.parametrize(("package", "kind", "settings", "flat"), BOOSTERS)
def test_boosters_are_piecewise_constant_unless_they_are_linear(
    package, kind, settings, flat
):
    model = booster(package, kind, **{"n_estimators": 3, **settings})
    model.fit(X, Y > 0 if kind == "Classifier" else Y)
    assert FittedModel.of(model).is_piecewise_constant == flat
    if package == "lightgbm":
        assert FittedModel.of(model.booster_).is_piecewise_constant == flat
    elif not flat:
        slopes = np.tile(model.coef_, (60, 1))  # in single precision
        own = wrap(model).gradient(X)
        np.testing.assert_allclose(own, slopes, rtol=1e-3, atol=1e-4)


def age_and_redness(table):
    return table["age"] + 5.0 * (table["colour"] == "red")


def test_a_function_of_a_table_with_text_is_told_of_it_by_a_frame_or_a_schema():
    for data in (PEOPLE, po.functions.TableSchema.of(PEOPLE)):
        gradient = po.wrap(age_and_redness, data=data).gradient(PEOPLE)
        np.testing.assert_allclose(gradient["age"], 1.0, rtol=1e-9)
        effects = [5 / 3, -10 / 3, 5 / 3]
        np.testing.assert_allclose(gradient["colour"], effects, rtol=1e-9)
    schema = po.functions.TableSchema.of(PEOPLE, categorical=["age"])
    function = po.wrap(age_and_redness, data=schema)
    assert function.schema is schema  # which declares that numbers are categories
    ages = function.gradient(PEOPLE)["age"]
    np.testing.assert_allclose(ages, [-15, 1, 14], rtol=1e-9)


class Spied:
    """A callable that notes how many rows it was given."""

    def __init__(self):
        self.sizes = []

    def __call__(self, table):
        self.sizes.append(len(table))
        columns = np.asarray(table)[:, :3]
        if columns.dtype == object:
            columns = columns.astype(float)
        return (columns * columns).sum(axis=1)

    def slopes(self, table):
        self.sizes.append(len(table))
        return 2.0 * np.asarray(table)


SETTINGS = {
    "differences": {},
    "step": {"step": 1e-4},
    "data": {"data": JOBS},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("most", [1, MOST])
def test_no_call_has_more_rows(settings, most):
    whole, parts = Spied(), Spied()
    free = po.wrap(whole, **settings)
    bounded = po.wrap(parts, **settings, batch_rows=most)
    rows = JOBS if "data" in settings else POINTS
    np.testing.assert_array_equal(bounded.value(rows), free.value(rows))
    assert max(parts.sizes) == most
    assert len(parts.sizes) >= len(POINTS) // most
    np.testing.assert_array_equal(bounded.gradient(rows), free.gradient(rows))
    assert max(parts.sizes) == most
    assert bounded.calls.rows == free.calls.rows
    assert bounded.calls.rows + bounded.calls.trials == sum(parts.sizes)


def test_estimators_baselines_tests_and_gradients_that_are_given_keep_to_it():
    spied = Spied()
    function = po.wrap(spied, batch_rows=MOST)
    po.functions.smoothed(function, 0.5, 20).gradient(POINTS)
    Lime(scale=0.5, n_samples=30).explain(function, POINTS)
    jump_test(function, POINTS)
    assert max(spied.sizes) == MOST
    spied = Spied()
    function = po.wrap(spied, gradient=spied.slopes, batch_rows=MOST)
    np.testing.assert_array_equal(function.gradient(POINTS), 2.0 * POINTS)
    assert spied.sizes == [7, 7, 1]
    assert wrap(RIDGE.fit(X, Y), batch_rows=3).gradient_method == "exact"
