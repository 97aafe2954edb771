"""Schemas of tables: there and back, saved, distances, and refusals by place."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refusals

import propopt as po
from propopt.base.codecs import Members, record_codec
from propopt.base.errors import InvalidInput
from propopt.base.files import as_json
from propopt.tables.columns import plain_floats, read_numbers
from propopt.tables.frames import (
    Labels,
    column_names,
    select_columns,
    with_permuted_columns,
)
from propopt.tables.schema import array_scales


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
def schema() -> po.functions.TableSchema:
    return po.functions.TableSchema.of(X, categorical=["job"], groups=GROUPS)


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


CODEC = record_codec(po.functions.TableSchema)


def saved(schema, change=id):
    """A schema that went through JSON and arrays, perhaps after a change."""
    members = Members({}, [])
    header = json.loads(as_json(CODEC.pack(schema, "s", members)))
    change(header)
    loaded = CODEC.unpack(header, "s", members)
    members.refuse_rest()
    return loaded


@given(frames())
def test_decoding_what_was_encoded_gives_the_table(frame):
    schema = po.functions.TableSchema.of(frame)
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
    schema = po.functions.TableSchema.of(table)
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
    assert column_names(frame) == ("age", "dose")
    pd.testing.assert_frame_equal(select_columns(frame, [1]), frame[["dose"]])
    table = np.array([[1, 5], [2, 6], [3, 7]])
    exchanged = with_permuted_columns(table, [1], np.array([2, 0, 1]))
    np.testing.assert_array_equal(exchanged, [[1, 7], [2, 5], [3, 6]])


# --- decoding what never was in a table
@pytest.mark.parametrize(
    ("dtype", "value"),
    [(np.int64, 0.5), (np.int8, 128.0), (np.uint8, -1.0), (np.float32, 1e-9 + 1)],
)
def test_a_number_that_its_dtype_would_change_makes_the_column_float64(dtype, value):
    schema = po.functions.TableSchema.of(pd.DataFrame({"a": np.array([1, 2], dtype)}))
    decoded = schema.decode(np.array([[value], [1.0]]))["a"]
    assert decoded.dtype == np.float64
    assert decoded.tolist() == [value, 1.0]
    assert schema.decode(np.array([[100.0], [1.0]]))["a"].dtype == dtype


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


def test_a_column_without_a_number_has_scale_zero():
    points = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]])
    np.testing.assert_array_equal(array_scales(points, "std"), [1.0, 0.0])


def test_a_constant_column_has_scale_zero_and_no_part_in_distances():
    table = pd.DataFrame({"a": [0.1] * 7, "b": range(7)})
    schema = po.functions.TableSchema.of(table)
    np.testing.assert_array_equal(schema.scales("std"), [0.0, 2.0])
    others = pd.DataFrame({"a": [0.1, 500.0, np.nan], "b": [2.0, 4.0, 6.0]})
    for scale in ("std", schema.scales("std")):
        result = schema.coordinates(others, scale)
        np.testing.assert_array_equal(result, [[0, 1], [0, 2], [np.nan, 3]])


# --- refusals
SCHEMA, of = (
    po.functions.TableSchema.of(X, categorical=["job"], groups=GROUPS),
    po.functions.TableSchema.of,
)


def decoded_with_code(code):
    points = np.array(SCHEMA.encode(X)[0])
    points[1, 1] = code
    SCHEMA.decode(points)


def packed(table):
    CODEC.pack(of(table), "s", Members({}, []))


def forged(change):
    saved(of(X[["age", "dose"]]), change)


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "schema"))
def test_what_is_refused(line, message):
    with pytest.raises(InvalidInput, match=message):
        eval(line)


NUMERIC = {
    "doubles": pd.DataFrame({"a": [0.1, np.nan, -3e8], "b": [1.0, 2.0, 3.0]}),
    "singles": pd.DataFrame({"a": [0.1, np.nan, 3.0]}, dtype=np.float32),
    "integers": pd.DataFrame({"a": [1, -(2**53), 7], "b": [0.5, 0.1, np.nan]}),
    "codes": pd.DataFrame({"a": pd.Categorical([3, 1, 3]), "b": [0.5, 0.1, 1.0]}),
}
OTHERS = {
    "large": pd.DataFrame({"a": [2.0**60, 1.5]}),
    "wide integers": pd.DataFrame({"a": [2**53 + 2, 1]}),
    "infinite": pd.DataFrame({"a": [np.inf, 1.5]}),
    "truth": pd.DataFrame({"a": [True, False]}),
    "longer": pd.DataFrame({"a": np.array([1.0, 2.5], np.longdouble)}),
}


@pytest.mark.parametrize("name", NUMERIC)
def test_columns_of_numbers_are_read_at_once_as_each_by_itself(name):
    table = pd.concat([NUMERIC[name]] * 2)
    each = [read_numbers(table[label], "X") for label in table]
    outcome = plain_floats(table)
    assert outcome.flags["C_CONTIGUOUS"]
    assert outcome.tobytes() == np.stack(each, axis=1).tobytes()
    outcome[:] = 7.0  # an array of our own
    assert not (table == 7.0).all(axis=None)


@pytest.mark.parametrize("name", OTHERS)
def test_other_columns_are_read_one_by_one(name):
    assert plain_floats(OTHERS[name]) is None


def test_a_table_of_numbers_is_encoded_as_one_beside_categories():
    table = NUMERIC["doubles"]
    alone = po.functions.TableSchema.of(table)
    beside = po.functions.TableSchema.of(table.assign(kind=list("xyx")))
    points, labels = alone.encode(table)
    assert (points.tobytes(), labels.points) == (
        beside.encode(table.assign(kind=list("xyx")))[0][:, :2].tobytes(),
        (0, 1, 2),
    )
    sizes = alone.scales()
    far = beside.coordinates_of(*(np.c_[x, [0, 1, 0]] for x in [points]), [*sizes, 1.0])
    assert alone.coordinates_of(points, sizes).tobytes() == far[:, :2].tobytes()
    for wrong in (table[["b", "a"]], table.assign(c=1.0), table[["a"]]):
        with pytest.raises(InvalidInput, match="columns"):
            alone.encode(wrong)
