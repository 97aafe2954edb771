"""``propopt check`` says what ``propopt sweep`` would, in the same words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from propopt.cli import main
from propopt.problems.subject import subject


N = 40
FILE = """\
data:
  csv: table.csv
  target: y
  explain: 10
model: {kind: linear}
objective:
  gradient_matching: 1
  pairwise_robustness: {graph: {kind: knn, n_neighbors: 3}}
"""


@pytest.fixture
def table(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(N, 4)), columns=list("abcd")).round(6)
    frame["y"] = frame["a"] - 2 * frame["b"]
    frame["kind"] = np.where(frame["a"] > 0, "up", "down")
    frame["one"] = "same"
    frame["whole"] = np.arange(N) % 3
    frame.to_csv(tmp_path / "table.csv", index=False)
    return frame


@pytest.fixture
def said(tmp_path, capsys):
    """The exit code of a command and what it says, without the folder."""

    def run(text, *command):
        path = tmp_path / "file.yaml"
        path.write_text(text)
        code = main([*command, str(path)])
        return code, capsys.readouterr().err.replace(f"{tmp_path}/", "").rstrip()

    return run


@pytest.fixture
def never_fitted(monkeypatch):
    """Fitting a model fails the test."""
    monkeypatch.setattr(subject, "fit", lambda *_: pytest.fail("fitted"))


def model(line, target="y", columns=""):
    text = FILE.replace("{kind: linear}", f"{{{line}}}")
    return text.replace("target: y", f"target: {target}\n{columns}")


CATEGORIES = "  categorical: [kind, one]\n"
NO_TEXT = "data:\n  sklearn: iris\n  explain: 10\n"
MLP = "kind: mlp, task: regression"


def iris(line, objective):
    return (
        f"{NO_TEXT}model: {{kind: logistic, {line}}}\n"
        f"objective:\n  gradient_matching: 1\n  {objective}\n"
    )


REFUSED = {
    "columns": (
        FILE,
        "2: data.csv: columns must be numeric, or be named in data.categorical, and "
        "these are not: kind, one; kind holds 'down'",
    ),
    "target": (
        model("kind: linear", "why", CATEGORIES),
        "3: data.target: table.csv has no column 'why'; it has a, b, c, d, y, kind, "
        "one, whole",
    ),
    "category": (
        model("kind: linear", "y", "  categorical: [kind, on_e]\n"),
        "4: data.categorical: there is no column 'on_e' (did you mean 'one'?); there "
        "are a, b, c, d, kind, one, whole",
    ),
    "explain": (
        model("kind: linear", "y", CATEGORIES).replace("explain: 10", "explain: 40"),
        "6: data.explain: expected fewer than the 40 rows there are, so that some are "
        "left to fit on, got 40",
    ),
    "task": (
        model("kind: mlp", "y", CATEGORIES),
        "7: model.task: required for an mlp on a csv, and missing",
    ),
    "text": (
        model("kind: linear", "kind", "  categorical: [one]\n"),
        "7: model: cannot be fitted to the target 'kind': a regression needs numbers, "
        "and some are text",
    ),
    "one class": (
        model("kind: logistic", "one", "  categorical: [kind]\n"),
        "7: model: cannot be fitted to the target 'one': a classifier needs two "
        "classes, and these rows have 'same' alone",
    ),
    "measurements": (
        model("kind: logistic", "y", CATEGORIES),
        "7: model: cannot be fitted to the target 'y': Unknown label type: continuous. "
        "Maybe you are trying to fit a classifier, which expects discrete classes on a "
        "regression target with continuous values.",
    ),
    "log odds": (
        model(f"{MLP}, output: log_odds", "y", CATEGORIES),
        "7: model: output: MLPRegressor has no 'log_odds'; it has 'value'",
    ),
    "class of a regression": (
        model(f"{MLP}, target_class: 1", "y", CATEGORIES),
        "7: model: target_class has no effect with regression",
    ),
    "class": (
        model("kind: logistic, target_class: 3", "whole", CATEGORIES),
        "7: model: target: expected one of the classes 0, 1, 2, got 3",
    ),
    "no class": (
        model("kind: logistic", "whole", CATEGORIES),
        "7: model: target: choose one of the classes 0, 1, 2",
    ),
    "weights": (
        model(f"{MLP}, hidden: [4000, 4000]", "y", CATEGORIES),
        "7: model.hidden: expected at most 10,000,000 weights, got 16,040,001",
    ),
    "neighbours": (
        model("kind: linear", "y", CATEGORIES).replace("bors: 3", "bors: 10"),
        "10: objective.pairwise_robustness: n_neighbors: expected fewer than the 10 "
        "points, got 10",
    ),
    "labels": (
        iris("target_class: setosa", "smoothness: {graph: {kind: group, labels: [a]}}"),
        "7: objective.smoothness: labels: expected 4, one for each feature, got 1",
    ),
    "pixels": (
        iris(
            "target_class: setosa",
            "smoothness: {graph: {kind: pixel, height: 2, width: 3}}",
        ),
        "7: objective.smoothness: graph: expected height × width = 4 features, got "
        "2 × 3",
    ),
    "reference": (
        iris("target_class: setosa", "function_matching: {reference: [0, 0]}"),
        "7: objective.function_matching: reference: expected 4, one for each feature, "
        "got 2",
    ),
    "class of a table": (
        iris("target_class: rose", "sparsity: 1"),
        "4: model: target: expected one of the classes 'setosa', 'versicolor', "
        "'virginica', got 'rose'",
    ),
    "margin": (
        iris("target_class: setosa, output: value", "sparsity: 1"),
        "4: model: output: LogisticRegression has no 'value'; it has 'probability', "
        "'log_odds', 'margin'",
    ),
}


@pytest.mark.usefixtures("table", "never_fitted")
@pytest.mark.parametrize("case", REFUSED)
def test_check_refuses_what_sweep_refuses(said, tmp_path, case):
    text, message = REFUSED[case]
    expected = (2, f"file.yaml:{message}")
    assert said(text, "check") == expected
    assert said(text, "check", "--deep") == expected
    assert said(text, "sweep", "-q", "-o", str(tmp_path / "out")) == expected


@pytest.mark.usefixtures("table", "never_fitted")
@pytest.mark.parametrize("depth", [(), ("--deep",)])
def test_what_can_be_swept_is_valid_and_nothing_is_fitted(said, depth):
    assert said(model("kind: linear", "y", CATEGORIES), "check", *depth) == (0, "")
    assert said(iris("target_class: setosa", "sparsity: 1"), "check", *depth) == (0, "")


@pytest.mark.usefixtures("never_fitted")
def test_only_deep_checks_read_the_values_of_later_rows(said, table, tmp_path):
    text = model("kind: linear", "y", CATEGORIES)
    long = pd.concat(50 * [table])
    long.iloc[1500, 0] = np.inf
    long.to_csv(tmp_path / "table.csv", index=False)
    assert said(text, "check") == (0, "")
    assert said(text, "check", "--deep") == (
        2,
        "file.yaml:2: data.csv: numbers must be finite, and in these columns some are "
        "infinite: a",
    )


@pytest.mark.usefixtures("never_fitted")
def test_all_rows_are_counted_and_all_labels_known(said, table, tmp_path):
    long = pd.concat(50 * [table])
    long["whole"] = (np.arange(len(long)) > 1900) * 1
    long.to_csv(tmp_path / "table.csv", index=False)
    text = model("kind: logistic, target_class: 1", "whole", CATEGORIES)
    assert said(text.replace("explain: 10", "explain: 1500"), "check") == (0, "")
    code, message = said(text.replace("explain: 10", "explain: 2000"), "check")
    assert code == 2
    assert "expected fewer than the 2000 rows" in message


FORMULA = """\
data: {grid: {low: LOW, high: HIGH, per_dimension: 2000, dimensions: 1}}
function: {name: exponential}
objective:
  gradient_matching: 1
  LOSS
