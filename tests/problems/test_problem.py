"""Problem files: what a user reads after each mistake, and what a valid file builds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import propopt as po
from propopt.errors import InvalidInput, ProblemFileError
from propopt.explainers import BASELINES


SHIPPED = sorted(Path(__file__).parents[2].glob("problems/**/*.yaml"))
GRID = "{low: -1, high: 1, per_dimension: 5, dimensions: 1}"
FILE = f"""\
data:
  grid: {GRID}
function: {{name: power, degree: 3}}
objective:
  gradient_matching: 1
  pairwise_robustness:
    weight: 1
    graph: {{kind: gaussian, lengthscale: 0.5}}
sweep:
  pairwise_robustness: [0.1, 1]
"""
TOP = (
    "name, description, setting, data, function, model, objective, inductive, sweep, "
    "limits, baselines, plot, solver, tolerance, seed"
)
LOSSES = (
    "gradient_matching, function_matching, pairwise_robustness, kernel_robustness, "
    "max_difference_robustness, smoothness, sparsity"
)
POINT_GRAPHS = "'gaussian', 'grid_gaussian', 'knn', 'threshold', 'complete' or 'chain'"
METHODS = "'gradient', 'smoothgrad', 'lime', 'lime_package' or 'shap'"
FORMULAS = (
    "'power', 'interactions', 'sine', 'sine_of_exponential', "
    "'linear_plus_sine_of_exponential', 'linear_plus_sine', 'quadratic_plus_sine' or "
    "'exponential'"
)
OF_LOSS = "expected a weight, or a mapping with the settings of the loss"
OF_SWEEP = "expected a list of weights, or a range {low: , high: , points: }"


@pytest.fixture
def write(tmp_path):
    def write_text(text, name="file.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


def complaint(path):
    """The message for a file, without the folder that it is in."""
    with pytest.raises(ProblemFileError) as caught:
        po.problems.read_problem(path)
    return str(caught.value).replace(f"{path.parent}/", "")


def instead(old, new):
    assert FILE.count(old) == 1
    return FILE.replace(old, new)


# ---- mistakes in keys and values

WRONG = {
    # keys
    "sovler: auto": f"sovler: unknown key (did you mean 'solver'?); known here: {TOP}",
    "a.b: 1": f"'a.b': unknown key; known here: {TOP}",
    "3: 4": "expected a key that is text, got 3",
    "limits: {sparsity: [1]}": "limits.sparsity: the objective has no 'sparsity'; "
    "it has gradient_matching, pairwise_robustness",
    "limits: {pairwise_robustness: [1]}": "limits.pairwise_robustness: has weights in "
    "sweep; give limits or weights",
    "on: 4": "expected a key that is text, got on",
    "~: 4": "expected a key that is text, got ~",
    "?\n: 4": "expected a key that is text, got nothing",
    "[1, 2]: 4": "expected a key that is text, got a list",
    "? {a: 1}\n: 4": "expected a key that is text, got a mapping",
    "function: {name: sine}": "function: given twice",
    # values
    "seed: -1": "seed: expected a number >= 0, got -1",
    "seed: 1.5": "seed: expected a whole number, got 1.5",
    "seed: true": "seed: expected a whole number, got true",
    "tolerance: 0": "tolerance: expected a number > 0, got 0",
    "tolerance: tiny": "tolerance: expected a number, got 'tiny'",
    "tolerance:": "tolerance: expected a number, got nothing",
    "tolerance: [1]": "tolerance: expected a number, got a list",
    "description: 3": "description: expected text, got 3",
    "name: a/b": "name: expected letters, digits, '_', '-' and '.' only, got 'a/b'",
    "name: ..": "name: expected letters, digits, '_', '-' and '.' only, got '..'",
    # names of other parts
    "plot: {x: gradient_matching, y: pairwise}": (
        "plot.y: the objective has no 'pairwise'; it has gradient_matching, "
        "pairwise_robustness"
    ),
    "plot: {x: gradient_matching, y: pairwise_robustnes}": (
        "plot.y: the objective has no 'pairwise_robustnes' (did you mean "
        "'pairwise_robustness'?); it has gradient_matching, pairwise_robustness"
    ),
    "plot: {x: gradient_matching}": "plot.y: required, and missing",
    # baselines
    "baselines: {method: gradient}": "baselines: expected a list, got a mapping",
    "baselines: [gradient]": (
        "baselines.0: expected a mapping of keys to values, got 'gradient'"
    ),
    "baselines: [{scale: [1]}]": (
        f"baselines.0.method: required, and missing; expected {METHODS}"
    ),
    "baselines: [{method: gradient}, {method: smoothgrd}]": (
        f"baselines.1.method: expected {METHODS}, got 'smoothgrd' (did you mean "
        "'smoothgrad'?)"
    ),
    "baselines: [{method: lime, scale: [1], samples: 3}]": (
        "baselines.0.samples: unknown key (did you mean 'n_samples'?); known here: "
        "method, scale, n_samples, distribution, kernel_width, ridge, fit_intercept, "
        "relative"
    ),
    "baselines: [{method: smoothgrad, scale: [1, -2]}]": (
        "baselines.0.scale.1: expected a number > 0, got -2"
    ),
    "baselines: [{method: smoothgrad, scale: []}]": (
        "baselines.0.scale: expected at least one value, got an empty list"
    ),
    "baselines: [{method: smoothgrad, scale: [1], n_samples: 1}]": (
        "baselines.0: n_samples: expected at least 2, which a standard error needs, "
        "got 1"
    ),
    "baselines: [{method: lime, scale: [1], fit_intercept: 1}]": (
        "baselines.0.fit_intercept: expected true or false, got 1"
    ),
    # what YAML itself offers
    "name: !foo bar": "name: the tag !foo is not allowed: plain data only",
    "name: *x": "not valid YAML: found undefined alias 'x'",
    "baselines: &b [*b]": "baselines.0: an alias stands inside what it repeats",
    "name: \x07": r"not valid YAML: the character '\x07' is not allowed",
    "---\na: b": (
        "not valid YAML: expected a single document in the stream, but found another "
        "document"
    ),
}


@pytest.mark.parametrize("added", WRONG)
def test_message_for_a_line_added(write, added):
    assert complaint(write(f"{FILE}{added}\n")) == f"file.yaml:11: {WRONG[added]}"


REPLACED = {
    # the objective
    ("gradient_matching: 1", "gradiant_matching: 1"): (
        "5: objective.gradiant_matching: unknown key (did you mean "
        f"'gradient_matching'?); known here: {LOSSES}"
    ),
    ("gradient_matching: 1", "gradient_matching: -1"): (
        "5: objective.gradient_matching: expected a number >= 0, got -1"
    ),
    ("gradient_matching: 1", "gradient_matching: heavy"): (
        f"5: objective.gradient_matching: {OF_LOSS}, got 'heavy'"
    ),
    ("gradient_matching: 1", "gradient_matching: true"): (
        f"5: objective.gradient_matching: {OF_LOSS}, got true"
    ),
    ("gradient_matching: 1", "gradient_matching:"): (
        f"5: objective.gradient_matching: {OF_LOSS}, got nothing"
    ),
    ("gradient_matching: 1", "gradient_matching: {norm: l3}"): (
        "5: objective.gradient_matching.norm: expected 'l2' or 'l1', got 'l3'"
    ),
    ("weight: 1", "weight: heavy"): (
        "7: objective.pairwise_robustness.weight: expected a number, got 'heavy'"
    ),
    ("weight: 1", "weight: '1'"): (
        "7: objective.pairwise_robustness.weight: expected a number, got '1'"
    ),
    ("weight: 1", "weight: yes"): (
        "7: objective.pairwise_robustness.weight: expected a number, got true"
    ),
    ("weight: 1", "weight: -1e-3"): (
        "7: objective.pairwise_robustness.weight: expected a number >= 0, got -0.001"
    ),
    ("weight: 1", "weight: .nan"): (
        "7: objective.pairwise_robustness.weight: expected a finite number, got nan"
    ),
    ("weight: 1", "weight: .inf"): (
        "7: objective.pairwise_robustness.weight: expected a finite number, got inf"
    ),
    ("weight: 1", "weight: 1e400"): (
        "7: objective.pairwise_robustness.weight: expected a finite number, got inf"
    ),
    ("weight: 1", "weight: 1\n    weight: 2"): (
        "8: objective.pairwise_robustness.weight: given twice"
    ),
    ("weight: 1", "weight: 1" + 400 * "0"): (
        "7: objective.pairwise_robustness.weight: expected a number, got 1"
        + 39 * "0"
        + "… (401 characters)"
    ),
    # graphs
    ("kind: gaussian, lengthscale: 0.5", "kind: gausian"): (
        f"8: objective.pairwise_robustness.graph.kind: expected {POINT_GRAPHS}, got "
        "'gausian' (did you mean 'gaussian'?)"
    ),
    ("kind: gaussian, ", ""): (
        "8: objective.pairwise_robustness.graph.kind: required, and missing; expected "
        f"{POINT_GRAPHS}"
    ),
    ("{kind: gaussian, lengthscale: 0.5}", "gaussian"): (
        "8: objective.pairwise_robustness.graph: expected a mapping of keys to values, "
        "got 'gaussian'"
    ),
    ("lengthscale: 0.5", "length: 0.5"): (
        "8: objective.pairwise_robustness.graph.length: unknown key (did you mean "
        "'lengthscale'?); known here: kind, lengthscale, cutoff"
    ),
    ("lengthscale: 0.5", "cutoff: 1"): (
        "8: objective.pairwise_robustness.graph.cutoff: expected a number < 1, got 1"
    ),
    ("kind: gaussian", "kind: knn, n_neighbors: 2"): (
        "8: objective.pairwise_robustness.graph: lengthscale has no effect with "
        "uniform weights"
    ),
    # the sweep
    ("pairwise_robustness: [", "sparsity: ["): (
        "10: sweep.sparsity: the objective has no 'sparsity'; it has "
        "gradient_matching, pairwise_robustness"
    ),
    ("[0.1, 1]", "[0.1, -1]"): (
        "10: sweep.pairwise_robustness.1: expected a number >= 0, got -1"
    ),
    ("[0.1, 1]", "[]"): (
        "10: sweep.pairwise_robustness: expected at least one value, got an empty list"
    ),
    ("[0.1, 1]", "3"): f"10: sweep.pairwise_robustness: {OF_SWEEP}, got 3",
    ("[0.1, 1]", "lots"): f"10: sweep.pairwise_robustness: {OF_SWEEP}, got 'lots'",
    ("[0.1, 1]", "{low: 0, high: 1, points: 3}"): (
        "10: sweep.pairwise_robustness: a log scale needs low > 0; or use scale: linear"
    ),
    ("[0.1, 1]", "{low: 5, high: 1, points: 3}"): (
        "10: sweep.pairwise_robustness: expected low < high, got low 5 and high 1"
    ),
    ("[0.1, 1]", "{low: 1, high: 5, points: 1}"): (
        "10: sweep.pairwise_robustness.points: expected a number >= 2, got 1"
    ),
    ("[0.1, 1]", "{low: 1, high: 5}"): (
        "10: sweep.pairwise_robustness.points: required, and missing"
    ),
    # data and function
    ("per_dimension: 5, ", ""): "2: data.grid.per_dimension: required, and missing",
    ("grid: ", "csv: a.csv\n  grid: "): (
        "1: data: expected exactly one of grid, uniform, sklearn and csv, got grid "
        "and csv"
    ),
    (f"grid: {GRID}", "explain: 3"): (
        "1: data: expected exactly one of grid, uniform, sklearn and csv, got none "
        "of them"
    ),
    (f"grid: {GRID}", f"grid: {GRID}\n  explain: 3"): (
        "1: data: explain has no effect with grid"
    ),
    (f"data:\n  grid: {GRID}\n", ""): "1: data: required, and missing",
    ("name: power, degree: 3", "name: power"): (
        "3: function: power needs a degree, such as 3"
    ),
    ("name: power", "name: sine"): "3: function: degree has no effect with sine",
    ("name: power", "name: powr"): (
        f"3: function.name: expected {FORMULAS}, got 'powr' (did you mean 'power'?)"
    ),
    ("function: {name: power, degree: 3}\n", ""): (
        "1: expected exactly one of function and model, got neither"
    ),
    ("degree: 3}", "degree: 3}\nmodel: {kind: linear}"): (
        "1: expected exactly one of function and model, got both"
    ),
    ("function: {name: power, degree: 3}", "model: {kind: linear}"): (
        "1: a model learns from sklearn or csv, and data has a grid"
    ),
    ("function: {name: power, degree: 3}", "model: {kind: linear, hidden: [3]}"): (
        "3: model: hidden has no effect with linear"
    ),
    # YAML
    ("    weight", "\tweight"): "7: not valid YAML: a tab; indent with spaces",
    ("[0.1, 1]", "[0.1, 1"): (
        "11: not valid YAML: while parsing a flow sequence, expected ',' or ']', but "
        "got '<stream end>'"
    ),
}


@pytest.mark.parametrize("change", REPLACED, ids=lambda change: change[1].strip()[:40])
def test_message_for_a_line_changed(write, change):
    path = write(instead(*change))
    assert complaint(path) == f"file.yaml:{REPLACED[change]}"


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("", "nothing"),
        ("# only a comment\n", "nothing"),
        ("- a\n- b\n", "a list"),
        ("hello\n", "a single value"),
    ],
)
def test_file_that_is_no_mapping(write, text, came):
    assert complaint(write(text)) == (
        f"file.yaml:1: expected a mapping of keys to values, got {came}"
    )


def test_empty_objective(write):
    text = FILE.split("objective:")[0]
    assert complaint(write(f"{text}objective: {{}}\n")) == (
        "file.yaml:4: objective: expected at least one loss, got none"
    )


def test_all_weights_zero_for_some_point_of_the_sweep(write):
    text = instead("gradient_matching: 1", "gradient_matching: 0")
    assert "above zero, got all zero" in complaint(write(text.replace("0.1", "0")))
    po.problems.read_problem(write(text))


def test_each_mistake_has_a_line_in_the_order_of_the_file(write):
    text = instead("weight: 1", "weight: -1") + "sede: 1\ntolerance: none\nseed: -1\n"
    assert complaint(write(text)).split("\n") == [
        "file.yaml:7: objective.pairwise_robustness.weight: expected a number >= 0, "
        "got -1",
        f"file.yaml:11: sede: unknown key (did you mean 'seed'?); known here: {TOP}",
        "file.yaml:12: tolerance: expected a number, got 'none'",
        "file.yaml:13: seed: expected a number >= 0, got -1",
    ]


def test_unknown_solver_names_those_there_are(write):
    message = complaint(write(FILE + "solver: clarabell\n"))
    assert message.startswith("file.yaml:11: solver: 'clarabell' is not known")
    assert "CLARABEL" in message


@pytest.mark.parametrize("label", ["[1]", "{a: 1}"], ids=["list", "mapping"])
def test_label_of_a_class_is_a_scalar(write, label):
    text = (
        "data: {sklearn: iris}\n"
        f"model: {{kind: logistic, target_class: {label}}}\n"
        "objective: {gradient_matching: 1}\n"
    )
    assert complaint(write(text)).startswith(
        "file.yaml:2: model.target_class: expected text or a number, got a "
    )


def test_missing_file(tmp_path):
    path = tmp_path / "none.yaml"
    assert complaint(path) == "none.yaml: cannot be read: No such file or directory"


def test_code_in_a_file_is_refused_and_not_run(write, tmp_path):
    trap = tmp_path / "trap"
    call = f"name: !!python/object/apply:os.mkdir ['{trap}']\n"
    assert complaint(write(FILE + call)) == (
        "file.yaml:11: name: the tag !!python/object/apply:os.mkdir is not allowed: "
        "plain data only"
    )
    assert not trap.exists()


# ---- what YAML may say


def test_numbers_in_exponential_notation(write):
    problem = po.problems.read_problem(
        write(instead("weight: 1", "weight: 1e-3"))
    ).build()
    assert problem.objective.weights["pairwise_robustness"] == 1e-3


def test_dates_are_text(write):
    assert (
        po.problems.read_problem(write(FILE + "name: 2024-13-45\n")).name
        == "2024-13-45"
    )


def test_what_an_anchor_names_stands_where_its_aliases_do(write):
    lines = """\
