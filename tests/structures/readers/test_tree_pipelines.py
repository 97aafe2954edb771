"""Trees behind steps that each make a column of one column are read."""

from __future__ import annotations

from inspect import signature

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.feature_selection import (
    SelectKBest,
    VarianceThreshold,
    f_regression,
)
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeRegressor
from tree_cases import (
    EXACT,
    GAPS,
    SINGLE,
    X,
    Y,
    agrees,
    boxes_of,
    table,
    table_response,
)


FOREST = RandomForestRegressor(4, random_state=0)
HIST = HistGradientBoostingRegressor(max_iter=8)


KNOWN = signature(KBinsDiscretizer).parameters
QUANTILES = {"quantile_method": "averaged_inverted_cdf"}  # others warn
QUANTILES = {name: way for name, way in QUANTILES.items() if name in KNOWN}


def as_floats(frame):
    return np.asarray(frame, dtype=float)


def parts(*transformers, **settings):
    named = [(str(i), part, columns) for i, (part, columns) in enumerate(transformers)]
    return ColumnTransformer(named, **settings)


def of_numbers():
    """Steps for tables of numbers."""
    hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    bins = {"encode": "ordinal", **QUANTILES}
    return [
        [StandardScaler()],
        [StandardScaler(with_mean=False), RobustScaler(), MaxAbsScaler()],
        [MinMaxScaler(clip=True), "passthrough", MinMaxScaler((-5, 5))],
        [QuantileTransformer(n_quantiles=50)],
        [Binarizer(threshold=0.5)],
        [parts((KBinsDiscretizer(5, **bins), [0, 3]))],
        [FunctionTransformer(as_floats), StandardScaler()],
        [FunctionTransformer()],
        [VarianceThreshold()],
        [VarianceThreshold(), SelectKBest(f_regression, k=3)],
        [FeatureUnion([("a", StandardScaler()), ("b", MinMaxScaler())])],
        [parts((hot, [2]), remainder="passthrough")],
        [parts((hot, [2]), (StandardScaler(), [0, 3]), remainder="drop")],
        [parts((OneHotEncoder(max_categories=3, drop="first"), [1, 2]))],
        [parts((OneHotEncoder(drop="if_binary", dtype=int), [1, 2]))],
        [parts((OrdinalEncoder(**unknown), [2]), (TargetEncoder(), [1, 2]))],
        [parts((make_pipeline(StandardScaler(), MinMaxScaler()), slice(1, 4)))],
        [parts((StandardScaler(), np.arange(6) < 3)), SelectKBest(f_regression, k=2)],
    ]


@pytest.mark.parametrize("steps", of_numbers(), ids=str)
def test_steps_before_a_forest(steps):
    model = make_pipeline(*map(clone_step, steps), FOREST).fit(X, Y)
    agrees(boxes_of(model), model.predict(X))


def clone_step(step):
    return step if isinstance(step, str) else clone(step)


@pytest.mark.parametrize(
    "steps",
    [
        [SimpleImputer()],
        [SimpleImputer(add_indicator=True), StandardScaler()],
        [StandardScaler(), SimpleImputer(strategy="constant", fill_value=-5.0)],
        [
            parts(
                (SimpleImputer(strategy="most_frequent"), [0, 2]), ("passthrough", [3])
            )
        ],
        [StandardScaler()],
    ],
    ids=str,
)
def test_steps_before_trees_with_gaps(steps):
    model = make_pipeline(*map(clone_step, steps), FOREST).fit(GAPS, Y)
    agrees(boxes_of(model, data=GAPS), model.predict(GAPS), GAPS)


def test_columns_that_were_always_missing_are_left_out_by_imputers():
    data = GAPS.copy()
    data[:, 4] = np.nan
    kept = make_pipeline(SimpleImputer(keep_empty_features=True), clone(FOREST))
    agrees(boxes_of(kept.fit(data, Y), data=data), kept.predict(data), data)


@pytest.mark.parametrize(
    "steps",
    [
        [PCA(2)],
        [PolynomialFeatures(2)],
        [KNNImputer()],
        [FunctionTransformer(np.abs)],
        [SimpleImputer(missing_values=3.0, keep_empty_features=True)],
        [parts((KBinsDiscretizer(3, **QUANTILES), [0]))],
        [StandardScaler(), OneHotEncoder(handle_unknown="ignore")],
    ],
    ids=str,
)
def test_steps_that_mix_columns_or_are_not_monotone_are_not_read(steps):
    model = make_pipeline(*map(clone, steps), clone(FOREST)).fit(X, Y)
    assert boxes_of(model) is None


