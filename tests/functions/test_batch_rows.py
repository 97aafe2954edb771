"""No call of a model has more rows than was allowed, whoever asks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from differentiated import jump_test
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.explaining.explainers import Lime


X = np.random.default_rng(4).normal(size=(25, 3))
FRAME = pd.DataFrame(X, columns=list("abc")).assign(job=["x", "y", "x", "z", "y"] * 5)
MOST = 7


class Spied:
    """A callable that notes how many rows it was given."""

    def __init__(self):
        self.sizes = []

    def __call__(self, table):
        self.sizes.append(len(table))
        columns = np.asarray(table)[:, :3]
        if columns.dtype == object:
            columns = columns.astype(float)
        return (columns * columns).sum(axis=1)

    def slopes(self, table):
        self.sizes.append(len(table))
        return 2.0 * np.asarray(table)


SETTINGS = {
    "differences": {},
    "step": {"step": 1e-4},
    "complex": {"step": "complex"},
    "data": {"data": FRAME},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("most", [1, 2, MOST])
def test_no_call_has_more_rows(settings, most):
    whole, parts = Spied(), Spied()
    free = po.wrap(whole, **settings)
    bounded = po.wrap(parts, **settings, batch_rows=most)
    rows = FRAME if "data" in settings else X
    np.testing.assert_array_equal(bounded.value(rows), free.value(rows))
    assert max(parts.sizes) == most
    assert len(parts.sizes) >= len(X) // most
    np.testing.assert_array_equal(bounded.gradient(rows), free.gradient(rows))
    assert max(parts.sizes) == most
    assert bounded.calls.rows == free.calls.rows
    assert bounded.calls.rows + bounded.calls.trials == sum(parts.sizes)


def test_gradients_that_are_given_are_asked_for_in_batches_too():
    spied = Spied()
    function = po.wrap(spied, gradient=spied.slopes, batch_rows=MOST)
    np.testing.assert_array_equal(function.gradient(X), 2.0 * X)
    assert spied.sizes == [7, 7, 7, 4]


def test_estimators_baselines_and_tests_keep_to_it():
    sizes = []

    class Counting(DecisionTreeRegressor):
        def predict(self, table, check_input=True):
            sizes.append(len(table))
            return super().predict(table, check_input)

    model = Counting(max_depth=3, random_state=0).fit(X, X[:, 0])
    function = po.wrap(model, batch_rows=MOST)
    po.smoothed(function, 0.5, 20).gradient(X)
    Lime(scale=0.5, n_samples=30).explain(function, X)
    jump_test(function, X)
    assert max(sizes) == MOST


def test_torch_modules_keep_to_it():
    torch = pytest.importorskip("torch")
    sizes = []

    class Sum(torch.nn.Module):
        def forward(self, points):
            sizes.append(len(points))
            return (points**2).sum(axis=1)

    function = po.wrap(Sum(), batch_rows=2)
    np.testing.assert_allclose(function.value(X), (X**2).sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(function.gradient(X), 2 * X, rtol=1e-5)
    po.wrap(Sum(), step=1e-2, batch_rows=2).gradient(X)
    assert max(sizes) == 2


def test_formulas_that_call_nothing_need_no_bound():
    model = LinearRegression().fit(X, X[:, 0])
    assert po.wrap(model, batch_rows=3).gradient_method == "exact"


def test_it_is_a_count_and_belongs_to_the_wrap_of_the_model():
    for wrong in (0, 2.5, True, "many"):
        with pytest.raises(InvalidInput, match="batch_rows: expected an integer >= 1"):
            po.wrap(Spied(), batch_rows=wrong)
    with pytest.raises(InvalidInput, match=r"batch_rows: .* is a Function already"):
        po.wrap(po.functions.Sine(), batch_rows=3)
