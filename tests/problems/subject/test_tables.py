"""Tables of problem files: CSV files, columns, categories, targets, rows."""

import re

import numpy as np
import pandas as pd
import pytest
from refusals import refusals

import propopt as po
from propopt.problems.subject import tables
from propopt.problems.subject.tables import CsvTable


GOOD = "a,b,c,y\n1,2,3,4\n5,6,7,8\n"
FILE = """\
data: {csv: TABLE, target: y}
model: {kind: linear}
objective: {gradient_matching: 1}
"""


@pytest.fixture
def complaint(said, tmp_path):
    """What check and sweep say of a table: the same sentence, without the folder."""

    def check(content, name="table.csv", text=FILE):
        content = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(content)
        text = text.replace("TABLE", name)
        code, result = said(text, "check")
        assert (code, result) == said(text, "sweep", "-q", "-o", str(tmp_path / "out"))
        assert code == 2
        assert "\n" not in result
        return result.removeprefix("file.yaml:1: data.csv: ")

    return check


@pytest.mark.parametrize(("content", "message"), refusals(__file__, "no tables"))
def test_what_is_no_table(complaint, content, message):
    result = complaint(eval(content))
    assert result in (f"table.csv{message}", message.strip())


def test_lines_without_end_and_tables_without_columns(complaint, monkeypatch):
    assert complaint("y\n1\n2\n") == "table.csv has no column except the target"
    text = FILE.replace("target: y", "target: y, categorical: [a], standardize: true")
    message = "file.yaml:1: data.standardize: there is no numeric column"
    assert complaint("a,y\nu,1\nv,2\n", text=text) == message
    monkeypatch.setattr(tables, "MOST_OF_A_LINE", 100)
    message = "table.csv:4: a line of more than 100 bytes"
    assert complaint(f"{GOOD}{200 * '1,'}") == message
    name = "propopt.base.resources.memory_refusal"
    monkeypatch.setattr(name, lambda *_: "needs too much")
    assert complaint(GOOD) == "needs too much"


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "\n\n"),
        GOOD + " \n",
    ],
    ids=["mark", "windows", "blank", "space"],
)
def test_marks_ends_of_lines_and_blank_lines_do_not_matter(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    table = CsvTable.of(path)
    assert (table.columns, table.n_rows) == (("a", "b", "c", "y"), 2)
    np.testing.assert_array_equal(table.read(), [[1, 2, 3, 4], [5, 6, 7, 8]])
    np.testing.assert_array_equal(table.read(["c"]), [[3], [7]])


def test_quoted_cells_are_those_of_pandas(tmp_path):
    frame = pd.DataFrame({"a": ['x,"y"', "two\nlines", ""], "b, c": [1.5, 2, 3]})
    frame.to_csv(tmp_path / "table.csv", index=False)
    result = CsvTable.of(tmp_path / "table.csv").read().fillna("")
    pd.testing.assert_frame_equal(result, frame)


@pytest.mark.parametrize("name", [".", "none.csv", f"{300 * 'n'}.csv", "a.csv/", "\\0"])
def test_what_is_no_file(said, name):
    code, message = said(FILE.replace("TABLE", f'"{name}"'), "check")
    assert code == 2
    assert re.match(r"file\.yaml:1: data\.csv: there is no file \S+", message)


MODEL = FILE.replace("TABLE", "table.csv")


@pytest.fixture
def table(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(20, 2)), columns=["a", "b"])
    frame["y"] = frame["a"] - 2 * frame["b"]
    frame.to_csv(tmp_path / "table.csv", index=False)


@pytest.mark.usefixtures("table")
def test_csv_is_read_beside_the_file(problem):
    built = problem(MODEL).build()
    assert list(built.points.columns) == ["a", "b"]
    assert sorted(built.points.index) == list(range(20))
    best = po.solve(built.objective)
    np.testing.assert_allclose(best.to_frame()["b"], -2.0, atol=1e-8)
    text = MODEL.replace(", target: y", "")
    text = text.replace("model: {kind: linear}", "function: {name: sine}")
    assert list(problem(text).build().points.columns) == ["a", "b", "y"]


