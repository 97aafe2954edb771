"""Links of sums of boxes: their Shapley values are those of all coalitions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from coalitions import shapley_by_definition
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import propopt as po
from propopt.functions.means import CheckedLink
from propopt.structures.boxes.links import MOST_LINK_STEPS, LinkedScores, LinkedShapley
from propopt.structures.networks import ScoreLink, Softmax
from propopt.structures.products.sums import Game


N, D = 300, 5
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(N, D)), columns=list("abcde")).round(2)
X["a"] = X["a"].mask(RNG.random(N) < 0.15)
X["d"] = pd.Categorical(RNG.choice(["x", "y", "z"], N))
Y = X["a"].fillna(1.0) * X["b"] + X["c"] + (X["d"] == "y") * X["e"]
TWO = (Y > 0).astype(int)
THREE = np.digitize(Y, [-0.7, 0.7])
ROWS, BACKGROUND = X.iloc[:4], X.iloc[30:47]


def boosted(target, **settings):
    model = HistGradientBoostingClassifier(max_iter=15, max_leaf_nodes=12, **settings)
    return model.set_params(categorical_features=["d"]).fit(X, target)


def linked_of(function, data=X):
    points, labels = function.read(data)
    return CheckedLink.of(function, points, labels)


def against_the_definition(function, f):
    """The largest difference, over the largest value."""
    link = linked_of(function)
    known = LinkedShapley(link.linked, Game(function.read(BACKGROUND)[0]))
    found = known.values(function.read(ROWS)[0])
    truth = shapley_by_definition(f, ROWS, BACKGROUND)
    return np.abs(found - truth).max() / np.abs(truth).max()


@pytest.mark.parametrize("target", [0, 1, 2])
def test_probabilities_of_each_class(target):
    model = boosted(THREE)
    function = po.wrap(model, target=target, output="probability", data=X)
    assert linked_of(function).linked.link == Softmax(target)
    error = against_the_definition(
        function, lambda rows: model.predict_proba(rows)[:, target]
    )
    assert error < 1e-13


@pytest.mark.parametrize("target", [False, True])
def test_probabilities_of_two_classes(target):
    model = boosted(Y > 0)
    function = po.wrap(model, target=target, output="probability", data=X)
    error = against_the_definition(
        function, lambda rows: model.predict_proba(rows)[:, int(target)]
    )
    assert error < 1e-13


def test_counts_have_a_logarithm_behind():
    model = HistGradientBoostingRegressor(loss="poisson", max_iter=15)
    model.set_params(categorical_features=["d"]).fit(X, np.exp(Y / 3))
    function = po.wrap(model, data=X)
    assert linked_of(function).linked.link == ScoreLink("exp")
    assert against_the_definition(function, model.predict) < 1e-13


def test_log_odds_of_a_forest():
    numbers = X[["b", "c", "e"]]
    forest = RandomForestClassifier(20, min_samples_leaf=20, random_state=0)
    forest.fit(numbers, Y > 0)
    best = po.explain(
        forest, numbers.iloc[:3], data=numbers.iloc[:15], output="log_odds"
    )

    def log_odds(rows):
        p = forest.predict_proba(rows)[:, 1]
        return np.log(p) - np.log1p(-p)

    truth = shapley_by_definition(log_odds, numbers.iloc[:3], numbers.iloc[:15])
    assert best.target_error == 0.0
    assert best.contributions == pytest.approx(truth, abs=1e-12)


def test_a_score_that_is_off_is_not_believed():
    model = boosted(Y > 0)
    function = po.wrap(model, output="probability", data=X)
    points, _ = function.read(X)
    right = linked_of(function)
    values = function.value(X)
    assert right.holds(points, values)
    for boxes in right.linked.scores:
        off = (replace(boxes, values=1.001 * boxes.values),)
        assert not replace(right, linked=replace(right.linked, scores=off)).holds(
            points, values
        )
    wrong = LinkedScores(right.linked.scores, ScoreLink("exp"))
    assert not replace(right, linked=wrong).holds(points, values)


def test_a_column_that_no_tree_asks_for_has_exactly_zero():
    rows = X.assign(f=1.0)
    model = GradientBoostingClassifier(n_estimators=5, random_state=0)
    numbers = rows[["b", "f", "c"]]
    model.fit(numbers, Y > 0)
    best = po.explain(
        model, numbers.iloc[:4], data=numbers.iloc[:9], output="probability"
    )
    assert (best.attributions[:, 1] == 0.0).all()
    assert best.target_error == 0.0


def test_blocks_of_the_background_have_the_mean_of_all():
    function = po.wrap(boosted(Y > 0), output="probability", data=X)
    link, (points, _) = linked_of(function).linked, function.read(X)
    whole = LinkedShapley(link, Game(points[:20])).values(points[50:53])
    parts = LinkedShapley(link, Game(points[:20], 4)).of_blocks(points[50:53])
    assert parts.shape == (3, 4, D)
    assert parts.mean(axis=1) == pytest.approx(whole, abs=1e-14)
    assert np.ptp(parts, axis=1).max() > 1e-3


def test_rows_have_the_same_digits_in_any_company():
    function = po.wrap(boosted(THREE), target=1, output="probability", data=X)
    all_ = po.explain(function, ROWS, data=BACKGROUND).attributions
    alone = po.explain(function, ROWS.iloc[[2]], data=BACKGROUND).attributions
    assert (alone[0] == all_[2]).all()


def test_what_cannot_be_afforded_is_sampled_with_its_error():
    rng = np.random.default_rng(1)
    wide = rng.normal(size=(200, 15))
    model = GradientBoostingClassifier(n_estimators=60, max_features=4, random_state=0)
    model.fit(wide, wide.sum(axis=1) + wide[:, 0] * wide[:, 1] > 0)
    best = po.explain(model, wide[:2], data=wide[:100], output="probability")
    (link,) = po.wrap(model, output="probability").links
    assert link.steps_of_row(100) > MOST_LINK_STEPS
    assert best.target_error > 0.0
    assert "orders of the features" in best.parameters["contributions"]


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("name", ["logistic", "Gaussian", "pipeline"])
def test_probabilities_of_additive_scores(name, labels):
    numbers = X[["b", "c", "e"]]
    if name == "pipeline":
        numbers = numbers.assign(d=X["d"].astype(object))
        codes = make_column_transformer(
            (OneHotEncoder(), ["d"]), remainder="passthrough"
        )
        model = make_pipeline(codes, LogisticRegression())
    else:
        model = {"logistic": LogisticRegression, "Gaussian": GaussianNB}[name]()
    model.fit(numbers, labels)
    rows, background = numbers.iloc[:3], numbers.iloc[20:60]
    best = po.explain(
        model, rows, data=background, output="probability", target=1, robustness=0
    )
    truth = shapley_by_definition(
        lambda table: model.predict_proba(table)[:, 1], rows, background
    )
    assert best.target_error == 0.0
    assert "from its scores" in best.parameters["contributions"]
    assert best.contributions == pytest.approx(truth, abs=1e-13)
