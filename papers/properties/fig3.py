"""Figure 3: faithfulness to the function's values against robustness."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from matplotlib.figure import Figure

from papers.engine.charts import draw_fronts
from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim
from papers.engine.panels import Panel, PanelResult, Solved
from papers.engine.statements import EVERYWHERE, named
from papers.properties.setups import DIFFERENCES, PROBLEM_FILES, SMALL_SETUPS


_NEAR = 0.1
"""So near a baseline has to be, that there is something to match."""


def figure_3() -> PaperFigure:
    """Two functions in three set-ups."""
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
                    partial(matches_where_no_worse, difference=DIFFERENCES[setup]),
                ),
            )
            for setup in ("d1", "d2", "authors")
            for function, column in {"cubic": "x³", "sine": "sin x"}.items()
        ),
        draw=_draw,
    )


_ABOUT = """\
Function matching Σ (f(x) − wᵀx)² against robustness. LIME has no intercept, as in the
paper, so that it minimises what is measured here, locally. Grids have 100 points in one
dimension and 12 × 12 in two; the third row is the set-up of the authors' scripts."""


def matches_where_no_worse(solved: Solved, *, difference: str = "") -> Claim:
    """min_c F_c(b)/F_c* − 1: for the weights that suit it best."""
    table = solved.trade_offs.distances()
    order = table["excess"].argsort()
    close = int((table["excess"] <= _NEAR).sum())
    best = solved.trade_offs.baselines[int(order.iloc[0])]
    nothing = f"no baseline comes within {_NEAR:.0%} of the optimum" * (not close)
    return Claim(
        statement="where baselines are no worse, the optimum matches them: least "
        "excess of a baseline over the optimum, for the weights that suit it best",
        value=float(table["excess"].min()),
        sense=">=",
        limit=-solved.problem.tolerance,
        note=f"{named(best)}; {close} of {len(table)} within {_NEAR:.0%}",
        difference="; ".join(filter(None, (nothing, difference))),
    )


def _draw(results: Sequence[PanelResult]) -> Figure:
    return draw_fronts(results, (3.2, 2.3))
