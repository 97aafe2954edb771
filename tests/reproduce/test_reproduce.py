"""``propopt reproduce``: what is run, written and told."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from reproduction import FILE, INDUCTIVE, figure, panel

import propopt as po
from propopt.cli import main
from propopt.errors import InvalidInput
from propopt.problems import read_problem
from propopt.reproduce import Invariant, induction, laws, run
from propopt.reproduce.figures import FIGURES
from propopt.reproduce.figures.tables import UserTable
from propopt.reproduce.panels import Panel


PAPER = Path(__file__).parents[2] / "problems" / "paper"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_a_panel_tells_the_excess_of_each_inductive_explanation(tmp_path, monkeypatch):
    path = tmp_path / "later.yaml"
    path.write_text(INDUCTIVE, encoding="utf-8")
    one = dataclasses.replace(
        panel(path, induction.never_below), distances=induction.distances
    )
    made = figure(one)
    made = dataclasses.replace(made, draw=FIGURES["fig5"]().draw)
    made = dataclasses.replace(
        made,
        panels=(
            dataclasses.replace(one, pictures=FIGURES["fig5"]().panels[0].pictures),
        ),
    )
    assert reproduce(monkeypatch, tmp_path / "out", made, "--quiet") == 0
    page = (tmp_path / "out" / "tiny.md").read_text(encoding="utf-8")
    assert "| inductive, rule = greedy, own gradients = False, inputs = 40," in page
    assert "excess |" in page
    assert "saved |" not in page
    ElementTree.parse(tmp_path / "out" / "tiny.svg")


# problem files


@pytest.mark.parametrize("name", FIGURES)
def test_every_panel_has_a_valid_file(name):
    for one in FIGURES[name]().panels:
        assert read_problem(one.file).build().swept


def test_every_problem_file_of_the_paper_is_in_a_figure():
    used = {one.file for make in FIGURES.values() for one in make().panels}
    assert used == set(PAPER.glob("*.yaml"))


@pytest.mark.parametrize("name", FIGURES)
def test_panels_of_a_figure_have_titles_of_their_own(name):
    titles = [one.title for one in FIGURES[name]().panels]
    assert len(titles) == len(set(titles))


# a table of the user's


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
def test_a_table_of_the_users_becomes_a_problem_file(tmp_path, target, task, found):
    csv = write_table(tmp_path, target)
    made = UserTable(csv=csv, target="y", task=task).panel(tmp_path)
    problem = read_problem(made.file)
    assert made.file == tmp_path / "table_my table.yaml"
    assert (problem.schema.model.task, problem.schema.model.target_class) == found
    assert problem.schema.data.explain == 10
    assert problem.build().points.shape == (10, 3)


def test_text_columns_of_a_table_of_ones_own_are_categories(tmp_path, rng):
    csv = tmp_path / "customers.csv"
    table = pd.DataFrame({"age": rng.normal(size=30), "plan": list("abc") * 10})
    table.assign(y=table["age"] + (table["plan"] == "a")).to_csv(csv, index=False)
    problem = read_problem(UserTable(csv=csv, target="y").panel(tmp_path).file)
    assert problem.schema.data.categorical == ["plan"]
    built = problem.build()
    assert list(built.function.gradient(built.points)) == ["age", "plan"]


def test_names_of_all_characters_reach_the_problem_file(tmp_path, rng):
    half = "\\ud83d\\ude00"
    names = ["emoji \U0001f600", "漢字", half, "a\u2028b\x85c\x7f\x1b", '"\\']
    table = pd.DataFrame(rng.normal(size=(30, 5)), columns=names)
    csv = tmp_path / "\U0001f600.csv"
    table.assign(**{names[0]: list("abc") * 10, "y": np.arange(30) / 7}).to_csv(
        csv, index=False
    )
    problem = read_problem(UserTable(csv=csv, target="y").panel(tmp_path).file)
    assert problem.schema.data.categorical == [names[0]]
    assert list(problem.build().points) == names


@pytest.mark.usefixtures("no_panel")
def test_a_table_too_short_is_refused_before_any_work(tmp_path, capsys):
    csv = tmp_path / "short.csv"
    csv.write_text("a,y\n1,2\n2,3\n3,4\n")
    own = ["--csv", str(csv), "--target", "y", "-o", str(tmp_path)]
    assert main(["reproduce", "tables", *own]) == 2
    assert "short.yaml:6: objective.pairwise_robustness" in capsys.readouterr().err


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
    assert main(["reproduce", *options, "-o", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert any(part in error for part in message.split("|"))


# running


def reproduce(monkeypatch, folder, made, *options):
    monkeypatch.setitem(FIGURES, "tiny", lambda: made)
    return main(["reproduce", "tiny", "--output", str(folder), *options])


def stop(solved):
    del solved
    raise KeyboardInterrupt


def failing(solved):
    del solved
    return Invariant(statement="one is more than | two", value=1, sense=">=", limit=2)


def test_a_figure_whose_statements_hold(file, tmp_path, monkeypatch, capsys):
    made = figure(panel(file, *laws.EVERYWHERE), panel(file, column="again"))
    out = tmp_path / "out"
    assert reproduce(monkeypatch, out, made) == 0
    assert {path.name for path in out.iterdir()} == {
        "README.md",
        "claims.csv",
        "statements.csv",
        "tiny.md",
        "tiny.svg",
    }
    page = (out / "tiny.md").read_text(encoding="utf-8")
    assert "# tiny: A figure" in page
    assert "| smoothgrad, δ = 0.5 |" in page
    assert "FAIL" not in page
    told = "Invariants of ours: 3 of 3 PASS, 0 FAIL."
    assert told in (out / "README.md").read_text("utf-8")
    assert told in capsys.readouterr().out
    ElementTree.parse(out / "tiny.svg")


def test_a_statement_that_fails_is_told_everywhere(file, tmp_path, monkeypatch, capsys):
    made = figure(panel(file, laws.certified, failing))
    assert reproduce(monkeypatch, tmp_path, made) == 4
    assert "FAIL: one is more than | two: 1, expected >= 2" in capsys.readouterr().out
    row = "| one is more than \\| two | FAIL | 1 | >= 2 | 0 of 1 | x³, D = 1 |"
    assert row in (tmp_path / "tiny.md").read_text(encoding="utf-8")
    assert row in (tmp_path / "README.md").read_text(encoding="utf-8")
    table = pd.read_csv(tmp_path / "statements.csv")
    assert table["verdict"].tolist() == ["PASS", "FAIL"]


def test_the_narrowest_finding_stands_for_a_statement(file, tmp_path, monkeypatch):
    wide, narrow = (
        Invariant(statement="s", value=value, sense=">=", limit=0.0)
        for value in (2.0, 1.0)
    )
    made = figure(
        panel(file, lambda _: wide), panel(file, lambda _: narrow, column="other")
    )
    reproduce(monkeypatch, tmp_path, made, "--quiet")
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| s | PASS | 1 | >= 0 | 2 of 2 | other, D = 1 |" in page


def test_quiet_prints_nothing(file, tmp_path, monkeypatch, capsys):
    made = figure(panel(file, laws.certified))
    assert reproduce(monkeypatch, tmp_path, made, "--quiet") == 0
    assert capsys.readouterr() == ("", "")


def test_the_same_run_draws_the_same_picture(file, tmp_path, monkeypatch):
    made = figure(panel(file, laws.certified))
    pictures = []
    for folder in ("one", "two"):
        reproduce(monkeypatch, tmp_path / folder, made, "--quiet")
        pictures.append((tmp_path / folder / "tiny.svg").read_bytes())
    assert pictures[0] == pictures[1]


def test_two_jobs_find_the_same(file):
    panels = [panel(file, laws.none_beats), panel(file, laws.certified)]
    together = list(run.panel_results(panels, 2))
    assert [r.findings for r in together] == [one.run().findings for one in panels]


def test_an_interrupted_run_keeps_what_is_done(file, tmp_path, monkeypatch, capsys):
    made = figure(panel(file, laws.certified), panel(file, stop, column="second"))
    assert reproduce(monkeypatch, tmp_path, made) == 130
    assert "interrupted" in capsys.readouterr().out
    page = (tmp_path / "tiny.md").read_text(encoding="utf-8")
    assert "**Interrupted**: 1 of 2 panels" in page
    assert "every optimum is certified" in (tmp_path / "README.md").read_text("utf-8")


def test_an_interruption_before_anything_is_done(file, tmp_path, monkeypatch, capsys):
    assert reproduce(monkeypatch, tmp_path, figure(panel(file, stop))) == 130
    assert "files that were written are whole" in capsys.readouterr().err
    assert not (tmp_path / "README.md").exists()


def test_warnings_are_written_down(file, tmp_path, monkeypatch):
    def warning(solved):
        import warnings

        warnings.warn("mind this", stacklevel=1)
        return laws.certified(solved)

    reproduce(monkeypatch, tmp_path, figure(panel(file, warning)), "--quiet")
    assert "- x³, D = 1: mind this" in (tmp_path / "tiny.md").read_text("utf-8")


def test_a_page_is_the_old_one_or_the_new_one(file, tmp_path, monkeypatch, capsys):
    made = figure(panel(file, laws.certified))
    reproduce(monkeypatch, tmp_path, made, "--quiet")
    before = (tmp_path / "tiny.md").read_bytes()

    def torn(path, text, **settings):
        with path.open("w", **settings) as stream:
            stream.write(text[:10])
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_text", torn)
    capsys.readouterr()
    assert reproduce(monkeypatch, tmp_path, made, "--quiet") == 5
    told = capsys.readouterr().err
    assert told == f"propopt: cannot write {tmp_path / 'tiny.md'}: disk full\n"
    assert (tmp_path / "tiny.md").read_bytes() == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_folder_that_cannot_be_made_is_refused(file):
    with pytest.raises(InvalidInput, match="cannot make the folder"):
        po.reproduce.reproduce_paper(["fig1"], file / "below")


def test_a_number_of_jobs_that_is_zero_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="n_jobs"):
        po.reproduce.reproduce_paper(["fig2"], tmp_path, n_jobs=0, quiet=True)


def test_help_lists_every_figure(capsys):
    with pytest.raises(SystemExit):
        main(["reproduce", "--help"])
    listed = capsys.readouterr().out
    assert all(name in listed for name in FIGURES)


def test_the_cheapest_panel_of_the_paper_holds():
    chosen = next(
        p for p in FIGURES["fig2"]().panels if p.title.startswith("x², D = 1")
    )
    result = chosen.run()
    assert [f.statement for f in result.findings if not f.holds] == []
    assert (result.distances["saved"] >= 0).all()
