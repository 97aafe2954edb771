"""``python -m papers tables --csv FILE``: a table of the user's beside the paper's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from papers.__main__ import main
from papers.engine.panels import Panel
from papers.properties.own_table import panel_of_table


def write_table(folder, target):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc"))
    path = folder / "my table.csv"
    table.assign(y=target).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("target", "task", "found"),
    [
        (np.arange(30) / 7, None, ("regression", None)),
        (["no", "yes", "yes"] * 10, None, ("classification", "yes")),
        ([0, 1, 1] * 10, None, ("classification", 1)),
        ([3, 4, 4, 5, 6] * 6, None, ("regression", None)),
        ([3, 4, 4, 5, 6] * 6, "classification", ("classification", 4)),
    ],
)
def test_a_table_of_the_users_becomes_a_problem(tmp_path, target, task, found):
    csv = write_table(tmp_path, target)
    panel = panel_of_table(csv, "y", task)
    problem = panel.problem
    assert panel.title == "my table"
    assert (problem.schema.model.task, problem.schema.model.target_class) == found
    assert problem.schema.data.explain == 10
    assert problem.build().points.shape == (10, 3)


def test_text_columns_of_a_table_of_ones_own_are_categories(tmp_path, rng):
    csv = tmp_path / "customers.csv"
    # enough rows for a network that is not constant
    table = pd.DataFrame({"age": rng.normal(size=300), "plan": list("abc") * 100})
    table.assign(y=table["age"] + (table["plan"] == "a")).to_csv(csv, index=False)
    problem = panel_of_table(csv, "y", None).problem
    assert problem.schema.data.categorical == ["plan"]
    built = problem.build()
    assert list(built.function.gradient(built.points)) == ["age", "plan"]


def test_names_of_all_characters_reach_the_problem(tmp_path, rng):
    half = "\\ud83d\\ude00"
    names = ["emoji \U0001f600", "漢字", half, "a\u2028b\x85c\x7f\x1b", '"\\']
    table = pd.DataFrame(rng.normal(size=(30, 5)), columns=names)
    csv = tmp_path / "\U0001f600.csv"
    table.assign(**{names[0]: list("abc") * 10, "y": np.arange(30) / 7}).to_csv(
        csv, index=False
    )
    problem = panel_of_table(csv, "y", None).problem
    assert problem.schema.data.categorical == [names[0]]
    assert list(problem.build().points) == names


@pytest.mark.usefixtures("no_panel")
def test_a_table_too_short_is_refused_before_any_work(tmp_path, capsys):
    csv = tmp_path / "short.csv"
    csv.write_text("a,y\n1,2\n2,3\n3,4\n")
    own = ["--csv", str(csv), "--target", "y", "-o", str(tmp_path)]
    assert main(["tables", *own]) == 2
    told = capsys.readouterr().err
    assert f"--csv: {csv}: objective.pairwise_robustness" in told


@pytest.fixture
def no_panel(monkeypatch):
    monkeypatch.setattr(Panel, "run", None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["fig1", "--csv", "t.csv", "--target", "y"], "add it, or all"),
        (["tables", "--csv", "t.csv"], "--csv needs --target"),
        (["tables", "--target", "y"], "add --csv"),
        (["tables", "--csv", "t.csv", "--target", "y"], "there is no file t.csv"),
        (["tables", "--csv", __file__, "--target", "y"], "no column 'y'|not a CSV"),
        (["fig7"], "there is no 'fig7' (did you mean 'fig"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(
    options, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(Panel, "run", None)
    assert main([*options, "-o", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert any(part in error for part in message.split("|"))
