"""Figure 3: faithfulness to the function's values against robustness."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from matplotlib.figure import Figure

from papers.engine.charts import draw_fronts, enlarged, linear
from papers.engine.figure import PaperFigure
from papers.engine.panels import Panel, PanelResult
from papers.engine.statements import EVERYWHERE, trades_off
from papers.properties.fronts import baselines_are_not_optimal
from papers.properties.setups import PROBLEM_FILES, ROBUSTNESS, SETUPS, SMALL_SETUPS


def figure_3() -> PaperFigure:
    """Two functions in four set-ups."""
    return PaperFigure(
        title="Function matching against robustness",
        about=_ABOUT,
        panels=tuple(
            Panel(
                column=column,
                row=SMALL_SETUPS[setup],
                problem=PROBLEM_FILES.path(f"fig3_{function}_{setup}"),
                statements=(
                    *EVERYWHERE,
                    baselines_are_not_optimal,
                    partial(trades_off, loss=ROBUSTNESS[setup]),
                ),
            )
            for setup in ("d1", "d2", "p1", "authors")
            for function, column in {"cubic": "x³", "sine": "sin x"}.items()
        ),
        draw=_draw,
    )


_ABOUT = """\
Function matching Σ (f(x) − wᵀx)² against robustness. LIME has no intercept, as in the
paper, so that it minimises what is measured here, locally. Grids have 100 points in one
dimension and 12 × 12 in two. The last rows have the paper's
precision: on the grid in one dimension, and in the set-up of the authors' scripts."""


def _draw(results: Sequence[PanelResult]) -> Figure:
    like_paper = {SETUPS["d1"]: [linear, enlarged], SETUPS["authors"]: [linear]}
    return draw_fronts(results, (3.2, 2.3), like_paper)
