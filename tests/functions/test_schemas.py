"""Functions of tables with categories: told of them by a DataFrame or by a schema."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.base.errors import InvalidInput


X = pd.DataFrame({"age": [31.0, 47.0, 60.0], "colour": ["red", "blue", "red"]})


def age_and_redness(table):
    return table["age"] + 5.0 * (table["colour"] == "red")


def test_a_table_with_text_and_no_schema_is_refused_with_what_would_do():
    schema = r"data=po\.TableSchema\.of\(X, categorical=\[\.\.\.\], groups=\{\.\.\.\}\)"
    message = r"^X: column 'colour', row 0 holds 'red';.* wrap\(model, data=X\).* "
    with pytest.raises(InvalidInput, match=message + schema):
        po.wrap(age_and_redness).value(X)


@pytest.mark.parametrize("data", [X, po.TableSchema.of(X)], ids=["frame", "schema"])
def test_a_function_of_a_table_is_told_of_it_by_a_frame_or_a_schema(data):
    gradient = po.wrap(age_and_redness, data=data).gradient(X)
    np.testing.assert_allclose(gradient["age"], 1.0, rtol=1e-9)
    np.testing.assert_allclose(gradient["colour"], [5 / 3, -10 / 3, 5 / 3], rtol=1e-9)


def test_a_schema_may_declare_that_numbers_are_categories():
    schema = po.TableSchema.of(X, categorical=["age"])
    function = po.wrap(age_and_redness, data=schema)
    assert function.schema is schema
    np.testing.assert_allclose(function.gradient(X)["age"], [-15, 1, 14], rtol=1e-9)


def test_explain_takes_a_schema_too():
    schema = po.TableSchema.of(X, categorical=["age"])
    best = po.explain(age_and_redness, X, data=schema, robustness=0.1, scale=None)
    np.testing.assert_allclose(best.gradient[:, 0], [-15, 1, 14], rtol=1e-9)
    assert list(best.to_frame().columns) == ["age", "colour"]


def test_data_that_is_no_table_is_refused():
    with pytest.raises(InvalidInput, match="data: expected a DataFrame, got list"):
        po.wrap(age_and_redness, data=[[1.0]])
