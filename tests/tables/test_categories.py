"""Values and gradients of models of tables with text, categories and codes."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from people import SMALL, N, X, Y, additive
from sklearn.linear_model import LinearRegression, LogisticRegression

import propopt as po
from propopt.base.errors import FlatFunctionWarning, InvalidInput
from propopt.explaining.explainers import Gradient
from propopt.tables.frames import Labels


def test_values_are_those_of_the_pipeline(spy, function):
    logits = spy.fitted_.decision_function(X)
    np.testing.assert_allclose(function.value(X), logits, rtol=1e-9, atol=1e-9)


def test_gradients_are_slopes_of_numbers_and_effects_of_categories(function, expected):
    result = function.gradient(X)
    pd.testing.assert_frame_equal(result, expected, rtol=1e-7, atol=1e-8)


def test_the_effect_does_not_depend_on_the_category_that_is_left_out():
    for drop in ("first", [2]):
        dummies = pd.get_dummies(X["job"]).astype(float)
        kept = dummies.columns[1:] if drop == "first" else [1, 7]
        target = X["job"].map({1: 0.0, 2: 3.0, 7: -1.0}).to_numpy()
        model = LinearRegression().fit(dummies[kept].to_numpy(), target)

        def value(frame, model=model, kept=kept):
            columns = [(frame["job"] == c).astype(float) for c in kept]
            return model.predict(np.column_stack(columns))

        schema = po.TableSchema.of(X[["job"]], categorical=["job"])
        result = po.wrap(value, data=schema).gradient(X[["job"]])
        np.testing.assert_allclose(result["job"], target - target.mean(), atol=1e-9)


def test_columns_that_encode_one_feature_are_explained_as_one():
    wide = pd.get_dummies(X[["bmi", "colour"]], columns=["colour"])
    members = [label for label in wide if label.startswith("colour")]
    model = LogisticRegression().fit(wide, Y)
    schema = po.TableSchema.of(wide, groups={"colour": members})
    function = po.wrap(model, output="log_odds", data=schema)
    result = function.gradient(wide)
    coefficients = dict(zip(wide.columns, model.coef_[0], strict=True))
    parts = X["colour"].map(lambda c: coefficients[f"colour_{c}"])
    assert list(result.columns) == ["bmi", "colour"]
    np.testing.assert_allclose(result["colour"], parts - parts.mean(), atol=1e-9)
    np.testing.assert_allclose(result["bmi"], coefficients["bmi"], rtol=1e-8)


def test_the_rules_are_told(function):
    assert function.gradient_method == (
        "central differences, step 6.1e-06 · max(1, |x|); "
        "of a category f(x) − Σ_c p_c f(x with c)"
    )
    only = po.wrap(lambda X: np.zeros(len(X)), data=X[["colour"]])
    assert only.gradient_method == "of a category f(x) − Σ_c p_c f(x with c)"


def test_a_table_of_numbers_keeps_the_exact_gradient():
    model = LogisticRegression().fit(X[["bmi"]], Y)
    function = po.wrap(model, output="log_odds", data=X[["bmi"]])
    assert function.gradient_method == "exact"
    assert function.schema is not None
    np.testing.assert_array_equal(
        function.gradient(X[["bmi"]]), np.full((N, 1), model.coef_)
    )
    with pytest.raises(InvalidInput, match="missing: 'bmi'; unexpected: 'age'"):
        function.value(X[["age"]])


def test_a_constant_in_the_numbers_warns():
    flat = po.wrap(lambda X: (X["colour"] == "red").astype(float), data=SMALL)
    with pytest.warns(FlatFunctionWarning):
        flat.gradient(SMALL)


def test_only_categories_do_not_warn():
    red = po.wrap(lambda X: (X["colour"] == "red").astype(float), data=X[["colour"]])
    result = red.gradient(X[["colour"]])["colour"]
    is_red = X["colour"] == "red"
    np.testing.assert_allclose(result, is_red - is_red.mean(), atol=1e-12)


@given(st.randoms(use_true_random=False))
def test_permuted_rows_give_permuted_results(random):
    function = po.wrap(additive, data=po.TableSchema.of(SMALL, categorical=["job"]))
    order = list(range(N))
    random.shuffle(order)
    permuted = SMALL.iloc[order]
    np.testing.assert_array_equal(
        function.value(permuted), function.value(SMALL)[order]
    )
    pd.testing.assert_frame_equal(
        function.gradient(permuted), function.gradient(SMALL).iloc[order]
    )


def test_a_function_of_a_table_survives_pickling(function):
    again = pickle.loads(pickle.dumps(function))
    pd.testing.assert_frame_equal(again.gradient(X[:5]), function.gradient(X[:5]))


def test_encoded_points_give_what_the_table_gives(function):
    points, labels = function.read(X)
    np.testing.assert_array_equal(function.value_at(points, labels), function.value(X))
    np.testing.assert_array_equal(function.gradient_at(points), function.gradient(X))


def test_a_callable_sees_labels_that_are_no_text():
    frame = pd.DataFrame({10: [1.0, 2.0], ("a", 1): [3.0, 4.0]})
    observed = []

    def model(table):
        observed.append(list(table.columns))
        return table[10] * table[("a", 1)]

    for function in (po.wrap(model), po.wrap(model, data=frame)):
        np.testing.assert_allclose(
            function.gradient(frame), [[3, 1], [4, 2]], atol=1e-9
        )
        assert list(function.gradient(frame).columns) == [10, ("a", 1)]
    assert all(columns == [10, ("a", 1)] for columns in observed)


def test_results_name_features_as_text():
    frame = pd.DataFrame({10: [1.0], "c": ["a"]}, index=["n"])
    function = po.wrap(lambda X: 2.0 * X[10], data=frame)
    result = Gradient().explain(function, frame)
    assert result.labels == Labels(("n",), ("10", "c"))
    assert list(result.to_frame().columns) == ["10", "c"]


def explained(model, table, categorical="auto"):
    """Values and gradients of a model of trees, which are flat in the numbers."""
    function = po.wrap(model, data=po.TableSchema.of(table, categorical))
    np.testing.assert_array_equal(function.value(table), model.predict(table))
    with pytest.warns(FlatFunctionWarning):
        return function.gradient(table[:10])


def effects(model, table, label, shares):
    """f(x) − Σ_c p_c f(x with c), by replacing the column."""
    value = model.predict(table)
    dtype = table[label].dtype
    for category, share in shares.items():
        column = pd.Series([category] * len(table), index=table.index).astype(dtype)
        value = value - share * model.predict(table.assign(**{label: column}))
    return value


def test_lightgbm_with_categories():
    lightgbm = pytest.importorskip("lightgbm")
    table = X.astype({"colour": "category"}).drop(columns="smokes")
    model = lightgbm.LGBMRegressor(n_estimators=10, min_child_samples=5, verbose=-1)
    model.fit(table, Y * 1.0)
    result = explained(model, table)
    for label in ("colour", "size"):
        shares = table[label].value_counts(normalize=True)
        expected = effects(model, table[:10], label, shares)
        np.testing.assert_allclose(result[label], expected, atol=1e-12)
    assert np.abs(result["colour"]).max() > 0.01


def test_catboost_with_text():
    catboost = pytest.importorskip("catboost")
    table = X[["bmi", "colour", "job"]]
    model = catboost.CatBoostRegressor(
        iterations=10,
        verbose=0,
        cat_features=["colour", "job"],
        random_seed=0,
        allow_writing_files=False,
    )
    model.fit(table, Y * 1.0)
    result = explained(model, table, ["job"])
    for label in ("colour", "job"):
        shares = table[label].value_counts(normalize=True)
        expected = effects(model, table[:10], label, shares)
        np.testing.assert_allclose(result[label], expected, atol=1e-12)
    assert np.abs(result["colour"]).max() > 0.001


def test_xgboost_with_numbers():
    xgboost = pytest.importorskip("xgboost")
    table = X[["age", "bmi"]]
    model = xgboost.XGBRegressor(n_estimators=10).fit(table, Y * 1.0)
    explained(model, table)
    np.testing.assert_array_equal(po.wrap(model).value(table), model.predict(table))
