"""Studies: what is measured, told and drawn where a panel is no sweep."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from xml.etree import ElementTree

import pandas as pd
import pytest

from papers import PAPERS, read_choice, read_choices
from papers.__main__ import main
from papers.engine import Claim, Invariant, Paper, Study, reproduce_paper, run
from papers.engine.figure import PaperFigure
from papers.engine.studies import draw_charts, no_numbers
from propopt.base.errors import InvalidInput


@dataclass(frozen=True)
class Dot:
    title: str

    def draw(self, axes):
        axes.plot([0.0], [1.0], "o")


def two():
    warnings.warn("mind this", stacklevel=1)
    return 2.0


def is_two(value):
    return Invariant(statement="it is two", value=abs(value - 2), sense="<=", limit=0)


def is_large(value):
    return Claim(statement="it is large", value=value, sense=">=", limit=10.0)


def dots(value):
    return [Dot(f"dot {place}: $5") for place in range(int(value) + 1)]


def table(value):
    return pd.DataFrame({"name": ["a|b"], "number": [value / 3]})


def study(**changes):
    settings = {"column": "a number", "measure": two, "charts": dots, "numbers": table}
    return Study(**settings | {"statements": (is_two, is_large)} | changes)


def paper(*panels):
    made = PaperFigure(title="A", about="B.", panels=panels, draw=draw_charts)
    return Paper(name="small", title="A paper", figures={"tiny": lambda: made})


def test_a_study_is_run_told_and_drawn(tmp_path):
    report = reproduce_paper(paper(study()), ["all"], tmp_path, quiet=True)
    assert report.to_frame()["verdict"].tolist() == ["PASS", "not confirmed"]
    page = (tmp_path / "tiny.md").read_text(encoding="utf-8")
    assert "## Numbers" in page
    assert "0.6667 |" in page
    assert "- a number: mind this" in page
    assert "Distances of the baselines" not in page
    ElementTree.parse(tmp_path / "tiny.svg")


def test_a_study_without_numbers_has_no_table_of_them(tmp_path):
    made = paper(study(numbers=no_numbers))
    reproduce_paper(made, ["all"], tmp_path, quiet=True)
    assert "## Numbers" not in (tmp_path / "tiny.md").read_text(encoding="utf-8")


def test_a_study_whose_invariant_does_not_hold_fails(tmp_path):
    made = paper(study(measure=partial(float, 3)))
    report = reproduce_paper(made, ["all"], tmp_path, quiet=True)
    assert report.n_failed == 1


def test_studies_run_in_workers():
    first, second = run.panel_results([study(), study(row="again")], 2)
    assert first.findings == second.findings == study().run().findings
    assert second.panel.title == "a number, again"


def test_charts_fill_rows_and_leave_the_rest_empty():
    figure = draw_charts([study().run()], size=(2.0, 1.0), columns=2)
    assert [axes.get_visible() for axes in figure.axes] == [True, True, True, False]
    assert tuple(figure.get_size_inches()) == (4.0, 2.0)


# which paper


@pytest.mark.parametrize(
    ("names", "paper", "expected"),
    [
        (["fig1", "fig4"], None, ("properties", ("fig1", "fig4"))),
        (["all"], "properties", ("properties", ("all",))),
        (["properties", "fig1"], None, ("properties", ("fig1",))),
        (["tabular-lime"], None, ("tabular-lime", ("all",))),
        (["tabular-lime", "fig7"], None, ("tabular-lime", ("fig7",))),
        (["fig7"], "tabular-lime", ("tabular-lime", ("fig7",))),
        ([], "tabular-lime", ("tabular-lime", ())),
    ],
)
def test_a_paper_may_stand_before_its_figures(names, paper, expected):
    result, figures = read_choice(names, paper)
    assert (result.name, figures) == expected


def test_two_papers_are_refused():
    with pytest.raises(InvalidInput, match="said to be of tabular-lime already"):
        read_choice(["tabular-lime", "fig7"], "properties")


def test_several_papers_stand_one_after_another():
    names = ["tabular-lime", "linear-lime", "fig2", "fig3", "properties"]
    chosen = [(one.name, figures) for one, figures in read_choices(names)]
    assert chosen == [
        ("tabular-lime", ("all",)),
        ("linear-lime", ("fig2", "fig3")),
        ("properties", ("all",)),
    ]
    first = [(one.name, f) for one, f in read_choices(["fig1", "linear-lime"])]
    assert first == [("properties", ("fig1",)), ("linear-lime", ("all",))]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["linear-lime", "fig2", "linear-lime"], "name the paper linear-lime once"),
        (["tabular-lime", "linear-lime", "fig99"], "there is no 'fig99'"),
        (["fig99", "linear-lime"], "there is no 'fig99'"),
        (
            ["properties", "linear-lime", "--csv", "a.csv", "--target", "y"],
            "--csv is a table for one paper",
        ),
    ],
)
def test_several_papers_are_refused_before_any_work(
    arguments, message, tmp_path, capsys
):
    folder = tmp_path / "made"
    assert main([*arguments, "-o", str(folder)]) == 2
    assert message in capsys.readouterr().err
    assert not folder.exists()


def test_each_of_several_papers_has_its_folder(tmp_path, capsys):
    names = ["tabular-lime", "fig11", "linear-lime", "fig3"]
    assert main([*names, "-o", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    for name, figure in (("tabular-lime", "fig11"), ("linear-lime", "fig3")):
        assert (tmp_path / name / f"{figure}.svg").exists()
        assert PAPERS[name].title in (tmp_path / name / "README.md").read_text()
        assert PAPERS[name].title in said


def test_nothing_lists_papers_and_figures(capsys):
    assert main([]) == 0
    listed = capsys.readouterr().out
    for name, known in PAPERS.items():
        assert f"{name}: {known.title}" in listed
        assert all(f"  {figure}" in listed for figure in known.figures)


def test_figures_of_another_paper_are_written_to_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["tabular-lime", "fig11", "--quiet"]) == 0
    assert (tmp_path / "results" / "tabular-lime" / "fig11.svg").exists()
