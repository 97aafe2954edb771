"""``propopt lime``: what LIME tends to at rows of a table, in files and in print."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import ROOT, names, write
from exact_csv import read_csv

import propopt as po
from propopt.cli import main


FOREST = """\
data: {sklearn: iris, explain: 30}
model: {kind: forest, n_estimators: 5, target_class: setosa}
lime: {rows: 3, n_samples: 200, path: [0.5, 2]}
"""
WHOLE = [
    "forest.json",
    "forest.npz",
    "forest.svg",
    "forest_diagnosis.csv",
    "forest_lime.csv",
    "forest_path.csv",
]
CUBE = """\
data: {grid: {low: -1, high: 1, per_dimension: 9, dimensions: 2}}
function: {name: power, degree: 3}
lime: {rows: [80, 7], n_samples: 100, n_bins: 3, diagnose: false}
"""


@pytest.fixture
def forest(tmp_path):
    return write(tmp_path, "forest", FOREST)


def lime(*arguments):
    return main(["lime", *map(str, arguments)])


def test_files_hold_what_the_library_finds(forest, out):
    assert lime(forest, "-o", out, "-q") == 0
    assert names(out) == WHOLE
    subject = po.problems.read_problem(forest).subject
    law = po.lime.TabularLaw.from_data(subject.others)
    rows = subject.points[:3]
    best = po.lime.limits(
        subject.function, rows, law, data=subject.others, n_samples=200
    )
    saved = po.lime.LimeExplanation.load(out / "forest.npz")
    np.testing.assert_array_equal(saved.coefficients, best.coefficients)
    table = read_csv(out / "forest_lime.csv")
    np.testing.assert_array_equal(table["coefficient"], best.coefficients.ravel())
    assert table["row"].tolist() == [row for row in rows.index for _ in range(4)]
    assert table["single_run_sd"].min() > 0
    assert table["single_run_sd_source"].str.match(r"estimate \([\d,]+ draws").all()
    stored = json.loads((out / "forest.json").read_text())
    assert stored["job"] == "lime"
    assert stored["lime"]["rows"] == list(rows.index)
    assert stored["lime"]["source"] == "exact"
    assert stored["score"]["name"] == "accuracy"


def test_the_path_has_the_limits_of_each_width(forest, out):
    assert lime(forest, "-o", out, "-q") == 0
    path = read_csv(out / "forest_path.csv")
    subject = po.problems.read_problem(forest).subject
    law = po.lime.TabularLaw.from_data(subject.others, kernel_width=2.0)
    wide = po.lime.limits(subject.function, subject.points[:3], law)
    result = path.loc[path["kernel_width"] == 2.0, "coefficient"]
    np.testing.assert_allclose(result, wide.coefficients.ravel(), rtol=1e-12)
    assert len(path) == 3 * 2 * 4
    assert (path["standard_error"] == 0.0).all()


def test_a_path_is_written_only_where_one_is_asked_for(tmp_path, out):
    text = FOREST.replace(", path: [0.5, 2]", "")
    assert lime(write(tmp_path, "forest", text), "-o", out, "-q") == 0
    assert names(out) == [name for name in WHOLE if "path" not in name]


def test_each_row_is_printed_with_its_noise(forest, out, capsys):
    assert lime(forest, "-o", out) == 0
    printed = capsys.readouterr().out
    rows = po.problems.read_problem(forest).subject.points[:3]
    saved = po.lime.LimeExplanation.load(out / "forest.npz")
    for row in rows.index:
        assert f"\n\n{saved.card(row).text()}\n" in printed
    assert "exact: no samples, no seed · lines: where 95 % of single runs" in printed
    assert "petal length (cm)" in printed
    assert "standard deviation of one run: up to " in printed
    suffixes = "_lime.csv, _diagnosis.csv, _path.csv, .svg, .npz and .json"
    assert f"wrote {out}/forest{suffixes} in" in printed


def test_what_coefficients_hide_is_told(forest, out, capsys):
    assert lime(forest, "-o", out) == 0
    printed = capsys.readouterr().out
    result = read_csv(out / "forest_diagnosis.csv")
    counts = json.loads((out / "forest.json").read_text())["findings"]
    assert counts == result.loc[result["found"], "rule"].value_counts().to_dict()
    assert "What misleads most: " in printed
    for rule in counts:
        assert f"\n  {rule}: " in printed


@pytest.mark.parametrize(
    ("path", "n_panels"), [("", 3), (", path: [0.5]", 3), (", path: [0.5, 2]", 6)]
)
def test_the_picture_has_the_rows_and_their_paths(tmp_path, out, path, n_panels):
    text = FOREST.replace(", path: [0.5, 2]", f"{path}, diagnose: false")
    assert lime(write(tmp_path, "forest", text), "-o", out, "-q") == 0
    drawn = (out / "forest.svg").read_text()
    assert drawn.count('<g id="axes_') == n_panels


def test_rows_are_those_of_the_table_whether_fitted_on_or_not(forest, out):
    file = po.problems.read_problem(forest)
    fitted, held = file.subject.others.index[0], file.subject.points.index[-1]
    assert lime(forest, "-o", out, "-q", "--rows", fitted, held) == 0
    table = read_csv(out / "forest_lime.csv")
    assert table["row"].unique().tolist() == [fitted, held]
    values = table.loc[table["row"] == fitted, "value"].to_numpy(float)
    np.testing.assert_array_equal(values, file.subject.others.iloc[0])


def test_rows_of_a_grid_keep_their_numbers(tmp_path, out, capsys):
    assert lime(write(tmp_path, "cube", CUBE), "-o", out) == 0
    table = read_csv(out / "cube_lime.csv")
    assert table["row"].unique().tolist() == [80, 7]
    assert table.loc[table["row"] == 80, "value"].tolist() == [1.0, 1.0]
    printed = capsys.readouterr().out
    assert "predicts 2 for row 80 (" in printed
    assert "misleads" not in printed
    assert names(out) == ["cube.json", "cube.npz", "cube.svg", "cube_lime.csv"]
    assert json.loads((out / "cube.json").read_text())["findings"] is None


def test_what_cannot_be_exact_says_why(tmp_path, out, capsys):
    text = FOREST.replace("forest, n_estimators: 5", "mlp, hidden: [3]")
    assert lime(write(tmp_path, "net", text), "-o", out) == 0
    printed = capsys.readouterr().out
    assert "\ncoefficients: estimate (" in printed
    stored = json.loads((out / "net.json").read_text())["lime"]
    assert stored["reason"]
    assert f"not exact because {stored['reason']}" in printed
    path = read_csv(out / "net_path.csv")
    assert (path["standard_error"] > 0).any()


def test_rows_of_the_command_line_are_refused_too(forest, out, capsys):
    assert lime(forest, "-o", out, "--rows", 150) == 2
    assert (
        "lime: rows: expected numbers below 150, of rows of the table"
        in capsys.readouterr().err
    )
    with pytest.raises(SystemExit):
        lime(forest, "--rows", "-1")
    assert not (out / "forest.npz").exists()


def test_each_command_runs_its_own_job(forest, out, capsys):
    assert main(["sweep", forest, "-o", str(out)]) == 2
    assert capsys.readouterr().err == f"{forest}:3: lime: is run by propopt lime\n"


def test_the_file_that_is_shipped_runs(out):
    path = ROOT / "problems" / "lime_breast_cancer.yaml"
    assert lime(path, "-o", out, "-q") == 0
    table = read_csv(out / "lime_breast_cancer_lime.csv")
    assert len(table) == 5 * 30
    assert (table["source"] == "exact").all()


def test_the_printout_says_what_is_estimated(forest, out, capsys):
    assert lime(forest, "-o", out) == 0
    told = capsys.readouterr().out
    assert ", estimated from 4,096 samples a row\n" in told
    assert "\nridge of one run: 1\n" in told