CATEGORIES = """\
data:
  csv: table.csv
  target: y
  standardize: true
  categorical: [city]
  groups: {colour: [red, blue]}
model: {kind: linear}
objective:
  gradient_matching: 1
  pairwise_robustness: {weight: 0.5, graph: {kind: knn, n_neighbors: 3}}
  smoothness: {weight: 0.1, graph: {kind: chain}}
baselines:
  - {method: gradient}
  - {method: smoothgrad, scale: [0.5], n_samples: 20}
"""


def test_categories_and_groups_are_one_feature_each(problem, rng, tmp_path):
    red = rng.integers(0, 2, 40)
    table = pd.DataFrame({"age": rng.normal(40, 10, 40)})
    table["city"] = rng.choice(["Bonn", "Oslo"], 40)
    table = table.assign(red=red, blue=1 - red)
    table["y"] = 2 * table["age"] + 3 * (table["city"] == "Oslo") - 5 * red
    table.to_csv(tmp_path / "table.csv", index=False)
    built = problem(CATEGORIES).build()
    points = built.points
    G = built.function.gradient(points)
    assert list(G.columns) == ["age", "city", "colour"]
    table = table.loc[G.index]
    np.testing.assert_allclose(G["age"], 2 * table["age"].std(ddof=0), rtol=1e-6)
    np.testing.assert_allclose(points["age"].std(ddof=0), 1.0)
    np.testing.assert_allclose(points["age"].mean(), 0.0, atol=1e-12)
    oslo = table["city"] == "Oslo"
    np.testing.assert_allclose(G["city"], 3 * (oslo - oslo.mean()), atol=1e-8)
    red = table["red"]
    np.testing.assert_allclose(G["colour"], -5 * (red - red.mean()), atol=1e-8)
    # rows of two cities are one apart
    coordinates, first = built.subject.coordinates, points.iloc[0]
    other = (points["city"] != first["city"]) & (points["red"] == first["red"])
    age = points["age"] - first["age"]
    squares = ((coordinates - coordinates[0]) ** 2).sum(axis=1)
    np.testing.assert_allclose(squares[other], 1 + age[other] ** 2)
    result = built.sweep(built.baselines())
    assert result.certified(1e-6)
    assert [e.attributions.shape for e in result.explanations] == [(40, 3)] * 3


TABLE = "a,b,y\n1.5,2,3\n5,6,7\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TABLE, ""),
        (TABLE.replace(",", ";"), "columns are separated by semicolons"),
        (TABLE.replace(",", "\t"), "columns are separated by tabs"),
        (",a,b,y\n0,1.5,2,3\n1,5,6,7\n", "the first column has row numbers"),
        ("Unnamed: 0;a;b;y\n1;1.5;2;3\n2;5;6;7\n", "semicolons; the first column"),
        (",a,b,y\n41,1.5,2,3\n7,5,6,7\n", "the first column has row numbers"),
        (",a,b,y\n3.0,1.5,2,3\n,5,6,7\n", "the first column has row numbers"),
        ("Unnamed: 0,a,b,y\n,1.5,2,3\n9,5,6,7\n", "row numbers and no name"),
    ],
)
def test_other_separators_and_numbers_of_rows_are_read_and_told(
    content, message, tmp_path
):
    path = tmp_path / "own.csv"
    path.write_text(content)
    table = CsvTable.of(path)
    assert table.columns == ("a", "b", "y")
    assert table.read().to_numpy().tolist() == [[1.5, 2.0, 3.0], [5.0, 6.0, 7.0]]
    assert table.read(["b"])["b"].tolist() == [2, 6]
    assert (message in table.notes) if message else table.notes == ""


@pytest.mark.parametrize(
    "cells", [("2", "2"), ("0.5", "1"), ("-1", "1"), ("a", "b"), ("", ""), ("1", "1.0")]
)
def test_a_column_of_that_name_that_numbers_nothing_is_kept(cells, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("Unnamed: 0,y\n{},3\n{},7\n".format(*cells))
    assert CsvTable.of(path).columns == ("Unnamed: 0", "y")
