"""What YAML may say in a problem file."""

from __future__ import annotations

from problem_texts import FILE, instead

import propopt as po


def test_scalars(problem, tmp_path):
    built = problem(instead("weight: 1", "weight: 1e-3")).build()
    assert built.objective.weights["pairwise_robustness"] == 1e-3
    assert problem(FILE + "name: 2024-13-45\n").name == "2024-13-45"
    path = tmp_path / "marked.yaml"
    path.write_text(FILE, encoding="utf-8-sig")
    assert po.problems.read_problem(path).name == "marked"


def test_what_an_anchor_names_stands_where_its_aliases_do(problem):
    lines = """\
plot: {x: &loss gradient_matching, y: *loss}
baselines:
  - {method: smoothgrad, scale: &scales [0.1], n_samples: 10}
  - {method: lime, scale: *scales}
"""
    built = problem(FILE + lines).build()
    assert built.axes == ("gradient_matching", "gradient_matching")
    assert [explainer.scale for explainer in built.methods] == [0.1, 0.1]
