"""Schemas are saved as text, numbers and arrays, and come back as they were."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.base.errors import InvalidInput


TABLES = {
    "numbers": pd.DataFrame({"a": [1.5, 2.5, np.nan], "b": [1, 2, 2]}),
    "names that are numbers": pd.DataFrame(np.eye(3), columns=[0, 1, "two"]),
    "text": pd.DataFrame({"c": ["x", "y", "x"], "d": [True, False, True]}),
    "missing text": pd.DataFrame({"c": ["x", None, "x"], "d": ["u", np.nan, "v"]}),
    "text as pandas 3 has it": pd.DataFrame({"c": pd.Series(["x", "y"], dtype="str")}),
    "nullable": pd.DataFrame(
        {
            "i": pd.array([1, None, 3], dtype="Int64"),
            "f": pd.array([0.5, None, 2.5], dtype="Float64"),
            "b": pd.array([True, None, False], dtype="boolean"),
            "s": pd.array(["x", None, "y"], dtype="string"),
        }
    ),
    "categories": pd.DataFrame(
        {
            "plain": pd.Categorical(["b", "a", "b"]),
            "ordered": pd.Categorical([3, 1, 3], [3, 2, 1], ordered=True),
            "missing": pd.Categorical(["u", None, "v"]),
        }
    ),
    "objects": pd.DataFrame({"o": np.array(["x", 3, True], dtype=object)}),
    "text of pyarrow": pd.DataFrame({"s": pd.array(["x", "y"], "string[pyarrow]")}),
    "named columns": pd.DataFrame(np.eye(2), columns=pd.Index(["a", "b"], name="k")),
    "small numbers": pd.DataFrame({"a": np.array([1, 2, 3], dtype="int8")}),
    "32 bits": pd.DataFrame({"a": np.array([0.1, 2, 3], dtype="float32")}),
}


def again(schema):
    arrays: dict[str, np.ndarray] = {}
    header = json.loads(json.dumps(schema.packed_into(arrays)))
    return po.TableSchema.unpacked_from(header, arrays)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_a_schema_reads_and_writes_tables_as_before(table):
    schema = po.TableSchema.of(table)
    same = again(schema)
    points, labels = schema.encode(table)
    there, again_labels = same.encode(table)
    np.testing.assert_array_equal(points, there)
    assert labels == again_labels
    pd.testing.assert_frame_equal(schema.decode(points), same.decode(points))
    np.testing.assert_array_equal(schema.scales(), same.scales())
    np.testing.assert_array_equal(schema.coordinates(table), same.coordinates(table))
    for one, other in zip(schema.columns, same.columns, strict=True):
        for name, value in vars(one).items():
            if name in ("frequencies", "mean", "std", "missing_share"):
                np.testing.assert_array_equal(value, getattr(other, name))


def test_groups_and_declared_categories_stay_what_they_are():
    table = pd.DataFrame(
        {"r": [1, 0, 0], "g": [0, 1, 0], "b": [0, 0, 1], "z": [1, 2, 1]}
    )
    schema = po.TableSchema.of(
        table, categorical=["z"], groups={"colour": ["r", "g", "b"]}
    )
    same = again(schema)
    assert same.names == schema.names
    np.testing.assert_array_equal(same.encode(table)[0], schema.encode(table)[0])
    np.testing.assert_array_equal(same.categorical, schema.categorical)


def test_a_table_of_another_library_is_refused():
    polars = pytest.importorskip("polars")
    schema = po.TableSchema.of(polars.DataFrame({"a": [1.0, 2.0]}))
    with pytest.raises(InvalidInput, match=r"fit on data\.to_pandas"):
        schema.packed_into({})


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(
            {"d": pd.Categorical(pd.to_datetime(["2020-01-01", "2021-01-01"]))}
        ),
        pd.DataFrame({"i": pd.cut(pd.Series([1.0, 2.0]), 2)}),
        pd.DataFrame({pd.Timestamp("2020-01-01"): [1.0, 2.0]}),
        pd.DataFrame([[1.0, 2.0]], columns=pd.MultiIndex.from_tuples([(1, 2), (1, 3)])),
    ],
)
def test_what_is_neither_text_nor_number_is_refused(table):
    schema = po.TableSchema.of(table)
    with pytest.raises(InvalidInput, match="saved"):
        schema.packed_into({})


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.pop("header"),
        lambda header: header["columns"].append({"Numeric": {}}),
        lambda header: header["columns"].append({"System": {}}),
        lambda header: header["columns"].append(3),
        lambda header: header.update(header=None),
        lambda header: header["columns"][0]["Numeric"].update(dtype={"dtype": "what"}),
        lambda header: header["columns"][0]["Numeric"].update(std={"array": "none"}),
    ],
)
def test_text_that_is_no_schema_is_refused(change):
    arrays: dict[str, np.ndarray] = {}
    header = po.TableSchema.of(TABLES["numbers"]).packed_into(arrays)
    change(header)
    with pytest.raises(InvalidInput, match="its schema makes no sense"):
        po.TableSchema.unpacked_from(header, arrays)