plot: {x: &loss gradient_matching, y: *loss}
baselines:
  - {method: smoothgrad, scale: &scales [0.1], n_samples: 10}
  - {method: lime, scale: *scales}
"""
    problem = po.problems.read_problem(write(FILE + lines)).build()
    assert problem.axes == ("gradient_matching", "gradient_matching")
    assert [explainer.scale for explainer in problem.methods] == [0.1, 0.1]


def test_line_of_a_mistake_in_what_an_alias_repeats(write):
    lines = """\
baselines:
  - &noisy {method: smoothgrad, scale: [0.1], n_samples: 0}
  - *noisy
"""
    assert complaint(write(FILE + lines)).split("\n") == [
        "file.yaml:12: baselines.0.n_samples: expected a number >= 1, got 0",
        "file.yaml:12: baselines.1.n_samples: expected a number >= 1, got 0",
    ]


# ---- tables

MODEL = """\
data: {csv: table.csv, target: y}
model: {kind: linear}
objective: {gradient_matching: 1}
"""


@pytest.fixture
def table(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(20, 2)), columns=["a", "b"])
    frame["y"] = frame["a"] - 2 * frame["b"]
    frame["kind"] = np.where(frame["a"] > 0, "up", "down")
    frame.drop(columns="kind").to_csv(tmp_path / "table.csv", index=False)
    return frame


def build(path):
    """What is wrong with a file once its data are read."""
    problem = po.problems.read_problem(path).build()
    with pytest.raises(ProblemFileError) as caught:
        _ = problem.objective
    return str(caught.value).replace(f"{path.parent}/", "")


@pytest.mark.usefixtures("table")
def test_csv_is_read_beside_the_file(write):
    problem = po.problems.read_problem(write(MODEL)).build()
    assert list(problem.points.columns) == ["a", "b"]
    assert sorted(problem.points.index) == list(range(20))
    best = po.solve(problem.objective)
    np.testing.assert_allclose(best.to_frame()["b"], -2.0, atol=1e-8)


@pytest.mark.usefixtures("table")
def test_csv_without_target_suits_a_formula(write):
    text = MODEL.replace(", target: y", "").replace(
        "model: {kind: linear}", "function: {name: sine}"
    )
    assert list(po.problems.read_problem(write(text)).build().points.columns) == [
        "a",
        "b",
        "y",
    ]


def test_model_on_a_csv_needs_a_target(write):
    text = MODEL.replace(", target: y", "")
    assert complaint(write(text)) == (
        "file.yaml:1: a model on a csv needs data.target, the column to learn"
    )


def test_missing_csv(write):
    assert build(write(MODEL)) == ("file.yaml:1: data.csv: there is no file table.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ":1: is not a CSV table: there is no header"),
        ("a,y\n", ":1: has no rows"),
        ('a,y\n"1,2\n', ":2: is not a CSV table: 1 cells under 2 headers"),
    ],
)
def test_csv_that_is_no_table(write, content, message):
    write(content, "table.csv")
    assert build(write(MODEL)).startswith(f"file.yaml:1: data.csv: table.csv{message}")


@pytest.mark.usefixtures("table")
def test_missing_column(write):
    assert build(write(MODEL.replace("target: y", "target: aa"))) == (
        "file.yaml:1: data.target: table.csv has no column 'aa' (did you mean 'a'?); "
        "it has a, b, y"
    )


def test_column_of_text(write, table, tmp_path):
    table.to_csv(tmp_path / "table.csv", index=False)
    assert build(write(MODEL)) == (
        "file.yaml:1: data.csv: columns must be numeric, or be named in "
        "data.categorical, and these are not: kind; kind holds 'down'"
    )


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
  - {method: lime, scale: [0.5], n_samples: 200}
"""