def test_subclasses_of_steps_are_not_read():
    kind = type("Mine", (StandardScaler,), {})
    assert boxes_of(make_pipeline(kind(), clone(FOREST)).fit(X, Y)) is None


def test_cuts_are_exact_to_the_last_bit_of_a_scaler():
    """Numbers on both sides of each cut go where the pipeline sends them."""
    model = make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=6))
    boxes = boxes_of(model.fit(X, Y))
    ends = boxes.sets.high[np.isfinite(boxes.sets.high)]
    columns = boxes.sets.column[np.isfinite(boxes.sets.high)]
    for shift in (-np.inf, 0.0, np.inf):
        near = X[: len(ends)].copy()
        moved = ends if shift == 0.0 else np.nextafter(ends, shift)
        near[np.arange(len(ends)), columns] = moved
        agrees(boxes, model.predict(near), near)


def test_numbers_between_the_categories_of_an_encoder():
    hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    model = make_pipeline(parts((hot, [2]), remainder="passthrough"), clone(FOREST))
    model.fit(X, Y)
    for other in (-1.0, 2.5, 99.0):
        moved = X.copy()
        moved[:, 2] = other
        agrees(boxes_of(model), model.predict(moved), moved)


def finals():
    """The last steps, with their errors, of the packages that are there."""
    result = [(FOREST, EXACT), (HIST, EXACT)]
    try:
        import lightgbm

        settings = {"n_estimators": 8, "verbose": -1, "n_jobs": 1}
        result.append((lightgbm.LGBMRegressor(**settings), EXACT))
    except ImportError:
        pass
    try:
        import xgboost

        result.append((xgboost.XGBRegressor(n_estimators=8, n_jobs=1), SINGLE))
    except ImportError:
        pass
    return result


def name(part):
    return "" if isinstance(part, float) else type(part).__name__


@pytest.mark.parametrize(("final", "tolerance"), finals(), ids=name)
def test_tables_with_categories_behind_encoders(final, tolerance):
    frame = table()
    hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encode = parts(
        (hot, ["letter", "text", "flag"]),
        (OrdinalEncoder(), ["number"]),
        remainder="passthrough",
    )
    model = make_pipeline(encode, clone(final)).fit(frame, table_response(frame))
    boxes = boxes_of(model, data=frame)
    agrees(boxes, model.predict(frame), frame, tolerance)
    assert boxes.sets.coded.any()


@pytest.mark.parametrize(("final", "tolerance"), finals(), ids=name)
def test_what_is_sparse_behind_encoders(final, tolerance):
    """XGBoost takes for missing what a sparse array does not hold."""
    if final is HIST:
        pytest.skip("takes no sparse arrays")
    sparse = parts(
        (OneHotEncoder(), [1, 2]), (StandardScaler(), [0]), sparse_threshold=1
    )
    model = make_pipeline(sparse, clone(final)).fit(X, Y)
    agrees(boxes_of(model), model.predict(X), tolerance=tolerance)


@pytest.mark.parametrize(("final", "tolerance"), finals(), ids=name)
def test_steps_that_give_tables(final, tolerance):
    frame = table()
    encode = parts(
        (TargetEncoder(), make_column_selector(dtype_include=[object, "category"])),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["weight", "size"]),
    ).set_output(transform="pandas")
    model = make_pipeline(encode, clone(final)).fit(frame, table_response(frame))
    agrees(boxes_of(model, data=frame), model.predict(frame), frame, tolerance)


def test_scalers_of_tables_of_float32_compute_in_float32():
    frame = table()[["size", "weight"]].astype("float32")
    steps = StandardScaler(), MinMaxScaler((-0.01, 0.01))
    model = make_pipeline(*steps, HistGradientBoostingRegressor(max_iter=30))
    model.fit(frame, Y)
    agrees(boxes_of(model, data=frame), model.predict(frame), frame)
    mixed = frame.assign(count=table()["count"])
    model.fit(mixed, Y)
    agrees(boxes_of(model, data=mixed), model.predict(mixed), mixed)


def test_columns_of_a_transformer_are_found_by_their_names():
    """Whatever the order of the table that it is given now."""
    frame = table()[["size", "count", "weight"]]
    encode = parts((StandardScaler(), ["weight"]), (MinMaxScaler(), ["size", "count"]))
    model = make_pipeline(encode, clone(FOREST)).fit(frame, Y)
    turned = frame[["weight", "count", "size"]]
    agrees(boxes_of(model, data=turned), model.predict(turned), turned)
