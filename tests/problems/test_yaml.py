"""What YAML may say in a problem file."""

from __future__ import annotations

from problem_texts import FILE, complaint, instead

import propopt as po


def test_numbers_in_exponential_notation(problem):
    built = problem(instead("weight: 1", "weight: 1e-3")).build()
    assert built.objective.weights["pairwise_robustness"] == 1e-3


def test_dates_are_text(problem):
    assert problem(FILE + "name: 2024-13-45\n").name == "2024-13-45"


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


def test_line_of_a_mistake_in_what_an_alias_repeats(write):
    lines = """\
baselines:
  - &noisy {method: smoothgrad, scale: [0.1], n_samples: 0}
  - *noisy
"""
    assert complaint(write(FILE + lines)).split("\n") == [
        "file.yaml:12: baselines.0.n_samples: expected a number >= 1, got 0",
        "file.yaml:12: baselines.1.n_samples: expected a number >= 1, got 0",
    ]


def test_a_mark_of_byte_order_is_no_mistake(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text(FILE, encoding="utf-8-sig")
    assert po.problems.read_problem(path).name == "file"
