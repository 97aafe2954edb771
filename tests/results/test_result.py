"""CSV files of results: every number to the last digit, and names are no formulas."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest
from exact_csv import read_csv

import propopt as po
from propopt.tables.frames import Labels


OBJECTIVE = po.GradientMatching(np.eye(3)) + po.PairwiseRobustness(po.chain_graph(3))
ODD = np.array([[1 / 3, -0.0, 5e-324], [0.1 + 0.2, 1.7976931348623157e308, -1e-17]])


def written(explanation, path):
    explanation.to_csv(path)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_every_float_reads_back_to_the_same_value(tmp_path):
    explanation = po.Explanation(attributions=ODD, method="mine")
    head, *rows = written(explanation, tmp_path / "odd.csv")
    assert head == ["", "x0", "x1", "x2"]
    numbers = np.array([[float(cell) for cell in row[1:]] for row in rows])
    assert numbers.tobytes() == ODD.tobytes()


def test_names_are_those_of_rows_and_columns_and_no_formulas(tmp_path):
    columns = ("+cmd|' /C calc'!A0", "-1.5", "größe")
    labels = Labels(("=1+1", -2, "a,b\nc"), columns)
    explanation = po.Explanation(
        attributions=np.ones((3, 3)), method="mine", labels=labels
    )
    head, *rows = written(explanation, tmp_path / "names.csv")
    assert head == ["", "'+cmd|' /C calc'!A0", "-1.5", "größe"]
    assert [row[0] for row in rows] == ["'=1+1", "-2", "a,b\nc"]


def test_methods_of_trade_offs_are_no_formulas(tmp_path):
    named = po.Explanation(
        attributions=np.ones((3, 3)), method="=cmd()", parameters={"a": "@b", "n": 1}
    )
    curve = po.sweep(OBJECTIVE, baselines=[named, np.eye(3)])
    curve.to_csv(tmp_path / "curve.csv")
    table = read_csv(tmp_path / "curve.csv")
    assert list(table["method"]) == ["optimized", "'=cmd()", "baseline 2"]
    assert table["parameter.a"][1] == "'@b"
    text = (tmp_path / "curve.csv").read_text()
    assert ",1," in text.splitlines()[2]  # a whole number stays one


def test_a_table_without_formulas_is_written_as_pandas_writes_it(tmp_path):
    curve = po.sweep(OBJECTIVE, {"pairwise_robustness": [0.1, 1.0]}, [np.eye(3)])
    curve.to_csv(tmp_path / "ours.csv")
    curve.to_frame().to_csv(tmp_path / "theirs.csv", index=False)
    ours, theirs = (tmp_path / f"{name}.csv" for name in ("ours", "theirs"))
    assert ours.read_bytes() == theirs.read_bytes()


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    explanation = po.solve(OBJECTIVE)
    explanation.to_csv(tmp_path / "best.csv")
    before = (tmp_path / "best.csv").read_bytes()

    def to_csv(_, path, **__):
        path.write_text("half")
        raise OSError("disk full")

    monkeypatch.setattr(pd.DataFrame, "to_csv", to_csv)
    with pytest.raises(OSError, match="disk full"):
        explanation.to_csv(tmp_path / "best.csv")
    assert (tmp_path / "best.csv").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1
