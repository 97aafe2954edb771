"""Invariants of ours and statements of the paper: verdicts, counts and the record."""

from __future__ import annotations

import pandas as pd
import pytest
from reproduction import FILE, figure, panel, paper

from papers import PAPERS
from papers.__main__ import main
from papers.engine import Claim, Invariant
from papers.engine.tally import Drift, FigureReport, Tally


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def claim(value=1.0, *, statement="it falls", difference="", note="", between=None):
    """Holds for values up to one."""
    return Claim(
        statement=statement,
        value=value,
        sense="<=",
        limit=1.0,
        difference=difference,
        note=note,
        between=between,
    )


def invariant(value=1.0):
    return Invariant(statement="no gap", value=value, sense="<=", limit=1.0)


@pytest.mark.parametrize("kind", [Invariant, Claim])
@pytest.mark.parametrize(
    ("sense", "limit", "holds"),
    [("<=", 1.0, True), ("<=", 0.999, False), (">=", 1.0, True), (">=", 1.001, False)],
)
def test_a_finding_holds_on_its_side_of_the_limit(kind, sense, limit, holds):
    result = kind(statement="s", value=1.0, sense=sense, limit=limit)
    assert result.holds is holds
    assert (result.margin >= 0) is holds


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
        (claim(0.5, between=(0.1, 1.0)), "confirmed"),
        (claim(0.5, between=(0.1, 1.0), difference="few points"), "differs"),
        (claim(0.5, between=(0.1, 1.001)), "undecided"),
        (claim(1.5, between=(1.0, 2.0)), "undecided"),
        (claim(1.5, between=(1.001, 2.0)), "not confirmed"),
    ],
)
def test_verdicts(found, verdict):
    assert str(found.verdict) == verdict


# running


def reproduce(monkeypatch, folder, *findings, options=(), recorded=()):
    """The exit code, and the first page, of a figure with one panel for each."""
    file = folder / "tiny.yaml"
    file.write_text(FILE, encoding="utf-8")
    made = figure(
        *(
            panel(file, lambda _, f=result: f, column=f"panel {number}")
            for number, result in enumerate(findings)
        )
    )
    record = folder / "recorded.csv"
    columns = ["figure", "statement", "difference", "verdict"]
    pd.DataFrame(recorded, columns=columns).to_csv(record, index=False)
    monkeypatch.setitem(PAPERS, "small", paper(made, record))
    arguments = ["tiny", "--paper", "small", "--output", str(folder)]
    code = main([*arguments, *options])
    return code, (folder / "README.md").read_text(encoding="utf-8")


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
    result = claim(2.0, note="1.5 to 3 over 5 draws")
    code, page = reproduce(monkeypatch, tmp_path, invariant(), result)
    assert code == 0
    first, _ = page.split("| figure |")
    assert "- tiny: it falls: 2, expected <= 1; holds in 0 of 1 panels" in first
    assert "1.5 to 3 over 5 draws" in first
    assert "not confirmed: it falls: 2, expected <= 1" in capsys.readouterr().out


@pytest.mark.slow
def test_an_invariant_that_fails_is_a_failure_and_told_first(tmp_path, monkeypatch):
    code, page = reproduce(monkeypatch, tmp_path, invariant(1.001), claim())
    assert code == 4
    first, _ = page.split("| figure |")
    assert "- tiny: no gap: 1.001, expected <= 1" in first


def test_a_statement_has_to_hold_in_every_panel(tmp_path, monkeypatch):
    _, page = reproduce(monkeypatch, tmp_path, claim(0.5), claim(1.001), claim(0.9))
    assert "| 1.001 | <= 1 | 2 of 3 | panel 1, D = 1 |" in page


@pytest.mark.parametrize(
    ("others", "verdict", "told"),
    [
        ([claim(0.9)], "undecided", "0.8 (0.7 to 1.2) | <= 1 | 1 of 2"),
        ([claim(0.9), claim(1.2)], "not confirmed", "1.2 | <= 1 | 1 of 3"),
    ],
)
def test_a_panel_that_decides_nothing_yields_to_one_that_refutes(
    others, verdict, told, tmp_path, monkeypatch
):
    few = claim(0.8, between=(0.7, 1.2))
    _, page = reproduce(monkeypatch, tmp_path, few, *others)
    assert f"| it falls | **{verdict}** (on record: none) | {told} |" in page
    claims = pd.read_csv(tmp_path / "claims.csv")
    assert claims["verdict"].tolist() == [verdict]
    every = pd.read_csv(tmp_path / "statements.csv")
    assert every[["low", "high"]].iloc[0].tolist() == [0.7, 1.2]
    assert every[["low", "high"]].iloc[1].tolist() == [0.9, 0.9]


def test_what_is_undecided_is_counted_and_is_no_failure(tmp_path, monkeypatch, capsys):
    result = claim(0.8, between=(0.7, 1.2))
    code, page = reproduce(monkeypatch, tmp_path, result)
    assert code == 0
    assert "0 not confirmed, 1 undecided by too few replicates." in page
    assert "not confirmed here" not in page
    assert "undecided: it falls: 0.8" in capsys.readouterr().out


