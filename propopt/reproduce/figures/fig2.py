"""Figure 2: faithfulness against complexity, with some robustness."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from matplotlib.figure import Figure

from propopt._typing import Array
from propopt.explanation import Outcome
from propopt.reproduce.charts import draw_fronts
from propopt.reproduce.figure import SMALL_SETUPS, PaperFigure
from propopt.reproduce.findings import Finding
from propopt.reproduce.laws import WITH_GRADIENTS, falls_with_its_weight
from propopt.reproduce.panels import Law, Panel, Result, Solved, paper_file


FUNCTIONS = {
    "cubic": "x³",
    "exponential": "eˣ",
    "square": "x²",
    "interactions": "Σx² + (Σx)²",
}


def figure() -> PaperFigure:
    """Four functions in three set-ups."""
    return PaperFigure(
        title="Faithfulness against complexity",
        about=_ABOUT,
        panels=tuple(
            Panel(
                column=column,
                row=SMALL_SETUPS[setup],
                file=paper_file(f"fig2_{function}_{setup}"),
                laws=LAWS,
            )
            for setup in ("d1", "d2", "authors")
            for function, column in FUNCTIONS.items()
        ),
        draw=_draw,
    )


_ABOUT = """\
Gradient matching against sparsity Σ‖w‖₁, with robustness at a fixed weight of 0.01.
Grids have 100 points in one dimension and 12 × 12 in two; the third row is the set-up
of the authors' scripts. A baseline is compared with the optimum that is no worse both
in sparsity and in robustness."""


def zeros_appear(solved: Solved) -> Finding:
    """Attributions become exactly zero."""
    first, *_, last = _by_weight(solved)
    before, after = _zeros(first.attributions), _zeros(last.attributions)
    return Finding(
        statement="zeros appear: share of attributions that are exactly zero at the "
        "largest weight, less that at the smallest",
        value=after - before,
        sense=">=",
        limit=0.1,
        note=f"{before:.0%} to {after:.0%}",
    )


LAWS: tuple[Law, ...] = (
    *WITH_GRADIENTS,
    partial(falls_with_its_weight, loss="sparsity"),
    zeros_appear,
)


def _by_weight(solved: Solved) -> list[Outcome]:
    return sorted(
        solved.trade_offs.optimized, key=lambda best: best.weights["sparsity"]
    )


def _zeros(W: Array) -> float:
    return float((W == 0).mean())


def _draw(results: Sequence[Result]) -> Figure:
    return draw_fronts(results, (2.5, 2.1))
