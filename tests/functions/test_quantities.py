"""What a function explains, in words: one name for one number, whatever the model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import propopt as po
from propopt.base.errors import InvalidInput


X, Y = load_breast_cancer(return_X_y=True, as_frame=True)
X, Y = X.iloc[:, :5], Y.rename("cancer")
LABELS = Y.map({0: "no", 1: "yes"})
FEW = X.iloc[:40]


def boosted(package, name, **settings):
    return lambda: getattr(pytest.importorskip(package), name)(**settings)


MODELS = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": lambda: RandomForestClassifier(30, max_depth=4, random_state=0),
    "histgb": lambda: HistGradientBoostingClassifier(max_iter=10),
    "lightgbm": boosted("lightgbm", "LGBMClassifier", n_estimators=10, verbose=-1),
    "xgboost": boosted("xgboost", "XGBClassifier", n_estimators=10),
    "catboost": boosted(
        "catboost",
        "CatBoostClassifier",
        iterations=10,
        verbose=0,
        allow_writing_files=False,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_log_odds_are_one_quantity_of_all_models(name):
    model = MODELS[name]().fit(X, Y)
    function = po.wrap(model, output="log_odds", data=X, outcome="cancer")
    assert function.quantity.kind == "log_odds"
    assert function.quantity.in_words() == "log-odds of cancer = 1"
    p = np.clip(np.asarray(model.predict_proba(FEW), dtype=float)[:, 1], 1e-15, 1)
    inside = p < 1.0 - 1e-9  # of a sum of leaves of one class alone the logit is ∞
    values = function.value(FEW[inside])
    odds = np.log(p[inside]) - np.log1p(-p[inside])
    np.testing.assert_allclose(values, odds, rtol=2e-4, atol=2e-5)  # float32 of xgboost


SAME = {
    "logistic": LogisticRegression(max_iter=10_000),
    "behind a scaler": make_pipeline(StandardScaler(), LogisticRegression()),
    "sgd": make_pipeline(
        StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)
    ),
    "lda": LinearDiscriminantAnalysis(),
    "qda": QuadraticDiscriminantAnalysis(reg_param=0.1),
    "gradient boosting": GradientBoostingClassifier(n_estimators=5),
    "histgb": HistGradientBoostingClassifier(max_iter=5),
}


@pytest.mark.parametrize("name", SAME)
def test_a_margin_that_is_the_log_odds_is_called_so(name):
    model = SAME[name].fit(X, Y)
    margin = po.wrap(model, output="margin")
    assert margin.quantity == po.wrap(model, output="log_odds").quantity
    assert margin.quantity.kind == "log_odds"
    p = model.predict_proba(FEW)
    inside = (p > 1e-9).all(axis=1)
    np.testing.assert_allclose(
        margin.value(FEW[inside]), np.log(p[inside, 1] / p[inside, 0]), rtol=1e-5
    )


@pytest.mark.parametrize(
    "model",
    [
        RidgeClassifier(),
        SVC(),
        SGDClassifier(loss="hinge", random_state=0),
        GradientBoostingClassifier(n_estimators=5, loss="exponential"),
    ],
    ids=repr,
)
def test_a_margin_that_is_not_keeps_its_name(model):
    function = po.wrap(model.fit(X, Y), output="margin")
    assert function.quantity.in_words() == "margin of class 1"


def test_a_margin_of_one_of_three_classes_is_no_log_odds():
    flowers, kinds = load_iris(return_X_y=True, as_frame=True)
    model = LogisticRegression(max_iter=1000).fit(flowers, kinds)
    assert po.wrap(model, target=2, output="margin").quantity.kind == "margin"
    assert po.wrap(model, target=2, output="log_odds").quantity.kind == "log_odds"


def test_of_two_labels_the_second_is_explained_and_named():
    model = MODELS["logistic"]().fit(X, LABELS)
    function = po.wrap(model, outcome="cancer")
    assert function.quantity.label == model.classes_[1] == "yes"
    p = model.predict_proba(FEW)[:, 1]
    np.testing.assert_allclose(function.value(FEW), p, rtol=1e-12)


def test_what_is_explained_goes_with_every_explanation(tmp_path):
    model = MODELS["histgb"]().fit(X, LABELS)
    told = {"output": "log_odds", "outcome": "cancer"}
    function = po.wrap(model, data=X, **told)
    best = po.explain(model, FEW, data=X, **told)
    parts = po.explain(model, FEW, data=X, units="output", **told)
    one = po.explain(model, FEW.iloc[:1], data=X, **told)
    explainer = po.Explainer(model, data=X, **told).fit(FEW)
    explainer.save(tmp_path / "explainer.npz")
    loaded = po.Explainer.load(tmp_path / "explainer.npz", model)
    robust = po.PairwiseRobustness(po.knn_graph(FEW.to_numpy(), 3))
    matching = po.GradientMatching(best)
    others = [
        po.explainers.Shap().explain(function, FEW),
        po.explainers.TreeShap().explain(function, FEW),
        po.explainers.ExactLime().explain(function, FEW),
    ]
    curve = po.sweep(matching + robust, {"pairwise_robustness": [0.1, 1.0]}, others)
    for explanation in (
        best,
        parts,
        one,
        explainer.explain(FEW.iloc[:2]),
        explainer.reference_,
        loaded.explain(FEW.iloc[:2]),
        *curve.explanations,
    ):
        assert explanation.quantity == function.quantity, explanation.method
    assert loaded.outcome == "cancer"
    best.save(tmp_path / "best.npz")
    assert po.Explanation.load(tmp_path / "best.npz").quantity == best.quantity
    curve.save(tmp_path / "curve.npz")
    again = po.TradeOffs.load(tmp_path / "curve.npz")
    assert {e.quantity for e in again.explanations} == {function.quantity}


def test_of_values_that_predict_what_they_are_is_said_by_hand():
    function = po.wrap(MODELS["logistic"]().fit(X, Y), outcome="cancer")
    local = po.FunctionMatching(FEW, function.value(FEW), quantity=function.quantity)
    ridge = po.solve(local + 0.1 * po.Sparsity())
    assert ridge.quantity == function.quantity
    assert po.solve(po.GradientMatching(np.eye(3))).quantity is None


def test_words_of_documents_say_what_they_change():
    texts = pytest.importorskip("sklearn.feature_extraction.text")
    documents = ["a good day", "a bad day", "good food", "bad food"] * 3
    model = make_pipeline(texts.CountVectorizer(), LogisticRegression())
    model.fit(documents, ["pos", "neg"] * 6)
    best = po.explain(model, documents, output="log_odds", outcome="mood")
    assert best.quantity.in_words() == "log-odds of mood = pos"
    limit = po.lime.text_limits(model, documents[:2], outcome="mood")
    assert limit.subject.function.quantity.outcome == "mood"
    rows = po.lime.limits(MODELS["logistic"]().fit(X, Y), FEW[:2], data=X, outcome="c")
    assert rows.subject.function.quantity.in_words() == "probability of c = 1"


def test_a_name_for_what_is_a_function_already_is_refused():
    function = po.wrap(MODELS["logistic"]().fit(X, Y))
    with pytest.raises(InvalidInput, match=r"outcome: .* is a Function already"):
        po.explain(function, FEW, outcome="cancer")


def test_frames_of_other_libraries_do_not_change_it():
    function = po.wrap(lambda table: pd.DataFrame(table).sum(axis=1).to_numpy())
    assert "prediction of" in function.quantity.in_words()
