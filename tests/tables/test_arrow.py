"""Tables in Parquet, Arrow and Feather files: cells, types, folders, digests."""

import datetime
import shutil
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from refusals import refusals

from propopt.base.errors import InvalidInput
from propopt.base.files import write_parquet
from propopt.tables import arrow
from propopt.tables.arrow import ArrowTable
from propopt.tables.arrow_files import ArrowFiles, wider_type


KINDS = [".parquet", ".feather"]


def store(table, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="none")
    else:
        feather.write_feather(table, path, compression="uncompressed")
    return path


def cells(folder, columns=None):
    """The rows as a large table is read, and as a problem file is."""
    files = ArrowFiles.of(folder, columns)
    blocks = pa.concat_tables(files.blocks(0, iter([files.n_rows]), 2))
    assert blocks.equals(files.table(files.schema.names))
    for first in range(files.n_rows):  # from any row on
        rest = pa.concat_tables(files.blocks(first, iter([files.n_rows - first]), 2))
        assert rest.equals(blocks.slice(first))
    return blocks


# ---- One file or folder


TABLE = pa.table(
    {
        "whole": pa.array([3, 1, 2], pa.int32()),
        "gap": pa.array([1, None, 3]),
        "real": pa.array([1.5, None, np.nan]),
        "flag": pa.array([True, False, True]),
        "unsure": pa.array([True, None, False]),
        "money": pa.array([Decimal("1.25"), Decimal("2.00"), None]),
        "nothing": pa.nulls(3),
        "word": pa.array(["x", None, "a"]),
        "kind": pa.array(["z", None, "b"]).dictionary_encode(),
    }
)
CELLS = {
    "whole": [3, 1, 2],
    "gap": [1, np.nan, 3],
    "real": [1.5, np.nan, np.nan],
    "flag": [True, False, True],
    "unsure": [1, np.nan, 0],
    "money": [1.25, 2, np.nan],
    "nothing": 3 * [np.nan],
    "word": ["x", None, "a"],
    "kind": ["z", None, "b"],
}
DTYPES = {"whole": "int32", "flag": "bool", "word": "str", "kind": "category"}


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow", ".PARQUET"])
def test_cells_are_those_of_the_file_in_every_format(tmp_path, suffix):
    path = store(TABLE, tmp_path / f"table{suffix.lower()}").rename(
        tmp_path / f"a{suffix}"
    )
    table = ArrowTable.of(path)
    assert (table.columns, table.n_rows) == (tuple(CELLS), 3)
    assert (table.categories, table.notes) == (("kind",), "")
    read = table.read()
    for name, cells in CELLS.items():
        column = read[name]
        assert column.isna().tolist() == pd.isna(pd.Series(cells)).tolist(), name
        whole = column.notna()
        assert column[whole].tolist() == [x for x in cells if not pd.isna(x)], name
        expected = DTYPES.get(name, "float64")
        is_text = pd.api.types.is_string_dtype(column.dtype) and expected == "str"
        assert is_text or column.dtype == expected, name
    assert read["kind"].cat.categories.tolist() == ["b", "z"]
    pd.testing.assert_frame_equal(
        table.read(["word", "whole"]), read[["word", "whole"]]
    )


def test_columns_are_decoded_a_few_at_a_time_with_equal_cells(tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.concat_tables(50 * [TABLE]), path, row_group_size=7)
    whole = ArrowTable.of(path).read()
    monkeypatch.setattr(arrow, "_AT_ONCE", 1)
    pd.testing.assert_frame_equal(ArrowTable.of(path).read(), whole)
    assert whole["gap"].isna().sum() == 50


def test_a_folder_is_read_in_the_order_of_its_paths(tmp_path):
    for number in (2, 10, 1):
        part = pa.table({"a": [number, number + 0.5]})
        store(part, tmp_path / f"part-{number:05}.parquet")
    (tmp_path / "_SUCCESS").touch()
    store(pa.table({"a": [0.0]}), tmp_path / "_temporary" / "part-0.parquet")
    (tmp_path / ".part-00001.parquet.crc").write_bytes(b"crc")
    table = ArrowTable.of(tmp_path)
    assert table.read()["a"].tolist() == [1, 1.5, 2, 2.5, 10, 10.5]
    assert table.n_rows == 6


