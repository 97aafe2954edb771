"""Models that add up what trees predict are read."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tree_cases import (
    CLASSES,
    GAPS,
    THREE,
    X,
    Y,
    agrees,
    boxes_of,
    table,
    table_response,
)


FOREST = RandomForestRegressor(4, random_state=0)
BOOSTING = GradientBoostingRegressor(n_estimators=5, random_state=0)
HIST = HistGradientBoostingRegressor(max_iter=5)
TREE = DecisionTreeRegressor(max_depth=4, random_state=0)
SCALED = make_pipeline(StandardScaler(), BOOSTING)
VOTERS = [("a", FOREST), ("b", "drop"), ("c", SCALED), ("d", HIST)]


@pytest.mark.parametrize(
    "model",
    [
        BaggingRegressor(TREE, 5, random_state=0),
        BaggingRegressor(TREE, 5, max_features=3, bootstrap_features=True),
        BaggingRegressor(make_pipeline(MinMaxScaler(), HIST), 3, max_features=0.8),
        VotingRegressor(VOTERS),
        VotingRegressor(VOTERS, weights=[1.0, 7.0, 2.0, 0.5]),
        StackingRegressor([("a", FOREST), ("b", SCALED)], cv=2),
        StackingRegressor([("a", FOREST), ("b", HIST)], LinearRegression(), cv=2),
        GridSearchCV(TREE, {"max_depth": [2, 4]}, cv=2),
        RandomizedSearchCV(TREE, {"max_depth": [3]}, n_iter=1, cv=2),
        VotingRegressor([("a", VotingRegressor(VOTERS)), ("b", TREE)]),
        *(
            TransformedTargetRegressor(FOREST, transformer=units)
            for units in (
                None,
                StandardScaler(),
                StandardScaler(with_mean=False),
                RobustScaler(),
                MinMaxScaler(),
                MaxAbsScaler(),
                FunctionTransformer(),
            )
        ),
    ],
    ids=str,
)
def test_regressors(model):
    model = clone(model).fit(X, Y)
    agrees(boxes_of(model), model.predict(X))


def test_bagging_with_gaps():
    model = BaggingRegressor(TREE, 5, max_features=4, random_state=0).fit(GAPS, Y)
    agrees(boxes_of(model, data=GAPS), model.predict(GAPS), GAPS)


@pytest.mark.parametrize(
    "model",
    [
        BaggingClassifier(DecisionTreeClassifier(), 6, max_samples=9),
        VotingClassifier(
            [
                ("a", RandomForestClassifier(3, random_state=0)),
                ("b", ExtraTreesClassifier(3, random_state=0)),
            ],
            voting="soft",
            weights=[1, 3],
        ),
        GridSearchCV(DecisionTreeClassifier(), {"max_depth": [3]}, cv=2),
    ],
    ids=str,
)
@pytest.mark.parametrize("target", [0, 1, 2])
def test_probabilities_of_named_classes(model, target):
    names = np.array(["low", "mid", "top"])[THREE]
    names[:4] = "low"
    model = clone(model).fit(X, names)
    truth = model.predict_proba(X)[:, target]
    agrees(boxes_of(model, "probability", target), truth)


def test_members_of_bags_that_have_not_seen_every_class():
    # a pipeline takes no weights, so members are given some rows only
    few = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3))
    rare = np.where(np.arange(len(X)) < 8, 2, CLASSES)
    model = BaggingClassifier(few, 12, max_samples=20, random_state=0).fit(X, rare)
    assert any(len(member.classes_) == 2 for member in model.estimators_)
    for target in range(3):
        truth = model.predict_proba(X)[:, target]
        agrees(boxes_of(model, "probability", target), truth)


def stack():
    members = [
        ("forest", RandomForestClassifier(3, random_state=0)),
        ("tree", DecisionTreeClassifier(max_depth=3)),
    ]
    return StackingClassifier(members, cv=2)


def test_stacks_of_two_classes():
    model = stack().fit(X, CLASSES)
    margin = model.decision_function(X)
    agrees(boxes_of(model, "margin", 1), margin, tolerance=1e-14)
    agrees(boxes_of(model, "log_odds", 0), -margin, tolerance=1e-14)
    assert boxes_of(model, "probability", 1) is None


def test_stacks_of_three_classes():
    model = stack().fit(X, THREE)
    for target in range(3):
        margin = model.decision_function(X)[:, target]
        agrees(boxes_of(model, "margin", target), margin, tolerance=1e-14)


def test_models_for_each_output():
    model = MultiOutputRegressor(BOOSTING).fit(X, np.column_stack([Y, -(Y**2)]))
    for index in (0, 1):
        agrees(boxes_of(model, index=index), model.predict(X)[:, index])


def test_votes_about_tables_with_categories():
    frame = table().drop(columns="text")
    trees = HistGradientBoostingRegressor(max_iter=5, categorical_features="from_dtype")
    model = VotingRegressor([("a", trees), ("b", clone(trees).set_params(max_iter=3))])
    model.fit(frame, table_response(frame))
    agrees(boxes_of(model, data=frame), model.predict(frame), frame)


def test_what_is_no_sum_of_trees_is_not_read():
    forest = RandomForestClassifier(3)
    boosting = GradientBoostingClassifier(n_estimators=3)
    for model, y, output in [
        (VotingRegressor([("a", FOREST), ("b", LinearRegression())]), Y, "value"),
        (VotingClassifier([("a", forest)], voting="hard"), THREE, "probability"),
        (VotingClassifier([("a", boosting)], voting="soft"), CLASSES, "probability"),
        (BaggingClassifier(boosting, 2), CLASSES, "probability"),
        (StackingRegressor([("a", FOREST)], TREE, cv=2), Y, "value"),
        (StackingRegressor([("a", FOREST)], cv=2, passthrough=True), Y, "value"),
        (AdaBoostRegressor(TREE, n_estimators=3), Y, "value"),
        (
            TransformedTargetRegressor(
                FOREST, transformer=QuantileTransformer(n_quantiles=20)
            ),
            Y,
            "value",
        ),
        (
            TransformedTargetRegressor(FOREST, func=np.log1p, inverse_func=np.expm1),
            np.exp(Y),
            "value",
        ),
    ]:
        fitted = clone(model).fit(X, y)
        assert boxes_of(fitted, output, None if output == "value" else 1) is None
