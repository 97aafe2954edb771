"""Functions and set-ups that several figures share, and in what they differ."""

from __future__ import annotations

from pathlib import Path

from papers.engine.files import ProblemFiles


PROBLEM_FILES = ProblemFiles(Path(__file__).with_name("problems"))
"""``<figure>_<function>_<set-up>.yaml``."""

SETUPS = {
    "d1": "D = 1, N = 100",
    "d2": "D = 2, N = 100²",
    "d3": "D = 3, N = 100³",
    "p1": "D = 1, N = 100, precision",
    "authors": "D = 3, N = 100",
}
"""The set-ups of the problem files, by the end of their names. ``p1`` is the grid of
``d1`` with the paper's precision in place of the kernel; the last is that of the
authors' scripts: the first 100 points of a 5 × 5 × 5 grid, and the precision."""
SMALL_SETUPS = {**SETUPS, "d2": "D = 2, N = 12²"}
KERNEL_ITSELF = "similarities are the kernel itself, where the paper writes s = −k⁻¹"
DIFFERENCES = dict.fromkeys(("p1", "authors"), "") | dict.fromkeys(
    ("d1", "d2", "d3"), KERNEL_ITSELF
)
"""In what set-ups differ from the paper's, besides what the record says of all."""
ROBUSTNESS = dict.fromkeys(("d1", "d2", "d3"), "pairwise_robustness") | dict.fromkeys(
    ("p1", "authors"), "kernel_robustness"
)
"""The loss that is swept."""

FUNCTIONS = {
    "cubic": "x³",
    "sine_of_exponential": "sin(eˣ)",
    "exponential": "eˣ",
    "sine": "sin x",
    "linear_plus_sine": "x + sin 3x",
    "quadratic_plus_sine": "x²/10 + sin 3x",
}
"""The functions of figure 1, by their names in those of problem files."""
