"""How often models of tables are called, with what, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from people import CATEGORIES, N, X, Y, n_rows_of_gradient
from sklearn.linear_model import LogisticRegression

import propopt as po
from propopt.base import resources
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget, Calls
from propopt.explaining.explainers import Gradient
from propopt.functions import models
from propopt.functions.jumps import FEWEST


def trials(function):
    """Three rows asked twice at first, and again where the gradient is numerical.

    Before that it is seen whether the model jumps, which this one does not.
    """
    assert function.jumps.kind == "smooth"
    assert function.calls.trials == 12 + FEWEST
    return function.calls.trials


def test_calls_are_counted_where_the_model_is_called(spy, function):
    function.value(X)
    assert (function.calls.rows, function.calls.batches) == (N, 1)
    function.gradient(X)
    expected = N + n_rows_of_gradient(X, 2, CATEGORIES)
    assert function.calls.rows == sum(spy.sizes) - trials(function) == expected
    assert function.calls.batches == len(spy.sizes) - 6


def test_calls_of_numerical_and_exact_models_are_counted():
    numerical = po.wrap(lambda X: X[:, 0] * X[:, 1])
    numerical.value(np.ones((5, 2)))
    assert numerical.calls == Calls(rows=5, batches=1, trials=6)
    numerical.gradient(np.ones((5, 2)))
    assert numerical.calls == Calls(rows=5 + 20, batches=2, trials=12)
    exact = po.wrap(LogisticRegression().fit(X[["bmi"]].to_numpy(), Y))
    exact.gradient(X[["bmi"]].to_numpy())
    assert exact.calls == Calls(rows=N, batches=1)


@pytest.fixture(autouse=True)
def without_timing(monkeypatch):
    """What is timed besides depends on the clock, which this is not about."""
    monkeypatch.setattr(models, "WORTH_TIMING", np.inf)


@pytest.fixture
def seven_rows(monkeypatch):
    monkeypatch.setattr(resources, "MODEL_CALLS", Budget(2**25, 7))


def test_batches_keep_to_the_budget_and_change_nothing(spy, function, monkeypatch):
    whole = function.value(X), function.gradient(X)
    spy.sizes.clear()
    monkeypatch.setattr(resources, "MODEL_CALLS", Budget(2**25, 7))
    np.testing.assert_allclose(function.value(X), whole[0], rtol=1e-12)
    np.testing.assert_allclose(function.gradient(X), whole[1], atol=1e-9)
    assert max(spy.sizes) == 7
    assert sum(spy.sizes) == N + n_rows_of_gradient(X, 2, CATEGORIES)


def test_batches_keep_to_the_bytes(spy, function, monkeypatch):
    monkeypatch.setattr(resources, "MODEL_CALLS", Budget(8 * X.shape[1] * 10))
    function.gradient(X[:20])
    assert max(spy.sizes) == 10


@pytest.mark.usefixtures("seven_rows")
def test_models_without_schema_are_called_in_batches_too():
    sizes = []

    def model(table):
        sizes.append(len(table))
        return table[:, 0] ** 2

    function = po.wrap(model)
    points = np.arange(20.0)[:, None]
    np.testing.assert_array_equal(function.value(points), points[:, 0] ** 2)
    function.gradient(points)
    assert max(sizes) <= 7
    assert sum(sizes) - trials(function) == function.calls.rows == 20 + 40


@pytest.mark.usefixtures("seven_rows")
@pytest.mark.parametrize("data", [None, X[["bmi"]]])
def test_a_model_sees_the_names_of_the_rows_it_is_given(data):
    names = []

    def model(table):
        names.extend(table.index)
        return table["bmi"]

    po.wrap(model, data=data).value(X[["bmi"]])
    assert names == [*X.index, *X.index[:3], *X.index[:3]]  # the last are a trial


@pytest.mark.usefixtures("seven_rows")
@pytest.mark.parametrize("method", ["value", "gradient"])
@pytest.mark.parametrize("data", [None, X[["bmi"]]])
def test_a_value_that_is_not_finite_is_named_by_its_row(method, data):
    broken = X["bmi"].iloc[50]

    def model(table):
        return np.where(np.abs(table["bmi"] - broken) < 0.01, np.nan, table["bmi"] ** 2)

    near = int((np.abs(X["bmi"] - broken) < 0.01).to_numpy().argmax())
    function = po.wrap(model, data=data)
    with pytest.raises(InvalidInput, match=f"the {method} is not .* row 'p{near}'"):
        getattr(function, method)(X[["bmi"]])


@pytest.mark.parametrize("label", ["colour", "size"])
def test_text_without_a_schema_says_what_makes_one(label):
    function = po.wrap(lambda X: np.zeros(len(X)))
    with pytest.raises(InvalidInput, match=rf"'{label}', row 'p0' .*data=X\)"):
        function.value(X[["bmi", label]])
    with pytest.raises(InvalidInput, match=r"wrap\(model, data=X\)"):
        Gradient().explain(function, X[["bmi", label]])


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        (X.assign(colour="pink"), "'colour', row 'p0': unknown category 'pink'"),
        (X[X.columns[::-1]], "another order"),
        (X.to_numpy(), "expected a DataFrame"),
    ],
)
def test_tables_that_do_not_fit_are_refused(function, table, complaint):
    for method in (function.value, function.gradient):
        with pytest.raises(InvalidInput, match=complaint):
            method(table)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"data": X, "gradient": np.cos}, "leave gradient and"),
        ({"data": X, "step": "complex"}, "leave gradient and"),
        ({"data": X.to_numpy()}, "data: expected a DataFrame"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(arguments, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        po.wrap(np.sin, **arguments)


def test_a_function_takes_no_schema():
    with pytest.raises(InvalidInput, match=r"data: Sine.* is a Function already"):
        po.wrap(po.functions.Sine(), data=X)
