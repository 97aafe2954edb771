"""Figure 5: explanations through inducing inputs approach the optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from papers.engine.charts import LEGEND_WIDTH, panel_grid
from papers.engine.figure import PaperFigure
from papers.engine.panels import Panel, PanelResult, Solved, Statement
from papers.engine.statements import certified, measured_again
from papers.properties import induction
from papers.properties.setups import PROBLEM_FILES
from propopt.base.arrays import Array


_FUNCTIONS = {
    "cubic": "x³",
    "interactions": "Σx² + (Σx)²",
    "sine": "sin x",
    "exponential": "eˣ",
    "linear_plus_sine": "x + sin 3x",
    "quadratic_plus_sine": "x²/10 + sin 3x",
    "sine_of_exponential": "sin(eˣ)",
}
_ROWS = {
    "same": "among the points",
    "others": "at other points, λ = 0.05",
    "others_unit": "at other points, λ = 1",
}
_SPARSE = ("random", "farthest", "greedy")
"""Ways to choose inputs through which all gradients are seen; each nested."""
_SEEDS = {"same": ()} | dict.fromkeys(("others", "others_unit"), (1, 2, 3, 4))
"""The paper's own protocol is drawn five times: zero is the seed of the files."""
_LOOKS = {
    "subset": ("gradients at these inputs alone", "#d62728", "o"),
    "subset" + induction.OWN: ("the same, and the input's own", "#7f7f7f", "v"),
    "random": ("all gradients, random inputs", "#ff7f0e", "s"),
    "farthest": ("all gradients, farthest inputs", "#9467bd", "^"),
    "greedy": ("all gradients, greedy inputs", "#8c564b", "D"),
}
_FLOOR = 1e-7
"""Smaller excesses are rounding; they are drawn here."""
_N_COLUMNS = len(_FUNCTIONS)


def figure_5() -> PaperFigure:
    """Seven functions, with observations among the points and elsewhere."""
    return PaperFigure(
        title="From inductive to transductive, by the number of inducing inputs",
        about=_ABOUT,
        panels=tuple(
            Panel(
                column=column,
                row=row,
                problem=PROBLEM_FILES.path(f"fig5_{function}_{end}"),
                statements=_STATEMENTS[end],
                pictures=excess_curves,
                distances=induction.inductive_distances,
                seeds=_SEEDS[end],
            )
            for end, row in _ROWS.items()
            for function, column in _FUNCTIONS.items()
        ),
        draw=_draw,
    )


_ABOUT = """\
1000 uniform points in (−5, 5)³ are explained inductively, and their total loss F
(gradient matching and λ × robustness by the precision of a gaussian kernel of
lengthscale 1.5, no smoothness) is compared with that of the optimum F*; drawn is
F/F* − 1 against the number of inducing inputs. *At other points*, the paper's own
protocol: gradients are known at other uniform points alone, up to 1000. The paper
names no λ, so there are two. *Among the points*: inducing inputs
are some of the points themselves, with gradients known at these alone (the paper's
Proposition 1), or with all gradients seen through them (random, farthest or greedy
inputs). E is then the least of F over functions spanned by the inducing inputs, so
that F never falls below F*, falls with nested inputs, and reaches F* when all points
are inducing; this is a theorem and no statement of the paper.
Panels of other points are drawn five times: lines are the first draw, bands hold all
five, and their statements are decided by the median. With the gradient of each new
input as one more observation every row comes from a function of its own, which is more
faithful and less robust. x + sin(eˣ) would be sin(eˣ) again: its gradient has one more
everywhere, which robustness does not see. Excesses below 1e-7 are drawn at 1e-7."""


def excess_curves(solved: Solved) -> Mapping[str, Array]:
    """Counts, excesses, and the least and largest of all draws (4, n), by rule."""
    tables = [induction.excesses(one) for one in solved.draws]
    bands = {}
    for rule in tables[0]["rule"].unique():
        draws = [induction.curve(table, rule) for table in tables]
        gaps = np.stack([gaps for _, gaps in draws])
        bands[rule] = np.stack([*draws[0], gaps.min(axis=0), gaps.max(axis=0)])
    return bands


_AMONG = "inducing inputs are among the points that are explained"
_EVERYWHERE: tuple[Statement, ...] = (
    certified,
    measured_again,
    induction.never_below,
)


def _protocol(choice: str) -> tuple[Statement, ...]:
    """The statements on inducing inputs that are apart from the points."""
    return (
        partial(induction.falls, choice=choice),
        partial(induction.falls_exponentially, choice=choice),
        partial(induction.approaches, choice=choice),
    )


_STATEMENTS: Mapping[str, tuple[Statement, ...]] = {
    "others": (
        *_EVERYWHERE,
        induction.own_gradients_are_faithful,
        *_protocol("λ = 0.05"),
    ),
    "others_unit": (*_EVERYWHERE, *_protocol("λ = 1")),
    "same": (
        *_EVERYWHERE,
        induction.own_gradients_are_faithful,
        induction.reaches_optimum,
        *(partial(induction.never_rises, rule=rule) for rule in _SPARSE),
        partial(induction.falls, difference=_AMONG),
        partial(induction.falls_exponentially, difference=_AMONG),
    ),
}


def _draw(results: Sequence[PanelResult]) -> Figure:
    n_rows = -(-len(results) // _N_COLUMNS)
    figure, grid = panel_grid(n_rows, _N_COLUMNS, (2.5, 2.2))
    for axes in grid.ravel()[len(results) :]:
        axes.set_visible(False)
    for axes, result in zip(grid.ravel(), results, strict=False):
        _draw_panel(axes, result)
    figure.supxlabel("inducing inputs", fontsize=11)
    figure.supylabel("F/F* − 1", fontsize=11)
    _add_legend(figure)
    return figure


def _draw_panel(axes: Axes, result: PanelResult) -> None:
    lowest = min(float(curves[2].min()) for curves in result.pictures.values())
    for rule, (counts, gaps, least, most) in result.pictures.items():
        _, colour, marker = _LOOKS[rule]
        if result.panel.seeds:
            axes.fill_between(counts, least, most, color=colour, alpha=0.2, linewidth=0)
        axes.plot(
            counts,
            np.maximum(gaps, _FLOOR),
            color=colour,
            marker=marker,
            markersize=3.5,
            markerfacecolor="none",
            linewidth=1.2,
        )
    axes.set(yscale="log")
    axes.set_ylim(bottom=max(lowest, _FLOOR) / 3)
    axes.set_title(f"{result.panel.column}, {result.panel.row}", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(True, color="0.92", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _add_legend(figure: Figure) -> None:
    handles = [
        Line2D([], [], color=colour, marker=marker, markerfacecolor="none", label=label)
        for label, colour, marker in _LOOKS.values()
    ]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=min(len(handles), int(figure.get_figwidth() / LEGEND_WIDTH / 1.1)),
        frameon=False,
        fontsize=10,
    )
