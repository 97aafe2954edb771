"""The verdicts on record are those of the documentation, and of a run."""

import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from figures_on_record import drawn_as_on_record

from papers import PAPERS, read_choices
from papers.__main__ import main
from papers.durations import durations_in_words, durations_on_record
from papers.engine.tally import joint_verdict
from papers.properties.paper import PROPERTIES


RECORD = Path(__file__).parents[2] / "papers" / "records" / "properties.md"


def test_a_run_has_the_verdicts_on_record():
    drawn_as_on_record(PROPERTIES, "fig4")
    assert len([key for key in PROPERTIES.values_on_record if key[0] == "fig4"]) > 200


def test_docs_tell_the_distances_on_record():
    """Every row of every table; what is no number is no number with a reason."""
    values = PROPERTIES.values_on_record
    _, text = RECORD.read_text(encoding="utf-8").split("## Distances on tables")
    rows = {key[1:3] for key in values if key[0] == "tables" and key[3] != "measured"}
    assert len(rows) == 4 * 28
    for panel, label in rows:
        (section,) = re.findall(
            rf"^\*\*{panel}\*\*\n(.*?)(?=^\*\*|^## )", text, re.DOTALL | re.MULTILINE
        )
        quantities = (
            "loss.gradient_matching",
            "loss.pairwise_robustness",
            "excess",
            "saved",
        )
        own = [values["tables", panel, label, quantity] for quantity in quantities]
        faithful, robust, excess, saved = own
        name = re.sub(r" \(\d\)$", "", label)
        if np.isnan(excess):
            shares = "– | –"
            assert f"- {name} is not compared: " in section
        else:
            told = f"{excess:.2%}" if excess else "0 (absolute)"
            shares = f"{told} | {saved:.2%}"
        assert f"| {name} | {faithful:.4g} | {robust:.4g} | {shares} |\n" in section


REASONED = {"properties", "tabular-lime", "linear-lime", "text-lime"}


@pytest.mark.parametrize("name", REASONED)
def test_what_is_not_confirmed_has_its_reason_in_a_line(name):
    table = pd.read_csv(PAPERS[name].recorded, keep_default_na=False)
    told = table[table["verdict"] != "confirmed"]
    assert len(told) > 0
    assert told.loc[told["reason"] == "", "statement"].tolist() == []


def test_the_page_has_the_counts_on_record():
    path = Path(__file__).parents[2] / "docs" / "_ext" / "paper_counts.py"
    own = runpy.run_path(str(path))
    text = own["PAGE"].read_text(encoding="utf-8")
    assert own["page"](text) == text
    assert own["STATEMENTS"].read_text(encoding="utf-8") == own["statements"]()
    for name, paper in PAPERS.items():
        alike = {}
        for (figure, statement, _), recorded in paper.record.items():
            claim = paper.sentences[figure, statement].claim
            alike.setdefault(claim, []).append(recorded.verdict)
        verdicts = [str(joint_verdict(one)) for one in alike.values()]
        counts = [verdicts.count(word) for word in own["WORDS"]]
        head = own["PAPERS"][name.replace("-", "_")]
        assert f"| {head} | {' | '.join(map(str, counts))} |" in text
        assert sum(counts) == len(verdicts) > 0


@pytest.mark.parametrize("name", PAPERS)
def test_every_statement_has_its_place_and_claim_in_the_paper(name):
    paper = PAPERS[name]
    statements = {key[:2] for key in paper.record}
    assert set(paper.sentences) == statements
    for section, claim in paper.sentences.values():
        assert re.search(r"\d", section + claim), claim
        assert section
        assert 3 < len(claim.split()) <= 15, claim


PAGES = {
    "properties": "properties.md",
    "tabular-lime": "lime.md",
    "linear-lime": "lime.md",
    "text-lime": "lime.md",
    "iloco": "iloco.md",
}


@pytest.mark.parametrize("name", PAGES)
def test_every_verdict_on_record_stands_in_the_docs(name):
    text = RECORD.with_name(PAGES[name]).read_text(encoding="utf-8")
    is_alone = name == "properties"  # on its page
    head = r"(\w+)" if is_alone else rf"{name} (\w+): .*?"
    sections = dict(re.findall(rf"(?ms)^### {head}\n(.*?)(?=^##|\Z)", text))
    paper = PAPERS[name]
    record = paper.record
    for (figure, statement, difference), recorded in record.items():
        told = statement.replace("|", "\\|")
        said = paper.sentences[figure, statement].in_words().replace("|", "\\|")
        shares = f"| {recorded.holding} of {recorded.panels} |"
        rows = [
            line
            for line in sections[figure].splitlines()
            if line.startswith(f"| {told} | {said} | {recorded.verdict} |")
            and shares in line
            and (not difference or line.endswith(f"| {difference} |"))
        ]
        assert len(rows) == 1
    n_rows = sum(section.count("\n| ") - 2 for section in sections.values())
    assert is_alone or n_rows == len(record)


@pytest.mark.parametrize("name", PAPERS)
def test_what_figures_take_is_on_record(name):
    """Each of them, or the paper as a whole; of no figure that is not there."""
    figures = set(PAPERS[name].figures)
    known = {figure for of, figure in durations_on_record() if of == name}
    assert figures <= known or "all" in known
    assert known <= {*figures, "all"}


def test_a_run_says_first_what_it_takes(tmp_path, capsys):
    *lines, whole = durations_in_words(read_choices(["all"]))
    told = [
        re.fullmatch(r"([\w-]+): .*, about (\d+) (s|minutes) of .*", x) for x in lines
    ]
    assert [match[1] for match in told] == list(PAPERS)
    minutes = sum(float(match[2]) / (60 if match[3] == "s" else 1) for match in told)
    found = re.fullmatch(r"5 papers: about (\d+) minutes of processor time", whole)
    assert float(found[1]) == pytest.approx(minutes, abs=2.0)
    assert main(["linear-lime", "fig3", "-o", str(tmp_path)]) == 0
    first, *_ = capsys.readouterr().out.splitlines()
    assert first == "linear-lime: 1 figure, about 1 s of processor time"
    (full,) = durations_in_words(read_choices(["iloco", "fig2"]), full=True)
    assert full == (
        "iloco: 1 figure; how long they take: at the scale of the paper, up to days"
    )
