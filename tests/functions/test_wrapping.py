"""What ``wrap`` takes, what it refuses, and the names of the columns."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC
from small_data import BINARY, FRAME, NOISE, THREE, UNIT, X, Y, mlp, same

from propopt.base.errors import InvalidInput
from propopt.functions import Sine, wrap


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
    assert text == "ExactModel(probability of yes, by LogisticRegression)"


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
