"""Tables of numbers are arrays for learners that see nothing else of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from refit_cases import product_table, read
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingRegressor, HistGradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from propopt.interactions.learning import array_of, array_of_numbers, sees_numbers_alone


X, Y = product_table(60)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(
    b=(10 * X[:, 1]).astype(int), c=X[:, 2] > 0
)
ROWS, KEPT = np.arange(40), np.array([True, True, False, True])


class Own(Ridge):  # type: ignore[misc]
    """Whatever a user wrote may look at names."""


@pytest.mark.parametrize(
    ("learner", "alone"),
    [
        (DecisionTreeRegressor(), True),
        (BaggingRegressor(Ridge()), True),
        (make_pipeline(StandardScaler(), Ridge()), True),
        (GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}), True),
        (GridSearchCV(make_pipeline(Ridge()), {"ridge": [Own()]}), False),
        (make_pipeline(FunctionTransformer(), Ridge()), False),
        (make_pipeline(FunctionTransformer(np.log1p), Ridge()), False),
        (make_pipeline(FunctionTransformer(array_of), Ridge()), True),
        (make_pipeline(make_column_transformer(("drop", [0])), Ridge()), False),
        (HistGradientBoostingRegressor(), True),
        (HistGradientBoostingRegressor(categorical_features=["a"]), False),
        (KernelRidge(kernel=np.dot), False),
        (BaggingRegressor(Own()), False),
        (Own(), False),
    ],
)
def test_learners_that_see_numbers_alone(learner: Any, alone: bool) -> None:
    assert sees_numbers_alone(learner) is alone


@pytest.mark.parametrize("table", [FRAME, pl.DataFrame(FRAME.to_dict("list"))])
@pytest.mark.parametrize(
    "learner",
    [
        DecisionTreeRegressor(max_features=1),
        make_pipeline(StandardScaler(), DecisionTreeRegressor(max_features=1)),
    ],
)
def test_a_table_is_the_array_of_its_numbers(table: Any, learner: Any) -> None:
    predict: Any = read(learner, table, Y).fitted(ROWS, KEPT, 3)
    own = clone(learner)
    (free,) = (k for k in own.get_params() if k.endswith("random_state"))
    own.set_params(**{free: 3}).fit(FRAME.iloc[:40, [0, 1, 3]], Y[:40])
    expected = own.predict(FRAME[["a", "b", "d"]])
    np.testing.assert_array_equal(predict(table), expected)
    assert not hasattr(predict.model, "feature_names_in_")
    as_array = read(learner, FRAME.to_numpy(float), Y).fitted(ROWS, KEPT, 3)
    np.testing.assert_array_equal(as_array(FRAME.to_numpy(float)), expected)


def test_new_rows_may_have_other_dtypes_of_numbers() -> None:
    predict = read(Ridge(), FRAME, Y).fitted(ROWS, KEPT, 0)
    np.testing.assert_array_equal(
        predict(FRAME.astype({"b": "Int64", "d": object})), predict(FRAME)
    )


def test_the_learner_of_a_user_is_never_changed() -> None:
    learner = LogisticRegression(C=3.0)
    refits = read(learner, FRAME, Y > 0)
    one, two = (refits.fitted(ROWS, KEPT, seed) for seed in (1, 2))
    models: list[Any] = [one.model, two.model]  # type: ignore[attr-defined]
    assert [model.random_state for model in models] == [1, 2]
    assert [model.C for model in models] == [3.0, 3.0]
    assert learner.random_state is None
    assert not hasattr(learner, "coef_")


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        (np.array([1, 2]), np.float64),
        (np.array([1, 2**53 + 1]), None),
        (np.array([True, False]), np.float64),
        (np.array([0.1, 0.2], np.float32), np.float64),
        (np.array(["1", "2"]), None),
        (pd.array([1, 2], dtype="Int64"), None),
        (pd.Categorical([1, 2]), None),
    ],
)
def test_columns_that_are_numbers(column: Any, dtype: Any) -> None:
    result = array_of_numbers(pd.DataFrame({"a": [0.5, np.nan], "b": column}))
    assert (None if result is None else result.dtype) == dtype


def test_columns_of_one_dtype_keep_it() -> None:
    for dtype in (np.float32, np.int64, bool):
        result = array_of_numbers(pd.DataFrame({"a": [1, 0], "b": [0, 1]}, dtype=dtype))
        assert result is not None
        assert result.dtype == dtype
    assert array_of_numbers(X) is None
