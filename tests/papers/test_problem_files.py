"""Figures of papers: each panel has a valid problem file, and a title of its own."""

from __future__ import annotations

import pytest

from papers import PAPERS
from papers.engine.panels import Panel
from propopt.base.errors import InvalidInput
from propopt.problems import read_problem


FIGURES = [(name, figure) for name, paper in PAPERS.items() for figure in paper.figures]
each_figure = pytest.mark.parametrize(("paper", "figure"), FIGURES)


def panels(paper, figure):
    return PAPERS[paper].figures[figure]().panels


def problems(paper, figure):
    return [one.problem for one in panels(paper, figure) if isinstance(one, Panel)]


@each_figure
def test_every_panel_has_a_valid_file(paper, figure):
    for problem in problems(paper, figure):
        assert read_problem(problem).build().swept


@pytest.mark.parametrize("name", PAPERS)
def test_every_problem_file_of_a_paper_is_in_a_figure(name):
    paper = PAPERS[name]
    files = {file for figure in paper.figures for file in problems(name, figure)}
    if paper.problems is None:
        assert files == set()
    else:
        assert files == set(paper.problems.folder.glob("*.yaml"))


@each_figure
def test_panels_of_a_figure_have_titles_of_their_own(paper, figure):
    titles = [panel.title for panel in panels(paper, figure)]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("name", PAPERS)
def test_verdicts_on_record_are_of_figures_that_there_are(name):
    figures = {figure for figure, _, _ in PAPERS[name].record}
    assert figures <= set(PAPERS[name].figures)


def test_a_file_that_is_not_there_is_told():
    with pytest.raises(InvalidInput, match=r"fig7\.yaml in .*problems"):
        PAPERS["properties"].problems.path("fig7")
