"""Trade-off curves of two losses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from textwrap import fill
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from pandas.api.types import is_numeric_dtype

from propopt.base.errors import InvalidInput
from propopt.base.text import in_percent, matplotlib_text
from propopt.plots.attributions import (
    CYCLE,
    OPTIMIZED_COLOUR,
    axes_or_new,
    legend_below,
    styled,
)


AxisScale: TypeAlias = Literal["linear", "log"]
Window: TypeAlias = tuple[float, float]

_FEWEST = 3
"""The fewest optima with a knee."""

_MARKERS = ["s", "^", "D", "v", "P", "X", "*"]


def draw_trade_offs(
    trade_offs: Any, x: str, y: str, scale: AxisScale, ax: Axes | None
) -> Axes:
    """Draw one loss of trade-offs against another, with baselines for comparison.

    TradeOffs stands above this room and calls it, so trade-offs are passed as Any.
    """
    if scale not in get_args(AxisScale):
        raise InvalidInput(f"scale: expected 'linear' or 'log', got {scale!r}")
    axes = axes_or_new(ax, 6.0, 5.0)
    frame = trade_offs.drawn()
    n_optimized = len(trade_offs.optimized)
    table = frame.assign(x=frame[f"loss.{x}"], y=frame[f"loss.{y}"], nearest=False)
    table.loc[trade_offs.nearest_rows, "nearest"] = True
    columns = trade_offs.share_columns
    in_shares = False
    if scale == "linear" and columns:
        shares = 1.0 - frame[[columns[x], columns[y]]].to_numpy()
        in_shares = bool(np.isfinite(shares[:n_optimized]).all())
        if in_shares:
            table = table.assign(x=shares[:, 0], y=shares[:, 1])
    front = table[:n_optimized]
    others = table[n_optimized:]
    windows = (
        _window(table["x"], front["x"], scale),
        _window(table["y"], front["y"], scale),
    )
    if n_optimized:
        _draw_front(axes, front)
    for index, family in enumerate(_families(others)):
        _draw_family(axes, family, index, windows)
    knee = _knee(front)
    if knee is not None:
        parts = [
            f"{in_percent(1.0 - knee[axis])} {columns[name].partition('.')[0]}"
            for axis, name in (("x", x), ("y", y))
            if in_shares
        ]
        axes.scatter(
            knee["x"],
            knee["y"],
            s=100.0,
            facecolors="none",
            edgecolors="0.15",
            linewidths=1.4,
            label=f"knee: {', '.join(parts)}" if parts else "knee",
            zorder=4,
        )
    axes.set(xscale=scale, yscale=scale, xlim=windows[0], ylim=windows[1])
    for name, axis, set_label in (
        (x, axes.xaxis, axes.set_xlabel),
        (y, axes.yaxis, axes.set_ylabel),
    ):
        label = f"{name.replace('_', ' ')} loss"
        if in_shares:
            axis.set_major_formatter(PercentFormatter(1.0))
            label = trade_offs.share_labels[name]
            label = label.replace("kept", "lost").replace("removed", "left")
        set_label(fill(matplotlib_text(label), 60))
    styled(axes)
    if trade_offs.quantity is not None:
        title = f"explanations of the {matplotlib_text(trade_offs.quantity)}"
        axes.set_title(fill(title, 60), fontsize="medium")
    entries = axes.get_legend_handles_labels()[1]
    # long entries stand below each other
    n_columns = 2 if max(map(len, entries), default=0) <= 40 else 1
    legend_below(axes, columns=n_columns)
    lines = math.ceil(len(entries) / n_columns)
    figure = axes.get_figure(root=True)
    if figure is not None and figure.axes == [axes] and lines > _LINES:
        figure.set_figheight(figure.get_figheight() + 0.2 * (lines - _LINES))
    return axes


_LINES: Final = 4
"""The lines of a legend that fit below a figure of the default size."""


def _knee(front: pd.DataFrame) -> pd.Series | None:
    """The optimum with the least sum of losses, each scaled to 0 to 1 on the front."""
    losses = front[["x", "y"]]
    span = losses.max() - losses.min()
    if len(front) < _FEWEST or not (span > 0.0).all():
        return None
    sums = ((losses - losses.min()) / span).sum(axis=1)
    return front.iloc[int(sums.to_numpy().argmin())]


def _window(values: pd.Series, front: pd.Series, scale: AxisScale) -> Window:
    """The limits of an axis, with room for whole markers."""
    reach = float(front.max()) if len(front) else 0.0
    high = 1.05 * float(values[values <= 2.0 * (reach or np.inf)].max()) or 1.0
    if scale == "linear":
        return -0.02 * high, high
    positive = front[front > 0.0] if (front > 0.0).any() else values[values > 0.0]
    return 0.7 * float(positive.min()) if len(positive) else 0.1 * high, 1.4 * high


def _draw_front(axes: Axes, front: pd.DataFrame) -> None:
    """A line through the optima on the front; other optima are pale."""
    optima = front.sort_values(["x", "y"])
    ahead = optima["y"] <= optima["y"].cummin()
    for part, line, alpha, label in [
        (optima[ahead], "-", 1.0, "optimized"),
        (optima[~ahead], "none", 0.4, None),
    ]:
        axes.plot(
            part["x"],
            part["y"],
            marker="o",
            linestyle=line,
            color=OPTIMIZED_COLOUR,
            alpha=alpha,
            markersize=3.5,
            linewidth=1.6,
            label=label,
            zorder=3,
        )


_Family: TypeAlias = tuple[str, str | None, pd.DataFrame]
"""A label, the parameter in which baselines differ, and their rows."""


def _draw_family(
    axes: Axes, entry: _Family, index: int, windows: tuple[Window, Window]
) -> None:
    label, parameter, family = entry
    inside = family["x"].between(*windows[0]) & family["y"].between(*windows[1])
    outside = int((~inside).sum())
    several = len(family) > 1
    count = f"{outside} of {len(family)} " if several else ""
    style: dict[str, Any] = {
        "marker": _MARKERS[index % len(_MARKERS)],
        "color": CYCLE[index % len(CYCLE)],
    }
    axes.plot(
        family["x"],
        family["y"],
        linestyle="-" if several else "none",
        linewidth=0.8,
        markersize=5,
        markerfacecolor="none",  # markers beneath stay visible
        label=f"{label}, {count}off the chart" if outside else label,
        zorder=2,
        **style,
    )
    nearest = family[family["nearest"]].head(int(several))
    if nearest.empty:
        return
    named = None
    if parameter is not None:
        name = matplotlib_text(parameter.removeprefix("parameter.").replace("_", " "))
        named = f"{label}: {name} {nearest[parameter].iloc[0]:.3g} is nearest"
    axes.plot(
        nearest["x"],
        nearest["y"],
        linestyle="none",
        markersize=7,
        markeredgecolor="0.15",
        label=named,
        zorder=3.5,
        **style,
    )


def _families(others: pd.DataFrame) -> Iterator[_Family]:
    """Baselines of one method that differ in one number only, sorted by it."""
    names = [c for c in map(str, others) if c.startswith("parameter.")]
    for method, rows in others.groupby("method", sort=False):
        varying = [c for c in names if rows[c].nunique(dropna=False) > 1]
        numbers = [c for c in varying if is_numeric_dtype(rows[c].infer_objects())]
        run = max(numbers, key=lambda c: rows[c].nunique(), default=None)
        fixed = [c for c in varying if c != run]
        groups = (
            rows.groupby(fixed, sort=False, dropna=False) if fixed else [((), rows)]
        )
        for key, family in groups:
            values = ", ".join(
                f"{column.removeprefix('parameter.')}={value}"
                for column, value in zip(fixed, key, strict=True)
            )
            label = f"{method} ({values})" if values else str(method)
            ordered = family if run is None else family.sort_values(run)
            yield matplotlib_text(label), run, ordered
