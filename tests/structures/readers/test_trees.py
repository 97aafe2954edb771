"""Trees of scikit-learn, and models that add up what trees predict, are read."""

from inspect import signature

import numpy as np
import pytest
from estimators import sk
from model_answers import of_class
from quiet_boosters import booster
from refusals import refusals
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.feature_selection import f_regression
from sklearn.pipeline import make_pipeline
from tree_cases import (
    CLASSES,
    EXACT,
    GAPS,
    SINGLE,
    THREE,
    X,
    Y,
    agrees,
    boxes_of,
    table,
    table_response,
)


FOREST = sk.RandomForestRegressor(4, random_state=0)
BOOSTING = sk.GradientBoostingRegressor(n_estimators=5, random_state=0)
HIST = sk.HistGradientBoostingRegressor(max_iter=5)
TREE = sk.DecisionTreeRegressor(max_depth=4, random_state=0)
SCALED = make_pipeline(sk.StandardScaler(), BOOSTING)
VOTERS = [("a", FOREST), ("b", "drop"), ("c", SCALED), ("d", HIST)]


def few(kind, **settings):
    return kind(n_estimators=8, random_state=0, **settings)


BOTH = pytest.mark.parametrize("data", [X, GAPS], ids=["whole", "gaps"])
WITH_GAPS = [
    TREE,
    sk.ExtraTreeRegressor(random_state=0),
    few(sk.RandomForestRegressor),
    few(sk.ExtraTreesRegressor),
    sk.HistGradientBoostingRegressor(max_iter=10),
    sk.BaggingRegressor(TREE, 5, max_features=4, random_state=0),
]
WHOLE = [
    few(sk.GradientBoostingRegressor),
    few(sk.GradientBoostingRegressor, init="zero"),
    sk.BaggingRegressor(TREE, 5, random_state=0),
    sk.BaggingRegressor(TREE, 5, max_features=3, bootstrap_features=True),
    sk.BaggingRegressor(make_pipeline(sk.MinMaxScaler(), HIST), 3, max_features=0.8),
    sk.VotingRegressor(VOTERS, weights=[1.0, 7.0, 2.0, 0.5]),
    sk.VotingRegressor([("a", sk.VotingRegressor(VOTERS)), ("b", TREE)]),
    sk.StackingRegressor([("a", FOREST), ("b", SCALED)], cv=2),
    sk.StackingRegressor([("a", FOREST), ("b", HIST)], sk.LinearRegression(), cv=2),
    sk.GridSearchCV(TREE, {"max_depth": [2, 4]}, cv=2),
    sk.RandomizedSearchCV(TREE, {"max_depth": [3]}, n_iter=1, cv=2),
    *(
        sk.TransformedTargetRegressor(FOREST, transformer=units)
        for units in (
            None,
            sk.StandardScaler(),
            sk.StandardScaler(with_mean=False),
            sk.RobustScaler(),
            sk.MinMaxScaler(),
            sk.MaxAbsScaler(),
            sk.FunctionTransformer(),
        )
    ),
]
CONSTANT = {"min_samples_leaf": 300}
LEAVES = [
    sk.RandomForestRegressor(3, **CONSTANT),
    sk.GradientBoostingRegressor(n_estimators=3, **CONSTANT),
    sk.HistGradientBoostingRegressor(max_iter=3, **CONSTANT),
]


@pytest.mark.parametrize(
    ("model", "data"),
    [(model, data) for model in WITH_GAPS for data in (X, GAPS)]
    + [(model, X) for model in [*WHOLE, *LEAVES]],
    ids=lambda part: str(part) if hasattr(part, "fit") else "gaps" * (part is GAPS),
)
def test_regressors(model, data):
    model = clone(model).fit(data, Y)
    boxes = boxes_of(model, data=data)
    agrees(boxes, model.predict(data), data)
    assert (len(boxes.columns) == 0) == (
        model.get_params().get("min_samples_leaf") == 300
    )