@pytest.fixture
def categories(rng, tmp_path):
    red = rng.integers(0, 2, 40)
    table = pd.DataFrame(
        {
            "age": rng.normal(40, 10, 40),
            "city": rng.choice(["Bonn", "Oslo"], 40),
            "red": red,
            "blue": 1 - red,
        }
    )
    table["y"] = 2 * table["age"] + 3 * (table["city"] == "Oslo") - 5 * red
    table.to_csv(tmp_path / "table.csv", index=False)
    return table


def test_categories_and_groups_are_explained_as_one_feature_each(write, categories):
    problem = po.problems.read_problem(write(CATEGORIES)).build()
    G = problem.function.gradient(problem.points)
    assert list(G.columns) == ["age", "city", "colour"]
    table = categories.loc[G.index]
    np.testing.assert_allclose(G["age"], 2 * table["age"].std(ddof=0), rtol=1e-6)
    oslo = table["city"] == "Oslo"
    np.testing.assert_allclose(G["city"], 3 * (oslo - oslo.mean()), atol=1e-8)
    red = table["red"]
    np.testing.assert_allclose(G["colour"], -5 * (red - red.mean()), atol=1e-8)


@pytest.mark.usefixtures("categories")
def test_rows_of_two_cities_are_one_apart(write):
    problem = po.problems.read_problem(write(CATEGORIES)).build()
    places, points = problem.subject.coordinates, problem.points
    first = points.iloc[0]
    other = (points["city"] != first["city"]) & (points["red"] == first["red"])
    age = points["age"] - first["age"]
    squares = ((places - places[0]) ** 2).sum(axis=1)
    np.testing.assert_allclose(squares[other], 1 + age[other] ** 2)


