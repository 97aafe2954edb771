"""Grids of panels: fronts in logarithmic or linear axes, one legend for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import NDArray

from papers.engine.panels import PanelResult
from propopt.base.text import matplotlib_text


@dataclass(frozen=True)
class Look:
    """How a family is drawn."""

    label: str
    colour: str
    marker: str
    line: Literal["-", ":", "none"] = "-"


_OPTIMIZED = Look("optimized", "#d62728", "", "-")
_GRADIENT = Look("gradient (zero on x)", "#7f7f7f", "", ":")
_LOOKS = {
    "smoothgrad": Look("SmoothGrad, larger with δ", "#1f77b4", "s", "none"),
    "lime": Look("LIME, larger with δ", "#2ca02c", "^", "none"),
    "shap output": Look("SHAP, output units", "#9467bd", "D", "none"),
    "shap gradient": Look("SHAP, gradient units", "#ff7f0e", "v", "none"),
    "aggregation": Look("optimized aggregation", "#8c564b", "X", "none"),
    "gradient": Look("gradient", "#7f7f7f", "*", "none"),
}
"""The optimum, SmoothGrad and LIME have the colours that the paper has for them."""
_LABELS = {
    "gradient_matching": "faithfulness loss (gradient matching)",
    "function_matching": "faithfulness loss (function matching)",
    "pairwise_robustness": "robustness loss",
    "kernel_robustness": "robustness loss",
    "max_difference_robustness": "max-difference robustness loss",
    "sparsity": "complexity loss (sparsity)",
}
_ORDER = [_OPTIMIZED, _GRADIENT, *_LOOKS.values()]
_X_DECADES, _Y_DECADES = 5.0, 4.0
"""At most so many are looks, counted from the largest loss."""
LEGEND_WIDTH = 2.2
"""Inches for each entry."""
_FAR = 30.0
"""Baselines with so many times the largest loss of the front are off the chart."""
_ROOM = 1.06
"""Linear axes end at so many times the largest loss shown."""

Frame: TypeAlias = Callable[[Axes, pd.DataFrame, pd.DataFrame], None]
"""Sets the axes for the baselines that have to be seen, and the front."""


def draw_fronts(
    results: Sequence[PanelResult],
    size: tuple[float, float],
    like_paper: Mapping[str, Sequence[Frame]] | None = None,
) -> Figure:
    """One panel per result, in the rows and columns that their panels name.

    Parameters
    ----------
    results : sequence of PanelResult
        All with the same kinds of losses on their axes, row by row.
    size : (float, float)
        Width and height of one panel, in inches.
    like_paper : mapping, optional
        Rows that come first in other frames, as the paper has them.
    """
    own = list(dict.fromkeys(result.panel.row for result in results))
    others = [(r, f) for r, frames in (like_paper or {}).items() for f in frames]
    rows = [(r, f) for r, f in others if r in own]
    rows += [(row, logarithmic) for row in own]
    columns = list(dict.fromkeys(result.panel.column for result in results))
    figure, grid = panel_grid(len(rows), len(columns), size)
    for axes in grid.ravel():  # of an interrupted run, some stay empty
        axes.set_visible(False)
    looks: set[Look] = set()
    for place, (row, frame) in enumerate(rows):
        for result in results:
            if result.panel.row != row:
                continue
            column = columns.index(result.panel.column)
            axes = grid[place, column]
            axes.set_visible(True)
            looks |= draw_panel(axes, result, ("smoothgrad", "lime"), frame)
            if place == 0:
                axes.set_title(matplotlib_text(result.panel.column), fontsize=11)
            if column == 0:
                label = f"{matplotlib_text(row)}\n{_FRAME_LABELS[frame]}"
                axes.set_ylabel(label.strip(), fontsize=9)
    label_axes(figure, results[0].axes)
    add_legend(figure, looks)
    return figure


def panel_grid(
    n_rows: int, n_columns: int, size: tuple[float, float]
) -> tuple[Figure, NDArray[np.object_]]:
    """A figure and its axes (n_rows, n_columns), each of the given size in inches."""
    width, height = size
    figure = Figure(
        figsize=(width * n_columns + 0.5, height * n_rows + 0.9), layout="constrained"
    )
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    return figure, grid


def draw_panel(
    axes: Axes, result: PanelResult, methods: Sequence[str], frame: Frame
) -> set[Look]:
    """Draw front and baselines, in a frame that holds those of ``methods``."""
    table = result.table.assign(
        x=result.table[f"loss.{result.axes[0]}"],
        y=result.table[f"loss.{result.axes[1]}"],
    )
    families = dict(_families(table))
    front = table[table["method"] == "optimized"].sort_values(["x", "y"])
    front = front[front["y"] <= front["y"].cummin()]
    inside = [families[name] for name in families if name in methods]
    frame(axes, pd.concat(inside or [front]), front)
    axes.tick_params(labelsize=8)
    axes.grid(True, color="0.92", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    looks = {_OPTIMIZED}
    _draw_front(axes, front)
    for name, family in families.items():
        if name == "gradient" and (family["x"] == 0).all():
            look = _GRADIENT
            axes.axhline(family["y"].iloc[0], color=look.colour, ls=look.line, lw=1.2)
        else:
            look = _look(name)
            _draw_family(axes, family, look)
        looks.add(look)
    return looks


def _look(family: str) -> Look:
    """That of a family, or one for all that have none of their own."""
    return _LOOKS.get(family, Look(matplotlib_text(family), "#404040", "P", "none"))


def _label(loss: str) -> str:
    return _LABELS.get(loss, f"{matplotlib_text(loss.replace('_', ' '))} loss")


def _families(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The baselines that differ in their scale only, in its order."""
    baselines = table[table["method"] != "optimized"]
    for method, rows in baselines.groupby("method", sort=False):
        if method == "shap":
            for units, part in rows.groupby("parameter.units", sort=False):
                yield f"shap {units}", part
        elif method == "aggregation":
            yield str(method), rows.sort_values("x")
        else:
            ordered = "parameter.scale" in rows
            yield str(method), rows.sort_values("parameter.scale") if ordered else rows


