"""Schemas of tables: there and back, saved, distances, and refusals by place."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.tables.frames import Labels, names_of, some_columns, with_exchanged


X = pd.DataFrame(
    {
        "age": [31, 47, 20, 20],
        "colour": ["red", "blue", "red", "green"],
        3: [True, False, True, True],
        ("size", 1): pd.Categorical(list("slss"), categories=["s", "m", "l"]),
        "dose": np.array([0.1, 0.2, 0.3, 0.4], dtype=np.float32),
        "is_a": [1, 0, 0, 1],
        "is_b": [False, True, True, False],
        "job": [3, 3, 7, 5],
    },
    index=["p", "q", "r", "s"],
)
GROUPS = {"kind": ["is_a", "is_b"]}


@pytest.fixture
def schema() -> po.TableSchema:
    return po.TableSchema.of(X, categorical=["job"], groups=GROUPS)


def texts():
    return st.text(alphabet="abcé ", max_size=3)


MISSING = {
    "float64": np.nan,
    "float32": np.nan,
    "Int64": pd.NA,
    "Float64": pd.NA,
    "boolean": pd.NA,
    "string": pd.NA,
    "object": None,
    "category": np.nan,
    "ordered": np.nan,
    "objects of numbers": None,
}
"""What is missing in columns that can miss a value."""

COLUMNS = {
    "float64": (st.floats(-1e9, 1e9), np.float64),
    "float32": (st.floats(-1e9, 1e9, width=32), np.float32),
    "int8": (st.integers(-128, 127), np.int8),
    "int64": (st.integers(-(2**53), 2**53), np.int64),
    "uint16": (st.integers(0, 2**16 - 1), np.uint16),
    "Int64": (st.integers(-9, 9), "Int64"),
    "Float64": (st.floats(-9, 9), "Float64"),
    "bool": (st.booleans(), bool),
    "boolean": (st.booleans(), "boolean"),
    "string": (texts(), "string"),
    "object": (st.one_of(texts(), st.integers(2, 9), st.tuples(texts())), object),
    "category": (texts(), "category"),
    "objects of numbers": (st.one_of(st.integers(-9, 9), st.floats(-9, 9)), object),
    "ordered": (st.sampled_from("abc"), pd.CategoricalDtype(list("cba"), ordered=True)),
}


@st.composite
def frames(draw):
    """Tables of all kinds of columns, with labels of several types."""
    kinds = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=6))
    n_rows = draw(st.integers(1, 5))
    labels = [j if j % 2 else f"x{j}" for j in range(len(kinds))]
    columns = {}
    for label, kind in zip(labels, kinds, strict=True):
        values, dtype = COLUMNS[kind]
        if kind in MISSING:
            values = st.one_of(values, st.just(MISSING[kind]))
        some = draw(st.lists(values, min_size=n_rows, max_size=n_rows))
        objects = np.empty(n_rows, dtype=object)
        objects[:] = some
        columns[label] = pd.Series(objects, dtype=object).astype(dtype)
    return pd.DataFrame(columns).set_axis([f"r{n}" for n in range(n_rows)], axis=0)


def saved(schema):
    arrays: dict[str, np.ndarray] = {}
    header = json.loads(json.dumps(schema.packed_into(arrays)))
    return po.TableSchema.unpacked_from(header, arrays)


@given(frames())
def test_decoding_what_was_encoded_gives_the_table(frame):
    schema = po.TableSchema.of(frame)
    points, labels = schema.encode(frame)
    for one in (schema, assert_saved(schema, frame)):
        again = one.decode(points, labels)
        pd.testing.assert_frame_equal(again, frame)
        np.testing.assert_array_equal(one.missing(points), frame.isna())
        for label in frame:  # None, NaN and NA are alike for pandas
            missing = frame[label].isna()
            kinds = [set(map(repr, table[label][missing])) for table in (again, frame)]
            assert kinds[0] == kinds[1]


def assert_saved(schema, table):
    """What was saved and loaded: it encodes and measures the table as before."""
    loaded = saved(schema)
    assert (loaded.names, loaded.encode(table)[1]) == (
        schema.names,
        schema.encode(table)[1],
    )
    for of in (
        lambda one: one.encode(table)[0],
        lambda one: one.scales(),
        lambda one: one.coordinates(table),
        lambda one: one.categorical,
    ):
        np.testing.assert_array_equal(of(loaded), of(schema))
    for one, other in zip(schema.columns, loaded.columns, strict=True):
        for name in {"frequencies", "mean", "std", "missing_share"} & {*vars(one)}:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    return loaded


ODD_TABLES = {
    "text as pandas 3 has it": pd.DataFrame({"c": pd.Series(["x", "y"], dtype="str")}),
    "text of pyarrow": pd.DataFrame({"s": pd.array(["x", "y"], "string[pyarrow]")}),
    "named columns": pd.DataFrame(np.eye(2), columns=pd.Index(["a", "b"], name="k")),
    "numbers": pd.DataFrame({"a": pd.Categorical([3, 1, 3], [3, 2, 1], ordered=True)}),
}


@pytest.mark.parametrize("table", ODD_TABLES.values(), ids=ODD_TABLES)
def test_a_schema_reads_and_writes_tables_as_before(table):
    schema = po.TableSchema.of(table)
    loaded, points = assert_saved(schema, table), schema.encode(table)[0]
    pd.testing.assert_frame_equal(schema.decode(points), loaded.decode(points))


def test_a_table_with_declared_columns_and_groups_comes_back(schema):
    points, labels = schema.encode(X)
    again = pickle.loads(pickle.dumps(schema))
    for one in (schema, again, assert_saved(schema, X)):
        pd.testing.assert_frame_equal(one.decode(points, labels), X)
    assert repr(schema) == "TableSchema(7 columns: 2 numeric, 5 categorical)"
    # rows are named only if there is a name for each
    for own, index in ((labels, list("pqrs")), (Labels(), [0, 1, 2, 3])):
        assert schema.decode(points, own).index.tolist() == index
    assert schema.decode(points[:2], labels).index.tolist() == [0, 1]


def test_columns_have_their_names_categories_and_moments(schema):
    names = ("age", "colour", 3, ("size", 1), "dose", "kind", "job")
    points, labels = schema.encode(X)
    assert schema.names == names
    assert labels.features == tuple(map(str, names))
    np.testing.assert_array_equal(schema.categorical, [0, 1, 1, 1, 0, 1, 1])
    np.testing.assert_array_equal(points[:, 5], [0, 1, 1, 0])  # where its first stood
    colour, size, kind, job = (schema.columns[j] for j in (1, 3, 5, 6))
    for column, categories, frequencies in [
        (colour, ("blue", "green", "red"), [0.25, 0.25, 0.5, 0]),
        (size, ("s", "m", "l"), [0.75, 0, 0.25, 0]),
        (job, (3, 5, 7), [0.5, 0.25, 0.25, 0]),
    ]:
        assert column.categories[:-1] == categories
        assert pd.isna(column.categories[-1])
        np.testing.assert_array_equal(column.frequencies, frequencies)
    assert kind.categories == ("is_a", "is_b")
    np.testing.assert_array_equal(kind.frequencies, [0.5, 0.5])
    assert schema.columns[0].mean == pytest.approx(X["age"].mean())
    assert schema.columns[0].std == pytest.approx(X["age"].std(ddof=0))


def test_parts_of_tables():
    frame = X[["age", "dose"]]
    assert names_of(frame) == ("age", "dose")
    pd.testing.assert_frame_equal(some_columns(frame, [1]), frame[["dose"]])
    table = np.array([[1, 5], [2, 6], [3, 7]])
    exchanged = with_exchanged(table, [1], np.array([2, 0, 1]))
    np.testing.assert_array_equal(exchanged, [[1, 7], [2, 5], [3, 6]])


# --- what is not saved, and what is no schema


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
    header = po.TableSchema.of(X[["age", "dose"]]).packed_into(arrays)
    change(header)
    with pytest.raises(InvalidInput, match="its schema makes no sense"):
        po.TableSchema.unpacked_from(header, arrays)


# --- decoding what never was in a table


def test_integers_stay_integers_while_they_are_whole(schema):
    points = np.array(schema.encode(X)[0])
    points[0, 0] = 1e6
    assert schema.decode(points)["age"].dtype == X["age"].dtype
    points[0, 0] = 0.5
    assert schema.decode(points)["age"].dtype == np.float64
    assert schema.decode(points)["age"].tolist() == [0.5, 47, 20, 20]


@pytest.mark.parametrize(
    ("dtype", "value"), [(np.int8, 128.0), (np.uint8, -1.0), (np.float32, 1e-9 + 1)]
)
def test_a_number_that_its_dtype_would_change_makes_the_column_float64(dtype, value):
    schema = po.TableSchema.of(pd.DataFrame({"a": np.array([1, 2], dtype)}))
    decoded = schema.decode(np.array([[value], [1.0]]))["a"]
    assert decoded.dtype == np.float64
    assert decoded.tolist() == [value, 1.0]


@pytest.mark.parametrize("code", [0.5, -1.0, 4.0, np.nan])
def test_a_number_that_is_no_code_is_refused(schema, code):
    points = np.array(schema.encode(X)[0])
    points[1, 1] = code
    with pytest.raises(InvalidInput, match=rf"'colour' .* 0 to 3, got {code}"):
        schema.decode(points)


# --- distances


def test_squared_distances_are_sums_over_columns(schema):
    points = schema.coordinates(X)
    expected = ((X["age"] - 31) / X["age"].std(ddof=0)) ** 2
    expected += ((X["dose"] - X["dose"].iloc[0]) / X["dose"].std(ddof=0)) ** 2
    for label in ["colour", 3, ("size", 1), "is_a", "job"]:
        expected += X[label].to_numpy() != X[label].iloc[0]
    result = ((points - points[0]) ** 2).sum(axis=1)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_scales_are_deviations_and_ones(schema):
    result = schema.scales("std")
    assert result[0] == X["age"].std(ddof=0)
    np.testing.assert_array_equal(result[schema.categorical], 1)
    np.testing.assert_array_equal(schema.scales(None), np.ones(7))
    np.testing.assert_array_equal(schema.scales({"age": 10})[:2], [10, 1])
    np.testing.assert_array_equal(schema.scales(np.arange(1, 8)), np.arange(1.0, 8))


def test_a_constant_column_has_scale_zero_and_no_part_in_distances():
    table = pd.DataFrame({"a": [0.1] * 7, "b": range(7)})
    schema = po.TableSchema.of(table)
    np.testing.assert_array_equal(schema.scales("std"), [0.0, 2.0])
    others = pd.DataFrame({"a": [0.1, 500.0, np.nan], "b": [2.0, 4.0, 6.0]})
    for scale in ("std", schema.scales("std")):
        result = schema.coordinates(others, scale)
        np.testing.assert_array_equal(result, [[0, 1], [0, 2], [np.nan, 3]])


@pytest.mark.parametrize(
    ("scale", "complaint"),
    [
        (np.ones(3), "7 positive numbers"),
        (-np.ones(7), "7 positive numbers"),
        ({"agee": 1}, "no column 'agee'"),
        ({"age": 0}, r"scale\['age'\]: expected a number > 0"),
        ("mad", "scale: expected 'std', None, a mapping or an array of 7 numbers"),
    ],
)
def test_scales_that_are_none_are_refused(schema, scale, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        schema.scales(scale)


# --- refusals


BAD_TABLES = [
    (X.assign(colour=["red", "pink", "red", "red"]), "'colour', row 'q': .* 'pink'"),
    (X.assign(job=[3, 3, 4, 3]), "'job', row 'r': unknown category 4; known: 3, 5, 7"),
    (X.assign(age=[1, np.inf, 2, 3]), "'age', row 'q': .* got inf"),
    (X.assign(age=[1, "old", 2, 3]), "'age', row 'q': expected a number, got 'old'"),
    (X.assign(age=["1", "2", "3", "4"]), "'age', row 'p': expected a number, got '1'"),
    (X.assign(age=[0, 0, 0, 2**53 + 2]), r"'age', row 's': .* at most 2\^53"),
    (X.assign(is_a=1), r"group 'kind', row 'q': expected a single 1 .* \[1.0, 1.0\]"),
    (X.assign(is_a=0.5), r"group 'kind', row 'p': .* \[0.5, 0.0\]"),
    (X.drop(columns="colour"), "missing: 'colour'; unexpected: none"),
    (X.assign(more=1), "missing: none; unexpected: 'more'"),
    (X[X.columns[::-1]], "another order or repeated; expected 'age', 'colour', 3"),
    (X.to_numpy(), "X: expected a DataFrame, got ndarray"),
    (X.iloc[:0], "X: the table is empty"),
]


@pytest.mark.parametrize(("table", "complaint"), BAD_TABLES)
def test_a_table_that_does_not_fit_is_refused_by_its_place(schema, table, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        schema.encode(table)


TWICE = pd.DataFrame([[1, 2]], columns=["a", "a"])

BAD_SCHEMAS = [
    (X, {"categorical": "job"}, "expected 'auto' or a list of columns, got 'job'"),
    (X, {"categorical": ["jobs"]}, "data has no column 'jobs'"),
    (X, {"groups": {"kind": ["is_a"]}}, "'kind' needs at least two columns"),
    (X, {"groups": {"kind": "is_a"}}, "'kind' needs at least two columns"),
    (X, {"groups": {"kind": ["is_a", "is_c"]}}, "'kind': data has no column 'is_c'"),
    (X, {"groups": {"age": ["is_a", "is_b"]}}, "another column called 'age'"),
    (X, {"groups": {"kind": ["is_a", "age"]}}, r"row 'p': .* \[1.0, 31.0\]"),
    (
        X,
        {"groups": {"k": ["is_a", "is_b"], "l": ["is_a", "age"]}},
        "column 'is_a' is in two",
    ),
    (X, {"groups": GROUPS, "categorical": ["is_a"]}, "'is_a' is in categorical too"),
    (X.assign(when=pd.Timestamp("2000-01-01")), {}, "'when' has dtype datetime64"),
    (X.assign(when=pd.Timedelta("1s")), {}, r"'when' .*; times .*total_seconds\(\)"),
    (X.assign(age=[1, np.nan, -np.inf, 2]), {}, "'age', row 'r': .* got -inf"),
    (X.assign(is_a=[1, None, 0, 1]), {"groups": GROUPS}, "row 'q': a value is missing"),
    (
        X.assign(colour=pd.Series(["a", None, np.nan, "b"], X.index, dtype=object)),
        {},
        "'colour' has missing values of several kinds, NaN and None; make them one",
    ),
    (TWICE, {}, "columns appear more than once: 'a'"),
    ([[1, 2]], {}, "data: expected a DataFrame, got list"),
    (X.iloc[:0], {}, "data: the table is empty"),
]


@pytest.mark.parametrize(("table", "arguments", "complaint"), BAD_SCHEMAS)
def test_a_schema_that_cannot_be_is_refused(table, arguments, complaint):
    with pytest.raises(InvalidInput, match=complaint):
        po.TableSchema.of(table, **arguments)
