"""Tables with names and categories, explained where their schema puts them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.inductive import GaussianProcessExplainer


@pytest.fixture
def customers(rng):
    table = pd.DataFrame(
        {
            "age": rng.normal(40, 10, 50),
            "bill": rng.gamma(2, 20, 50),
            "plan": rng.choice(["a", "b", "c"], 50),
        },
        index=[f"c{n}" for n in range(50)],
    )
    return table, po.wrap(
        lambda t: t["age"] ** 2 / 40 + 3 * (t["plan"] == "b"), data=table
    )


def test_tables_with_categories_are_explained_where_their_schema_puts_them(customers):
    table, function = customers
    known, new = table.iloc[:40], table.iloc[40:]
    explainer = GaussianProcessExplainer(0.1, scale="std", lengthscale=1.0)
    result = explainer.fit(known, function=function).explain(new, return_std=True)
    assert list(result.to_frame().columns) == ["age", "bill", "plan"]
    assert list(result.to_frame().index) == list(new.index)
    schema = function.schema
    coordinates, others = (schema.coordinates(t, "std") for t in (known, new))
    plain = GaussianProcessExplainer(0.1, lengthscale=1.0)
    G = function.gradient(known).to_numpy()
    columns = [
        # one feature at a time: without smoothness they do not meet
        plain.fit(coordinates, np.tile(G[:, [j]], coordinates.shape[1])).explain(others)
        for j in range(3)
    ]
    expected = np.column_stack([c.attributions[:, 0] for c in columns])
    np.testing.assert_allclose(result.attributions, expected, rtol=1e-10)


def test_own_gradients_of_a_table_are_used(customers):
    table, function = customers
    explainer = GaussianProcessExplainer(1e-6, scale="std", lengthscale=1.0)
    explainer.fit(table.iloc[:40], function=function)
    new = table.iloc[40:]
    result = explainer.explain(new, gradients=function)
    G = function.gradient(new)
    # hardly any robustness: the variance before is so large that E(x) is the gradient
    error = np.abs(result.to_frame() - G).to_numpy()
    assert (error <= 1e-4 * np.abs(G).to_numpy().max()).all()


def test_scale_is_what_columns_are_divided_by(rng):
    X, new, G = rng.normal(size=(3, 30, 2)) * [1.0, 50.0]
    sizes = X.std(axis=0)
    scaled = GaussianProcessExplainer(0.1, scale="std").fit(X, G).explain(new)
    by_hand = GaussianProcessExplainer(0.1).fit(X / sizes, G).explain(new / sizes)
    np.testing.assert_allclose(scaled.attributions, by_hand.attributions, rtol=1e-12)


def test_names_of_scales_need_a_schema(rng):
    with pytest.raises(InvalidInput, match="names need a table with a schema"):
        GaussianProcessExplainer(scale={"a": 2.0}).fit(*rng.normal(size=(2, 5, 2)))


def test_gradients_in_another_order_than_the_inputs_are_read_by_name(rng):
    X, G = (pd.DataFrame(a, columns=list("abc")) for a in rng.normal(size=(2, 9, 3)))
    explainer = GaussianProcessExplainer(lengthscale=1.0)
    expected = explainer.fit(X, G).explain(X, gradients=G).attributions
    other = G.iloc[::-1][["c", "a", "b"]]
    result = explainer.fit(X, other).explain(X, gradients=other).attributions
    np.testing.assert_array_equal(result, expected)


def test_gradients_with_other_names_than_the_inputs_are_refused(rng):
    X, G = (pd.DataFrame(a, columns=list("abc")) for a in rng.normal(size=(2, 9, 3)))
    explainer = GaussianProcessExplainer(lengthscale=1.0)
    with pytest.raises(InvalidInput, match="its columns are not those of X: 'c' miss"):
        explainer.fit(X, G.rename(columns={"c": "d"}))
    with pytest.raises(InvalidInput, match="its rows are not those of X: 8 missing"):
        explainer.fit(X, G.rename(index={8: 9}))
    with pytest.raises(InvalidInput, match="its columns are not those of X: 'c' miss"):
        explainer.fit(X, G).explain(X, gradients=G.rename(columns={"c": "d"}))


def test_kernels_of_another_width_are_refused(rng):
    kernel = RBF([1.0, 2.0])
    with pytest.raises(InvalidInput, match="distances are measured in 3 columns"):
        GaussianProcessExplainer(kernel=kernel).fit(*rng.normal(size=(2, 5, 3)))
