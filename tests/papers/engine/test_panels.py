"""Panels of problem files, of what such files say, of problems made of objects."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import yaml
from reproduction import FILE, panel

import propopt as po
from papers import PAPERS
from papers.engine.panels import Panel
from papers.engine.run import panel_results
from papers.engine.statements import EVERYWHERE, give_away
from propopt.base.errors import InvalidInput
from propopt.functions import Power
from propopt.problems import Problem, read_problem, read_sections


STATEMENTS = (*EVERYWHERE, give_away)


# ---- figures of papers


FIGURES = [(name, figure) for name, paper in PAPERS.items() for figure in paper.figures]


def problems(paper, figure):
    panels = PAPERS[paper].figures[figure]().panels
    return [one.problem for one in panels if isinstance(one, Panel)]


@pytest.mark.parametrize(("paper", "figure"), FIGURES)
def test_every_panel_has_a_valid_file_and_a_title_of_its_own(paper, figure):
    for problem in problems(paper, figure):
        assert read_problem(problem).build().swept
    titles = [panel.title for panel in PAPERS[paper].figures[figure]().panels]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("name", PAPERS)
def test_every_problem_file_and_every_verdict_of_a_paper_is_of_a_figure(name):
    paper = PAPERS[name]
    files = {file for figure in paper.figures for file in problems(name, figure)}
    kept = paper.problems and set(paper.problems.folder.glob("*.yaml"))
    assert files == (kept or set())
    assert {figure for figure, _, _ in paper.record} <= set(paper.figures)
    with pytest.raises(InvalidInput, match=r"fig7\.yaml in .*problems"):
        PAPERS["properties"].problems.path("fig7")


# ---- panels of what files say, and of objects


def sections():
    return yaml.safe_load(FILE)


def of_objects():
    """What the file says, in Python."""
    X, cube = np.linspace(-5, 5, 12)[:, None], Power(3)
    robustness = po.PairwiseRobustness(po.gaussian_graph(X, 1.0))
    made = po.explainers
    return Problem(
        points=X,
        function=cube,
        objective=po.GradientMatching(cube.gradient(X)) + robustness,
        weights={"pairwise_robustness": [0.1, 1, 10]},
        baselines=[
            made.Gradient(),
            *(made.SmoothGrad(scale=δ, n_samples=50) for δ in (0.5, 1, 2)),
            *(made.Lime(scale=δ, n_samples=50) for δ in (0.5, 1)),
        ],
    )


def test_objects_and_sections_have_the_findings_of_their_file(tmp_path):
    file, problem = tmp_path / "tiny.yaml", of_objects()
    file.write_text(FILE, encoding="utf-8")
    before = vars(problem).copy()
    made = panel(problem, *STATEMENTS).run()
    expected = panel(file, *STATEMENTS).run()
    for one, other in zip(made.findings, expected.findings, strict=True):
        assert one.statement == other.statement
        assert one.value == pytest.approx(other.value, rel=1e-6, abs=1e-9)
    assert made.axes == expected.axes
    # nothing that was computed goes home with the panel
    assert vars(made.panel.problem) == before
    said = panel(read_sections(sections()), *STATEMENTS).run()
    assert said.findings == expected.findings


@pytest.mark.slow
def test_panels_of_objects_run_in_workers():
    panels = [panel(of_objects(), *STATEMENTS), panel(read_sections(sections()))]
    first, second = panel_results(panels, 2)
    assert first.findings == panels[0].run().findings
    assert second.panel.title == "x³, D = 1"


def test_what_a_file_says_is_drawn_anew_for_each_seed():
    random = sections()
    random["data"] = {"uniform": {"low": -5, "high": 5, "points": 12, "dimensions": 1}}
    draws = []

    def statement(solved):
        draws.extend(np.asarray(one.problem.points) for one in solved.draws)
        return EVERYWHERE[0](solved)

    one = panel(read_sections(random), statement)
    dataclasses.replace(one, seeds=(1, 0)).run()
    first, other, same = draws
    np.testing.assert_array_equal(first, same)
    assert not np.isclose(first, other).any()
    with pytest.raises(InvalidInput, match="give the panel a problem file"):
        dataclasses.replace(panel(of_objects()), seeds=(1, 2))
