"""What a function explains, in words and digits: one quantity, whatever the model."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from estimators import sk
from library_margins import margin_of
from quiet_boosters import booster
from scipy.special import expit
from scipy.stats import norm
from sklearn import discriminant_analysis
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline

import propopt as po
from propopt.base.errors import InvalidInput


N_ROWS = 120
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "a": RNG.normal(size=N_ROWS),
        "b": RNG.normal(size=N_ROWS),
        "c": RNG.choice(["x", "y", "z"], N_ROWS),
    }
)
LABELS = np.where(TABLE["a"] + 0.7 * RNG.normal(size=N_ROWS) > 0.0, "yes", "no")
FAR = TABLE.assign(a=np.linspace(-12.0, 12.0, N_ROWS))


def behind_columns(classifier, *, sparse=False):
    """With a column of indicators for each category, then the numbers."""
    columns = make_column_transformer(
        (sk.OneHotEncoder(sparse_output=sparse), ["c"]),
        remainder="passthrough",
        sparse_threshold=1.0 if sparse else 0.0,
    )
    return make_pipeline(columns, sk.FunctionTransformer(), classifier)


def numbers(table):
    return np.column_stack([pd.get_dummies(table["c"]), table[["a", "b"]]]).astype(
        float
    )


def by_hand_linear(model, Z):
    return Z @ model.coef_[0] + model.intercept_[0]


def by_hand_network(model, Z):
    hidden = np.tanh(Z @ model.coefs_[0] + model.intercepts_[0])
    return (hidden @ model.coefs_[1] + model.intercepts_[1])[:, 0]


def by_hand_bayes(model, Z):
    no, yes = (
        np.log(share) + norm.logpdf(Z, mean, np.sqrt(variance)).sum(axis=1)
        for share, mean, variance in zip(
            model.class_prior_, model.theta_, model.var_, strict=True
        )
    )
    return yes - no


STEEP = {
    "logistic": (sk.LogisticRegression(C=1e3), by_hand_linear),
    "descent": (
        sk.SGDClassifier(loss="log_loss", alpha=1e-6, random_state=0),
        by_hand_linear,
    ),
    "lda": (discriminant_analysis.LinearDiscriminantAnalysis(), by_hand_linear),
    "bayes": (sk.GaussianNB(), by_hand_bayes),
    "network": (
        sk.MLPClassifier([4], activation="tanh", max_iter=10, random_state=0),
        by_hand_network,
    ),
}
FAST = {"n_estimators": 400, "learning_rate": 0.5}
SETTINGS = {
    "lightgbm": {"min_child_samples": 2},
    "xgboost": {"learning_rate": 1.0, "reg_lambda": 0.0, "min_child_weight": 0.0},
    "catboost": {"learning_rate": 1.0, "l2_leaf_reg": 1e-6},
}
BOOSTED = {
    "hist": lambda: sk.HistGradientBoostingClassifier(
        learning_rate=0.5, max_iter=400, min_samples_leaf=2
    ),
    "gradient": lambda: sk.GradientBoostingClassifier(**FAST),
    **{
        library: partial(booster, library, "Classifier", **{**FAST, **settings})
        for library, settings in SETTINGS.items()
    },
}


def steepened(name, classifier):
    """Scores of ±40 and beyond, of the same model."""
    if name == "network":
        classifier.coefs_[1] = classifier.coefs_[1] * 300.0
    elif name != "bayes":
        classifier.coef_ = classifier.coef_ * (6.0 / abs(classifier.coef_[0, 3]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", list(STEEP))
def test_log_odds_behind_columns_are_those_by_hand(name, sparse):
    classifier, by_hand = STEEP[name]
    sparse = sparse and name not in ("lda", "bayes")  # which take none
    model = behind_columns(classifier, sparse=sparse).fit(TABLE, LABELS)
    steepened(name, classifier)
    # naive Bayes normalises 1 − p by itself, and loses it where that underflows
    far = FAR.assign(a=40.0 * FAR["a"]) if name == "bayes" else FAR
    expected = by_hand(classifier, numbers(far))
    assert expected.max() > 40.0 or expected.min() < -40.0
    assert (model.predict_proba(far) == 0.0).any()  # whose logarithm is lost
    logit = po.wrap(model, data=TABLE, output="log_odds").value(far)
    np.testing.assert_allclose(logit, expected, rtol=1e-11, atol=1e-11)
    other = po.wrap(model, "no", output="log_odds", data=TABLE).value(far)
    np.testing.assert_array_equal(other, -logit)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", BOOSTED)
def test_log_odds_of_boosting_behind_columns_are_its_scores(name):
    classifier = BOOSTED[name]()
    labels = (LABELS == "yes").astype(int)
    model = behind_columns(classifier).fit(TABLE, labels)
    expected = np.asarray(margin_of(classifier, numbers(FAR)), float)
    assert np.abs(expected).max() > 8.0
    function = po.wrap(model, output="log_odds", data=TABLE, outcome="cancer")
    assert function.quantity.kind == "log_odds"
    assert function.quantity.in_words() == "log-odds of cancer"
    logit = function.value(FAR)
    np.testing.assert_array_equal(logit, expected)
    # and they are the log-odds: of probabilities that lose nothing
    p = model.predict_proba(FAR)[:, 1]
    close = np.abs(expected) < 8.0
    np.testing.assert_allclose(expit(logit[close]), p[close], rtol=1e-5, atol=1e-6)


def test_what_is_no_logit_is_taken_from_probabilities():
    """Such as a clipped line: log p − log(1 − p) is all there is."""
    model = behind_columns(sk.SGDClassifier(loss="modified_huber", random_state=0))
    model.fit(TABLE, LABELS)
    p = model.predict_proba(TABLE)
    inside = (p > 0.0).all(axis=1)
    logit = po.wrap(model, data=TABLE, output="log_odds").value(TABLE[inside])
    odds = p[inside, 1] / p[inside, 0]
    np.testing.assert_allclose(logit, np.log(odds), rtol=1e-12, atol=1e-12)


TISSUE, SICK = load_breast_cancer(return_X_y=True, as_frame=True)
TISSUE, SICK = TISSUE.iloc[:, :5], SICK.rename("cancer")
DIAGNOSES = SICK.map({0: "no", 1: "yes"})
FEW = TISSUE.iloc[:40]
SCALED = make_pipeline(sk.StandardScaler(), sk.LogisticRegression())
SCALED.fit(TISSUE, DIAGNOSES)


@pytest.mark.parametrize(
    "model",
    [
        sk.RidgeClassifier(),
        sk.SVC(),
        sk.SGDClassifier(loss="hinge", random_state=0),
        sk.GradientBoostingClassifier(n_estimators=5, loss="exponential"),
    ],
    ids=repr,
)
def test_a_margin_that_is_not_keeps_its_name(model):
    for output in ("margin", "auto"):
        quantity = po.wrap(model.fit(TISSUE, SICK), output=output).quantity
        assert quantity.in_words() == "margin of class 1"
        assert quantity.alternative is None


def test_of_two_labels_the_second_is_explained_and_named():
    function = po.wrap(SCALED, outcome="cancer")
    assert function.quantity.label == SCALED.classes_[1] == "yes"
    logit = SCALED.decision_function(FEW)
    np.testing.assert_allclose(function.value(FEW), logit, rtol=1e-12)
    local = po.losses.FunctionMatching(
        FEW, function.value(FEW), quantity=function.quantity
    )
    ridge = po.solve(local + 0.1 * po.Sparsity())
    assert ridge.quantity == function.quantity  # of values that is said by hand
    assert po.solve(po.GradientMatching(np.eye(3))).quantity is None
    with pytest.raises(InvalidInput, match=r"outcome: .* is a Function already"):
        po.explain(function, FEW, outcome="cancer", kind="slopes")
    called = po.wrap(lambda table: pd.DataFrame(table).sum(axis=1).to_numpy())
    assert "prediction of" in called.quantity.in_words()


NUMBERS = pd.DataFrame(
    {
        "a": TABLE["a"].where(RNG.random(N_ROWS) < 0.9),
        "b": TABLE["b"].astype(np.float32),
        "n": RNG.integers(0, 5, N_ROWS),
    }
)
CLASSIFIED = ["margin", "probability", "log_odds"]
ANSWERS = [("Regressor", "value"), *(("Classifier", output) for output in CLASSIFIED)]


@pytest.mark.parametrize("package", ["lightgbm", "xgboost", "catboost"])
@pytest.mark.parametrize(("kind", "output"), ANSWERS)
def test_boosters_are_asked_without_a_frame_where_no_bit_differs(package, kind, output):
    model = booster(package, kind)
    response = TABLE["a"] * TABLE["b"] if kind == "Regressor" else LABELS == "no"
    model.fit(NUMBERS, response)
    function = po.wrap(model, data=NUMBERS, output=output)
    direct = function.readout.direct
    if direct is None:
        assert (package, output) == ("lightgbm", "probability")
        return
    points, labels = function.read(NUMBERS)
    expected = replace(function.readout, direct=None)(points, labels)
    assert not direct.agrees
    first = function.value_at(points, labels)
    assert direct.agrees
    own = function.value_at(points, labels)
    assert expected.tobytes() == first.tobytes() == own.tobytes()
    # another fit of the same model
    model.fit(NUMBERS, response[::-1])
    again = replace(function.readout, direct=None)(points, labels)
    assert again.tobytes() == function.value_at(points, labels).tobytes()
    assert again.tobytes() != own.tobytes()


@pytest.mark.parametrize("package", ["lightgbm", "xgboost", "catboost"])
def test_boosters_of_arrays_are_asked_without_a_frame_too(package):
    table, response = NUMBERS.to_numpy(float), TABLE["a"] * TABLE["b"]
    named = pd.DataFrame(table, columns=list("abn"))
    for fitted in (table, named):
        model = booster(package).fit(fitted, response)
        function = po.wrap(model, data=table)
        first, own = function.value(table), function.value(table)
        assert function.readout.direct.agrees
        np.testing.assert_array_equal(first, model.predict(fitted))
        assert first.tobytes() == own.tobytes()
        with pytest.raises(InvalidInput, match="2"):
            function.value(table[:, :2])
    with pytest.raises(InvalidInput, match="in another order"):
        function.value(named[["n", "a", "b"]])


@pytest.mark.parametrize("fails", [False, True])
def test_a_booster_that_answers_otherwise_is_asked_no_more(fails):
    model = booster("lightgbm").fit(NUMBERS, TABLE["a"])
    function = po.wrap(model, data=NUMBERS)
    direct, requested = function.readout.direct, []

    def ask(points):
        requested.append(len(points))
        if fails:
            raise TypeError("frames alone")
        return np.nextafter(model.booster_.predict(points), np.inf)

    direct.call = ask
    points, labels = function.read(NUMBERS)
    for _ in range(3):
        expected = model.predict(NUMBERS)
        assert function.value_at(points, labels).tobytes() == expected.tobytes()
    assert (direct.agrees, requested) == (False, [64])


def test_settings_of_prediction_are_given_to_the_booster():
    settings = {"pred_early_stop": True, "pred_early_stop_margin": 0.01}
    plain = booster("lightgbm", "Classifier", pred_early_stop_freq=1, n_estimators=40)
    model = clone(plain).set_params(**settings).fit(NUMBERS, LABELS)
    values = [
        po.wrap(own.fit(NUMBERS, LABELS), data=NUMBERS).value(NUMBERS)
        for own in (model, plain)
    ]
    function = po.wrap(model, data=NUMBERS)
    twice = [function.value(NUMBERS) for _ in range(2)]
    assert function.readout.direct.agrees
    assert twice[0].tobytes() == twice[1].tobytes() == values[0].tobytes()
    assert values[0].tobytes() != values[1].tobytes()
    threads = booster("lightgbm", "Classifier", num_threads=1).fit(NUMBERS, LABELS)
    assert po.wrap(threads, data=NUMBERS).readout.direct is None


def test_tables_with_categories_are_given_to_boosters_as_frames():
    table = TABLE.assign(c=TABLE["c"].astype("category"))
    model = booster("lightgbm", "Classifier").fit(table, LABELS)
    assert po.wrap(model, data=table).readout.direct is None


class Called(sk.LogisticRegression):
    """A classifier whose instances can be called, for labels."""

    def __call__(self, X):
        return self.predict(X)


def test_a_fitted_model_that_can_be_called_is_explained_as_a_model():
    X = np.random.default_rng(0).normal(size=(50, 2))
    called, plain = (
        po.wrap(kind().fit(X, X[:, 0] > 0), data=X, output="probability")
        for kind in (Called, sk.LogisticRegression)
    )
    np.testing.assert_allclose(called.value(X), plain.value(X), rtol=1e-12)
