"""Appendix: the fronts of figure 1 with max-difference robustness."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from matplotlib.figure import Figure

from papers.engine.charts import draw_fronts, linear
from papers.engine.figure import PaperFigure
from papers.engine.panels import Panel, PanelResult
from papers.engine.statements import EVERYWHERE, trades_off
from papers.properties.fronts import baselines_are_not_optimal
from papers.properties.setups import FUNCTIONS, PROBLEM_FILES


_ROWS = {
    "max_d1": "largest, D = 1",
    "sum_d1": "sum, D = 1",
    "max_authors": "largest, D = 3",
    "sum_authors": "sum, D = 3",
}


def appendix_figure() -> PaperFigure:
    """Six functions, two ways to aggregate, two set-ups."""
    return PaperFigure(
        title="Faithfulness against max-difference robustness",
        about=_ABOUT,
        panels=tuple(
            Panel(
                column=column,
                row=row,
                problem=PROBLEM_FILES.path(f"appendix_{function}_{end}"),
                statements=(
                    *EVERYWHERE,
                    baselines_are_not_optimal,
                    partial(trades_off, loss="max_difference_robustness"),
                ),
            )
            for end, row in _ROWS.items()
            for function, column in FUNCTIONS.items()
        ),
        draw=_draw,
    )


_ABOUT = """\
The largest squared difference of attributions over neighbours, and the sum over points
of the largest difference of each (the paper's text says both). In one dimension the
neighbours of a point are the four nearest on either side; in the set-up of the authors'
scripts (N = 100, D = 3) they are all points."""


def _draw(results: Sequence[PanelResult]) -> Figure:
    own = {_ROWS[end]: [linear] for end in ("max_authors", "sum_authors")}
    return draw_fronts(results, (2.1, 1.9), own)
