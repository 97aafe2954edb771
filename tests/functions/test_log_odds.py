"""Log-odds of two classes, which keep their digits where probabilities are near 1."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

import propopt as po


N = 120
rng = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "a": rng.normal(size=N),
        "b": rng.normal(size=N),
        "c": rng.choice(["x", "y", "z"], N),
    }
)
LABELS = np.where(TABLE["a"] + 0.7 * rng.normal(size=N) > 0.0, "yes", "no")
FAR = TABLE.assign(a=np.linspace(-12.0, 12.0, N))


def behind_columns(classifier, *, sparse=False):
    """With a column of indicators for each category, then the numbers."""
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=sparse), ["c"]),
        remainder="passthrough",
        sparse_threshold=1.0 if sparse else 0.0,
    )
    return make_pipeline(columns, FunctionTransformer(), classifier)


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
    "logistic": (LogisticRegression(C=1e3), by_hand_linear),
    "descent": (
        SGDClassifier(loss="log_loss", alpha=1e-6, random_state=0),
        by_hand_linear,
    ),
    "lda": (LinearDiscriminantAnalysis(), by_hand_linear),
    "bayes": (GaussianNB(), by_hand_bayes),
    "network": (
        MLPClassifier([4], activation="tanh", max_iter=10, random_state=0),
        by_hand_network,
    ),
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


def boosted(name):
    if name == "lightgbm":
        module = pytest.importorskip("lightgbm")
        return module.LGBMClassifier(
            n_estimators=400,
            learning_rate=0.5,
            min_child_samples=2,
            verbose=-1,
            n_jobs=1,
        )
    if name == "xgboost":
        module = pytest.importorskip("xgboost")
        return module.XGBClassifier(
            n_estimators=400, learning_rate=1.0, reg_lambda=0.0, min_child_weight=0.0
        )
    if name == "catboost":
        module = pytest.importorskip("catboost")
        return module.CatBoostClassifier(
            iterations=400,
            learning_rate=1.0,
            l2_leaf_reg=1e-6,
            verbose=0,
            allow_writing_files=False,
        )
    if name == "hist":
        return HistGradientBoostingClassifier(
            learning_rate=0.5, max_iter=400, min_samples_leaf=2
        )
    return GradientBoostingClassifier(n_estimators=400, learning_rate=0.5)


SCORES = {
    "lightgbm": {"raw_score": True},
    "xgboost": {"output_margin": True},
    "catboost": {"prediction_type": "RawFormulaVal"},
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name", ["hist", "gradient", "lightgbm", "xgboost", "catboost"]
)
def test_log_odds_of_boosting_behind_columns_are_its_scores(name):
    classifier = boosted(name)
    labels = (LABELS == "yes").astype(int)
    model = behind_columns(classifier).fit(TABLE, labels)
    Z = numbers(FAR)
    ask = classifier.predict if name in SCORES else classifier.decision_function
    expected = np.asarray(ask(Z, **SCORES.get(name, {})), float)
    assert np.abs(expected).max() > 8.0
    logit = po.wrap(model, data=TABLE, output="log_odds").value(FAR)
    np.testing.assert_array_equal(logit, expected)
    # and they are the log-odds: of probabilities that lose nothing
    p = model.predict_proba(FAR)[:, 1]
    near = np.abs(expected) < 8.0
    np.testing.assert_allclose(expit(logit[near]), p[near], rtol=1e-5, atol=1e-6)


def test_log_odds_of_a_search_and_of_a_nested_pipeline_are_its_scores():
    inner = make_pipeline(FunctionTransformer(), LogisticRegression(max_iter=1000))
    grid = {"logisticregression__C": [1e4]}
    model = behind_columns(GridSearchCV(inner, grid)).fit(TABLE, LABELS)
    best = model[-1].best_estimator_[-1]
    far = FAR.assign(a=100.0 * FAR["a"])
    logit = po.wrap(model, data=TABLE, output="log_odds").value(far)
    expected = by_hand_linear(best, numbers(far))
    np.testing.assert_allclose(logit, expected, rtol=1e-12)


def test_log_odds_of_quadratic_analysis_are_its_decision():
    model = behind_columns(QuadraticDiscriminantAnalysis(reg_param=0.1))
    model.fit(TABLE, LABELS)
    logit = po.wrap(model, data=TABLE, output="log_odds").value(FAR)
    np.testing.assert_allclose(logit, model.decision_function(FAR), rtol=1e-12)
    p = model.predict_proba(TABLE)
    near = po.wrap(model, data=TABLE, output="log_odds").value(TABLE)
    np.testing.assert_allclose(near, np.log(p[:, 1] / p[:, 0]), rtol=1e-6)


def test_what_is_no_logit_is_taken_from_probabilities():
    """Such as a clipped line: log p − log(1 − p) is all there is."""
    model = behind_columns(SGDClassifier(loss="modified_huber", random_state=0))
    model.fit(TABLE, LABELS)
    p = model.predict_proba(TABLE)
    inside = (p > 0.0).all(axis=1)
    logit = po.wrap(model, data=TABLE, output="log_odds").value(TABLE[inside])
    odds = p[inside, 1] / p[inside, 0]
    np.testing.assert_allclose(logit, np.log(odds), rtol=1e-12, atol=1e-12)


def test_three_classes_have_the_log_odds_of_each():
    labels = np.where(TABLE["b"] > 1.0, "perhaps", LABELS)
    model = behind_columns(LogisticRegression(C=1e3, max_iter=10_000))
    model.fit(TABLE, labels)
    scores = model.decision_function(FAR)
    others = np.logaddexp(scores[:, 0], scores[:, 1])
    logit = po.wrap(model, "yes", output="log_odds", data=TABLE).value(FAR)
    np.testing.assert_allclose(logit, scores[:, 2] - others, rtol=1e-9, atol=1e-9)