@pytest.mark.usefixtures("categories")
def test_a_file_with_categories_is_swept_with_its_baselines(write):
    problem = po.problems.read_problem(write(CATEGORIES)).build()
    found = problem.sweep(problem.baselines())
    assert found.certified(1e-6)
    assert [e.attributions.shape for e in found.explanations] == [(40, 3)] * 3


@pytest.mark.usefixtures("categories")
def test_categories_of_no_column_are_refused(write):
    assert build(write(CATEGORIES.replace("[city]", "[cty]"))) == (
        "file.yaml:5: data.categorical: there is no column 'cty' (did you mean "
        "'city'?); there are age, city, red, blue"
    )


def test_column_with_gaps(write):
    write("a,b,y\n1,2,3\n,1,2\n", "table.csv")
    assert build(write(MODEL)) == (
        "file.yaml:1: data.csv: columns must be complete, and in these are values "
        "missing or infinite: a"
    )


def test_target_with_gaps(write):
    write("a,b,y\n1,2,\n1,1,2\n", "table.csv")
    assert build(write(MODEL)) == "file.yaml:1: data.target: 1 values are missing"


def test_target_that_the_model_cannot_learn(write, table, tmp_path):
    table.drop(columns="y").to_csv(tmp_path / "table.csv", index=False)
    message = build(write(MODEL.replace("target: y", "target: kind")))
    assert message.startswith(
        "file.yaml:2: model: cannot be fitted to the target 'kind': "
    )


