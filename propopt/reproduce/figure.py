"""A figure of the paper: its panels, and how they are drawn together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from matplotlib.figure import Figure

from propopt.reproduce.panels import Panel, Result


Drawing: TypeAlias = Callable[[Sequence[Result]], Figure]


@dataclass(frozen=True, kw_only=True)
class PaperFigure:
    """What is run, checked and drawn under one name.

    Parameters
    ----------
    title : str
        A line.
    about : str
        What is shown, and where it differs from the paper.
    panels : tuple of Panel
        Each a problem file with its statements.
    draw : callable
        From the results, in the order of the panels, to a matplotlib figure.
    """

    title: str
    about: str
    panels: tuple[Panel, ...]
    draw: Drawing


SETUPS = {
    "d1": "D = 1, N = 100",
    "d2": "D = 2, N = 100²",
    "d3": "D = 3, N = 100³",
    "authors": "D = 3, N = 100",
}
"""The set-ups of the problem files, by the end of their names; the last is that of the
authors' scripts: the first 100 points of a 5 × 5 × 5 grid."""
KERNEL_ITSELF = "similarities are the kernel itself, where the paper writes s = −k⁻¹"
DIFFERENCES = {"authors": ""} | dict.fromkeys(("d1", "d2", "d3"), KERNEL_ITSELF)
"""In what set-ups differ from the paper's, besides what docs/paper.md says of all."""
SMALL_SETUPS = {**SETUPS, "d2": "D = 2, N = 12²"}

FUNCTIONS = {
    "cubic": "x³",
    "sine_of_exponential": "sin(eˣ)",
    "exponential": "eˣ",
    "sine": "sin x",
    "linear_plus_sine": "x + sin 3x",
    "quadratic_plus_sine": "x²/10 + sin 3x",
}
"""The functions of figure 1, by their names in those of problem files."""
