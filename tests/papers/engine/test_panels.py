"""Panels of problem files, of what such files say, of problems made of objects."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import yaml
from reproduction import FILE, panel

import propopt as po
from papers.engine.run import panel_results
from papers.engine.statements import EVERYWHERE, give_away
from propopt.base.errors import InvalidInput
from propopt.functions import Power
from propopt.problems import Problem, read_sections


STATEMENTS = (*EVERYWHERE, give_away)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def sections():
    return yaml.safe_load(FILE)


def of_objects():
    """What the file says, in Python."""
    X, cube = np.linspace(-5, 5, 12)[:, None], Power(3)
    robustness = po.PairwiseRobustness(po.gaussian_graph(X, 1.0))
    return Problem(
        points=X,
        function=cube,
        objective=po.GradientMatching(cube.gradient(X)) + robustness,
        weights={"pairwise_robustness": [0.1, 1, 10]},
        baselines=[
            po.explainers.Gradient(),
            *(po.explainers.SmoothGrad(scale=δ, n_samples=50) for δ in (0.5, 1, 2)),
            *(po.explainers.Lime(scale=δ, n_samples=50) for δ in (0.5, 1)),
        ],
    )


def test_a_problem_of_objects_has_the_findings_of_its_file(file):
    made = panel(of_objects(), *STATEMENTS).run()
    read = panel(file, *STATEMENTS).run()
    for one, other in zip(made.findings, read.findings, strict=True):
        assert one.statement == other.statement
        assert one.value == pytest.approx(other.value, rel=1e-6, abs=1e-9)
    assert made.axes == read.axes


def test_sections_have_the_results_of_their_file(file):
    made = panel(read_sections(sections()), *STATEMENTS).run()
    assert made.findings == panel(file, *STATEMENTS).run().findings


@pytest.mark.slow
def test_panels_of_objects_run_in_workers():
    panels = [panel(of_objects(), *STATEMENTS), panel(read_sections(sections()))]
    first, second = panel_results(panels, 2)
    assert first.findings == panels[0].run().findings
    assert second.panel.title == "x³, D = 1"


def test_nothing_that_was_computed_goes_home_with_the_panel():
    problem = of_objects()
    before = vars(problem).copy()
    result = panel(problem, *STATEMENTS).run()
    assert vars(result.panel.problem) == before


def test_a_problem_of_objects_has_no_seeds():
    one = panel(of_objects())
    with pytest.raises(InvalidInput, match="give the panel a problem file"):
        dataclasses.replace(one, seeds=(1, 2))


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
