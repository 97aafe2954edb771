"""Gradients by the complex step, and those that are given."""

from __future__ import annotations

import math

import numpy as np
import pytest
from differentiated import central_differences
from sklearn import linear_model
from sklearn.tree import DecisionTreeRegressor
from small_data import FRAME, X, Y, same

from propopt.base.errors import InvalidInput
from propopt.functions import Sine, wrap


def rosenbrock(points):
    """Of two columns, real or complex."""
    x, y = np.asarray(points).T[:2]
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


def rosenbrock_gradient(points):
    x, y = np.asarray(points).T[:2]
    return np.stack([-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)], axis=1)


def test_the_complex_step_is_exact_to_rounding():
    function = wrap(rosenbrock, step="complex")
    assert function.gradient_method == "complex step"
    points = np.vstack([X[:, :2], 1e8 * X[:5, :2], 1e-8 * X[:5, :2]])
    same(function.value(points), rosenbrock(points), 1e-15)
    np.testing.assert_allclose(
        function.gradient(points), rosenbrock_gradient(points), rtol=1e-13
    )


def test_the_complex_step_keeps_digits_where_differences_lose_them():
    def bump(points):  # Squire and Trapp's example
        x = points[:, 0]
        return np.exp(x) / (np.sin(x) ** 3 + np.cos(x) ** 3)

    exact = 3.6220337007163259
    complex_, real = (
        wrap(bump, step=step).gradient([[1.5]]) for step in ("complex", None)
    )
    assert abs(complex_[0, 0] / exact - 1) < 1e-14
    assert abs(real[0, 0] / exact - 1) > 1e-13


def test_the_complex_step_reads_one_output_and_the_names_of_a_dataframe():
    function = wrap(
        lambda table: np.stack([table["w"], table["x"] * table["y"]], axis=1),
        target=1,
        step="complex",
    )
    gradient = function.gradient(FRAME)
    assert gradient.index.equals(FRAME.index)
    same(gradient["x"], FRAME["y"], 1e-14)
    same(function.value(FRAME), FRAME["x"] * FRAME["y"], 1e-14)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda P: np.array([math.sin(p[0]) for p in P]), "fails on a complex table"),
        (lambda P: np.abs(P).sum(axis=1), "returned float64.*drops the imaginary"),
        (lambda P: P.real[:, 0], "drops the imaginary"),
        (lambda P: P.sum(), r"shape \(\) for"),
    ],
)
def test_callables_that_lose_the_imaginary_part_are_refused(model, message):
    with pytest.raises(InvalidInput, match=message):
        wrap(model, step="complex").gradient(X)


def test_estimators_take_no_complex_step():
    with pytest.raises(InvalidInput, match="Ridge is an estimator"):
        wrap(linear_model.Ridge().fit(X, Y), step="complex")


def test_a_given_gradient_is_used():
    function = wrap(rosenbrock, gradient=rosenbrock_gradient)
    assert function.gradient_method == "given"
    points = X[:, :2]
    same(function.value(points), rosenbrock(points), 1e-15)
    same(function.gradient(points), rosenbrock_gradient(points), 1e-15)
    same(function.gradient(points), central_differences(function.value, points), 1e-6)


def test_a_given_gradient_gets_the_table_that_the_model_gets():
    model = DecisionTreeRegressor(max_depth=2).fit(FRAME, Y)

    def gradient(table):
        assert list(table.columns) == ["w", "x", "y", "z"]
        return 0.0 * table

    function = wrap(model, gradient=gradient)
    same(function.value(X), model.predict(FRAME), 1e-15)
    assert not function.gradient(FRAME).to_numpy().any()


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        (lambda P: P[:, 0], r"gradient of shape \(60, 4\), got \(60,\)"),
        (lambda P: P[:, :2], r"got \(60, 2\)"),
        (lambda P: [["a"] * 4] * len(P), "gradient: expected numbers"),
        (lambda P: np.full(P.shape, np.nan), "gradient is not finite in 60 of 60"),
    ],
)
def test_given_gradients_of_another_kind_are_refused(gradient, message):
    with pytest.raises(InvalidInput, match=message):
        wrap(lambda P: P[:, 0], gradient=gradient).gradient(X)


@pytest.mark.parametrize(
    ("model", "request_", "message"),
    [
        (rosenbrock, {"gradient": 3.0}, "expected a callable"),
        (rosenbrock, {"gradient": np.sin, "step": 0.1}, "not both"),
        (Sine(), {"gradient": np.sin}, "has its own"),
    ],
)
def test_gradients_that_cannot_be_meant_are_refused(model, request_, message):
    with pytest.raises(InvalidInput, match=message):
        wrap(model, **request_)