def test_set_ups_that_differ_are_told_apart(tmp_path, monkeypatch):
    reproduce(monkeypatch, tmp_path, claim(0.5), claim(0.6, difference="few points"))
    table = pd.read_csv(tmp_path / "claims.csv", keep_default_na=False)
    assert table["difference"].tolist() == ["", "few points"]
    assert table["verdict"].tolist() == ["confirmed", "differs"]


@pytest.mark.parametrize("quiet", [True, False])
def test_a_verdict_that_is_not_the_one_on_record_is_visible(
    quiet, tmp_path, monkeypatch, capsys
):
    code, page = reproduce(
        monkeypatch,
        tmp_path,
        claim(2.0),
        options=["--quiet"] * quiet,
        recorded=[("tiny", "it falls", "", "confirmed")],
    )
    assert code == 0
    assert "1 not as on record." in page.splitlines()[2]
    assert "- tiny: it falls: **not confirmed** (on record: confirmed)" in page
    printed = capsys.readouterr().out
    assert ("it falls: not confirmed, on record: confirmed" in printed) is not quiet


def test_a_verdict_that_is_on_record_is_told_quietly(tmp_path, monkeypatch, capsys):
    recorded = [("tiny", "it falls", "", "not confirmed")]
    _, page = reproduce(monkeypatch, tmp_path, claim(2.0), recorded=recorded)
    assert "on record" not in page
    assert "on record" not in capsys.readouterr().out


def test_a_figure_that_is_not_complete_changes_no_verdict(file):
    one = panel(file, lambda _: claim(2.0))
    report = FigureReport(
        name="tiny", figure=figure(one, one), results=(one.run(),), seconds=0.0
    )
    assert Tally.of([report]).n_changed == 0


# values on record


@pytest.mark.parametrize(
    ("quantity", "recorded", "least_that_differs"),
    [
        ("loss.gradient_matching", 1000.0, 0.51),  # half a unit of the fourth digit
        ("excess", 0.5, 0.0016),  # (1 + e) times twice that
        ("saved", 0.5, 0.011),  # the width of an enclosure
        ("measured", 3.0, 0.031),
        ("loss.gradient_matching", 0.0, 1e-300),
    ],
)
def test_values_agree_within_what_is_known_of_them(
    quantity, recorded, least_that_differs
):
    def drift(value):
        return Drift("tiny", "panel", "lime", quantity, value, recorded)

    assert drift(recorded).within
    assert drift(recorded + 0.9 * least_that_differs).within or recorded == 0.0
    assert not drift(recorded + least_that_differs).within
    assert not drift(recorded - least_that_differs).within
    assert not drift(float("nan")).within
    assert not drift(float("inf")).within


def rerun(monkeypatch, folder, file, values):
    made = figure(panel(file, lambda _: claim(0.5)))
    monkeypatch.setitem(PAPERS, "small", paper(made, values=values))
    arguments = ["tiny", "--paper", "small", "--output", str(folder)]
    assert main(arguments) == 0
    return (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_a_run_writes_is_what_the_next_is_held_against(
    file, tmp_path, monkeypatch, capsys
):
    first = rerun(monkeypatch, tmp_path / "first", file, None)
    written = tmp_path / "first" / "values.csv"
    again = rerun(monkeypatch, tmp_path / "again", file, written)
    assert "Values" not in first + again
    told = (tmp_path / "first" / "tiny.md").read_text(encoding="utf-8")
    assert "| 0 (absolute) | 0.00% |" in told  # the gradient, at weight zero
    capsys.readouterr()
    # a loss that is off by 0.1 %, and a baseline that was not there
    table = pd.read_csv(written)
    place = table.index[table["quantity"].str.startswith("loss.")][-1]
    assert table.loc[place, "value"] > 0.0
    table.loc[place, "value"] *= 1.001
    other = table.iloc[[place]].assign(what="another", value=1.0)
    changed = tmp_path / "changed.csv"
    pd.concat([table, other]).to_csv(changed, index=False)
    page = rerun(monkeypatch, tmp_path / "changed", file, changed)
    told = (
        f"tiny, x³, D = 1: {table.loc[place, 'what']}: {table.loc[place, 'quantity']}"
    )
    assert "Values not as on record: 2." in page
    assert f"- {told}: " in page
    assert "another: " in page
    assert told in capsys.readouterr().out


def test_panels_that_are_not_on_record_are_held_against_nothing(file):
    values = {("tiny", "another panel", "lime", "excess"): 1.0}
    one = panel(file, lambda _: claim(0.5))
    report = FigureReport(
        name="tiny",
        figure=figure(one),
        results=(one.run(),),
        seconds=0.0,
        values=values,
    )
    assert report.measured
    assert report.drifted == []
