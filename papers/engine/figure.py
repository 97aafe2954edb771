"""A figure of a paper: its panels, and how they are drawn together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from matplotlib.figure import Figure

from papers.engine.panels import Panel, PanelResult
from papers.engine.studies import Study, StudyResult


AnyPanel: TypeAlias = Panel | Study[Any]
AnyResult: TypeAlias = PanelResult | StudyResult
Drawing: TypeAlias = Callable[[Sequence[Any]], Figure]
"""It knows whether its results are those of sweeps or of studies."""


@dataclass(frozen=True, kw_only=True)
class PaperFigure:
    """What is run, checked and drawn under one name.

    Parameters
    ----------
    title : str
        A line.
    about : str
        What is shown, and where it differs from the paper.
    panels : tuple of Panel or Study
        Each a problem, or a study, with its statements.
    draw : callable
        From the results, in the order of the panels, to a matplotlib figure.
    """

    title: str
    about: str
    panels: tuple[AnyPanel, ...]
    draw: Drawing
