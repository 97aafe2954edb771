"""``python -m papers``: what is run, written and told."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from reproduction import FILE, INDUCTIVE, figure, panel, paper

from papers import PAPERS
from papers.__main__ import main
from papers.engine import Invariant, reproduce_paper, run, statements
from papers.properties import induction
from papers.properties.paper import PROPERTIES
from propopt.base.errors import InvalidInput


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_a_panel_tells_the_excess_of_each_inductive_explanation(tmp_path, monkeypatch):
    path = tmp_path / "later.yaml"
    path.write_text(INDUCTIVE, encoding="utf-8")
    one = dataclasses.replace(
        panel(path, induction.never_below), distances=induction.inductive_distances
    )
    fig5 = PROPERTIES.figures["fig5"]()
    drawn = dataclasses.replace(one, pictures=fig5.panels[0].pictures)
    made = dataclasses.replace(figure(drawn), draw=fig5.draw)
    assert reproduce(monkeypatch, tmp_path / "out", made, "--quiet") == 0
    page = (tmp_path / "out" / "tiny.md").read_text(encoding="utf-8")
    assert "| inductive, rule = greedy, own gradients = False, inputs = 40," in page
    assert "excess |" in page
    assert "saved |" not in page
    ElementTree.parse(tmp_path / "out" / "tiny.svg")


# running


def reproduce(monkeypatch, folder, made, *options):
    monkeypatch.setitem(PAPERS, "small", paper(made))
    arguments = ["tiny", "--paper", "small", "--output", str(folder)]
    return main([*arguments, *options])


def stop(solved):
    del solved
    raise KeyboardInterrupt


def failing(solved):
    del solved
    return Invariant(statement="one is more than | two", value=1, sense=">=", limit=2)


def test_a_figure_whose_statements_hold(file, tmp_path, monkeypatch, capsys):
    made = figure(panel(file, *statements.EVERYWHERE), panel(file, column="again"))
    out = tmp_path / "out"
    assert reproduce(monkeypatch, out, made) == 0
    assert {path.name for path in out.iterdir()} == {
        "README.md",
        "claims.csv",
        "statements.csv",
        "values.csv",
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
    made = figure(panel(file, statements.certified, failing))
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
    made = figure(panel(file, statements.certified))
    assert reproduce(monkeypatch, tmp_path, made, "--quiet") == 0
    assert capsys.readouterr() == ("", "")


def test_the_same_run_draws_the_same_picture(file, tmp_path, monkeypatch):
    made = figure(panel(file, statements.certified))
    pictures = []
    for folder in ("one", "two"):
        reproduce(monkeypatch, tmp_path / folder, made, "--quiet")
        pictures.append((tmp_path / folder / "tiny.svg").read_bytes())
    assert pictures[0] == pictures[1]


def test_two_jobs_find_the_same(file):
    panels = [panel(file, statements.none_beats), panel(file, statements.certified)]
    joint = list(run.panel_results(panels, 2))
    assert [r.findings for r in joint] == [one.run().findings for one in panels]


def test_an_interrupted_run_keeps_what_is_done(file, tmp_path, monkeypatch, capsys):
    made = figure(panel(file, statements.certified), panel(file, stop, column="second"))
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
        return statements.certified(solved)

    reproduce(monkeypatch, tmp_path, figure(panel(file, warning)), "--quiet")
    assert "- x³, D = 1: mind this" in (tmp_path / "tiny.md").read_text("utf-8")


def test_a_page_is_the_old_one_or_the_new_one(file, tmp_path, monkeypatch, capsys):
    made = figure(panel(file, statements.certified))
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
        reproduce_paper(PROPERTIES, ["fig1"], file / "below")


def test_a_number_of_jobs_that_is_zero_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="n_jobs"):
        reproduce_paper(PROPERTIES, ["fig2"], tmp_path, n_jobs=0, quiet=True)


def test_help_lists_every_figure(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = capsys.readouterr().out
    assert all(name in listed for name in PROPERTIES.figures)


def test_the_cheapest_panel_of_the_paper_holds():
    chosen = next(
        p
        for p in PROPERTIES.figures["fig2"]().panels
        if p.title.startswith("x², D = 1")
    )
    result = chosen.run()
    assert [f.statement for f in result.findings if not f.holds] == []
    assert (result.distances["saved"] >= 0).all()


# papers


@pytest.mark.parametrize(
    ("name", "near"),
    [("propertys", "(did you mean 'properties'?)"), ("x", "there are ")],
)
def test_a_paper_that_there_is_not_is_refused(name, near, tmp_path, capsys):
    arguments = ["fig1", "--paper", name, "-o", str(tmp_path / "out")]
    assert main([*arguments]) == 2
    told = capsys.readouterr().err
    assert f"paper: there is no {name!r}" in told
    assert near in told
    assert not (tmp_path / "out").exists()


def test_a_paper_without_a_use_for_tables_refuses_them(file, tmp_path):
    made = paper(figure(panel(file, stop)))
    with pytest.raises(InvalidInput, match="--csv: the paper small takes no table"):
        reproduce_paper(made, ["tiny"], tmp_path, csv="t.csv", target="y", quiet=True)


def test_a_paper_of_ones_own_needs_no_registry(file, tmp_path):
    made = paper(figure(panel(file, statements.certified)))
    report = reproduce_paper(made, ["all"], tmp_path, quiet=True)
    assert report.to_frame()["figure"].tolist() == ["tiny"]
    assert report.n_failed == 0
