"""Boosters that take categories themselves are read with the categories of a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tree_cases import SINGLE, X, Y, agrees, boxes_of, table, table_response


LISTS = {"min_data_per_group": 1, "cat_smooth": 0.1, "max_cat_to_onehot": 1}
FRAME = table().drop(columns="text")


@pytest.fixture(scope="module")
def lightgbm():
    return pytest.importorskip("lightgbm")


@pytest.fixture(scope="module")
def xgboost():
    return pytest.importorskip("xgboost")


def light(lightgbm, **settings):
    quiet = {"verbose": -1, "n_jobs": 1, "n_estimators": 15}
    return lightgbm.LGBMRegressor(**quiet, **settings)


def extreme(xgboost, **settings):
    return xgboost.XGBRegressor(
        n_estimators=15, n_jobs=1, enable_categorical=True, **settings
    )


@pytest.mark.parametrize("settings", [{}, LISTS], ids=["one", "lists"])
def test_lightgbm(lightgbm, settings):
    model = light(lightgbm, **settings).fit(FRAME, table_response(FRAME))
    boxes = boxes_of(model, data=FRAME)
    agrees(boxes, model.predict(FRAME), FRAME)
    assert {1, 3, 4} <= set(boxes.columns.tolist())


@pytest.mark.parametrize("most", [1, 100], ids=["lists", "one"])
@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_xgboost(xgboost, most, booster):
    model = extreme(xgboost, max_cat_to_onehot=most, booster=booster)
    model.fit(FRAME, table_response(FRAME))
    boxes = boxes_of(model, data=FRAME)
    agrees(boxes, model.predict(FRAME), FRAME, SINGLE)
    assert {3, 4} <= set(boxes.columns.tolist())


def reordered(frame: pd.DataFrame) -> pd.DataFrame:
    """The same cells, with the categories of each dtype in another order."""
    letters = frame["letter"].cat.set_categories(list("yxwvu"))
    numbers = frame["number"].cat.set_categories([11, 3, 7, 5])
    return frame.assign(letter=letters, number=numbers)


def test_categories_are_told_by_their_names(lightgbm, xgboost):
    """Not by their positions in the dtype of the table that is explained."""
    other = reordered(FRAME)
    model = light(lightgbm, **LISTS).fit(FRAME, table_response(FRAME))
    np.testing.assert_array_equal(model.predict(other), model.predict(FRAME))
    agrees(boxes_of(model, data=other), model.predict(other), other)

    model = extreme(xgboost, max_cat_to_onehot=1).fit(FRAME, table_response(FRAME))
    agrees(boxes_of(model, data=other), model.predict(other), other, SINGLE)


def test_whole_numbers_as_categories_of_an_array(lightgbm, xgboost):
    """A set of numbers of a column of numbers is a set of intervals."""
    model = light(lightgbm, categorical_feature=[2], **LISTS)
    with pytest.warns(UserWarning, match="categorical"):
        model.fit(X, Y)
    agrees(boxes_of(model), model.predict(X))
    unknown = X - np.array([0.0, 0.0, 3.0, 0.0, 0.0, 0.0])  # some below zero
    agrees(boxes_of(model), model.predict(unknown), unknown)
    gaps = np.where(np.arange(6) == 2, np.nan, X)
    agrees(boxes_of(model), model.predict(gaps), gaps)

    kinds = ["q", "q", "c", "q", "q", "q"]
    model = extreme(xgboost, feature_types=kinds, max_cat_to_onehot=1).fit(X, Y)
    agrees(boxes_of(model), model.predict(X), tolerance=SINGLE)
    agrees(boxes_of(model), model.predict(gaps), gaps, SINGLE)