@pytest.mark.usefixtures("table")
def test_mlp_on_a_csv_needs_its_task(write):
    assert build(write(MODEL.replace("linear", "mlp"))) == (
        "file.yaml:2: model.task: required for an mlp on a csv, and missing"
    )


SKLEARN = """\
data: {sklearn: iris, explain: 30}
model: {kind: logistic, target_class: setosa}
objective: {gradient_matching: 1}
"""


def test_rows_that_are_explained_are_not_fitted(write):
    problem = po.problems.read_problem(write(SKLEARN)).build()
    assert problem.points.shape == (30, 4)
    assert problem.function.gradient_method == "exact"


def test_too_many_rows_to_explain(write):
    assert build(write(SKLEARN.replace("30", "150"))) == (
        "file.yaml:1: data.explain: expected fewer than the 150 rows there are, so "
        "that some are left to fit on, got 150"
    )


def test_unknown_class(write):
    assert build(write(SKLEARN.replace("setosa", "rose"))) == (
        "file.yaml:2: model: target: expected one of the classes 'setosa', "
        "'versicolor', 'virginica', got 'rose'"
    )


def test_standardized_columns(write):
    text = SKLEARN.replace("explain: 30", "standardize: true")
    points = po.problems.read_problem(write(text)).build().points
    np.testing.assert_allclose(points.mean(), 0.0, atol=1e-12)
    np.testing.assert_allclose(points.std(ddof=0), 1.0)


