"""One loss against another: the optimized front and the baselines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from pandas.api.types import is_numeric_dtype

from propopt.errors import InvalidInput
from propopt.output.text import drawn
from propopt.plots.axes import CYCLE, OPTIMIZED_COLOUR, framed, given_or_new


AxisScale: TypeAlias = Literal["linear", "log"]
Window: TypeAlias = tuple[float, float]

_OPTIMIZED = "optimized"
_MARKERS = ["s", "^", "D", "v", "P", "X", "*"]


def plot_trade_offs(
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    scale: AxisScale = "linear",
    ax: Axes | None = None,
) -> Axes:
    """Draw one loss against another: the optimized front, and each baseline.

    The axes make room for the front, and for baselines up to twice as far; the legend
    tells of those farther out.

    Parameters
    ----------
    frame : DataFrame
        The table of a sweep (see :meth:`propopt.TradeOffs.to_frame`).
    x, y : str
        Names of losses.
    scale : {"linear", "log"}
        Of both axes. On logarithmic ones a loss of zero is off the chart.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    if scale not in get_args(AxisScale):
        raise InvalidInput(f"scale: expected 'linear' or 'log', got {scale!r}")
    columns = [c for c in map(str, frame) if c.startswith("loss.")]
    for name in (x, y):
        if f"loss.{name}" not in columns:
            names = ", ".join(column.removeprefix("loss.") for column in columns)
            raise InvalidInput(f"plot: no loss is called {name!r}; there are {names}")
    axes = given_or_new(ax)
    table = frame.assign(x=frame[f"loss.{x}"], y=frame[f"loss.{y}"])
    optimized = table["method"] == _OPTIMIZED
    front, others = table[optimized], table[~optimized]
    windows = (
        _window(table["x"], front["x"], scale),
        _window(table["y"], front["y"], scale),
    )
    if len(front):
        _draw_front(axes, front)
    for place, (label, family) in enumerate(_families(others)):
        _draw_family(axes, family, label, place, windows)
    axes.set(xlabel=_label(x), ylabel=_label(y), xscale=scale, yscale=scale)
    axes.set(xlim=windows[0], ylim=windows[1])
    if scale == "linear":
        axes.ticklabel_format(scilimits=(-3, 4), useMathText=True)
    axes.legend(frameon=False, fontsize="small")
    return framed(axes)


def _window(values: pd.Series, front: pd.Series, scale: AxisScale) -> Window:
    """The ends of an axis; markers on a linear axis stay whole."""
    high = _limit(values, front)
    if scale == "linear":
        return -0.02 * high, high
    positive = front[front > 0.0] if (front > 0.0).any() else values[values > 0.0]
    return 0.7 * float(positive.min()) if len(positive) else 0.1 * high, 1.4 * high


def _limit(values: pd.Series, front: pd.Series) -> float:
    """Room for the front, and for baselines up to twice as far."""
    reach = float(front.max()) if len(front) else 0.0
    near = values[values <= 2.0 * (reach or np.inf)]
    return 1.05 * float(near.max()) or 1.0


def _draw_front(axes: Axes, front: pd.DataFrame) -> None:
    """A line through the optima that no other beats in these two losses.

    Where more than one weight was swept the others lie behind it.
    """
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


def _draw_family(
    axes: Axes,
    family: pd.DataFrame,
    label: str,
    place: int,
    windows: tuple[Window, Window],
) -> None:
    inside = family["x"].between(*windows[0]) & family["y"].between(*windows[1])
    outside = int((~inside).sum())
    count = f"{outside} of {len(family)} " if len(family) > 1 else ""
    axes.plot(
        family["x"],
        family["y"],
        linestyle="-" if len(family) > 1 else "none",
        linewidth=0.8,
        marker=_MARKERS[place % len(_MARKERS)],
        markersize=5,
        markerfacecolor="none",  # what lies beneath another stays visible
        color=CYCLE[place % len(CYCLE)],
        label=f"{label}, {count}off the chart" if outside else label,
        zorder=2,
    )


def _families(others: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each baseline that differ in one number only, in its order."""
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
            yield drawn(label), family if run is None else family.sort_values(run)


def _label(name: str) -> str:
    return f"{drawn(name.replace('_', ' '))} loss"
