"""Tables in Parquet, Arrow and Feather files: cells, types, folders, refusals."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from refusals import refusals

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.files import write_parquet
from propopt.tables import arrow
from propopt.tables.arrow import ArrowTable
from propopt.tables.frames import table_labels
from propopt.tables.imported import read_attributions


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


def stored(path, table=TABLE):
    write = pq.write_table if path.suffix == ".parquet" else feather.write_feather
    write(table, path)
    return path


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow", ".PARQUET"])
def test_cells_are_those_of_the_file_in_every_format(tmp_path, suffix):
    path = stored(tmp_path / f"table{suffix.lower()}").rename(tmp_path / f"a{suffix}")
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
        stored(tmp_path / f"part-{number:05}.parquet", part)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "_temporary").mkdir()
    stored(tmp_path / "_temporary" / "part-0.parquet", pa.table({"a": [0.0]}))
    (tmp_path / ".part-00001.parquet.crc").write_bytes(b"crc")
    table = ArrowTable.of(tmp_path)
    assert table.read()["a"].tolist() == [1, 1.5, 2, 2.5, 10, 10.5]
    assert table.n_rows == 6


def test_folders_of_a_partition_are_a_column(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "year": [2026, 2025, 2026]})
    frame.to_parquet(tmp_path, partition_cols=["year"])
    read = ArrowTable.of(tmp_path).read()
    assert read["year"].tolist() == [2025, 2026, 2026]
    assert read["a"].tolist() == [2, 1, 3]


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
    path = stored(tmp_path / "a.parquet", eval(line))
    with pytest.raises(InvalidInput, match=message):
        ArrowTable.of(path).read()


def test_columns_that_are_not_read_have_any_type(tmp_path):
    """A column of dates or lists beside the one of documents is no reason to refuse."""
    dates = pa.array([0, 1], pa.timestamp("us"))
    table = pa.table({"text": ["good", "bad"], "when": dates, "list": [[1], [2]]})
    source = ArrowTable.of(stored(tmp_path / "a.parquet", table))
    assert source.read_texts("text").tolist() == ["good", "bad"]
    with pytest.raises(InvalidInput, match="column 'when' holds timestamp"):
        source.read()


def test_files_that_do_not_fit_together_are_refused(tmp_path):
    def refusal(path=tmp_path):
        with pytest.raises(InvalidInput) as error:
            ArrowTable.of(path)
        return str(error.value).replace(f"{tmp_path}/", "")

    assert "the folder has no file; expected files .parquet" in refusal()
    for suffix in (".parquet", ".arrow"):
        stored(tmp_path / f"1{suffix}", pa.table({"a": [1.0]}))
    assert refusal().endswith("two formats, such as 1.arrow and 1.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    assert "broken.parquet: cannot be read" in refusal(tmp_path / "broken.parquet")


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


def test_a_result_is_written_and_audited_by_its_names(tmp_path, rng):
    X = pd.DataFrame(rng.normal(size=(12, 3)), columns=list("abc"))
    X.index = rng.permutation(12)
    best = po.explain(
        lambda table: np.asarray(table) @ [1.0, -2.0, 0.5], X, progress=False
    )
    path = tmp_path / "best.parquet"
    best.to_parquet(path)
    pd.testing.assert_frame_equal(
        pd.read_parquet(path), best.to_frame().rename_axis("row")
    )
    shuffled = pd.read_parquet(path).iloc[rng.permutation(12)][list("bca")]
    shuffled.to_parquet(path)
    read = read_attributions(path, "W", table_labels(X))
    np.testing.assert_array_equal(read.values, best.attributions)
    shuffled.assign(a="x").to_parquet(path)
    with pytest.raises(InvalidInput, match="column 'a' holds text"):
        read_attributions(path, "W", table_labels(X))
