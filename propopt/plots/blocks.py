"""Blocks of documents on axes of matplotlib."""

from __future__ import annotations

from textwrap import fill

import numpy as np
from matplotlib.axes import Axes

from propopt.base.cards import BAR_LOWERS, BAR_RAISES, N_ON_CARD
from propopt.base.document import Bars, Block, Finding, Markup, Table, sentence
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import matplotlib_text
from propopt.plots.attributions import CYCLE, OPTIMIZED_COLOUR, axes_or_new, styled
from propopt.results.report.explorer import Explorer, FrontPath


@suggests_arguments
def draw(block: Block, *, ax: Axes | None = None) -> Axes:
    """Draw a block of a document: bars, a table, a pair of rows, a curve or a sentence.

    Parameters
    ----------
    block : Bars, Table, Finding, Markup or PageBlock
        Of ``result.document()``, or of one of its chapters.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

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
            return _draw_bars(block.first(N_ON_CARD), ax)
        case Finding():
            return _draw_text(block.text, ax)
        case Markup():
            return _draw_text(block.text, ax)
        case Table():
            return _draw_table(block, ax)
        case Explorer(trail=FrontPath() as trail):
            return _draw_curve(trail, ax)
        case _:
            return _draw_rows(block.as_table(), ax)


def _draw_bars(bars: Bars, ax: Axes | None) -> Axes:
    """What raises to the right, what lowers to the left, lines for intervals."""
    axes = axes_or_new(ax, 6.4, 1.4 + 0.3 * len(bars.rows))
    places = np.arange(len(bars.rows))
    ends = np.array([row.reach for row in bars.rows]).reshape(-1, 2).T
    for widths, colour, label in zip(
        ends, (BAR_LOWERS, BAR_RAISES), ("lowers", "raises"), strict=True
    ):
        axes.barh(places, widths, 0.6, color=colour, label=label)
    for place, row in enumerate(bars.rows):
        if row.line is not None:
            axes.plot(row.line, (place, place), color="0.25", linewidth=1.2)
    axes.set_yticks(places, [matplotlib_text(row.name) for row in bars.rows])
    axes.invert_yaxis()
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    axes.set_xlabel(fill(matplotlib_text(bars.caption), 60))
    if bars.has_directions:
        axes.legend(frameon=False, fontsize="small")
    return styled(axes)


def _draw_rows(table: Table, ax: Axes | None) -> Axes:
    """The columns of a table as bars beside each other."""
    frame = table.frame.iloc[:N_ON_CARD]
    axes = axes_or_new(ax, 6.4, 1.4 + 0.4 * len(frame))
    places, height = np.arange(len(frame)), 0.76 / frame.shape[1]
    for k, name in enumerate(frame):
        shift = height * (k - 0.5 * (frame.shape[1] - 1))
        values = frame.iloc[:, k].to_numpy(float)
        label, colour = matplotlib_text(f"row {name}"), CYCLE[k % len(CYCLE)]
        axes.barh(places + shift, values, height, color=colour, label=label)
    axes.set_yticks(places, [matplotlib_text(name) for name in frame.index])
    axes.invert_yaxis()
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    axes.set_xlabel(fill(matplotlib_text(table.caption), 60))
    axes.legend(frameon=False, fontsize="small")
    return styled(axes)


def _draw_curve(trail: FrontPath, ax: Axes | None) -> Axes:
    """The best that can be had of two losses, and the optimum that is shown first."""
    axes = axes_or_new(ax, 5.2, 4.0)
    xs, ys = zip(*trail.curve(), strict=True)
    axes.plot(xs, ys, color=OPTIMIZED_COLOUR, label="the best possible")
    here = trail.place(trail.optima[trail.start].losses)
    axes.plot(
        *here, "o", color=OPTIMIZED_COLOUR, label=matplotlib_text(trail.start_label)
    )
    across, up = trail.axis_labels
    axes.set(xlabel=matplotlib_text(across), ylabel=matplotlib_text(up))
    axes.legend(frameon=False, fontsize="small")
    return styled(axes)


def _draw_table(table: Table, ax: Axes | None) -> Axes:
    """The cells as text."""
    shown = table.first(N_ON_CARD)
    axes = axes_or_new(ax, 6.4, 0.6 + 0.3 * len(shown.frame))
    columns = list(shown.columns())
    cells = [
        *zip(
            *([matplotlib_text(x) for x in texts] for _, texts, _ in columns),
            strict=True,
        )
    ]
    axes.axis("off")
    if cells:
        heads = [matplotlib_text(head) for head, *_ in columns]
        axes.table(cellText=cells, colLabels=heads, loc="center")
    axes.set_title(
        fill(matplotlib_text(sentence(shown.caption)), 60), fontsize="medium"
    )
    return axes


def _draw_text(text: str, ax: Axes | None) -> Axes:
    axes = axes_or_new(ax, 6.4, 1.0)
    axes.axis("off")
    axes.text(
        0.0, 0.5, fill(matplotlib_text(text), 80), va="center", transform=axes.transAxes
    )
    return axes