def test_an_index_of_pandas_has_names_of_rows_and_is_no_column(tmp_path):
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=[7, 3])
    frame.to_parquet(path)
    table = ArrowTable.of(path)
    assert table.columns == ("a",)
    assert table.notes == "a.parquet: left out the index of pandas, '__index_level_0__'"
    frame.reset_index(drop=True).to_parquet(path)  # a range is no column
    assert ArrowTable.of(path).notes == ""


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "arrow"))
def test_what_is_no_table_is_refused_by_file_and_column(tmp_path, line, message):
    path = store(eval(line), tmp_path / "a.parquet")
    with pytest.raises(InvalidInput, match=message):
        ArrowTable.of(path).read()


def test_columns_that_are_not_read_have_any_type(tmp_path):
    """A column of dates or lists beside the one of documents is no reason to refuse."""
    dates = pa.array([0, 1], pa.timestamp("us"))
    table = pa.table({"text": ["good", "bad"], "when": dates, "list": [[1], [2]]})
    source = ArrowTable.of(store(table, tmp_path / "a.parquet"))
    assert source.read_texts("text").tolist() == ["good", "bad"]


def test_files_that_do_not_fit_together_are_refused(tmp_path):
    def refusal():
        with pytest.raises(InvalidInput) as error:
            ArrowTable.of(tmp_path)
        return str(error.value)

    assert "the folder has no file; expected files .parquet" in refusal()
    for suffix in (".parquet", ".arrow"):
        store(pa.table({"a": [1.0]}), tmp_path / f"1{suffix}")
    assert refusal().endswith("two formats, such as 1.arrow and 1.parquet")


# ---- Tables that are written


