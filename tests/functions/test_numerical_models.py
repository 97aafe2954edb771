"""Models and callables that are differentiated numerically: what they are asked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from sklearn import linear_model
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import Birch, KMeans, MeanShift
from sklearn.ensemble import (
    GradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeRegressor
from small_data import BINARY, FRAME, NOISE, THREE, UNIT, X, Y, same

from propopt.base.errors import InvalidInput
from propopt.functions import models, wrap


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
    assert repr(function).startswith("NumericalModel(prediction of <lambda>")


def test_callables_of_several_outputs_take_a_position():
    function = wrap(lambda X: X**2, target=2)
    same(function.value(UNIT), UNIT[:, 2] ** 2, 1e-15)


def test_callables_get_the_kind_of_table_that_was_given(monkeypatch):
    monkeypatch.setattr(models, "WORTH_TIMING", np.inf)  # calls by the clock
    kinds = []

    def model(table):
        kinds.append(type(table))
        return np.asarray(table).sum(axis=1)

    wrap(model).gradient(X)
    wrap(model).gradient(FRAME)
    # two see whether answers are the same twice, and two whether they jump
    assert kinds == [np.ndarray] * 5 + [pd.DataFrame] * 5


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


def test_several_outputs_of_a_numerical_model_need_a_position():
    model = DecisionTreeRegressor(max_depth=2).fit(X, np.column_stack([Y, NOISE]))
    with pytest.raises(InvalidInput, match="2 outputs; give the position"):
        wrap(model).value(X)
    same(wrap(model, target=1).value(X), model.predict(X)[:, 1], 1e-15)


def test_meta_estimators_can_be_called():
    calibrated = CalibratedClassifierCV(LinearSVC(), cv=2).fit(UNIT, BINARY)
    expected = calibrated.predict_proba(UNIT)[:, 1]
    same(wrap(calibrated).value(UNIT), expected, 1e-15)


@pytest.mark.parametrize(
    "kind",
    [
        lambda: KMeans(2, n_init=1, random_state=0),
        lambda: Birch(n_clusters=2),
        lambda: make_pipeline(StandardScaler(), KMeans(2, n_init=1, random_state=0)),
        lambda: GridSearchCV(KMeans(n_init=1), {"n_clusters": [2, 3]}, cv=2),
    ],
)
def test_the_number_of_a_cluster_is_refused_and_its_distance_is_not(kind):
    model = kind().fit(UNIT)
    with pytest.raises(InvalidInput, match=r"number of a cluster, .* wrap") as caught:
        wrap(model)
    with pytest.raises(InvalidInput, match="number of a cluster"):
        wrap(model, data=pd.DataFrame(UNIT), output="value")
    assert "wrap(lambda X: model.transform(X)[:, k])" in str(caught.value)
    k = 1
    distance = wrap(lambda X: model.transform(X)[:, k])
    same(distance.value(UNIT), model.transform(UNIT)[:, 1], 1e-15)
    with pytest.raises(InvalidInput, match="returns one, such as the distance"):
        wrap(MeanShift().fit(UNIT))


def test_labels_of_outliers_are_no_quantity_and_their_score_is():
    detector = IsolationForest(n_estimators=5, random_state=0).fit(UNIT)
    with pytest.raises(InvalidInput, match="has no 'value'; it has 'margin'"):
        wrap(detector, output="value")
    mixture = GaussianMixture(2, random_state=0).fit(UNIT)
    with pytest.raises(InvalidInput, match="2 outputs; give the position"):
        wrap(mixture).value(UNIT)
    share = wrap(mixture, target=1).value(UNIT)
    same(share, mixture.predict_proba(UNIT)[:, 1], 1e-15)