# ---- what is built

EVERY_LOSS = """\
data: {grid: {low: -1, high: 1, per_dimension: 2, dimensions: 3}}
function: {name: exponential}
objective:
  gradient_matching: {weight: 2, norm: l1}
  function_matching: {reference: [0, 0, 0]}
  pairwise_robustness: {graph: {kind: knn, n_neighbors: 2, weights: gaussian}}
  kernel_robustness: {lengthscale: 1, mean: none}
  max_difference_robustness: {graph: {kind: threshold, threshold: 4}, norm: linf}
  smoothness: {graph: {kind: group, labels: [a, a, 1]}}
  sparsity: 0.5
"""


def test_every_loss(write):
    objective = po.problems.read_problem(write(EVERY_LOSS)).build().objective
    assert ", ".join(objective.weights) == LOSSES
    assert list(objective.weights.values()) == [2, 1, 1, 1, 1, 1, 0.5]
    assert objective.labels.features is None
    values = objective.breakdown(np.ones((8, 3)))
    assert values["sparsity"] == 24.0
    assert values["smoothness"] == 0.0


@pytest.mark.parametrize(
    "graph",
    [
        "{kind: chain}",
        "{kind: complete}",
        "{kind: correlation}",
        "{kind: pixel, height: 1, width: 3}",
    ],
)
def test_graphs_of_features(write, graph):
    text = EVERY_LOSS.replace("{kind: group, labels: [a, a, 1]}", graph)
    smoothness = po.problems.read_problem(write(text)).build().objective.losses[5]
    assert smoothness.n_features == 3


