"""Invariants of ours and statements of the paper: verdicts, counts and the record."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from reproduction import FILE, figure, panel

from propopt.cli import main
from propopt.reproduce import Claim, Invariant, Verdict, statements
from propopt.reproduce.figures import FIGURES
from propopt.reproduce.induction import PROTOCOL
from propopt.reproduce.statements import FigureReport, Tally, record


DOCS = Path(__file__).parents[2] / "docs" / "paper.md"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def claim(value=1.0, *, statement="it falls", difference="", note=""):
    """Holds for values up to one."""
    return Claim(
        statement=statement,
        value=value,
        sense="<=",
        limit=1.0,
        difference=difference,
        note=note,
    )


def invariant(value=1.0):
    return Invariant(statement="no gap", value=value, sense="<=", limit=1.0)


@pytest.mark.parametrize("kind", [Invariant, Claim])
@pytest.mark.parametrize(
    ("sense", "limit", "holds"),
    [("<=", 1.0, True), ("<=", 0.999, False), (">=", 1.0, True), (">=", 1.001, False)],
)
def test_a_finding_holds_on_its_side_of_the_limit(kind, sense, limit, holds):
    found = kind(statement="s", value=1.0, sense=sense, limit=limit)
    assert found.holds is holds
    assert (found.margin >= 0) is holds


@pytest.mark.parametrize("sense", ["<=", ">="])
def test_what_is_no_number_does_not_hold(sense):
    value = float("nan")
    assert not Invariant(statement="s", value=value, sense=sense, limit=0.0).holds


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (invariant(1.0), "PASS"),
        (invariant(1.001), "FAIL"),
        (claim(1.0), "confirmed"),
        (claim(1.001), "not confirmed"),
        (claim(1.0, difference="few points"), "differs"),
        (claim(1.001, difference="few points"), "not confirmed"),
    ],
)
def test_verdicts(found, verdict):
    assert str(found.verdict) == verdict


# running


def reproduce(monkeypatch, folder, *findings, options=()):
    """The exit code, and the first page, of a figure with one panel for each."""
    monkeypatch.setitem(FIGURES, "tiny", lambda: made)
    file = folder / "tiny.yaml"
    file.write_text(FILE, encoding="utf-8")
    made = figure(
        *(
            panel(file, lambda _, f=found: f, column=f"panel {number}")
            for number, found in enumerate(findings)
        )
    )
    code = main(["reproduce", "tiny", "--output", str(folder), *options])
    return code, (folder / "README.md").read_text(encoding="utf-8")


def put_on_record(monkeypatch, **verdicts):
    known = {("tiny", name, ""): verdict for name, verdict in verdicts.items()}
    monkeypatch.setattr(statements, "record", lambda: known)


def test_the_headline_counts_invariants_and_statements_apart(tmp_path, monkeypatch):
    _, page = reproduce(
        monkeypatch,
        tmp_path,
        invariant(),
        invariant(),
        claim(statement="a"),
        claim(statement="b", difference="few points"),
        claim(2.0, statement="c"),
        claim(1.0, statement="c"),
    )
    assert page.splitlines()[2].startswith(
        "**Invariants of ours: 2 of 2 PASS, 0 FAIL. Statements of the paper: "
        "1 confirmed, 1 true in a set-up that differs, 1 not confirmed."
    )


def test_a_statement_that_is_not_confirmed_is_told_first_and_is_no_failure(
    tmp_path, monkeypatch, capsys
):
    found = claim(2.0, note="1.5 to 3 over 5 draws")
    code, page = reproduce(monkeypatch, tmp_path, invariant(), found)
    assert code == 0
    first, _ = page.split("| figure |")
    assert "- tiny: it falls: 2, expected <= 1; holds in 0 of 1 panels" in first
    assert "1.5 to 3 over 5 draws" in first
    assert "not confirmed: it falls: 2, expected <= 1" in capsys.readouterr().out


def test_an_invariant_that_fails_is_a_failure_and_told_first(tmp_path, monkeypatch):
    code, page = reproduce(monkeypatch, tmp_path, invariant(1.001), claim())
    assert code == 4
    first, _ = page.split("| figure |")
    assert "- tiny: no gap: 1.001, expected <= 1" in first


def test_a_statement_has_to_hold_in_every_panel(tmp_path, monkeypatch):
    _, page = reproduce(monkeypatch, tmp_path, claim(0.5), claim(1.001), claim(0.9))
    assert "| 1.001 | <= 1 | 2 of 3 | panel 1, D = 1 |" in page


def test_set_ups_that_differ_are_told_apart(tmp_path, monkeypatch):
    put_on_record(monkeypatch)
    reproduce(monkeypatch, tmp_path, claim(0.5), claim(0.6, difference="few points"))
    table = pd.read_csv(tmp_path / "claims.csv", keep_default_na=False)
    assert table["difference"].tolist() == ["", "few points"]
    assert table["verdict"].tolist() == ["confirmed", "differs"]


@pytest.mark.parametrize("quiet", [True, False])
def test_a_verdict_that_is_not_the_one_on_record_is_visible(
    quiet, tmp_path, monkeypatch, capsys
):
    known = {("tiny", "it falls", ""): Verdict.CONFIRMED}
    monkeypatch.setattr(statements, "record", lambda: known)
    options = ["--quiet"] * quiet
    code, page = reproduce(monkeypatch, tmp_path, claim(2.0), options=options)
    assert code == 0
    assert "1 not as on record." in page.splitlines()[2]
    assert "- tiny: it falls: **not confirmed** (on record: confirmed)" in page
    printed = capsys.readouterr().out
    assert ("it falls: not confirmed, on record: confirmed" in printed) is not quiet


def test_a_verdict_that_is_on_record_is_told_quietly(tmp_path, monkeypatch, capsys):
    known = {("tiny", "it falls", ""): Verdict.NOT_CONFIRMED}
    monkeypatch.setattr(statements, "record", lambda: known)
    _, page = reproduce(monkeypatch, tmp_path, claim(2.0))
    assert "on record" not in page
    assert "on record" not in capsys.readouterr().out


def test_a_figure_that_is_not_complete_changes_no_verdict(file):
    one = panel(file, lambda _: claim(2.0))
    report = FigureReport(
        name="tiny", figure=figure(one, one), results=(one.run(),), seconds=0.0
    )
    assert Tally.of([report]).n_changed == 0


# the record


def test_every_verdict_on_record_stands_in_the_docs():
    text = DOCS.read_text(encoding="utf-8")
    sections = dict(
        re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", text, flags=re.DOTALL | re.MULTILINE)
    )
    for (name, statement, difference), verdict in record().items():
        row = next(
            line
            for line in sections[name].splitlines()
            if line.startswith(f"| {statement} |")
            and line.endswith(f"| {difference or '–'} |")
        )
        assert f"| {statement} | {verdict} |" in row


def test_docs_have_tables_and_the_statement_on_them_from_one_run():
    """Shares are told to a hundredth of a per cent."""
    text = DOCS.read_text(encoding="utf-8")
    statement, tables = text.split("## Distances on tables")
    (told,) = re.findall(r"\| differs \| ([\d.]+) \|.*nearest rows \|", statement)
    rows = re.findall(r"^\| (?:smoothgrad|lime),.* ([\d.]+)% \|$", tables, re.MULTILINE)
    assert len(rows) == 64
    assert min(map(float, rows)) / 100 == pytest.approx(float(told), abs=5.1e-5)


def test_what_docs_say_of_figure_5_is_on_record():
    verdicts = {
        statement: verdict
        for (name, statement, _), verdict in record().items()
        if name == "fig5" and statement.startswith(PROTOCOL)
    }
    assert set(verdicts.values()) == {Verdict.NOT_CONFIRMED}
    assert len(verdicts) == 3


@pytest.mark.parametrize("name", ["fig4"])
def test_a_run_has_the_verdicts_on_record(name):
    made = FIGURES[name]()
    results = tuple(one.run() for one in made.panels)
    report = FigureReport(name=name, figure=made, results=results, seconds=0.0)
    known = {key for key in record() if key[0] == name}
    assert {(name, c.text, c.difference) for c in report.claims} == known
    assert report.changed == []
