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
  categorical: [kind, one]
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


def model(line, target="y"):
    text = FILE.replace("{kind: linear}", f"{{{line}}}")
    return text.replace("target: y", f"target: {target}")


@pytest.mark.usefixtures("never_fitted")
def test_only_deep_checks_read_the_values_of_later_rows(said, table, tmp_path):
    text = model("kind: linear", "y")
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
    text = model("kind: logistic, target_class: 1", "whole")
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
