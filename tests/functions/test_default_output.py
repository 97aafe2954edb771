"""The unit of classifiers by default: log-odds wherever they are exact."""

import numpy as np
import pandas as pd
import pytest
from estimators import sk
from scipy.special import logit
from sklearn import ensemble, naive_bayes
from sklearn.pipeline import make_pipeline

import propopt as po


RNG = np.random.default_rng(7)
X = pd.DataFrame(RNG.gamma(2.0, size=(160, 3)), columns=["a", "b", "c"])
Z = X["a"] - 0.5 * X["b"] * X["c"] + RNG.normal(size=160)
Y = (Z > -1.0).astype(int).to_numpy()  # an intercept that is not zero
THREE = np.digitize(Z, [-1.0, 0.5])
MEMBERS = [
    ("forest", ensemble.RandomForestClassifier(5, max_depth=3, random_state=0)),
    ("linear", sk.LogisticRegression()),
]


def stacked(final):
    return ensemble.StackingClassifier(MEMBERS, final, cv=3)


IN_LOG_ODDS = {
    "logistic": sk.LogisticRegression,
    "cross-validated": sk.LogisticRegressionCV,
    "descended": lambda: make_pipeline(
        sk.StandardScaler(), sk.SGDClassifier(loss="log_loss", random_state=0)
    ),
    "linear discriminant": sk.LinearDiscriminantAnalysis,
    "quadratic discriminant": sk.QuadraticDiscriminantAnalysis,
    "gaussian naive Bayes": naive_bayes.GaussianNB,
    "multinomial naive Bayes": naive_bayes.MultinomialNB,
    "complement naive Bayes": naive_bayes.ComplementNB,
    "identity network": lambda: sk.MLPClassifier(
        5, "identity", max_iter=50, random_state=0
    ),
    "behind a scaler": lambda: make_pipeline(
        sk.StandardScaler(), sk.LogisticRegression()
    ),
    "in a search": lambda: sk.GridSearchCV(
        make_pipeline(sk.StandardScaler(), sk.LogisticRegression()),
        {"logisticregression__C": [0.1, 1.0]},
    ),
    "with a threshold": lambda: sk.FixedThresholdClassifier(
        sk.LogisticRegression(), threshold=0.3
    ),
    "with a tuned threshold": lambda: sk.TunedThresholdClassifierCV(
        sk.LogisticRegression()
    ),
    "a stack": lambda: stacked(sk.LogisticRegression()),
    "a stack that ends in a discriminant": lambda: stacked(
        sk.LinearDiscriminantAnalysis()
    ),
    "boosted": lambda: ensemble.GradientBoostingClassifier(n_estimators=5),
}
IN_PROBABILITY = {
    "forest": lambda: ensemble.RandomForestClassifier(5, random_state=0),
    "network": lambda: sk.MLPClassifier(5, max_iter=50, random_state=0),
    "calibrated": lambda: sk.CalibratedClassifierCV(sk.LogisticRegression()),
    "process": sk.GaussianProcessClassifier,
    "bernoulli naive Bayes": naive_bayes.BernoulliNB,
    "voters": lambda: ensemble.VotingClassifier(MEMBERS, voting="soft"),
    "bagged": lambda: ensemble.BaggingClassifier(sk.LogisticRegression(), 3),
    "huber": lambda: sk.SGDClassifier(loss="modified_huber", random_state=0),
    "a stack that ends in a forest": lambda: stacked(
        ensemble.RandomForestClassifier(5, random_state=0)
    ),
}


@pytest.mark.filterwarnings("ignore::Warning")  # of fits of few rounds
@pytest.mark.parametrize("target", [None, 0])
@pytest.mark.parametrize("name", IN_LOG_ODDS)
def test_exact_log_odds_are_the_default(name, target):
    model = IN_LOG_ODDS[name]().fit(X, Y)
    function = po.wrap(model, target, data=X)
    assert function.quantity.kind == "log_odds"
    assert function.quantity.alternative == "probability"
    column = 1 if target is None else 0
    p = np.asarray(model.predict_proba(X))[:, column].astype(float)
    inside = (p > 1e-3) & (p < 1.0 - 1e-3)
    assert inside.sum() > 20
    np.testing.assert_allclose(
        function.value(X)[inside], logit(p[inside]), rtol=1e-3, atol=1e-4
    )
    if hasattr(model, "decision_function"):
        margin = po.wrap(model, target, "margin", data=X)
        assert margin.quantity == function.quantity
        np.testing.assert_allclose(margin.value(X), function.value(X), rtol=1e-9)
    share = po.wrap(model, target, function.quantity.alternative, data=X)
    assert share.quantity.kind == "probability"
    np.testing.assert_allclose(share.value(X), p, rtol=1e-6, atol=1e-12)