def test_what_is_written_reads_back_with_names_in_small_row_groups(
    tmp_path, monkeypatch, rng
):
    monkeypatch.setattr("propopt.base.files._ROW_GROUP", 4)
    frame = pd.DataFrame(rng.normal(size=(10, 2)), list("jihgfedcba"), ["a", "b"])
    frame["word"] = ["x", None, *"abcdefgh"]
    write_parquet(tmp_path / "a.parquet", frame, names_of_rows=True)
    read = pd.read_parquet(tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(read, frame.rename_axis("row"))
    assert pq.ParquetFile(tmp_path / "a.parquet").num_row_groups == 3
    write_parquet(tmp_path / "a.parquet", frame.iloc[:0], names_of_rows=False)
    assert pd.read_parquet(tmp_path / "a.parquet").shape == (0, 3)


def test_cells_of_several_types_are_written_as_text(tmp_path):
    frame = pd.DataFrame({"row": [1.0, 2.0, 3.0], 5: [1, "a", None]}, ["x", 1, (2, 3)])
    write_parquet(tmp_path / "a.parquet", frame, names_of_rows=True)
    read = pd.read_parquet(tmp_path / "a.parquet")
    assert read["5"].tolist()[:2] == ["1", "a"]
    assert read["5"].isna().tolist() == [False, False, True]
    assert read.index.tolist() == ["x", "1", "(2, 3)"]
    assert read["row"].tolist() == [1, 2, 3]


# ---- Types


def coded(values, index):
    kind = pa.dictionary(index, pa.string())
    return pa.array(values).dictionary_encode().cast(kind)


MOMENT = datetime.datetime(2026, 3, 1, 12, 30, 0, 123456)
WIDER = {
    "uint8, int8": (pa.array([200], pa.uint8()), pa.array([-3], pa.int8()), pa.int16()),
    "int32, float32": (
        pa.array([2**30 + 1], pa.int32()), pa.array([0.5], pa.float32()), pa.float64()),
    "int64, float64": (pa.array([2**53, None]), pa.array([0.5]), pa.float64()),
    "null, float64": (pa.nulls(2), pa.array([0.5]), pa.float64()),
    "null, text": (pa.nulls(1), pa.array(["a"]), pa.string()),
    "null, categories": (
        pa.nulls(1), coded(["a"], pa.int8()), pa.dictionary(pa.int8(), pa.string())),
    "categories, text": (coded(["b", "a"], pa.int8()), pa.array(["c"]), pa.string()),
    "categories": (
        coded(["b"], pa.int8()), coded(["c", "b"], pa.int16()),
        pa.dictionary(pa.int32(), pa.string())),
    "text, large text": (
        pa.array(["a"]), pa.array(["b"], pa.large_string()), pa.large_string()),
    "milliseconds, nanoseconds": (
        pa.array([5], pa.timestamp("ms")), pa.array([7], pa.timestamp("ns")),
        pa.timestamp("ns")),
    "seconds, microseconds": (
        pa.array([5], pa.timestamp("ms", "UTC")),
        pa.array([MOMENT], pa.timestamp("us", "UTC")), pa.timestamp("us", "UTC")),
    "bool": (pa.array([True, None]), pa.array([False]), pa.bool_()),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WIDER)
def test_a_column_has_the_values_of_all_files(name, kind, tmp_path):
    one, other, common = WIDER[name]
    for number, (first, last) in enumerate([(one, other), (other, one)]):
        folder = tmp_path / str(number)
        store(
            pa.table({"x": first, "n": pa.array(range(len(first)))}),
            folder / f"0{kind}",
        )
        store(
            pa.table({"n": pa.array(range(len(last))), "x": last}), folder / f"1{kind}"
        )
        table = cells(folder)
        # Parquet has no small codes
        assert table.schema.field("x").type == common or kind == ".parquet"
        values = first.to_pylist() + last.to_pylist()
        assert table.column("x").to_pylist() == values
        assert table.column_names == ["x", "n"]  # as the first file has them
        if pa.types.is_temporal(common):
            continue
        read = ArrowTable.of(folder).read()["x"]
        gone = [value is None for value in values]
        assert read.isna().tolist() == gone
        kept = [x for x in values if x is not None]
        assert read[~read.isna()].tolist() == kept


ALIEN = {
    "text": pa.array(["a"]),
    "float64": pa.array([0.5]),
    "bool": pa.array([True]),
    "timestamp": pa.array([5], pa.timestamp("us")),
    "zoned": pa.array([5], pa.timestamp("us", "UTC")),
    "date": pa.array([datetime.date(2026, 1, 2)]),
    "decimal": pa.array([Decimal("0.5")]),
    "decimal of other digits": pa.array([Decimal("0.25")]),
    "binary": pa.array([b"a"]),
    "list": pa.array([[1.0]]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_types_without_a_common_one_are_refused_by_file(kind, tmp_path):
    for one, first in ALIEN.items():
        for other, last in ALIEN.items():
            if one == other:
                continue
            assert wider_type(first.type, last.type) is None, (one, other)
            store(pa.table({"x": pa.nulls(1)}), tmp_path / f"0{kind}")
            store(pa.table({"x": first}), tmp_path / f"1{kind}")
            store(pa.table({"x": last}), tmp_path / f"2{kind}")
            with pytest.raises(InvalidInput) as error:
                ArrowFiles.of(tmp_path)
            message = (
                f"2{kind}: column 'x' holds {last.type}, and {first.type} in 1{kind}"
            )
            assert str(error.value).replace("element", "item").endswith(message)


INEXACT = {
    "int64, float64": (pa.array([1, None, 2**53 + 1]), pa.array([0.5])),
    "uint64, int64": (pa.array([1, 2, 2**63], pa.uint64()), pa.array([-1])),
    "microseconds, nanoseconds": (
        pa.array([MOMENT, None, datetime.datetime(9999, 1, 1)]),
        pa.array([7], pa.timestamp("ns")),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", INEXACT)
def test_a_value_that_the_common_type_lacks_is_named(name, kind, tmp_path):
    held, other = INEXACT[name]
    many = pa.concat_arrays([*3 * [held.slice(0, 1)], held])  # not in the first block
    store(pa.table({"x": many}), tmp_path / f"0{kind}")
    store(pa.table({"x": other}), tmp_path / f"1{kind}")
    files = ArrowFiles.of(tmp_path)
    for read in (lambda: files.table(["x"]), lambda: [*files.blocks(0, iter([7]), 2)]):
        with pytest.raises(
            InvalidInput, match=rf"0{kind}: column 'x', row 5: .* is no"
        ):
            read()


# ---- Columns


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("broken", [0, 1, 2])
def test_a_file_without_a_column_is_named(broken, kind, tmp_path):
    whole = pa.table({"a": [1.0], "b": [2.0], "unused": ["x"]})
    renamed = whole.rename_columns(["a", "B", "u"])
    for number in range(3):
        table = renamed if number == broken else whole
        store(table, tmp_path / f"{number}{kind}")
    has = 1 if broken == 0 else 0
    message = f"{broken}{kind}: has no column 'b', which {has}{kind} has"
    with pytest.raises(InvalidInput) as error:
        ArrowFiles.of(tmp_path, ["a", "b"])
    assert str(error.value).endswith(message)
    with pytest.raises(InvalidInput):
        ArrowFiles.of(tmp_path)
    assert len(cells(tmp_path, ["a"])) == 3  # columns that are not read may differ
    with pytest.raises(InvalidInput, match="the table has no 'z'; its columns are"):
        ArrowFiles.of(tmp_path, ["z"])


@pytest.mark.parametrize("kind", KINDS)
def test_folders_that_name_a_value_name_it_for_all_files(kind, tmp_path):
    for year in (2025, 2026):
        store(pa.table({"a": [1.0 * year]}), tmp_path / f"year={year}" / f"0{kind}")
    table = cells(tmp_path)
    assert table.column("year").to_pylist() == [2025, 2026]
    assert cells(tmp_path, ["year"]).column("year").to_pylist() == [2025, 2026]
    store(pa.table({"a": [0.0]}), tmp_path / f"loose{kind}")
    with pytest.raises(InvalidInput, match=rf"loose{kind}: has no column 'year'"):
        ArrowFiles.of(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_column_in_files_and_names_of_folders_is_refused(dtype, kind, tmp_path):
    for year in (2025, 2026):  # which the files contradict
        table = pa.table({"a": [0.5], "year": pa.array([1999], dtype)})
        store(table, tmp_path / f"year={year}" / f"0{kind}")
    with pytest.raises(InvalidInput, match="year"):
        ArrowFiles.of(tmp_path)
    form = "parquet" if kind == ".parquet" else "feather"
    alone = ds.dataset(tmp_path, format=form)  # as it says
    assert cells(alone).column("year").to_pylist() == [1999, 1999]


def test_a_dataset_is_read_by_the_schemas_of_its_files(tmp_path):
    store(
        pa.table({"a": pa.array([0.5], pa.float32()), "b": [1]}), tmp_path / "0.parquet"
    )
    store(pa.table({"a": [0.1], "b": [2]}), tmp_path / "1.parquet")
    assert cells(ds.dataset(tmp_path)).column("a").to_pylist() == [0.5, 0.1]


def test_cells_of_csv_have_the_types_of_the_dataset(tmp_path):
    (tmp_path / "0.csv").write_text("id,a\n007,1\n")
    (tmp_path / "1.csv").write_text("a,id\n2,008\n")
    schema = pa.schema([("id", pa.string()), ("a", pa.float64())])
    table = cells(ds.dataset(tmp_path, format="csv", schema=schema))
    assert table.to_pylist() == [{"id": "007", "a": 1.0}, {"id": "008", "a": 2.0}]
    (tmp_path / "2.csv").write_text("a,id\nx,009\n")
    files = ArrowFiles.of(ds.dataset(tmp_path, format="csv", schema=schema), ["a"])
    with pytest.raises(InvalidInput, match=r"2\.csv: cannot be read: .*'x'"):
        files.table(["a"])


# ---- Files that cannot be read, and others


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("broken", [0, 1])
def test_an_empty_file_is_named(broken, kind, tmp_path):
    for number in range(2):
        store(pa.table({"a": [1.0]}), tmp_path / f"{number}{kind}")
    (tmp_path / f"{broken}{kind}").write_bytes(b"")
    with pytest.raises(InvalidInput, match=rf"{broken}{kind}.*"):
        ArrowFiles.of(tmp_path)


def test_a_damaged_page_is_named(tmp_path):
    numbers = np.arange(20_000.0)
    for number in range(2):
        table = pa.table({"a": numbers})
        pq.write_table(
            table, tmp_path / f"{number}.parquet", compression="none",
            use_dictionary=False, write_page_checksum=True,
        )  # fmt: skip
    path = tmp_path / "1.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1  # a bit of one number
    path.write_bytes(content)
    files = ArrowFiles.of(tmp_path)
    for read in (
        lambda: files.table(["a"]),
        lambda: [*files.blocks(0, iter([40_000]), 99)],
    ):
        with pytest.raises(InvalidInput, match=r"1\.parquet: cannot be read: .*CRC"):
            read()


@pytest.mark.parametrize("kind", KINDS)
def test_other_files_describe_the_table_or_are_refused(kind, tmp_path):
    store(pa.table({"a": [1.0]}), tmp_path / f"0{kind}")
    for name in ("README.txt", "_SUCCESS", ".0.crc", "about.JSON"):
        (tmp_path / name).write_text("words")
    assert ArrowFiles.of(tmp_path).n_rows == ArrowTable.of(tmp_path).n_rows == 1
    for name in ("1.csv", "000001_0"):
        (tmp_path / name).touch()
        with pytest.raises(InvalidInput, match=f"the folder has a file {name}; .* _"):
            ArrowTable.of(tmp_path)
        (tmp_path / name).rename(tmp_path / f"_{name}")  # as it says
        assert ArrowFiles.of(tmp_path).n_rows == 1


# ---- Digests


def rows(path):
    """A folder of hive with two columns of two files."""
    for year, start in ((2025, 0.0), (2026, 100.0)):
        for number in range(2):
            values = start + 10 * number + np.arange(3_000.0)
            table = pa.table({"a": values, "b": values})
            store(table, path / f"year={year}" / f"{number}{path.suffix}")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_the_digest_is_that_of_names_and_all_bytes(kind, tmp_path, rng):
    folder = rows(tmp_path / f"rows{kind}")
    digest = ArrowFiles.of(folder).digest
    shutil.copytree(folder, tmp_path / "elsewhere")
    assert ArrowFiles.of(tmp_path / "elsewhere").digest == digest
    path = folder / "year=2025" / f"1{kind}"
    content = path.read_bytes()
    for place in rng.integers(100, 40_000, 20):  # cells, which no metadata sees
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        assert ArrowFiles.of(folder).digest != digest
    path.write_bytes(content)
    assert ArrowFiles.of(folder).digest == digest
    (folder / "year=2026").rename(folder / "year=2027")
    assert ArrowFiles.of(folder).digest != digest
    assert ArrowFiles.of(folder, ["a"]).digest != digest


def test_the_digest_of_a_table_in_memory_has_its_categories():
    frame = pd.DataFrame({"k": pd.Categorical(["u", "v", "u"])})
    other = frame.assign(k=frame.k.cat.rename_categories({"v": "w"}))
    one, same, another = (
        ArrowFiles.of(pa.Table.from_pandas(x)).digest for x in (frame, frame, other)
    )
    assert one == same
    assert one != another
