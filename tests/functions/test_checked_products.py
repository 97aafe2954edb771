"""Sums of products are believed once they are what the function answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import propopt as po
from propopt.base.errors import InexactBoxesWarning, InvalidInput
from propopt.base.text import Reason
from propopt.functions.means import Checked
from propopt.structures.boxes.boxes import Boxes
from propopt.tables.frames import Labels


X = np.random.default_rng(0).normal(size=(60, 3))
Y = X[:, 0] + np.sin(X[:, 1])


def believed(function, points, labels):
    """What a function is, once it was compared with it."""
    return Checked.of(function, points.shape[1]).at(points, labels)


def test_what_is_right_is_believed():
    function = po.wrap(SVR().fit(X, Y))
    assert believed(function, X, Labels()) is function.products


def test_what_is_wrong_is_not_and_the_reason_names_the_row():
    function = po.wrap(Ridge().fit(X, Y))
    right = function.products
    wrong = right.scaled(1.001)
    vars(function)["products"] = wrong
    labels = Labels(points=tuple(f"p{n}" for n in range(60)))
    with pytest.warns(InexactBoxesWarning, match=r"sum of products, which differs"):
        refused = believed(function, X, labels)
    assert isinstance(refused, Reason)
    most = 0.001 * np.abs(right.value(X)).max() / np.ptp(right.value(X))
    told = f"by {most:.2g} of the range of f in row 'p"
    assert told in refused.reason


def test_sums_of_trees_are_compared_as_boxes(monkeypatch):
    function = po.wrap(RandomForestRegressor(5, random_state=0).fit(X, Y))
    products = believed(function, X, Labels())
    assert products is function.products
    assert products.n_factors == len(function.boxes.sets)
    monkeypatch.setattr(Boxes, "value", lambda _, points: np.zeros(len(points)))
    with pytest.warns(InexactBoxesWarning, match="its trees were read"):
        assert isinstance(believed(function, X, Labels()), Reason)


def test_functions_that_are_none_keep_their_reason():
    function = po.wrap(lambda data: data[:, 0])
    assert "can only be called" in believed(function, X, Labels()).reason
    assert function.calls.rows == 0


def test_missing_numbers_are_refused_by_the_function_itself():
    function = po.wrap(Ridge().fit(X, Y))
    gaps = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    with pytest.raises(InvalidInput, match="no missing values"):
        believed(function, gaps, Labels())


# ---- what is allowed is of the range of f, whatever its unit


def in_units_of(unit, offset):
    """Models of numbers in other units."""
    target = offset + unit * Y

    def fitted(trees):  # which stop growing where squares of residuals are tiny
        scaled = TransformedTargetRegressor(trees, transformer=StandardScaler())
        return scaled.fit(X, target)

    return {
        "ridge": make_pipeline(StandardScaler(), Ridge()).fit(X, target),
        "forest": fitted(RandomForestRegressor(5, random_state=0)),
        "boosting": fitted(GradientBoostingRegressor(n_estimators=20)),
        "kernels": KernelRidge(kernel="rbf", gamma=0.3).fit(X, target),
    }


UNITS = [(1e-10, 0.0), (1e-150, 0.0), (1.0, 1e3), (1e-6, 1.0), (1e12, 0.0)]


@pytest.mark.parametrize(("unit", "offset"), UNITS)
@pytest.mark.parametrize("rows", [slice(None), slice(3, 4)], ids=["rows", "one"])
def test_what_is_right_is_believed_in_any_unit(unit, offset, rows):
    for model in in_units_of(unit, offset).values():
        result = believed(po.wrap(model), X[rows], Labels())
        assert not isinstance(result, Reason)


def wronged(read, mean, wrong):
    """Boxes or products, about the mean of f: of the other sign, and others."""
    scale = {"sign": -1.0, "a thousandth": 1.001, "zero": 0.0}[wrong]
    return read.scaled(scale).plus((1.0 - scale) * mean)


@pytest.mark.parametrize(("unit", "offset"), UNITS)
@pytest.mark.parametrize("wrong", ["sign", "a thousandth", "zero"])
def test_what_is_wrong_is_found_in_any_unit(unit, offset, wrong):
    for model in in_units_of(unit, offset).values():
        function = po.wrap(model)
        mean = float(function.value(X).mean())
        assert np.ptp(function.value(X)) > 0.5 * unit
        if function.boxes is None:
            vars(function)["products"] = wronged(function.products, mean, wrong)
            with pytest.warns(InexactBoxesWarning, match="differs from its answer"):
                result = believed(function, X, Labels())
            assert isinstance(result, Reason)
            continue
        checked = Checked.boxes_of(function)
        checked.read = wronged(function.boxes, mean, wrong)
        with pytest.warns(InexactBoxesWarning, match="differs from its answer"):
            assert isinstance(checked.at(X, Labels()), Reason)


def test_a_single_row_is_held_against_the_terms_that_add_up_to_it():
    function = po.wrap(in_units_of(1e-10, 0.0)["ridge"])
    vars(function)["products"] = function.products.scaled(-1.0)
    with pytest.warns(InexactBoxesWarning, match="of f, which is constant, in row 0"):
        result = believed(function, X[:1], Labels())
    assert isinstance(result, Reason)


def test_a_constant_model_is_believed_but_for_rounding():
    constant = GradientBoostingRegressor(n_estimators=3).fit(X, np.full(60, 0.1))
    function = po.wrap(constant)
    assert Checked.boxes_of(function).at(X, Labels()) is function.boxes
    off = replace(Checked.boxes_of(function), read=function.boxes.scaled(1.0 + 1e-10))
    with pytest.warns(InexactBoxesWarning, match="which is constant"):
        assert isinstance(off.at(X, Labels()), Reason)