@pytest.mark.filterwarnings("ignore::Warning")
@pytest.mark.parametrize("name", IN_PROBABILITY)
def test_probability_is_the_default_of_others(name):
    model = IN_PROBABILITY[name]().fit(X, Y)
    function = po.wrap(model, data=X)
    assert function.quantity.kind == "probability"
    np.testing.assert_allclose(function.value(X), model.predict_proba(X)[:, 1])
    if function.quantity.alternative is not None:  # it is finite for every row
        odds = po.wrap(model, output=function.quantity.alternative, data=X)
        assert np.isfinite(odds.value(X * 1e3)).all()


@pytest.mark.parametrize(
    ("model", "kind", "alternative"),
    [
        (sk.LogisticRegression(), "probability", "log_odds"),
        (sk.LinearDiscriminantAnalysis(), "probability", "log_odds"),
        (naive_bayes.GaussianNB(), "probability", "log_odds"),
        (ensemble.RandomForestClassifier(5), "probability", None),
        (ensemble.GradientBoostingClassifier(n_estimators=3), "margin", None),
    ],
)
def test_log_odds_of_three_classes_are_not_exact(model, kind, alternative):
    quantity = po.wrap(model.fit(X, THREE), 1, data=X).quantity
    assert (quantity.kind, quantity.alternative) == (kind, alternative)


# ---- LIME explains probabilities, as the package lime


def test_lime_explains_probabilities_of_classifiers_that_are_not_boosted():
    for name, kind in {
        "logistic": "probability",
        "behind a scaler": "probability",
        "gaussian naive Bayes": "probability",
        "boosted": "log_odds",
        "a stack": "log_odds",
    }.items():
        model = IN_LOG_ODDS[name]().fit(X, Y)
        assert po.lime.limits(model, X[:2], data=X).quantity.kind == kind, name
    texts = ["good food", "bad food", "no good", "bad"]
    words = make_pipeline(sk.CountVectorizer(), sk.LogisticRegression()).fit(
        texts, [1, 0, 0, 0]
    )
    assert po.lime.text_limits(words, texts).quantity.kind == "probability"


# ---- Two versions have one unit


PAIRS = [
    ("logistic", "boosted", "log_odds"),
    ("logistic", "linear discriminant", "log_odds"),
    ("a stack", "logistic", "log_odds"),
    ("logistic", "forest", "probability"),
    ("boosted", "forest", "probability"),
    ("boosted", "network", "probability"),
]


@pytest.mark.filterwarnings("ignore::Warning")
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("old", "new", "kind"), PAIRS)
def test_versions_are_compared_in_one_unit(old, new, kind, turned):
    kinds = {**IN_LOG_ODDS, **IN_PROBABILITY}
    models = [kinds[name]().fit(X, Y) for name in (old, new)]
    before, after = models[::-1] if turned else models
    found = po.compare(before, after, X[:20], data=X)
    assert found.quantity.kind == kind
    assert found.parameters["output"].startswith(found.quantity.noun)
    chosen = po.compare(before, after, X[:20], data=X, output=kind)
    np.testing.assert_allclose(found.before, chosen.before, atol=1e-12)
    np.testing.assert_allclose(found.after, chosen.after, atol=1e-12)
    advice = found.parameters["output"].partition("output=")[2].partition(" ")[0]
    if advice:
        other = po.compare(before, after, X[:20], data=X, output=advice.strip("'"))
        assert other.quantity.kind != kind
    if "forest" in (old, new):  # some of its log-odds are infinite
        return
    # a function has its unit already, and the other version takes it
    for one, two in (
        (po.wrap(before, data=X), after),
        (before, po.wrap(after, data=X)),
    ):
        wrapped = one if isinstance(one, po.functions.Function) else two
        mixed = po.compare(one, two, X[:20], data=X)
        assert mixed.quantity.kind == wrapped.quantity.kind


def test_refits_are_compared_in_the_unit_of_the_versions():
    level = [po.null_models.bootstrap_refits(sk.LogisticRegression(), X, Y)] * 2
    model = sk.LogisticRegression().fit(X, Y)
    forest = ensemble.RandomForestClassifier(5, random_state=0).fit(X, Y)
    found = po.compare(model, forest, X[:20], data=X, level=level)
    assert found.quantity.kind == "probability"
    assert found.level.distance_limits.max() < 1.0
    function = po.wrap(model, output="probability", data=X)
    found = po.compare(function, model, X[:20], data=X, level=level)
    assert found.quantity.kind == "probability"
    assert not found.distances.any()
