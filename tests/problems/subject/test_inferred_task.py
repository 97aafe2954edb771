"""What models learn of one's own table, where the file does not say it."""

import numpy as np
import pandas as pd
import pytest

from propopt.cli import main
from propopt.problems.subject.subject import LearningTask


rng = np.random.default_rng(0)
TARGETS = {
    "fractions": (
        rng.normal(size=40),
        "regression",
        "some of its values are fractions",
    ),
    "whole floats": (np.arange(40) % 2 * 1.0, "classification", "two values"),
    "text": (np.resize(["yes", "no"], 40), "classification", "not numbers"),
    "truths": (np.resize([True, False], 40), "classification", "not numbers"),
    "grades": (np.arange(40) % 10, "classification", "10 different whole numbers"),
    "counts": (np.arange(40) % 11, "regression", "11 different whole numbers"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_the_task_follows_from_the_target(name):
    values, kind, why = TARGETS[name]
    task = LearningTask.of_target(pd.Series(values))
    assert task.kind == kind
    assert why in task.why
    other = {"grades": "regression", "counts": "classification"}.get(name)
    assert ("write task" in task.why) == (other is not None)
    if other is not None:
        assert f"write task: {other}" in task.in_words("y")


@pytest.mark.parametrize(
    ("name", "printed"), [("fractions", ""), ("counts", "regression")]
)
def test_a_file_without_a_task_runs_and_says_what_was_inferred(
    name, printed, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    table.assign(y=TARGETS[name][0]).to_csv("table.csv", index=False)
    task = f", task: {printed}" if printed else ""
    (tmp_path / "own.yaml").write_text(
        "data: {csv: table.csv, target: y, explain: 10}\n"
        f"model: {{kind: forest, n_estimators: 2{task}}}\nexplain: {{}}\n"
    )
    assert main(["explain", "own.yaml"]) == 0
    message = capsys.readouterr().out
    assert ("task: regression, inferred from the target 'y'" in message) == (
        not printed
    )
