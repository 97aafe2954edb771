"""What a user reads after each mistake in a problem file."""

from __future__ import annotations

import pytest
from problem_texts import FILE, GRID, LOSSES, complaint, instead

import propopt as po


TOP = (
    "name, description, data, function, model, seed, setting, objective, inductive, "
    "sweep, limits, baselines, plot, pick, attributions, solver, tolerance, explain, "
    "lime, interactions"
)
POINT_GRAPHS = (
    "'gaussian', 'grid_gaussian', 'knn', 'cosine', 'threshold', 'complete' or 'chain'"
)
METHODS = (
    "'gradient', 'smoothgrad', 'lime', 'lime_package', 'exact_lime', 'shap', "
    "'tree_shap' or 'exact_shap'"
)
FORMULAS = (
    "'power', 'interactions', 'sine', 'sine_of_exponential', "
    "'linear_plus_sine_of_exponential', 'linear_plus_sine', 'quadratic_plus_sine' or "
    "'exponential'"
)
OF_LOSS = "expected a weight, or a mapping with the settings of the loss"
OF_SWEEP = "expected a list of weights, or a range {low: , high: , points: }"


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
        "method, bandwidth, scale, n_samples, distribution, kernel_width, ridge, "
        "fit_intercept, relative, first_row"
    ),
    "baselines: [{method: exact_lime, kernel_width: wide}]": (
        "baselines.0.kernel_width: expected a number, a list of them, or a range "
        "{low: , high: , points: }"
    ),
    "baselines: [{method: exact_lime, kernel_width: [1, 0]}]": (
        "baselines.0.kernel_width.1: expected a number > 0, got 0"
    ),
    "baselines: [{method: exact_lime, n_bins: 1}]": (
        "baselines.0.n_bins: expected a number >= 2, got 1"
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
        "'lengthscale'?); known here: kind, lengthscale, cutoff, same_pattern"
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
