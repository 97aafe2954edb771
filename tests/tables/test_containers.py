"""Tables of any library, arrays and boosters are read, or refused with the cure."""

import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp  # noqa: F401  # of refusals.txt
from estimators import sk
from refusals import refusals

import propopt as po
from propopt.base.codecs import Members, record_codec
from propopt.base.errors import InvalidInput
from propopt.explaining.explainers import Lime, LimePackage
from propopt.tables.frames import coerce_numbers, plain_numbers


pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

RNG = np.random.default_rng(7)
X = pd.DataFrame(RNG.normal(size=(30, 3)), columns=["mean radius", "age", "dose"])
Y = (X["age"] + X["dose"] > 0).to_numpy()
MIXED = X.assign(
    colour=RNG.choice(["red", "green"], 30),
    size=pd.Categorical(RNG.choice(list("sl"), 30), categories=list("sml")),
    smokes=RNG.random(30) < 0.4,
    children=RNG.integers(0, 4, 30).astype(np.int8),
)


def in_polars(frame):
    columns = {label: frame[label].tolist() for label in frame}
    schema = {}
    for label in frame:
        if isinstance(frame[label].dtype, pd.CategoricalDtype):
            schema[label] = pl.Enum(frame[label].cat.categories.tolist())
        elif frame[label].dtype == np.int8:
            schema[label] = pl.Int8
    return pl.DataFrame(columns, schema_overrides=schema)


KINDS = {"polars": in_polars, "pyarrow": lambda f: pa.Table.from_pandas(f)}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


# tables of other libraries


@each_kind
def test_explanations_and_gradients_of_a_table_are_those_of_pandas(kind):
    model = sk.LogisticRegression().fit(X, Y)
    result, expected = (
        po.explain(model, kind(X), kind="slopes"),
        po.explain(model, X, kind="slopes"),
    )
    np.testing.assert_array_equal(result.attributions, expected.attributions)
    assert list(result.to_frame().columns) == list(X.columns)
    assert result.labels.points is None  # such tables do not name rows
    function = po.wrap(sk.LinearRegression().fit(X, X["age"] * 2))
    pd.testing.assert_frame_equal(function.gradient(kind(X)), function.gradient(X))
    with pytest.raises(InvalidInput, match="columns are those the model was fitted on"):
        function.gradient(kind(X[["age", "dose", "mean radius"]]))
    loss = po.GradientMatching(kind(X))
    assert loss.labels.features == tuple(X.columns)
    np.testing.assert_array_equal(loss.G, X)
    assert po.graphs.knn_graph(kind(X), 3).n_edges == po.graphs.knn_graph(X, 3).n_edges
    ours = LimePackage(data=kind(X), n_samples=50)
    assert ours.parameters == LimePackage(data=X, n_samples=50).parameters
    result = Lime(scale=1.0, n_samples=50).explain(function, kind(X))
    assert list(result.to_frame().columns) == list(X.columns)


def value(table):
    """A model of each library's own tables."""
    if isinstance(table, pl.DataFrame):
        return table.select(pl.col("age") * pl.col("dose")).to_series()
    assert isinstance(table, pa.Table)
    return np.asarray(table["age"]) * np.asarray(table["dose"])


@each_kind
@pytest.mark.parametrize("with_schema", [False, True])
def test_a_callable_is_given_the_kind_of_table_that_was_given(kind, with_schema):
    table = kind(X)
    function = po.wrap(value, data=table if with_schema else None)
    np.testing.assert_array_equal(function.value(table), X["age"] * X["dose"])
    result = function.gradient(table)
    np.testing.assert_allclose(result["age"], X["dose"], rtol=1e-8)


def comes_back(schema, table):
    again = schema.decode(*schema.encode(table))
    assert type(again) is type(table)
    return again.equals(table) or again.to_pydict() == table.to_pydict()


@each_kind
def test_the_schema_of_a_table_is_that_of_pandas(kind):
    table = kind(MIXED)
    ours, theirs = (
        po.functions.TableSchema.of(table),
        po.functions.TableSchema.of(MIXED),
    )
    assert repr(ours) == "TableSchema(7 columns: 4 numeric, 3 categorical)"
    assert comes_back(pickle.loads(pickle.dumps(ours)), table)
    np.testing.assert_array_equal(ours.encode(table)[0], theirs.encode(MIXED)[0])
    with pytest.raises(InvalidInput, match=r"fit on data\.to_pandas"):
        record_codec(type(ours)).pack(ours, "data", Members({}, []))  # not saved
    for a, b in zip(ours.columns, theirs.columns, strict=True):
        assert a.name == b.name
        if a.name in ("colour", "size", "smokes"):
            assert a.categories == b.categories
            np.testing.assert_array_equal(a.frequencies, b.frequencies)


def test_a_model_of_polars_with_categories_is_explained():
    def model(table):
        assert table.schema["size"] == pl.Enum(["s", "m", "l"])
        warm = (pl.col("colour") == "red") & pl.col("smokes")
        return table.select(pl.col("age") + 2 * warm.cast(float)).to_series()

    result = po.explain(
        model, in_polars(MIXED), scale=None, robustness=0.0, kind="slopes"
    )
    shares = (MIXED["colour"] == "red").mean()
    expected = 2 * MIXED["smokes"] * ((MIXED["colour"] == "red") - shares)
    np.testing.assert_allclose(result.to_frame()["colour"], expected, atol=1e-9)
    # categories without an order
    table = in_polars(MIXED).with_columns(pl.col("colour").cast(pl.Categorical))
    schema = po.functions.TableSchema.of(table)
    assert sorted(schema.columns[3].categories[:-1]) == ["green", "red"]
    assert comes_back(schema, table)