@pytest.mark.parametrize(
    "graph",
    [
        "{kind: chain}",
        "{kind: complete}",
        "{kind: gaussian}",
        "{kind: gaussian, cutoff: 0.1}",
    ],
)
def test_graphs_of_points(write, graph):
    text = EVERY_LOSS.replace("{kind: threshold, threshold: 4}", graph)
    assert (
        po.problems.read_problem(write(text)).build().objective.losses[4].n_points == 8
    )


@pytest.mark.parametrize(
    "data",
    ["{grid: {low: -1, high: 1, per_dimension: 2, dimensions: 3}}", "{sklearn: iris}"],
)
def test_reference_of_another_length(write, data):
    text = f"data: {data}\nfunction: {{name: exponential}}\n"
    text += "objective:\n  function_matching: {reference: [0, 0]}\n"
    assert build(write(text)).startswith(
        "file.yaml:4: objective.function_matching: reference: expected "
    )


def test_loss_that_cannot_be_built_is_named(write):
    text = EVERY_LOSS.replace("n_neighbors: 2", "n_neighbors: 20")
    assert build(write(text)).startswith("file.yaml:6: objective.pairwise_robustness: ")


def test_weights_of_the_sweep(write):
    text = instead("[0.1, 1]", "{low: 0.01, high: 100, points: 5}")
    weights = (
        po.problems.read_problem(write(text)).build().weights["pairwise_robustness"]
    )
    np.testing.assert_allclose(weights, [0.01, 0.1, 1, 10, 100])
    text = instead("[0.1, 1]", "{low: 0, high: 1, points: 3, scale: linear}")
    assert po.problems.read_problem(write(text)).build().weights[
        "pairwise_robustness"
    ] == [
        0,
        0.5,
        1,
    ]