def logarithmic(axes: Axes, methods: pd.DataFrame, front: pd.DataFrame) -> None:
    """Logarithmic axes with room for the front, and for baselines not too far off."""
    near = methods[methods["x"] <= _FAR * front["x"].max()]
    axes.set(xscale="log", yscale="log")
    axes.set_xlim(*_limits(near["x"], front["x"], _X_DECADES))
    axes.set_ylim(*_limits(near["y"], front["y"], _Y_DECADES))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=5))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="minor", length=0)


def linear(axes: Axes, methods: pd.DataFrame, front: pd.DataFrame) -> None:
    """Linear axes with room for the front and all of the baselines."""
    both = pd.concat([methods, front])
    axes.set_xlim(0.0, _ROOM * both["x"].max())
    axes.set_ylim(0.0, _ROOM * both["y"].max())
    _few_ticks(axes)


def enlarged(axes: Axes, methods: pd.DataFrame, front: pd.DataFrame) -> None:
    """Linear axes with room for the front alone."""
    del methods
    linear(axes, 1.2 * front[["x", "y"]], front)


_FRAME_LABELS: Mapping[Frame, str] = {
    logarithmic: "",
    linear: "linear axes",
    enlarged: "enlarged",
}


def _few_ticks(axes: Axes) -> None:
    axes.locator_params(nbins=4)
    axes.ticklabel_format(scilimits=(-2, 3))
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_offset_text().set_fontsize(7)


def _limits(near: pd.Series, front: pd.Series, decades: float) -> tuple[float, float]:
    """From the least of the baselines, or well into the front, to the largest."""
    high = 2.0 * max(float(front.max()), float(near.max()))
    low = min(float(near[near > 0].min()) / 3.0, float(front.max()) / 30.0)
    floor = min(high / 10.0**decades, float(front.max()) / 30.0)  # not above the front
    return max(min(low, high / 100.0), floor), high


def _draw_front(axes: Axes, front: pd.DataFrame) -> None:
    look = _OPTIMIZED
    axes.plot(front["x"], front["y"], color=look.colour, ls=look.line, lw=1.8, zorder=3)


def _draw_family(axes: Axes, family: pd.DataFrame, look: Look) -> None:
    """Markers that grow along the family.

    No line joins them: in logarithmic axes it would cut the front where points are far
    apart.
    """
    sizes = np.linspace(3.0, 6.5, len(family)) ** 2
    axes.scatter(
        family["x"],
        family["y"],
        s=sizes if len(family) > 1 else 25.0,
        edgecolors=look.colour,
        facecolors="none",  # what lies beneath another stays visible
        marker=look.marker,
        zorder=2,
    )


def label_axes(figure: Figure, axes: tuple[str, str]) -> None:
    """One label for all horizontal axes, and one for all vertical ones."""
    figure.supxlabel(_label(axes[0]), fontsize=11)
    figure.supylabel(_label(axes[1]), fontsize=11)


def add_legend(figure: Figure, looks: set[Look]) -> None:
    """One legend below all panels."""
    others = sorted(looks.difference(_ORDER), key=lambda look: look.label)
    entries = [*(look for look in _ORDER if look in looks), *others]
    handles = [
        Line2D(
            [],
            [],
            color=look.colour,
            marker=look.marker,
            linestyle=look.line,
            markerfacecolor="none",
            label=look.label,
        )
        for look in entries
    ]
    columns = min(len(handles), int(figure.get_figwidth() / LEGEND_WIDTH))
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=columns,
        frameon=False,
        fontsize=10,
    )
