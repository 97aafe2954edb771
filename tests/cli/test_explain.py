"""``propopt explain``: one explanation of a file, or of a table by its name."""

from __future__ import annotations

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
explain: {robustness: 0.5, scale: none}
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
    subject = look.subject
    best = po.explain(
        subject.function,
        subject.points,
        data=subject.others,
        robustness=0.5,
        scale=None,
    )
    np.testing.assert_array_equal(look.load().attributions, best.attributions)
    csv = look.table("_attributions", index_col=0)
    np.testing.assert_array_equal(csv, best.attributions)
    assert list(csv) == list(subject.points)
    assert list(csv.index) == list(subject.points.index)


def test_the_score_of_the_model_is_printed_and_stored(done):
    look = done(LOOK)
    X, y = load_iris(return_X_y=True, as_frame=True)
    rows = look.subject.points.index
    names_of_classes = load_iris().target_names[y[rows]]
    right = look.subject.estimator.predict(X.loc[rows]) == names_of_classes
    assert look.stored["score"]["value"] == right.mean()
    told = f"the model: accuracy {right.mean():.3f} on 30 held-out rows"
    assert told in look.printed
    assert " matter most to the " in look.printed
    assert "weight rule: given" in look.printed


def test_a_table_of_ones_own_needs_no_file(table, out, capsys):
    assert explain("--csv", table, "--target", "y", "-o", out) == 0
    printed = capsys.readouterr().out
    assert "20 points × 3 features" in printed
    assert "model: mlp, output auto, task regression, hidden [32, 16]" in printed
    assert "on 20 held-out rows" in printed
    csv = read_csv(out / "patients_attributions.csv", index_col=0)
    assert list(csv) == ["age", "'=dose", "plan"]
    assert set(csv.index) < set(range(60))
    assert json.loads((out / "patients.json").read_text())["job"] == "explain"


def test_the_task_can_be_said(table, out, capsys):
    explain("--csv", table, "--target", "plan", "--task", "regression", "-o", out)
    assert "a regression needs numbers, and some are text" in capsys.readouterr().err
    assert not out.exists() or names(out) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "explain: give a problem file, or --csv and --target\n"),
        (["--csv", "a.csv"], "explain: --csv and --target belong together\n"),
        (["--target", "y"], "explain: --csv and --target belong together\n"),
        (["--csv", "a.csv", "--target", "y"], "--csv: there is no file a.csv\n"),
    ],
)
def test_what_is_missing_is_said(arguments, message, capsys):
    assert explain(*arguments) == 2
    assert capsys.readouterr().err == message


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


@pytest.mark.parametrize("deep", [[], ["--deep"]])
def test_a_file_to_explain_is_checked(look, capsys, deep):
    assert main(["check", look, *deep]) == 0
    assert capsys.readouterr().err == ""


def test_the_graph_and_the_units_are_those_of_the_file(done):
    text = LOOK.replace("scale: none", "graph: {kind: chain}, scale: std")
    parameters = done(text, "-q").stored["picked"]["parameters"]
    assert parameters["graph"].startswith("<chain graph: 30 nodes")
    assert parameters["scale"] == "std"


def test_shares_stand_beside_losses(done):
    picked = done(LOOK).stored["picked"]
    assert picked["shares"].keys() == picked["losses"].keys()
    kept = picked["shares"]["gradient_matching"]
    assert f"; {100 * kept:.1f} % kept\n" in done(LOOK).printed


