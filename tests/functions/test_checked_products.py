"""Sums of products are believed once they are what the function answers."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.svm import SVR

import propopt as po
from propopt.errors import InexactBoxesWarning, InvalidInput
from propopt.functions.smoothing.checked import CheckedProducts
from propopt.structures.boxes import Boxes
from propopt.structures.products import NoProducts
from propopt.tables.names import Labels


X = np.random.default_rng(0).normal(size=(60, 3))
Y = X[:, 0] + np.sin(X[:, 1])


def test_what_is_right_is_believed():
    function = po.wrap(SVR().fit(X, Y))
    assert CheckedProducts.of(function).at(X, Labels()) is function.products


def test_what_is_wrong_is_not_and_the_reason_names_the_row():
    function = po.wrap(Ridge().fit(X, Y))
    right = function.products
    wrong = right.scaled(1.001)
    checked = replace(CheckedProducts.of(function), products=wrong)
    labels = Labels(points=tuple(f"p{n}" for n in range(60)))
    with pytest.warns(InexactBoxesWarning, match=r"sum of products, which differs"):
        refused = checked.at(X, labels)
    assert isinstance(refused, NoProducts)
    assert re.search(r"by 0\.001 of max\(1, \|f\|\) in row 'p\d+'", refused.reason)
    assert checked.at(X, labels) is refused  # it is not asked again


def test_sums_of_trees_are_compared_as_boxes(monkeypatch):
    function = po.wrap(RandomForestRegressor(5, random_state=0).fit(X, Y))
    checked = CheckedProducts.of(function)
    assert checked.at(X, Labels()) is checked.products
    assert checked.products.n_factors == len(function.boxes.sets)
    monkeypatch.setattr(Boxes, "value", lambda _, points: np.zeros(len(points)))
    with pytest.warns(InexactBoxesWarning, match="its trees were read"):
        assert isinstance(CheckedProducts.of(function).at(X, Labels()), NoProducts)


def test_functions_that_are_none_keep_their_reason():
    function = po.wrap(lambda data: data[:, 0])
    checked = CheckedProducts.of(function)
    assert checked.at(X, Labels()) is checked.products
    assert "can only be called" in checked.products.reason
    assert function.calls.rows == 0


def test_missing_numbers_are_refused_by_the_function_itself():
    function = po.wrap(Ridge().fit(X, Y))
    gaps = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    with pytest.raises(InvalidInput, match="no missing values"):
        CheckedProducts.of(function).at(gaps, Labels())
