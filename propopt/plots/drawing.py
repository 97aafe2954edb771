"""One function that draws every chart on axes of matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from propopt.base.arrays import Values
from propopt.base.cards import BAR_LOWERS, BAR_RAISES
from propopt.base.charts import Chart, Grid, Lines, Scatter, Steps, Swarm
from propopt.base.checks import largest_entry
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.plots.style import (
    PLAIN,
    QUIET,
    SERIES,
    Axes,
    axes_or_new,
    category_colors,
    color_bar,
    color_map,
    colored_words,
    frame,
    heights_in_swarm,
    number,
    shares_of_ranks,
    short_names,
    value_bar,
    words,
)


@suggests_arguments
def draw(chart: Chart, ax: Axes | None = None) -> Axes:
    """Draw a chart on axes of matplotlib.

    Plots of results use it: ``best.plot()`` makes a :class:`Swarm` and draws it. Use it
    for other numbers. Nothing in a figure is random.

    Parameters
    ----------
    chart : Swarm, Steps, Scatter, Grid or Lines
        Numbers and names.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes with the chart.

    Raises
    ------
    InvalidInput
        If it is no chart.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> steps = po.plots.Steps(
    ...     names=["age", "bmi"], parts=np.array([2.0, -0.5]), start=1.0
    ... )
    >>> axes = po.plots.draw(steps)
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['age', 'bmi']
    """
    match chart:
        case Swarm():
            axes = axes_or_new(ax, 7.0, 1.2 + 0.42 * max(len(chart.names), 2))
            _draw_swarm(chart, axes)
        case Steps():
            axes = axes_or_new(ax, 6.8, 1.7 + 0.34 * len(chart.names))
            _draw_steps(chart, axes)
        case Scatter():
            axes = axes_or_new(ax, 6.2, 4.2)
            _draw_scatter(chart, axes)
        case Grid():
            tiles = chart.values.shape / np.array(chart.tile)
            side = 0.4 if chart.tile == (1, 1) else 1.15
            height, width = (1.6 + side * tiles).tolist()
            axes = axes_or_new(ax, min(width, 9.0), height)
            _draw_grid(chart, axes)
        case Lines():
            axes = axes_or_new(ax, 6.4, 4.4)
            _draw_path(chart, axes)
        case _:
            raise InvalidInput(
                "chart: expected Swarm, Steps, Scatter, Grid or Lines, got "
                f"{type(chart).__name__}; results have plot(), which draws them"
            )
    return axes


# ---- Dots with the colours of values: beeswarm and scatter


_DOTS: Final[dict[str, Any]] = {"s": 13.0, "linewidths": 0.7, "zorder": 3}

_FOR_NAMES: Final = 0.34
"""Room below a line of a swarm for the names of its categories."""


def _draw_dots(
    axes: Axes,
    positions: tuple[Values, Values],
    values: Values | None,
    categories: Sequence[str],
    along: Values,
) -> list[tuple[str, str]]:
    """Draw dots coloured by values (N,); the names of their categories with colours."""
    if values is None:
        axes.scatter(*positions, color=PLAIN, **_DOTS)
        return []
    present = np.isfinite(values)
    named: list[tuple[str, str]] = []
    colors: Any = color_map(around_zero=False)(shares_of_ranks(values))
    if categories:
        colors, named = category_colors(values, along, categories)
    x, y = positions
    axes.scatter(x[present], y[present], c=colors[present], **_DOTS)
    if not present.all():
        x = x[~present]
        axes.scatter(x, y[~present], facecolors="none", edgecolors=QUIET, **_DOTS)
        named.append(("missing", QUIET))
    return named


def _draw_swarm(chart: Swarm, axes: Axes) -> None:
    W = chart.attributions
    low = min(float(W.min()), 0.0)
    span = max(float(W.max()), 0.0) - low or 1.0
    zero = (0.03 - low / span) / 1.06  # as a share of the width
    axes.set_xlim(low - 0.03 * span, low + 1.03 * span)
    axes.axvline(0.0, color="0.3", linewidth=0.8, zorder=1)
    y = 0.0
    heights = []
    for j, name in enumerate(chart.names):
        w = W[:, j]
        x = None if chart.values is None else chart.values[:, j]
        positions = w, y + heights_in_swarm(w, span, 0.36)
        named = _draw_dots(axes, positions, x, chart.categories.get(name, ()), w)
        heights.append(y)
        if named:
            y += _FOR_NAMES
            at = zero, y + 0.2
            colored_words(axes, named, at, xycoords=axes.get_yaxis_transform())
        y += 1.0
    axes.set_yticks(heights, short_names(chart.names, 30))
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(y - 0.4, -0.6)
    axes.set_xlabel(words(chart.caption))
    frame(axes, chart.title, "x")
    if chart.values is not None and not chart.categories.keys() >= set(chart.names):
        value_bar(axes, "value of the feature")


def _draw_scatter(chart: Scatter, axes: Axes) -> None:
    w = chart.attributions
    x = chart.values.astype(float)
    missing = ~np.isfinite(x)
    levels = np.unique(x[~missing])
    lowest = levels[:1].sum()
    room = 0.16 * float(np.ptp(levels) if len(levels) > 1 else 1.0)
    crowded = missing
    if chart.categories:  # each has a position
        x = np.searchsorted(levels, x).astype(float)
        lowest = 0.0
        room = 1.0
        crowded = np.full(len(x), True)
    x[missing] = lowest - room
    for position in np.unique(x[crowded]):
        at = x == position
        x[at] += room * heights_in_swarm(w[at], float(np.ptp(w)), 0.36)
    axes.axhline(0.0, color="0.3", linewidth=0.8, zorder=1)
    colors = chart.color_values
    named = _draw_dots(axes, (x, w), colors, chart.color_categories, w)
    if chart.categories:
        ticks = np.arange(float(len(levels)))
        texts = short_names([chart.categories[int(code)] for code in levels], 24)
    else:
        ticks = axes.get_xticks() if len(levels) > 2 else levels
        ticks = ticks[(ticks >= lowest) & (ticks <= levels[-1:].sum())]
        texts = [number(tick, 6) for tick in ticks]
    if missing.any():
        ticks = np.append(ticks, lowest - room)
        texts.append("missing")
    is_long = sum(map(len, texts)) > 50
    axes.set_xticks(ticks.tolist(), texts, rotation=30 * is_long)
    axes.set(xlabel=words(chart.name), ylabel=words(chart.caption, 44))
    frame(axes, chart.title + "\n" * bool(chart.title and named))  # above the names
    if named:
        named.insert(0, (f"{words(chart.color_name)}:", "0.2"))
        colored_words(axes, named, (0.0, 1.03), xycoords="axes fraction")
    if colors is not None and not chart.color_categories:
        value_bar(axes, words(chart.color_name))


# ---- Steps and bars


def _draw_steps(chart: Steps, axes: Axes) -> None:
    starts = chart.starts
    count = len(chart.parts)
    heights = np.arange(count)
    parts = np.where(np.isfinite(chart.parts), chart.parts, 0.0)
    axes.use_sticky_edges = False  # there is room beside all bars
    axes.barh(
        heights,
        parts,
        0.66,
        starts,
        color=np.where(parts < 0.0, BAR_LOWERS, BAR_RAISES).tolist(),
        hatch=["////" if is_hatched else "" for is_hatched in chart.hatched] or None,
        edgecolor="white",
    )
    reach = np.stack([starts, starts + parts], axis=1)
    if chart.intervals is not None:
        lines = chart.intervals + starts[:, None]
        axes.hlines(heights, *lines.T, color="0.2", linewidth=1.2, zorder=3)
        reach = np.hstack([reach, lines])
    least = 1e-6 * largest_entry(parts)
    for k, part in enumerate(chart.parts):
        is_left = part < 0.0
        text = number(part, 3, chart.sign) if abs(part) > least else "0"
        axes.annotate(
            text if np.isfinite(part) else "–",
            ((np.nanmin if is_left else np.nanmax)(reach[k]), k),
            (-4.0 if is_left else 4.0, 0.0),
            textcoords="offset points",
            ha="right" if is_left else "left",
            va="center",
            fontsize="small",
        )
    axes.margins(x=0.26)  # for the numbers
    axes.locator_params(axis="x", nbins=5)
    axes.set_yticks(heights, short_names(chart.names))
    axes.tick_params(axis="y", length=0)
    meaning = f"\nhatched: {chart.hatching}" if any(chart.hatched) else ""
    axes.set_xlabel(words(f"{chart.caption}{meaning}".strip()))
    frame(axes, chart.title + "\n" * len(chart.marks), "x")  # above their names
    axes.set_ylim(count - 0.4, -0.6)
    if chart.start is None:
        axes.axvline(0.0, color="0.3", linewidth=0.8)
        if np.nanmin(reach) >= 0.0:
            axes.set_xlim(left=0.0)
    else:
        # a line from the end of each bar to the start of the bar above it
        axes.vlines(starts[:-1], heights[:-1] + 0.33, heights[1:] - 0.33, "0.5", lw=0.8)
    _mark(axes, chart.marks)


def _mark(axes: Axes, marks: Mapping[str, float]) -> None:
    """Dotted lines at numbers, with a line each above the axes for their names."""
    for k, (name, x) in enumerate(marks.items()):
        axes.axvline(x, color="0.45", linewidth=0.9, linestyle=":", zorder=0)
        axes.annotate(
            words(f"{name} {number(x, 4)}"),
            (x, 1.0),
            (0.0, 3.0 + 12.0 * k),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            ha="center",
            fontsize="small",
        )


# ---- Grids


_BEYOND: Final = 1.0
"""Per cent of cells beyond the ends of a colour bar."""


def _draw_grid(chart: Grid, axes: Axes) -> None:
    cells = np.ma.masked_invalid(chart.values)
    sizes = np.abs(cells.compressed())
    most = float(sizes.max(initial=0.0))
    reach = float(np.percentile(sizes, 100.0 - _BEYOND)) if sizes.size > 200 else most
    reach = reach or most or 1.0
    height, width = chart.tile
    is_tiled = chart.tile != (1, 1)
    image = axes.imshow(
        cells,
        cmap=color_map(around_zero=True),
        vmin=-reach,
        vmax=reach,
        aspect="equal" if is_tiled else "auto",
        interpolation="none",  # else colours of neighbouring cells are mixed
        rasterized=True,
    )
    R, C = chart.values.shape
    lines: dict[str, Any] = {"color": "white", "linewidth": 1.5}
    axes.hlines(np.arange(height, R, height) - 0.5, -0.5, C - 0.5, **lines)
    if len(chart.columns) * width == C:
        axes.vlines(np.arange(width, C, width) - 0.5, -0.5, R - 0.5, **lines)
    columns = np.arange(0.5, len(chart.columns)) * width - 0.5
    below = short_names(chart.columns, 24)
    turn = 90 if max(map(len, below), default=0) > 3 and not is_tiled else 0
    axes.set_xticks(columns, below, rotation=turn)
    rows = np.arange(0.5, len(chart.rows)) * height - 0.5
    axes.set_yticks(rows, short_names(chart.rows))
    axes.tick_params(length=0, labelsize="small")
    if is_tiled:
        axes.xaxis.tick_top()
    frame(axes, chart.title, "none")
    axes.spines[:].set_visible(False)
    is_signed = sizes.size > 0 and float(cells.min()) < 0.0
    beyond = "both" if is_signed else "max"
    extend = beyond if most > reach else "neither"
    bar = color_bar(axes, image, words(chart.caption, 40), extend=extend)
    bar.ax.set_ylim(-reach if is_signed else 0.0, reach)


# ---- Lines and points


_MARKERS: Final = ("s", "^", "D", "v", "P", "X")
_STYLES: Final = ("-", "--", ":", "-.")


def _draw_path(chart: Lines, axes: Axes) -> None:
    from matplotlib.ticker import PercentFormatter

    scales = ["log" if scale == "log" else "linear" for scale in chart.scales]
    axes.set(xscale=scales[0], yscale=scales[1])
    for scale, axis in zip(chart.scales, (axes.xaxis, axes.yaxis), strict=True):
        if scale == "percent":
            axis.set_major_formatter(PercentFormatter(1.0))
    n_lines = len(chart.lines)
    for k, (name, (x, y)) in enumerate([*chart.lines.items(), *chart.others.items()]):
        color = SERIES[k % len(SERIES)]
        style = _STYLES[k // len(SERIES) % len(_STYLES)]
        look: dict[str, Any] = {"linestyle": style, "linewidth": 1.6, "zorder": 3}
        if k >= n_lines:
            look = {"linestyle": ":", "linewidth": 0.7, "mfc": "none"}
            look["marker"] = _MARKERS[(k - n_lines) % len(_MARKERS)]
        axes.plot(x, y, color=color, label=words(name, 28), **look)
        if name in chart.bands:
            ends = chart.bands[name]
            axes.fill_between(x, *ends, color=color, alpha=0.15, linewidth=0.0)
    for name, a, b in chart.points:
        axes.plot(a, b, "o", color="0.15", mfc="white", zorder=4)
        axes.annotate(
            words(name),
            (a, b),
            (8.0, 6.0),
            textcoords="offset points",
            fontsize="small",
            bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0.0, "pad": 1.0},
            zorder=5,
        )
    axes.set(xlabel=words(chart.name), ylabel=words(chart.caption, 44))
    frame(axes, chart.title + "\n" * len(chart.marks))  # above their names
    axes.margins(x=0.02)
    _mark(axes, chart.marks)
    if chart.lines or chart.others:
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(0.0, -0.18),  # below the label of the axis
            borderaxespad=0.0,
            frameon=False,
            fontsize="small",
            ncols=2,
        )