def test_models_of_several_outputs():
    outputs = np.column_stack([Y, -(Y**2)])
    for model in (few(sk.RandomForestRegressor), sk.MultiOutputRegressor(BOOSTING)):
        model.fit(X, outputs)
        for index in (0, 1):
            agrees(boxes_of(model, index=index), model.predict(X)[:, index])


# ---- classifiers: what is a sum of trees of each output, of two classes and of three
def held(model, y, read, data=X):
    """Outputs are what the model says, to a rounding of each; the others have none."""
    model = clone(model).fit(data, y)
    for output in ("probability", "log_odds", "margin"):
        for target in range(len(np.unique(y))):
            boxes = boxes_of(model, output, target, data)
            if output in read:
                truth = of_class(model, output, target, data)
                agrees(boxes, truth, data, read[output])
            else:
                assert boxes is None


SOFT = {"voting": "soft"}
MEANS = [
    sk.DecisionTreeClassifier(max_depth=5, random_state=0),
    sk.ExtraTreeClassifier(random_state=0),
    few(sk.RandomForestClassifier),
    few(sk.ExtraTreesClassifier),
]
NAMED = [
    sk.BaggingClassifier(sk.DecisionTreeClassifier(), 6, max_samples=9, random_state=0),
    sk.VotingClassifier([("a", MEANS[2]), ("b", MEANS[3])], weights=[1, 3], **SOFT),
    sk.GridSearchCV(sk.DecisionTreeClassifier(), {"max_depth": [3]}, cv=2),
]
STACK = sk.StackingClassifier([("forest", MEANS[2]), ("tree", MEANS[0])], cv=2)
TWO_DEEP = sk.DecisionTreeClassifier(max_depth=2)
SCORES = [
    (few(sk.GradientBoostingClassifier), EXACT),
    (sk.HistGradientBoostingClassifier(max_iter=10), EXACT),
    (STACK, 1e-14),
    (sk.AdaBoostClassifier(TWO_DEEP, n_estimators=6), EXACT),
]


@BOTH
@pytest.mark.parametrize("model", MEANS, ids=str)
def test_probabilities_are_means_over_trees(model, data):
    held(model, THREE, {"probability": EXACT}, data)


@pytest.mark.parametrize("model", NAMED, ids=str)
def test_probabilities_of_named_classes(model):
    names = np.array(["low", "mid", "top"])[THREE]
    names[:4] = "low"
    held(model, names, {"probability": EXACT})


@pytest.mark.parametrize(("model", "tolerance"), SCORES, ids=str)
def test_two_classes_share_a_margin_and_each_of_three_has_one(model, tolerance):
    held(model, CLASSES, {"margin": tolerance, "log_odds": 1e-12})
    held(model, THREE, {"margin": tolerance})


def test_log_odds_of_exponential_loss_are_twice_the_margin():
    model = few(sk.GradientBoostingClassifier, loss="exponential").fit(X, CLASSES)
    truth = of_class(model, "log_odds", 1, X)
    agrees(boxes_of(model, "log_odds", 1), truth, tolerance=1e-13)
    np.testing.assert_allclose(truth, 2.0 * model.decision_function(X), rtol=1e-9)


def test_members_of_bags_that_have_not_seen_every_class():
    # a pipeline takes no weights, so members are given some rows only
    few = make_pipeline(sk.StandardScaler(), sk.DecisionTreeClassifier(max_depth=3))
    rare = np.where(np.arange(len(X)) < 8, 2, CLASSES)
    model = sk.BaggingClassifier(few, 12, max_samples=20, random_state=0).fit(X, rare)
    assert any(len(member.classes_) == 2 for member in model.estimators_)
    for target in range(3):
        truth = model.predict_proba(X)[:, target]
        agrees(boxes_of(model, "probability", target), truth)