@pytest.mark.parametrize("command", ["sweep", "explain", "check"])
def test_code_that_a_file_names_runs_only_where_it_is_allowed(
    command, tmp_path, capsys, monkeypatch
):
    (tmp_path / "own_model_of_a_test.py").write_text(
        "def model(X):\n    return 2 * X[:, 0]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    job = "explain: {}" if command == "explain" else "objective: {gradient_matching: 1}"
    path = write(
        tmp_path,
        "own",
        "data: {grid: {low: -1, high: 1, per_dimension: 9, dimensions: 1}}\n"
        f"model: {{import: 'own_model_of_a_test:model'}}\n{job}\n",
    )
    assert main([command, path]) == 2
    assert "add --allow-code to the command" in capsys.readouterr().err
    assert main([command, path, "--allow-code"]) == 0


def alone(done, n, **settings):
    """A row as the explainer of the library explains it without others."""
    subject = done.subject
    explainer = po.Explainer(subject.function, subject.others, **settings).fit()
    return explainer.explain(subject.points.iloc[[n]]).attributions[0]


def test_rows_by_themselves_do_not_depend_on_the_other_rows(done):
    one = done(LOOK.replace("scale: none", "scale: none, reference: 40"))
    result = one.load()
    assert result.solver == "conditional"
    assert result.details["reference_rows"].max() < 40
    expected = alone(one, 7, n_reference=40, robustness=0.5, scale=None)
    np.testing.assert_array_equal(result.attributions[7], expected)


TREES = """\
data: {sklearn: breast_cancer, explain: 40}
model: {kind: hist_gradient_boosting, target_class: malignant, max_iter: 20}
explain: {}
"""


def test_parts_of_the_output_add_up_to_what_is_written(done):
    trees = done(TREES.replace("{}", "{units: output, metric: effects}"))
    stored, subject = trees.stored, trees.subject
    W = trees.table("_attributions", index_col=0)
    totals = np.array(stored["prediction"]) - stored["base_value"]
    np.testing.assert_allclose(W.sum(axis=1), totals, atol=1e-9)
    margins = subject.estimator.decision_function(subject.points)
    np.testing.assert_allclose(np.abs(stored["prediction"]), np.abs(margins))
    best = po.explain(
        subject.function,
        subject.points,
        data=subject.others,
        units="output",
        metric="effects",
        rng=0,
    )
    np.testing.assert_array_equal(W, best.attributions)
    assert stored["units"].startswith("contribution of each feature to the log-odds of")
    assert stored["units"].endswith("; every row adds up to f(x) − base")
    assert f"attributions: {stored['units']}\n" in trees.printed
    exact = "target exact (TreeSHAP, 100 background rows)"
    assert f"(optimization) · {exact}" in trees.printed
    assert stored["gradient"] == exact.removeprefix("target ")


@pytest.mark.parametrize(
    ("rows", "reference"), [("explain: 1", ""), ("explain: 9", ", reference: 60")]
)
def test_rows_by_themselves_add_up_to_what_is_written(done, rows, reference):
    text = TREES.replace("{}", f"{{units: output, metric: effects{reference}}}")
    trees = done(text.replace("explain: 40", rows))
    result, subject = trees.load(), trees.subject
    assert result.solver == "conditional"
    total = subject.function.value(subject.points) - result.base_value
    np.testing.assert_allclose(result.attributions.sum(axis=1), total, atol=1e-12)
    settings = {"units": "output", "metric": "effects"}
    expected = alone(trees, 0, n_reference=60 if reference else 500, **settings)
    np.testing.assert_array_equal(result.attributions[0], expected)


def test_trees_are_explained_by_the_data_law_of_the_fitted_rows(done):
    trees = done(TREES)
    stored = trees.stored
    assert stored["picked"]["target_error"]["relative"] == 0
    assert stored["picked"]["parameters"]["reference"].startswith("529 rows")
    assert stored["units"] == (
        "change of the log-odds of malignant per standard deviation of each feature"
    )
    assert "gap" in trees.printed
    assert "target exact (boxes)" in trees.printed


def test_the_law_and_the_precision_are_those_of_the_file(done):
    text = TREES.replace("max_iter: 20", "max_iter: 5, output: probability")
    gaussian, precise = (
        done(text.replace("{}", settings), "-q").stored["picked"]["target_error"]
        for settings in (
            "{law: gaussian}",
            "{precision: 0.5, max_evaluations: 200000}",
        )
    )
    assert "pairs" in gaussian["in_words"]
    assert 0 < precise["relative"] <= 0.5


def test_smooth_chooses_the_slopes_of_an_explanation(done):
    trees = done(TREES.replace("max_iter: 20", "max_iter: 5, smooth: {scale: 1}"), "-q")
    subject, result = trees.subject, trees.load().gradient
    sizes = subject.others.std(ddof=0).to_numpy()
    mean = po.smoothed(subject.function.function, sizes, 500, 0)
    expected = mean.gradient(subject.points) * sizes
    np.testing.assert_allclose(result, expected, atol=1e-12)
    assert np.abs(result).max() > 0.1


def test_what_matters_most_is_listed_and_what_is_left_out_is_counted(
    tmp_path, out, capsys
):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 15))).add_prefix("x")
    X.assign(y=X["x0"] - X["x1"]).to_csv(tmp_path / "wide.csv", index=False)
    csv = str(tmp_path / "wide.csv")
    assert explain("--csv", csv, "--target", "y", "-o", out) == 0
    lines = capsys.readouterr().out.splitlines()
    start = next(n for n, line in enumerate(lines) if " matter most to " in line)
    W = read_csv(out / "wide_attributions.csv", index_col=0)
    sizes = W.abs().mean().sort_values(ascending=False, kind="stable")
    shown = [line.split()[0] for line in lines[start + 2 : start + 14]]
    assert shown == list(sizes.index[:12])
    rest = f"3 others, at most {sizes.iloc[12]:.3g} in size"
    assert lines[start + 14] == rest
    assert lines[start + 15].startswith("optimal (gap 0) · target ")
