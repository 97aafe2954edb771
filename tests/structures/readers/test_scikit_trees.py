"""Trees, forests and boosting of scikit-learn are read as what they predict."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from tree_cases import (
    CLASSES,
    GAPS,
    THREE,
    WEIGHTS,
    X,
    Y,
    agrees,
    boxes_of,
    table,
    table_response,
)

from propopt.structures.registry import MODELS


FEW = {"n_estimators": 8, "random_state": 0}
INCREASING = [1, 0, 0, 0, 0, 0]
REGRESSORS = [
    DecisionTreeRegressor(random_state=0),
    DecisionTreeRegressor(max_depth=3, monotonic_cst=INCREASING, random_state=0),
    ExtraTreeRegressor(random_state=0),
    RandomForestRegressor(**FEW),
    ExtraTreesRegressor(**FEW),
    ExtraTreesRegressor(n_estimators=8, monotonic_cst=INCREASING, random_state=0),
    HistGradientBoostingRegressor(max_iter=10),
    HistGradientBoostingRegressor(max_iter=10, monotonic_cst=INCREASING),
    HistGradientBoostingRegressor(max_iter=200, early_stopping=True, random_state=0),
    HistGradientBoostingRegressor(max_iter=1),
    HistGradientBoostingRegressor(loss="quantile", quantile=0.3, max_iter=10),
]
CLASSIFIERS = [
    DecisionTreeClassifier(max_depth=5, random_state=0),
    DecisionTreeClassifier(max_depth=3, class_weight="balanced", random_state=0),
    ExtraTreeClassifier(random_state=0),
    RandomForestClassifier(**FEW),
    ExtraTreesClassifier(**FEW),
]
WITHOUT_GAPS = [
    GradientBoostingRegressor(**FEW),
    GradientBoostingRegressor(loss="huber", **FEW),
    GradientBoostingRegressor(init="zero", **FEW),
    GradientBoostingRegressor(n_estimators=1, random_state=0),
    GradientBoostingRegressor(
        n_estimators=200, n_iter_no_change=2, subsample=0.5, random_state=0
    ),
]
BOOSTED_CLASSIFIERS = [
    GradientBoostingClassifier(**FEW),
    HistGradientBoostingClassifier(max_iter=10),
]


@pytest.mark.parametrize("data", [X, GAPS], ids=["whole", "gaps"])
@pytest.mark.parametrize("model", REGRESSORS, ids=str)
def test_regressors(model, data):
    model = clone(model).fit(data, Y)
    agrees(boxes_of(model), model.predict(data), data)


@pytest.mark.parametrize("model", WITHOUT_GAPS, ids=str)
def test_gradient_boosting(model):
    model = clone(model).fit(X, Y)
    agrees(boxes_of(model), model.predict(X))


@pytest.mark.parametrize("data", [X, GAPS], ids=["whole", "gaps"])
@pytest.mark.parametrize("target", [0, 1, 2])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_probabilities_are_means_over_trees(model, target, data):
    model = clone(model).fit(data, THREE)
    boxes = boxes_of(model, "probability", target, data)
    agrees(boxes, model.predict_proba(data)[:, target], data)
    assert boxes_of(model, "log_odds", target, data) is None
    assert boxes_of(model, "margin", target, data) is None


@pytest.mark.parametrize("model", BOOSTED_CLASSIFIERS, ids=str)
def test_two_classes_share_a_margin_which_is_their_log_odds(model):
    model = clone(model).fit(X, CLASSES)
    margin = model.decision_function(X)
    for output in ("margin", "log_odds"):
        agrees(boxes_of(model, output, 1), margin)
        agrees(boxes_of(model, output, 0), -margin)
    assert boxes_of(model, "probability", 1) is None


@pytest.mark.parametrize("model", BOOSTED_CLASSIFIERS, ids=str)
@pytest.mark.parametrize("target", [0, 1, 2])
def test_each_of_three_classes_has_a_margin(model, target):
    model = clone(model).fit(X, THREE)
    agrees(boxes_of(model, "margin", target), model.decision_function(X)[:, target])
    assert boxes_of(model, "log_odds", target) is None


def test_log_odds_of_exponential_loss_are_twice_the_margin():
    model = GradientBoostingClassifier(loss="exponential", **FEW).fit(X, CLASSES)
    p = model.predict_proba(X)[:, 1]
    agrees(boxes_of(model, "log_odds", 1), np.log(p / (1 - p)), tolerance=1e-13)


@pytest.mark.parametrize("data", [X, GAPS], ids=["whole", "gaps"])
def test_margins_of_histograms_with_gaps_and_weights(data):
    model = HistGradientBoostingClassifier(max_iter=10)
    model.fit(data, CLASSES, sample_weight=WEIGHTS)
    agrees(boxes_of(model, "margin", 1, data), model.decision_function(data), data)


@pytest.mark.parametrize("classes", [CLASSES, THREE], ids=["two", "three"])
def test_votes_of_adaboost(classes):
    tree = DecisionTreeClassifier(max_depth=2)
    model = AdaBoostClassifier(tree, n_estimators=6, random_state=0).fit(X, classes)
    margins = model.decision_function(X)
    if classes is CLASSES:
        margins = np.column_stack([-margins, margins])
        for target in (0, 1):
            truth = np.log(model.predict_proba(X)[:, [1 - target, target]])
            boxes = boxes_of(model, "log_odds", target)
            agrees(boxes, truth[:, 1] - truth[:, 0], tolerance=1e-13)
    for target in range(margins.shape[1]):
        agrees(boxes_of(model, "margin", target), margins[:, target])
    assert boxes_of(model, "probability", 1) is None
    forest = AdaBoostClassifier(RandomForestClassifier(2), n_estimators=2)
    assert boxes_of(forest.fit(X, classes), "margin", 1) is None


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_behind_a_logarithm_only_the_score_is_a_sum(loss):
    model = HistGradientBoostingRegressor(loss=loss, max_iter=10).fit(X, np.exp(Y))
    assert boxes_of(model) is None
    log_mean = np.log(model.predict(X))
    agrees(boxes_of(model, "margin"), log_mean, tolerance=1e-13)


@pytest.mark.parametrize("index", [0, 1])
def test_trees_with_several_outputs(index):
    model = RandomForestRegressor(**FEW).fit(X, np.column_stack([Y, -(Y**2)]))
    agrees(boxes_of(model, index=index), model.predict(X)[:, index])


def test_trees_that_are_one_leaf():
    for model in (
        DecisionTreeRegressor(max_depth=1, min_samples_leaf=300),
        RandomForestRegressor(3, min_samples_leaf=300),
        GradientBoostingRegressor(n_estimators=3, min_samples_leaf=300),
        HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=300),
    ):
        boxes = boxes_of(model.fit(X, Y))
        agrees(boxes, model.predict(X))
        assert len(boxes.columns) == 0


def test_thresholds_are_those_of_numbers_in_single_precision():
    """Between two float32 there are numbers on both sides of what rounds up."""
    model = DecisionTreeRegressor().fit([[1.0], [1.0 + 2.0**-23]], [0.0, 1.0])
    near = 1.0 + np.linspace(0.0, 2.0**-23, 1025)[:, None]
    agrees(boxes_of(model, data=near), model.predict(near), near)


def test_gradient_boosting_on_top_of_another_model_is_not_read():
    model = GradientBoostingRegressor(init=LinearRegression(), **FEW).fit(X, Y)
    assert boxes_of(model) is None


def test_histograms_with_categories_of_numbers():
    model = HistGradientBoostingRegressor(max_iter=10, categorical_features=[2, 1])
    model.fit(X, Y)
    agrees(boxes_of(model), model.predict(X))
    others = X + np.array([0.0, 0.0, 0.5, 0.0, 0.0, 0.0])  # unknown: as if missing
    agrees(boxes_of(model), model.predict(others), others)


def test_histograms_with_categories_of_a_table():
    frame = table().drop(columns="text")
    model = HistGradientBoostingRegressor(
        max_iter=15, categorical_features="from_dtype"
    )
    model.fit(frame, table_response(frame))
    boxes = boxes_of(model, data=frame)
    agrees(boxes, model.predict(frame), frame)
    assert boxes.sets.coded.any()


def test_what_is_kept_by_private_names_is_there():
    """Readers use them: another version of scikit-learn may have renamed them."""
    histogram = HistGradientBoostingRegressor(max_iter=1).fit(X, Y)
    assert histogram._preprocessor is None  # noqa: SLF001
    assert np.shape(histogram._baseline_prediction) == (1, 1)  # noqa: SLF001
    predictor = histogram._predictors[0][0]  # noqa: SLF001
    assert predictor.raw_left_cat_bitsets.dtype == np.uint32
    assert {
        "bitset_idx",
        "feature_idx",
        "is_categorical",
        "is_leaf",
        "left",
        "missing_go_to_left",
        "num_threshold",
        "right",
        "value",
    } <= set(predictor.nodes.dtype.names)
    boosting = GradientBoostingRegressor(n_estimators=1).fit(X, Y)
    start = boosting._raw_predict_init(X[:1].astype(np.float32))  # noqa: SLF001
    assert start.shape == (1, 1)


@pytest.mark.parametrize("kind", [RandomForestRegressor, HistGradientBoostingRegressor])
def test_subclasses_are_not_read(kind):
    model = type("Mine", (kind,), {})().fit(X, Y)
    assert boxes_of(model) is None
    assert kind not in MODELS
