"""Links of sums of boxes: their Shapley values are those of all coalitions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from coalitions import shapley_by_definition
from sklearn.base import clone
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
from propopt.functions.means import checked_link, link_holds
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


BOOSTED = HistGradientBoostingClassifier(
    max_iter=15, max_leaf_nodes=12, categorical_features=["d"]
)


def boosted(target):
    return clone(BOOSTED).fit(X, target)


def linked_of(function, data=X):
    points, labels = function.read(data)
    return checked_link(function, points, labels)


NUMBERS = X[["b", "c", "e"]]
FOREST = RandomForestClassifier(20, min_samples_leaf=20, random_state=0)
COUNTS = HistGradientBoostingRegressor(loss="poisson", max_iter=15)
ENCODED = make_pipeline(
    make_column_transformer((OneHotEncoder(), ["d"]), remainder="passthrough"),
    LogisticRegression(),
)
TEXTS = NUMBERS.assign(d=X["d"].astype(object))
CASES = {
    **{
        f"class {k} of three": (BOOSTED, X, THREE, ("probability", k), Softmax(k))
        for k in range(3)
    },
    **{
        f"class {k} of two": (BOOSTED, X, TWO, ("probability", k), None)
        for k in range(2)
    },
    "counts": (
        COUNTS.set_params(categorical_features=["d"]),
        X,
        np.exp(Y / 3),
        ("value", None),
        ScoreLink("exp"),
    ),
    "forest": (FOREST, NUMBERS, TWO, ("log_odds", 1), ScoreLink("logit")),
    **{
        f"{name}, {len(np.unique(labels))} classes": (
            model,
            data,
            labels,
            ("probability", 1),
            None,
        )
        for name, model, data in (
            ("logistic", LogisticRegression(), NUMBERS),
            ("Gaussian", GaussianNB(), NUMBERS),
            ("encoded", ENCODED, TEXTS),
        )
        for labels in (TWO, THREE)
    },
}


def answer(model, output, k):
    """The values of a model by its own methods."""
    if output == "value":
        return model.predict
    if output == "probability":
        return lambda rows: model.predict_proba(rows)[:, k]
    return lambda rows: np.subtract(*np.log(model.predict_proba(rows)).T[[k, 1 - k]])


@pytest.mark.parametrize("name", CASES)
def test_contributions_are_those_of_all_coalitions(name):
    model, data, y, (output, k), link = CASES[name]
    model.fit(data, y)
    function = po.wrap(model, target=k, output=output, data=data)
    if link is not None:
        assert linked_of(function, data)[0].link == link
    rows, background = data.iloc[:4], data.iloc[30:47]
    best = po.explain(function, rows, data=background, robustness=0)
    truth = shapley_by_definition(answer(model, output, k), rows, background)
    assert best.sampling_excess == 0.0
    assert "from its scores" in best.parameters["contributions"]
    assert best.contributions == pytest.approx(truth, abs=1e-12)


def test_a_score_that_is_off_is_not_believed():
    model = boosted(Y > 0)
    function = po.wrap(model, output="probability", data=X)
    points, _ = function.read(X)
    right, spread = linked_of(function)
    values = function.value(X)
    assert link_holds(right, spread, points, values)
    for boxes in right.scores:
        off = replace(right, scores=(replace(boxes, values=1.001 * boxes.values),))
        assert not link_holds(off, spread, points, values)
    wrong = LinkedScores(right.scores, ScoreLink("exp"))
    assert not link_holds(wrong, spread, points, values)


def test_a_column_that_no_tree_asks_for_has_exactly_zero():
    rows = X.assign(f=1.0)
    model = GradientBoostingClassifier(n_estimators=5, random_state=0)
    numbers = rows[["b", "f", "c"]]
    model.fit(numbers, Y > 0)
    best = po.explain(
        model, numbers.iloc[:4], data=numbers.iloc[:9], output="probability"
    )
    assert (best.attributions[:, 1] == 0.0).all()
    assert best.sampling_excess == 0.0


def test_blocks_of_the_background_have_the_mean_of_all():
    function = po.wrap(boosted(Y > 0), output="probability", data=X)
    link, (points, _) = linked_of(function)[0], function.read(X)
    whole = LinkedShapley(link, Game(points[:20])).values(points[50:53])
    parts = LinkedShapley(link, Game(points[:20], 4)).of_blocks(points[50:53])
    assert parts.shape == (3, 4, D)
    assert parts.mean(axis=1) == pytest.approx(whole, abs=1e-14)
    assert np.ptp(parts, axis=1).max() > 1e-3


def test_what_cannot_be_afforded_is_sampled_with_its_error():
    rng = np.random.default_rng(1)
    wide = rng.normal(size=(200, 15))
    model = GradientBoostingClassifier(n_estimators=60, max_features=4, random_state=0)
    model.fit(wide, wide.sum(axis=1) + wide[:, 0] * wide[:, 1] > 0)
    best = po.explain(model, wide[:2], data=wide[:100], output="probability")
    (link,) = po.wrap(model, output="probability").links
    assert link.steps_of_row(100) > MOST_LINK_STEPS
    assert best.sampling_excess > 0.0
    assert "orders of the features" in best.parameters["contributions"]
