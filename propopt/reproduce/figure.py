"""A figure of a paper: its panels, and how they are drawn together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from matplotlib.figure import Figure

from propopt.reproduce.panels import Panel, PanelResult


Drawing: TypeAlias = Callable[[Sequence[PanelResult]], Figure]


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
        Each a problem with its statements.
    draw : callable
        From the results, in the order of the panels, to a matplotlib figure.
    """

    title: str
    about: str
    panels: tuple[Panel, ...]
    draw: Drawing