# what is refused


HOLES = X.assign(age=X["age"].where(X.index != 4))
TWICE = pa.table([[1.0, 2.0], [3.0, 4.0]], names=["a", "a"])


def explained(table):
    return po.explain(sk.LogisticRegression().fit(X, Y), table, kind="slopes")


def requested(table):
    return po.wrap(lambda own: own["age"]).value(table)


@pytest.mark.parametrize(("line", "pattern"), refusals(__file__, "containers"))
def test_what_is_refused(line, pattern):
    with pytest.raises(InvalidInput, match=pattern):
        eval(line)


def test_sparse_columns_are_columns():
    sparse = X.astype(pd.SparseDtype(float)).assign(
        smokes=MIXED["smokes"].astype(pd.SparseDtype(bool))
    )
    dense = X.assign(smokes=MIXED["smokes"])
    schema = po.functions.TableSchema.of(sparse)
    np.testing.assert_array_equal(
        schema.encode(sparse)[0], po.functions.TableSchema.of(dense).encode(dense)[0]
    )
    pd.testing.assert_frame_equal(schema.decode(*schema.encode(sparse)), sparse)


# numbers that are objects or text


@pytest.mark.parametrize("make", [float, Decimal, np.float32])
def test_objects_that_are_numbers_are_numbers(make):
    objects = pd.DataFrame({"a": [make(v) for v in (0.5, 1.5, 4.0)], "b": [1, 2, 3]})
    schema = po.functions.TableSchema.of(objects.astype(object))
    assert repr(schema) == "TableSchema(2 columns: 2 numeric, 0 categorical)"
    points, _ = schema.encode(objects.astype(object))
    np.testing.assert_array_equal(points, [[0.5, 1], [1.5, 2], [4, 3]])
    again = schema.decode(points)
    assert [type(v) for v in again["b"]] == [int] * 3
    assert again["a"].tolist() == [0.5, 1.5, 4.0]


@pytest.mark.parametrize("values", [["1", "2.5", "3e2"], ["1", 2, 3.0], [" 7", "8"]])
@pytest.mark.parametrize("dtype", [object, "string", "str"])
def test_numbers_as_text_are_refused_with_the_cure(values, dtype):
    table = pd.DataFrame({"age": pd.Series(values, dtype=object).astype(dtype)})
    message = r"^data: column 'age' holds numbers as text, such as '.*'; .* to_numeric"
    with pytest.raises(InvalidInput, match=message.replace(" to_num", " .*to_num")):
        po.functions.TableSchema.of(table)
    assert po.functions.TableSchema.of(table, categorical=["age"]).categorical.all()


@pytest.mark.parametrize("large", [10**400, -(10**400)], ids=["large", "negative"])
def test_whole_numbers_beyond_floats_are_infinite_and_others_as_they_are(large):
    cells = pd.Series([large, "1", None, "no", 2.5], index=list("abcde"), dtype=object)
    numbers = coerce_numbers(cells)
    assert list(numbers.index) == list(cells.index)
    np.testing.assert_array_equal(numbers, [np.inf, 1.0, np.nan, np.nan, 2.5])
    table = pd.DataFrame({"age": pd.Series([large, 1, "3"], dtype=object)})
    with pytest.raises(InvalidInput, match="'age' holds numbers as text, such as '3'"):
        po.functions.TableSchema.of(table)


def test_missing_numbers_among_objects_are_missing():
    table = pd.DataFrame({"a": pd.Series([1, None, 3], dtype=object)})
    schema = po.functions.TableSchema.of(table)
    points, _ = schema.encode(table)
    np.testing.assert_array_equal(points[:, 0], [1, np.nan, 3])
    assert schema.decode(points)["a"].tolist() == [1, None, 3]
    model = sk.LogisticRegression().fit(X, Y)
    result = po.explain(model, X.astype(object), kind="slopes").attributions
    np.testing.assert_array_equal(
        result, po.explain(model, X, kind="slopes").attributions
    )


def test_cells_beside_missing_ones_stay_as_they_are():
    table = pd.DataFrame(
        {
            "whole": pd.array([1, None], dtype="Int64"),
            "text": ["a", None],
            "x": [0.5, 2],
        }
    )
    first, second = plain_numbers(table).tolist()
    assert first == [1.0, "a", 0.5]
    assert second[2] == 2.0
    assert np.isnan(second[:2]).all()


def test_integers_of_128_bits_are_numbers():
    table = pl.DataFrame({"a": [2, 1], "b": [0.5, 1.5]}).cast({"a": pl.Int128})
    assert po.GradientMatching(table).value([[2, 0.5], [1, 1.5]]) == 0.0


def test_categories_that_are_numbers_are_given_back_as_numbers():
    table = pa.table({"size": pa.array([1, 2, 3] * 10).dictionary_encode()})
    observed = []

    def model(given):
        observed.append(given["size"].to_pylist())
        return np.array(observed[-1]) ** 2.0

    function = po.wrap(model, data=table)
    np.testing.assert_array_equal(function.value(table), [1.0, 4.0, 9.0] * 10)
    assert observed[0] == [1, 2, 3] * 10
