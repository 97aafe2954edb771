"""The paper's tables: networks on real data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from papers.engine.charts import draw_fronts, enlarged
from papers.engine.figure import PaperFigure
from papers.engine.panels import Panel, PanelResult, Statement
from papers.engine.statements import EVERYWHERE, trades_off
from papers.properties.fronts import baselines_are_not_optimal
from papers.properties.setups import PROBLEM_FILES
from propopt.explaining.explainers import aggregate
from propopt.explaining.trade_offs import TradeOffs
from propopt.problems import Problem, ProblemFile
from propopt.results.explanation import Explanation


_TABLES = {
    "breast_cancer": "breast cancer",
    "diabetes": "diabetes",
    "wine": "wine",
    "digits": "digits",
}
_STAND_IN = "tables of scikit-learn instead of four of the UCI repository"
_STATEMENTS: tuple[Statement, ...] = (
    *EVERYWHERE,
    partial(baselines_are_not_optimal, difference=_STAND_IN),
    partial(trades_off, loss="pairwise_robustness"),
)
_N_MIXTURES = 9


def figure_of_tables() -> PaperFigure:
    """Four tables that come with scikit-learn."""
    return PaperFigure(
        title="Networks on tables",
        about=_ABOUT,
        panels=tuple(
            network_panel(title, PROBLEM_FILES.path(f"table_{name}"))
            for name, title in _TABLES.items()
        ),
        draw=_draw,
    )


_ABOUT = """\
Networks with two hidden layers on tables that come with scikit-learn; the paper's own
(Wine Quality, Iranian Churn, Solar Flare) can be added with --csv and --target. Rows
are standardised, and those explained were not used to fit. Robustness compares the
eight nearest rows. Optimized aggregation mixes all other baselines that are slopes in
the best shares for nine of the weights. What is not drawn lies off the chart."""


def mixtures(problem: Problem, trade_offs: TradeOffs) -> tuple[Explanation, ...]:
    """Optimized aggregation of the baselines in one unit, for some of the weights."""
    pairs = zip(trade_offs.baselines, trade_offs.compared, strict=True)
    parts = [baseline for baseline, compared in pairs if compared]
    step = max(len(trade_offs.optimized) // _N_MIXTURES, 1)
    return tuple(
        aggregate(problem.objective.with_weights(best.weights), parts)
        for best in trade_offs.optimized[step // 2 :: step]
    )


def network_panel(title: str, problem: Path | ProblemFile) -> Panel:
    """A network on a table, with mixtures of the baselines."""
    return Panel(
        column=title, row="", problem=problem, statements=_STATEMENTS, rivals=mixtures
    )


def _draw(results: Sequence[PanelResult]) -> Figure:
    return draw_fronts(results, (3.0, 2.9), {"": [enlarged]})
