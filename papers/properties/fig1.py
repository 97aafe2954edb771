"""Figure 1: faithfulness against robustness."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from matplotlib.figure import Figure

from papers.engine.charts import draw_fronts, linear
from papers.engine.figure import PaperFigure
from papers.engine.panels import Panel, PanelResult, Statement
from papers.engine.statements import EVERYWHERE, trades_off
from papers.properties import limits
from papers.properties.fronts import baselines_are_not_optimal
from papers.properties.setups import (
    FUNCTIONS,
    PROBLEM_FILES,
    ROBUSTNESS,
    SETUPS,
)


def figure_1() -> PaperFigure:
    """Six functions in five set-ups."""
    return PaperFigure(
        title="Faithfulness against robustness",
        about=_ABOUT,
        panels=tuple(
            Panel(
                column=column,
                row=row,
                problem=PROBLEM_FILES.path(f"fig1_{function}_{setup}"),
                statements=_statements(function, setup),
            )
            for setup, row in SETUPS.items()
            for function, column in FUNCTIONS.items()
        ),
        draw=_draw,
    )


_ABOUT = """\
Gradient matching against robustness, on grids of 100 points per dimension over [−5, 5]
with gaussian similarities of lengthscale 0.5, with the precision of the same kernel in
one dimension, and in the set-up of the authors' scripts
(the first 100 points of a 5 × 5 × 5 grid, robustness by the precision of a gaussian
kernel of lengthscale 3). With a million points (D = 3) baselines have 10 perturbations
per point instead of 500 to 10,000, and fewer scales: their noise shows as a loss of
robustness."""


def _statements(function: str, setup: str) -> tuple[Statement, ...]:
    own: tuple[Statement, ...] = (
        *EVERYWHERE,
        baselines_are_not_optimal,
        partial(trades_off, loss=ROBUSTNESS[setup]),
    )
    if setup in ("d2", "d3"):  # the noise takes all N² similarities
        return own
    if function in limits.LIMITS:
        own = (*own, partial(limits.sampled_as_known, function=function))
    return (*own, *limits.SAMPLED) if function == "cubic" else own


def _draw(results: Sequence[PanelResult]) -> Figure:
    return draw_fronts(results, (2.1, 1.9), {SETUPS["authors"]: [linear]})