# ---- tables, thresholds, and what is no sum of trees
def test_thresholds_are_those_of_numbers_in_single_precision():
    """Between two float32 there are numbers on both sides of what rounds up."""
    model = sk.DecisionTreeRegressor().fit([[1.0], [1.0 + 2.0**-23]], [0.0, 1.0])
    close = 1.0 + np.linspace(0.0, 2.0**-23, 1025)[:, None]
    agrees(boxes_of(model, data=close), model.predict(close), close)


def test_histograms_with_categories_of_numbers():
    model = sk.HistGradientBoostingRegressor(max_iter=10, categorical_features=[2, 1])
    model.fit(X, Y)
    agrees(boxes_of(model), model.predict(X))
    others = X + np.array([0.0, 0.0, 0.5, 0.0, 0.0, 0.0])  # unknown: as if missing
    agrees(boxes_of(model), model.predict(others), others)


@pytest.mark.parametrize(("line", "output"), refusals(__file__, "trees"))
def test_what_is_no_sum_of_trees_is_not_read(line, output):
    assert boxes_of(eval(line), output, None if output == "value" else 1) is None


# ---- trees behind steps that each make a column of one column
PARAMETERS = signature(sk.KBinsDiscretizer).parameters
QUANTILES = {"quantile_method": "averaged_inverted_cdf"}  # others warn
QUANTILES = {name: way for name, way in QUANTILES.items() if name in PARAMETERS}


def as_floats(frame):
    return np.asarray(frame, dtype=float)


def parts(*transformers, **settings):
    named = [(str(i), part, columns) for i, (part, columns) in enumerate(transformers)]
    return sk.ColumnTransformer(named, **settings)


def of_numbers():
    """Steps for tables of numbers."""
    hot = sk.OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    bins, first = {"encode": "ordinal", **QUANTILES}, np.arange(6) < 3
    return [
        [sk.StandardScaler()],
        [sk.StandardScaler(with_mean=False), sk.RobustScaler(), sk.MaxAbsScaler()],
        [sk.MinMaxScaler(clip=True), "passthrough", sk.MinMaxScaler((-5, 5))],
        [sk.QuantileTransformer(n_quantiles=50)],
        [sk.Binarizer(threshold=0.5)],
        [parts((sk.KBinsDiscretizer(5, **bins), [0, 3]))],
        [sk.FunctionTransformer(as_floats), sk.StandardScaler()],
        [sk.FunctionTransformer()],
        [sk.VarianceThreshold()],
        [sk.VarianceThreshold(), sk.SelectKBest(f_regression, k=3)],
        [sk.FeatureUnion([("a", sk.StandardScaler()), ("b", sk.MinMaxScaler())])],
        [parts((hot, [2]), remainder="passthrough")],
        [parts((hot, [2]), (sk.StandardScaler(), [0, 3]), remainder="drop")],
        [parts((sk.OneHotEncoder(max_categories=3, drop="first"), [1, 2]))],
        [parts((sk.OneHotEncoder(drop="if_binary", dtype=int), [1, 2]))],
        [parts((sk.OrdinalEncoder(**unknown), [2]), (sk.TargetEncoder(), [1, 2]))],
        [parts((make_pipeline(sk.StandardScaler(), sk.MinMaxScaler()), slice(1, 4)))],
        [parts((sk.StandardScaler(), first)), sk.SelectKBest(f_regression, k=2)],
    ]


FILLED = [
    [sk.SimpleImputer()],
    [sk.SimpleImputer(add_indicator=True), sk.StandardScaler()],
    [sk.StandardScaler(), sk.SimpleImputer(strategy="constant", fill_value=-5.0)],
    [parts((sk.SimpleImputer(strategy="most_frequent"), [0, 2]), ("passthrough", [3]))],
    [sk.StandardScaler()],
]
EMPTY = np.where(np.arange(6) == 4, np.nan, GAPS)
KEPT_EMPTY = [sk.SimpleImputer(keep_empty_features=True)]