"""


@pytest.mark.parametrize(
    ("low", "high", "n_rows"), [("-1", "1000", 1), ("-1000", "1e5", 967)]
)
def test_a_formula_that_overflows(said, low, high, n_rows):
    text = (
        FORMULA.replace("LOW", low).replace("HIGH", high).replace("LOSS", "sparsity: 1")
    )
    code, message = said(text, "check")
    assert code == 2
    assert message.startswith("file.yaml:2: function: ")
    assert f"the gradient is not finite in {n_rows} of 1001 rows" in message


def test_a_loss_without_points(said):
    text = "data: {sklearn: iris}\nfunction: {name: sine}\nobjective: {sparsity: 1}\n"
    assert said(text, "check") == (
        2,
        "file.yaml:3: objective: no loss tells the number of points; add "
        "gradient_matching or another",
    )


def test_deep_checks_build_the_graphs(said):
    loss = "max_difference_robustness: {graph: {kind: threshold, threshold: 0}}"
    text = FORMULA.replace("LOW", "-1").replace("HIGH", "1").replace("LOSS", loss)
    assert said(text, "check") == (0, "")
    assert said(text, "check", "--deep") == (
        2,
        "file.yaml:5: objective.max_difference_robustness: graph: has no edges, so "
        "there is no difference to bound",
    )


def test_a_kernel_of_too_many_points_is_refused_before_it_is_made(said):
    text = FORMULA.replace("LOW", "-1").replace("HIGH", "1")
    text = text.replace("LOSS", "kernel_robustness: {lengthscale: 1}")
    code, message = said(text.replace("2000", "9000000"), "check")
    assert code == 2
    start = (
        "file.yaml:5: objective.kernel_robustness: a kernel of all points needs about"
    )
    assert message.startswith(start)
