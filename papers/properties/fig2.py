"""Figure 2: faithfulness against complexity, with some robustness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from papers.engine.charts import draw_fronts, linear
from papers.engine.figure import PaperFigure
from papers.engine.findings import Invariant
from papers.engine.panels import Panel, PanelResult, Solved
from papers.engine.statements import EVERYWHERE, falls_with_its_weight
from papers.properties.fronts import baselines_are_not_optimal
from papers.properties.setups import PROBLEM_FILES, SETUPS, SMALL_SETUPS


_FUNCTIONS = {
    "cubic": "x³",
    "exponential": "eˣ",
    "square": "x²",
    "interactions": "Σx² + (Σx)²",
}


def figure_2() -> PaperFigure:
    """Four functions in four set-ups."""
    return PaperFigure(
        title="Faithfulness against complexity",
        about=_ABOUT,
        panels=tuple(
            Panel(
                column=column,
                row=SMALL_SETUPS[setup],
                problem=PROBLEM_FILES.path(f"fig2_{function}_{setup}"),
                statements=(
                    *EVERYWHERE,
                    baselines_are_not_optimal,
                    partial(falls_with_its_weight, loss="sparsity"),
                    zero_where_theory_says,
                ),
            )
            for setup in ("d1", "d2", "p1", "authors")
            for function, column in _FUNCTIONS.items()
        ),
        draw=_draw,
    )


_ABOUT = """\
Gradient matching against sparsity Σ‖w‖₁, with robustness at a fixed weight of 0.01.
Grids have 100 points in one dimension and 12 × 12 in two. The last rows have the
paper's precision: on the grid in one dimension, and in the set-up of the authors'
scripts. A baseline is compared with the optimum that is no worse both in sparsity and
in robustness."""


def zero_where_theory_says(solved: Solved) -> Invariant:
    """W = 0 is the optimum for weights of sparsity c ≥ 2 max |∇f|.

    The subdifferential of ‖W − G‖² + c‖W‖₁ + robustness at zero is −2G + c[−1, 1]: the
    gradient of a robustness loss vanishes there.
    """
    G = np.asarray(solved.problem.function.gradient(solved.problem.points))
    enough = 2 * np.abs(G).max()
    optima = solved.trade_offs.optimized
    large = [best for best in optima if best.weights["sparsity"] >= enough]
    sizes = [float(np.abs(best.attributions).max()) for best in large]
    return Invariant(
        statement="attributions are exactly zero where the weight of sparsity is "
        "2 max |∇f| or more: the largest there",
        value=max(sizes, default=math.nan),
        sense="<=",
        limit=0.0,
        note=f"{len(large)} of {len(optima)} weights",
    )


def _draw(results: Sequence[PanelResult]) -> Figure:
    return draw_fronts(results, (2.5, 2.1), {SETUPS["authors"]: [linear]})
