"""Blocks of documents drawn on axes of matplotlib."""

from __future__ import annotations

from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from propopt.base.cards import N_ON_CARD
from propopt.base.document import (
    Bars,
    Block,
    Facts,
    Finding,
    Markup,
    Table,
    minus,
    sentence,
)
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import matplotlib_text
from propopt.plots.attributions import (
    LOWERS,
    OPTIMIZED_COLOUR,
    RAISES,
    axes_or_new,
    legend_below,
    styled,
)
from propopt.results.report.explorer import Explorer, FrontPath


@suggests_arguments
def draw(block: Block, *, ax: Axes | None = None) -> Axes:
    """Draw one block of a report, such as a table or bars, on axes of matplotlib.

    Parameters
    ----------
    block : Bars, Table, Finding, Markup or PageBlock
        A block of ``result.document()``, or of one of its chapters.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from matplotlib.figure import Figure
    >>> best = po.solve(1.0 * po.GradientMatching(np.eye(3)))
    >>> axes = Figure().subplots()
    >>> po.plots.draw(best.document().blocks[0], ax=axes) is axes
    True
    """
    match block:
        case Bars():
            return draw_bars(block.first(N_ON_CARD), ax)
        case Facts():
            return _draw_text("\n".join(f"{x.label}  {x.text}" for x in block.rows), ax)
        case Finding() | Markup():
            return _draw_text(block.text, ax)
        case Table():
            return _draw_table(block, ax)
        case Explorer(front_path=FrontPath() as path):
            return _draw_front(path, ax)
        case _:
            return _draw_table(block.as_table(), ax)


def draw_bars(
    bars: Bars, ax: Axes | None = None, starts: NDArray[np.float64] | None = None
) -> Axes:
    """Draw bars with their numbers and intervals, from zero or from ``starts`` (n,)."""
    axes = axes_or_new(ax, 6.4, 1.3 + 0.3 * len(bars.rows))
    positions = np.arange(len(bars.rows))
    starts = np.zeros(len(positions)) if starts is None else starts
    largest = max((abs(row.value) for row in bars.rows), default=0.0)
    sides = np.array([row.reach for row in bars.rows]).reshape(-1, 2).T
    axes.use_sticky_edges = False  # bars have room on both sides
    for widths, colour, label in zip(
        sides, (LOWERS, RAISES), bars.directions, strict=True
    ):
        at = np.flatnonzero(widths)
        axes.barh(at, widths[at], 0.7, starts[at], color=colour, label=label)
    for start, position, row in zip(starts, positions, bars.rows, strict=True):
        ends = [*row.reach, *(row.line or ())]
        if row.line is not None:
            low, high = np.add(start, row.line)
            axes.plot((low, high), (position, position), color="0.25", linewidth=1.2)
        side = -1.0 if row.value < 0.0 else 1.0
        axes.annotate(
            "0" if abs(row.value) < 1e-3 * largest else row.number,
            (start + (min(ends) if side < 0.0 else max(ends)), position),
            xytext=(4.0 * side, 0.0),
            textcoords="offset points",
            fontsize="small",
            ha="right" if side < 0.0 else "left",
            va="center",
        )
    axes.margins(x=0.18)  # room for the numbers
    axes.set_yticks(positions, [matplotlib_text(row.name) for row in bars.rows])
    axes.invert_yaxis()
    axes.set_xlabel(fill(matplotlib_text(minus(bars.caption)), 60))
    if not starts.any():
        axes.axvline(0.0, color="0.3", linewidth=0.8)
    if bars.has_directions:
        legend_below(axes, 2)
    styled(axes).grid(False, axis="y")  # bars have names
    return axes


def _draw_front(path: FrontPath, ax: Axes | None) -> Axes:
    """The trade-off curve of two losses, and the optimum that is shown first."""
    axes = axes_or_new(ax, 5.2, 4.0)
    xs, ys = zip(*path.curve(), strict=True)
    axes.plot(xs, ys, color=OPTIMIZED_COLOUR, label="the best possible")
    selected = path.position(path.optima[path.start].losses)
    label = matplotlib_text(path.start_label)
    axes.plot(*selected, "o", color=OPTIMIZED_COLOUR, label=label)
    across, up = map(matplotlib_text, path.axis_labels)
    axes.set(xlabel=across, ylabel=up)
    legend_below(axes, 2)
    return styled(axes)


def _draw_table(table: Table, ax: Axes | None) -> Axes:
    """The cells of a table as text."""
    table = table.first(N_ON_CARD)
    axes = axes_or_new(ax, 6.4, 0.6 + 0.3 * len(table.frame))
    columns = list(table.columns())
    texts = ([matplotlib_text(cell) for cell in cells] for _, cells, _ in columns)
    lines = [*zip(*texts, strict=True)]
    axes.axis("off")
    if lines:
        heads = [matplotlib_text(head) for head, *_ in columns]
        axes.table(cellText=lines, colLabels=heads, loc="center")
    caption = matplotlib_text(sentence(table.caption))
    axes.set_title(fill(caption, 60), fontsize="medium")
    return axes


def _draw_text(text: str, ax: Axes | None) -> Axes:
    axes = axes_or_new(ax, 6.4, 1.0)
    axes.axis("off")
    words = fill(matplotlib_text(text), 80)
    axes.text(0.0, 0.5, words, va="center", transform=axes.transAxes)
    return axes
