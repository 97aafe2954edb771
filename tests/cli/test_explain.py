"""``propopt explain``: one explanation of a file, or of a large table."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import names, sweep, write
from exact_csv import read_csv
from sklearn.datasets import load_iris

import propopt as po
from propopt.cli import main


LOOK = """\
data: {sklearn: iris, explain: 30}
model: {kind: logistic, target_class: setosa}
explain: {kind: slopes, robustness: 0.5, scale: none}
"""


@pytest.fixture
def look(tmp_path):
    return write(tmp_path, "look", LOOK)


@pytest.fixture
def table(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["age", "=dose"])
    frame["plan"] = np.where(frame["age"] > 0, "long", "short")
    frame["y"] = 3 * frame["age"] + (frame["plan"] == "long")
    path = tmp_path / "patients.csv"
    frame.to_csv(path, index=False)
    return path


def explain(*arguments):
    return main(["explain", *map(str, arguments)])


def test_a_file_is_explained_as_the_library_would(done):
    look = done(LOOK)
    assert names(look.folder) == ["file.json", "file.npz", "file_attributions.csv"]
    subject, stored, printed = look.subject, look.stored, look.printed
    points, settings = subject.points, {"robustness": 0.5, "scale": None}
    settings["kind"] = "slopes"
    best = po.explain(subject.function, points, data=subject.others, **settings)
    np.testing.assert_array_equal(look.load().attributions, best.attributions)
    csv = look.table("_attributions", index_col=0)
    np.testing.assert_array_equal(csv, best.attributions)
    assert list(csv) == list(points)
    assert list(csv.index) == list(points.index)
    X, y = load_iris(return_X_y=True, as_frame=True)
    classes = load_iris().target_names[y[points.index]]
    right = (subject.estimator.predict(X.loc[points.index]) == classes).mean()
    assert stored["score"]["value"] == right
    assert f"accuracy {right:.3f} on 30 held-out rows" in printed
    picked = stored["picked"]
    assert picked["shares"].keys() == picked["losses"].keys()


def test_each_command_runs_its_own_job(look, file, tmp_path, out, capsys):
    ends = {"lime": "lime: {rows: 3}", "interactions": "interactions: {}"}
    rows = "data: {sklearn: diabetes}\nmodel: {kind: linear}\n"
    others = [write(tmp_path, job, f"{rows}{end}\n") for job, end in ends.items()]
    for path in (look, *others):
        assert sweep(path, "-o", out) == 2
    assert explain(file, "-o", out) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"{look}:3: explain: is run by propopt explain",
        f"{others[0]}:3: lime: is run by propopt lime",
        f"{others[1]}:3: interactions: is run by propopt interactions",
        f"{file}:4: objective: is run by propopt sweep",
    ]


TREES = """\
data: {sklearn: breast_cancer, explain: 40}
model: {kind: hist_gradient_boosting, target_class: malignant, max_iter: 20}
explain: {}
"""


def test_parts_of_the_output_add_up_to_what_is_written(done):
    trees = done(TREES.replace("{}", "{kind: contributions, metric: effects}"))
    stored, subject = trees.stored, trees.subject
    W = trees.table("_attributions", index_col=0)
    totals = np.array(stored["prediction"]) - stored["base_value"]
    np.testing.assert_allclose(W.sum(axis=1), totals, atol=1e-9)
    margins = subject.estimator.decision_function(subject.points)
    np.testing.assert_allclose(np.abs(stored["prediction"]), np.abs(margins))
    settings = {"data": subject.others, "kind": "contributions", "metric": "effects"}
    best = po.explain(
        subject.function, subject.points, sampling=po.Sampling(rng=0), **settings
    )
    np.testing.assert_array_equal(W, best.attributions)
    assert stored["units"].startswith("contribution of each feature to the log-odds of")
    assert f"\n{trees.load()}\n" in trees.printed
    assert stored["gradient"] == "exact (TreeSHAP, 529 background rows)"


def test_the_law_and_the_precision_are_those_of_the_file(done):
    text = TREES.replace("max_iter: 20", "max_iter: 5, output: probability")
    precision = "{kind: slopes, precision: 0.5, max_evaluations: 200000}"
    of_data, gaussian, precise = (
        done(one, *quiet)
        for one, *quiet in (
            (TREES.replace("{}", "{kind: slopes}"),),
            (text.replace("{}", "{kind: slopes, law: gaussian}"), "-q"),
            (text.replace("{}", precision), "-q"),
        )
    )
    stored = of_data.stored
    assert stored["picked"]["sampling_error"]["excess"] == 0
    assert stored["picked"]["parameters"]["graph"] == "8 nearest of 500 reference rows"
    assert "sampling error  0%" in of_data.printed
    assert "pairs" in gaussian.stored["picked"]["sampling_error"]["source"]
    assert 0 < precise.stored["picked"]["sampling_error"]["excess"] <= 0.5


# ---- reasons
REASONS = "{reasons: {k: 3, groups: {radius: [mean radius, worst area]}}}"


def test_reasons_are_printed_row_by_row_and_written_for_letters(done):
    trees = done(TREES.replace("{}", REASONS).replace("40", "12"))
    best = po.explain(
        trees.subject.function,
        trees.subject.points,
        data=trees.subject.others,
        kind="contributions",
        sampling=po.Sampling(rng=0),
    )
    groups = {"radius": ["mean radius", "worst area"]}
    reasons = best.reasons(k=3, groups=groups)
    table = trees.table("_reasons", dtype={"value": str})
    pd.testing.assert_frame_equal(table, reasons.to_frame(), check_dtype=False)
    printed = [reasons.sheet(name) for name in reasons.names]
    assert all(sheet in trees.printed for sheet in printed[:10])
    assert not any(sheet in trees.printed for sheet in printed[10:])
    assert "\n2 more\n" in trees.printed
    assert trees.printed.index(printed[9]) < trees.printed.index(
        reasons.document().title
    )
    stored = trees.stored["reasons"]
    assert stored["clear_rows"] == list(reasons.clear_rows)
    assert stored["small_change"] == reasons.small_change
    assert stored["sampling_error"] == 0.0
    assert (stored["k"], stored["towards"]) == (3, "higher")
    # the option alone takes all defaults, and adds nothing where they are asked for
    plain = done(TREES.replace("{}", "{kind: contributions}"), "--reasons", "-q")
    assert (plain.printed, plain.stored["reasons"]["k"]) == ("", 4)
    assert {
        *["clear", "best_rank", "worst_rank", "sampling_error", "stable", "votes"]
    } < {*plain.table("_reasons")}


def test_the_model_of_a_file_is_refitted_for_stable_reasons(done):
    rows = "{reasons: {k: 2, refits: 6}}"
    trees = done(TREES.replace("{}", rows).replace("40", "4"), "--report")
    table = trees.table("_reasons")
    subject = trees.subject
    refits = po.null_models.bootstrap_refits(
        subject.estimator, subject.others, subject.others_target, times=6, rng=0
    )
    best = po.explain(subject.function, subject.points, data=subject.others)
    expected = best.reasons(k=2, models=refits).to_frame()
    columns = ["stable", "stable_first", "votes", "retrained_models"]
    pd.testing.assert_frame_equal(table[columns], expected[columns], check_dtype=False)
    assert {*table["retrained_models"]} == {trees.stored["reasons"]["n_models"]} == {6}
    assert "retrained models" in trees.printed
    assert "retrained models" in (trees.folder / "file.html").read_text("utf-8")


def test_reasons_of_scaled_columns_have_the_numbers_of_the_table(
    table, tmp_path, out, look, capsys
):
    data = "{csv: patients.csv, target: y, categorical: [plan], standardize: true}"
    rest = "model: {kind: linear}\nexplain: {}\n"
    own = write(tmp_path, "patients", f"data: {data}\n{rest}")
    assert explain(own, "-o", out, "--reasons", "--report") == 0
    assert "Reasons, row by row" in (out / "patients.html").read_text("utf-8")
    reasons = read_csv(out / "patients_reasons.csv")
    reference = pd.read_csv(table)
    assert set(reasons["feature"]) == {"age", "plan"}  # y does not depend on =dose
    for row, name, value in reasons[["row", "feature", "value"]].to_numpy():
        cell = reference[name][row]
        expected = cell if isinstance(cell, str) else pytest.approx(cell, rel=1e-3)
        assert (value if isinstance(cell, str) else float(value)) == expected
    assert "for a higher output, in y\n" in capsys.readouterr().out
    assert explain(look, "-o", out, "--reasons") == 2
    message = f"{look}:3: explain: reasons: expected contributions, got slopes"
    assert message in capsys.readouterr().err


LARGE = """\
data: {csv: patients.csv, target: y, categorical: [plan]}
model: {kind: linear}
explain: {}
"""


@pytest.fixture
def large(table, tmp_path, rng):
    """A problem file, and a Parquet file of 50 other rows with one more column."""
    pytest.importorskip("pyarrow")
    assert table.name in LARGE
    rows = pd.DataFrame(rng.normal(size=(50, 2)), columns=["=dose", "age"])
    rows["plan"], rows["id"] = np.where(rows["age"] > 1, "long", "short"), range(50)
    rows.to_parquet(tmp_path / "rows.parquet", row_group_size=9)
    return write(tmp_path, "large", LARGE), tmp_path / "rows.parquet", tmp_path / "out"


def test_rows_of_parquet_are_explained_into_a_folder(large, capsys):
    file, rows, out = large
    assert explain(file, "--rows", rows, "-o", out, "--report") == 0
    assert names(out) == ["large.html", "large.json", "large.npz", "large_rows"]
    printed = capsys.readouterr().out
    assert f"rows: {out / 'large_rows'}" in printed
    assert "50 rows × 3 features, in a folder" in printed
    subject = po.problems.read_problem(file).subject
    explainer = po.Explainer(subject.function, subject.others).fit()
    X = pd.read_parquet(rows)[["age", "=dose", "plan"]]
    expected = explainer.transform(X)
    read = pd.read_parquet(out / "large_rows")
    same = read[list(expected)]  # and two columns of lists
    pd.testing.assert_frame_equal(same, expected, check_exact=True)
    table = po.results.ExplainedTable.load(out / "large_rows")
    assert repr(po.results.ExplainedTable.load(out / "large.npz")) == repr(table)
    stored = json.loads((out / "large.json").read_text())
    assert stored["rows"]["n_rows"] == 50
    assert stored["rows"]["columns"] == list(expected.columns)
    assert main(["report", str(out / "large_rows"), "-o", str(out / "page.html")]) == 0
    assert "50 rows × 3 features" in (out / "page.html").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("explain: {}", "explain: {reasons: {}}"), "rows and reasons: reasons are of"),
        (
            ("y, ", "y, standardize: true, "),
            "needs data.csv or parquet, in its own units",
        ),
        (("csv: patients.csv, target: y, categorical: [plan]", "sklearn: iris"), "csv"),
    ],
)
def test_settings_that_rows_do_not_take_are_refused(large, change, message, capsys):
    file, rows, out = large
    write(rows.parent, "large", LARGE.replace(*change))
    assert explain(file, "--rows", rows, "-o", out) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()
