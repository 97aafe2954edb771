"""``propopt check`` says what ``propopt sweep`` would, in the same words."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from propopt.cli import main
from propopt.problems.subject import subject


FILE = """\
data: {csv: table.csv, target: whole, explain: 10}
model: {kind: logistic, target_class: 1}
objective: {gradient_matching: 1}
"""


@pytest.fixture
def said(tmp_path, capsys):
    """The exit code of a command and what it says, without the folder."""

    def run(text, *command):
        path = tmp_path / "file.yaml"
        path.write_text(text)
        code = main([*command, str(path)])
        return code, capsys.readouterr().err.replace(f"{tmp_path}/", "").rstrip()

    return run


def test_all_rows_are_counted_and_only_deep_checks_read_later_ones(
    said, tmp_path, rng, monkeypatch
):
    monkeypatch.setattr(subject, "fit", lambda *_: pytest.fail("fitted"))
    table = pd.DataFrame(rng.normal(size=(2000, 2)), columns=list("ab"))
    table["whole"] = (np.arange(2000) > 1900) * 1
    table.loc[1500, "a"] = np.inf
    table.to_csv(tmp_path / "table.csv", index=False)
    for explain in ("10", "1500"):
        assert said(FILE.replace("10", explain), "check") == (0, "")
    code, message = said(FILE.replace("10", "2000"), "check")
    assert code == 2
    assert "expected fewer than the 2000 rows" in message
    assert said(FILE, "check", "--deep") == (
        2,
        "file.yaml:1: data.csv: numbers must be finite, and in these columns some are "
        "infinite: a",
    )


FORMULA = """\
data: {{grid: {{low: {low}, high: {high}, per_dimension: {n}, dimensions: 1}}}}
function: {{name: exponential}}
objective: {{gradient_matching: 1, {loss}}}
"""
NO_EDGES = "max_difference_robustness: {graph: {kind: threshold, threshold: 0}}"
TOO_MANY = "kernel_robustness: {lengthscale: 1}"


@pytest.mark.parametrize(
    ("low", "high", "n", "loss", "told"),
    [
        (-1, 1000, 2000, "sparsity: 1", "2: function: .*not finite in 1 of 1001 rows"),
        (-1000, 1e5, 2000, "sparsity: 1", "2: func.*not finite in 967 of 1001 rows"),
        (-1, 1, 9_000_000, TOO_MANY, "3: objective.kernel_robustness: a kernel of a"),
        (
            -1,
            1,
            2000,
            NO_EDGES,
            "3: objective.max_difference_robustness: graph: has",
        ),
    ],
)
def test_formulas_that_overflow_and_graphs_without_edges(
    said, low, high, n, loss, told
):
    text = FORMULA.format(low=low, high=high, n=n, loss=loss)
    if loss is NO_EDGES:
        assert said(text, "check") == (0, "")
    code, message = said(text, "check", *["--deep"] * (loss is NO_EDGES))
    assert code == 2
    assert re.match(f"file.yaml:{told}", message)