@pytest.mark.parametrize(
    ("steps", "data"),
    [(steps, X) for steps in of_numbers()]
    + [(steps, GAPS) for steps in FILLED]
    + [(KEPT_EMPTY, EMPTY)],
    ids=lambda part: str(part) if isinstance(part, list) else "",
)
def test_steps_before_a_forest(steps, data):
    steps = [step if isinstance(step, str) else clone(step) for step in steps]
    model = make_pipeline(*steps, FOREST).fit(data, Y)
    agrees(boxes_of(model, data=data), model.predict(data), data)


@pytest.mark.parametrize(("line", "first"), refusals(__file__, "steps"))
def test_steps_that_mix_columns_or_are_not_monotone_are_not_read(line, first):
    model = make_pipeline(*eval(line), clone(FOREST)).fit(X, Y)
    assert type(model[0]).__name__ == first
    assert boxes_of(model) is None


def test_cuts_are_exact_to_the_last_bit_of_a_scaler():
    """Numbers on both sides of each cut go where the pipeline sends them."""
    model = make_pipeline(sk.StandardScaler(), sk.DecisionTreeRegressor(max_depth=6))
    boxes = boxes_of(model.fit(X, Y))
    ends = boxes.sets.high[np.isfinite(boxes.sets.high)]
    columns = boxes.sets.column[np.isfinite(boxes.sets.high)]
    for shift in (-np.inf, 0.0, np.inf):
        close = X[: len(ends)].copy()
        moved = ends if shift == 0.0 else np.nextafter(ends, shift)
        close[np.arange(len(ends)), columns] = moved
        agrees(boxes, model.predict(close), close)


def test_numbers_between_the_categories_of_an_encoder():
    hot = sk.OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    model = make_pipeline(parts((hot, [2]), remainder="passthrough"), clone(FOREST))
    model.fit(X, Y)
    for other in (-1.0, 2.5, 99.0):
        moved = X.copy()
        moved[:, 2] = other
        agrees(boxes_of(model), model.predict(moved), moved)


FINALS = {
    "forest": (lambda: FOREST, EXACT),
    "histograms": (lambda: HIST, EXACT),
    "lightgbm": (lambda: booster("lightgbm", n_estimators=8), EXACT),
    "xgboost": (lambda: booster("xgboost", n_estimators=8), SINGLE),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FINALS)
def test_tables_behind_encoders(name):
    """Of what is sparse, XGBoost takes for missing what the array does not hold."""
    make, tolerance = FINALS[name]
    frame, final = table(), make()
    hot = sk.OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encode = parts(
        (hot, ["letter", "text", "flag"]),
        (sk.OrdinalEncoder(), ["number"]),
        remainder="passthrough",
    )
    gives_tables = parts(
        (sk.TargetEncoder(), make_column_selector(dtype_include=[object, "category"])),
        (make_pipeline(sk.SimpleImputer(), sk.StandardScaler()), ["weight", "size"]),
    ).set_output(transform="pandas")
    for first in (encode, gives_tables):
        model = make_pipeline(first, clone(final)).fit(frame, table_response(frame))
        boxes = boxes_of(model, data=frame)
        agrees(boxes, model.predict(frame), frame, tolerance)
        assert boxes.sets.coded.any()
    if name != "histograms":  # which take no sparse arrays
        sparse = (sk.OneHotEncoder(), [1, 2]), (sk.StandardScaler(), [0])
        encode = parts(*sparse, sparse_threshold=1)
        model = make_pipeline(encode, clone(final)).fit(X, Y)
        agrees(boxes_of(model), model.predict(X), tolerance=tolerance)


def test_scalers_of_tables_of_float32_compute_in_float32():
    frame = table()[["size", "weight"]].astype("float32")
    steps = sk.StandardScaler(), sk.MinMaxScaler((-0.01, 0.01))
    model = make_pipeline(*steps, sk.HistGradientBoostingRegressor(max_iter=30))
    model.fit(frame, Y)
    agrees(boxes_of(model, data=frame), model.predict(frame), frame)
    mixed = frame.assign(count=table()["count"])
    model.fit(mixed, Y)
    agrees(boxes_of(model, data=mixed), model.predict(mixed), mixed)