def test_baselines_of_all_combinations(write):
    text = FILE + (
        "baselines:\n"
        "  - {method: smoothgrad, scale: [0.1, 0.2], n_samples: 5}\n"
        "  - {method: shap, units: [output, gradient]}\n"
        "  - {method: lime_package}\n"
        "  - {method: lime, scale: [1]}\n"
    )
    problem = po.problems.read_problem(write(text)).build()
    methods = [explainer.method for explainer in problem.methods]
    assert methods == [*2 * ["smoothgrad"], *2 * ["shap"], "lime_package", "lime"]
    noisy = next(problem.baselines())
    assert noisy.parameters["scale"] == 0.1
    assert noisy.attributions.shape == (5, 1)


def test_seed_decides_the_baselines(write):
    text = FILE + "baselines: [{method: smoothgrad, scale: [0.5], n_samples: 5}]\n"
    first, same, other = (
        next(
            po.problems.read_problem(write(text + seed)).build().baselines()
        ).attributions
        for seed in ("", "seed: 0", "seed: 1")
    )
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


def test_axes_of_the_plot(write):
    assert po.problems.read_problem(write(FILE)).build().axes == (
        "gradient_matching",
        "pairwise_robustness",
    )
    one = "data: {sklearn: iris}\nfunction: {name: sine}\nobjective: {sparsity: 1}\n"
    assert po.problems.read_problem(write(one)).build().axes == ("sparsity", "sparsity")


def test_sweep_of_a_file(write):
    problem = po.problems.read_problem(
        write(FILE + "solver: spectral\ntolerance: 1e-8\n")
    ).build()
    curve = problem.sweep(problem.baselines())
    assert [e.weights["pairwise_robustness"] for e in curve.optimized] == [0.1, 1]
    assert {e.solver for e in curve.optimized} == {"spectral"}
    assert curve.certified(1e-8)
    with pytest.raises(InvalidInput, match="simplex"):
        problem.sweep(solver="simplex")


def test_name_of_the_outputs(write):
    assert po.problems.read_problem(write(FILE, "my problem.yaml")).name == "my problem"
    assert po.problems.read_problem(write(FILE + "name: other\n")).name == "other"


# ---- what comes with the package


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_files_are_valid(path):
    po.problems.read_problem(path)


def test_schema_describes_the_shipped_files():
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(
        po.problems.ProblemSchema.model_json_schema()
    )
    for path in SHIPPED:
        validator.validate(po.problems.read_problem(path).source.data())
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({"data": {"sklearn": "iris"}, "objective": {"sparcity": 1}})


def test_every_baseline_and_loss_can_stand_in_a_file():
    schema = str(po.problems.ProblemSchema.model_json_schema())
    for method in BASELINES:
        assert f"'const': '{method}'" in schema
    for loss in LOSSES.split(", "):
        assert f"'{loss}'" in schema
