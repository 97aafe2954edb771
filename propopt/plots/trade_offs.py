"""One loss against another: the optimized front and the baselines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from pandas.api.types import is_numeric_dtype

from propopt.errors import InvalidInput
from propopt.output.text import drawn, in_percent
from propopt.plots.axes import (
    CYCLE,
    OPTIMIZED_COLOUR,
    framed,
    given_or_new,
    legend_below,
)
from propopt.plots.corner import draw_corner
from propopt.plots.share_axes import draw_share_axes
from propopt.quantity import Quantity
from propopt.results.conclusions.ends import Ends


AxisScale: TypeAlias = Literal["linear", "log"]
Window: TypeAlias = tuple[float, float]

_OPTIMIZED = "optimized"
_FEWEST = 3
"""Optima that have a knee."""

_MARKERS = ["s", "^", "D", "v", "P", "X", "*"]


def plot_trade_offs(
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    scale: AxisScale = "linear",
    ends: Ends | None = None,
    units: Mapping[str, str] | None = None,
    quantity: Quantity | None = None,
    nearest: Sequence[int] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw one loss against another: the optimized front, and each baseline.

    The axes make room for the front, and for baselines up to twice as far; the legend
    tells of those farther out. The optimum at the knee has a ring. Where the ends of
    the trade-off are known, shares stand on the upper and the right edge; where many
    optima crowd near zero, they are drawn once more, larger.

    Parameters
    ----------
    frame : DataFrame
        The table of a sweep (see :meth:`propopt.TradeOffs.to_frame`).
    x, y : str
        Names of losses.
    scale : {"linear", "log"}
        Of both axes. On logarithmic ones a loss of zero is off the chart, and shares
        have no axis.
    ends : Ends, optional
        Losses at both ends, as :attr:`propopt.TradeOffs.ends`, for shares.
    units : mapping, optional
        What losses are in, by name.
    quantity : Quantity, optional
        What is explained, for the title.
    nearest : sequence of int
        Positions of rows of baselines that get a filled marker: those of a family that
        are nearest to the front, as :meth:`propopt.TradeOffs.nearest` finds them.
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
    axes = given_or_new(ax, 6.0, 5.0)
    table = frame.assign(
        x=frame[f"loss.{x}"],
        y=frame[f"loss.{y}"],
        nearest=np.isin(np.arange(len(frame)), np.asarray(nearest, np.intp)),
    )
    optimized = table["method"] == _OPTIMIZED
    front, others = table[optimized], table[~optimized]
    windows = (
        _window(table["x"], front["x"], scale),
        _window(table["y"], front["y"], scale),
    )
    families = list(_families(others))

    def draw(on: Axes) -> None:
        if len(front):
            _draw_front(on, front)
        for place, family in enumerate(families):
            _draw_family(on, family, place, windows)

    draw(axes)
    knee = _knee(front)
    if knee is not None:
        _ring(axes, knee, _knee_label(knee, x, y, ends))
    axes.set(xscale=scale, yscale=scale, xlim=windows[0], ylim=windows[1])
    powers = [_power(window[1], scale) for window in windows]
    axes.set(xlabel=_label(x, units, powers[0]), ylabel=_label(y, units, powers[1]))
    axes.set_title(_title(x, y, quantity), fontsize="medium")
    framed(axes)
    inset = None
    if scale == "linear":
        _divide_ticks(axes.xaxis, powers[0])
        _divide_ticks(axes.yaxis, powers[1])
        inset = draw_corner(axes, front, table, draw)
        if ends is not None:
            draw_share_axes(axes, x, y, ends)
    if inset is not None and knee is not None:
        _ring(inset, knee, None)
    _draw_legend(axes)
    return axes


_LINES: Final = 4
"""Of a legend that a picture of the usual size has room for."""

_HALF_WIDTH: Final = 40
"""Letters of a label of which two stand side by side."""


def _draw_legend(axes: Axes) -> None:
    """Below the picture; a figure of this one picture grows with it."""
    labels = axes.get_legend_handles_labels()[1]
    columns = 2 if max(map(len, labels), default=0) <= _HALF_WIDTH else 1
    legend_below(axes, columns=columns)
    lines = math.ceil(len(labels) / columns)
    figure = axes.get_figure(root=True)
    if figure is not None and figure.axes == [axes] and lines > _LINES:
        figure.set_figheight(figure.get_figheight() + 0.2 * (lines - _LINES))


_ORDERS: Final = (-3, 4)
"""Powers of ten beyond which they stand beside the name of the axis."""


def _power(high: float, scale: AxisScale) -> int:
    """The power of ten that a linear axis up to ``high`` is in."""
    order = math.floor(math.log10(high)) if scale == "linear" and high > 0.0 else 0
    return 0 if _ORDERS[0] <= order < _ORDERS[1] else order


def _divide_ticks(axis: Axis, power: int) -> None:
    """Ticks in units of a power of ten, which no corner of the picture has room for."""
    if power:
        axis.set_major_formatter(lambda value, _: f"{value / 10.0**power:.4g}")


def _title(x: str, y: str, quantity: Quantity | None) -> str:
    losses = f"{drawn(y.replace('_', ' '))} against {drawn(x.replace('_', ' '))}"
    if quantity is None:
        return losses
    return f"explanations of the {drawn(quantity)}\n{losses}"


def _knee(front: pd.DataFrame) -> pd.Series | None:
    """The optimum with the least sum of losses, each from 0 to 1 over the front."""
    losses = front[["x", "y"]]
    span = losses.max() - losses.min()
    if len(front) < _FEWEST or not (span > 0.0).all():
        return None
    sums = ((losses - losses.min()) / span).sum(axis=1)
    return front.iloc[int(sums.to_numpy().argmin())]


def _ring(axes: Axes, knee: pd.Series, label: str | None) -> None:
    axes.scatter(
        knee["x"],
        knee["y"],
        s=100.0,
        facecolors="none",
        edgecolors="0.15",
        linewidths=1.4,
        label=label,
        zorder=4,
    )


def _knee_label(knee: pd.Series, x: str, y: str, ends: Ends | None) -> str:
    """The knee, with its shares where they are defined."""
    places = [("x", x), ("y", y)]
    shares = [_share(float(knee[column]), name, ends) for column, name in places]
    words = ", ".join(filter(None, shares))
    return f"knee: {words}" if words else "knee"


def _share(loss: float, name: str, ends: Ends | None) -> str:
    """What is kept or removed, in words; nothing where that is not defined."""
    if ends is None or name not in ends.at_target:
        return ""
    share = ends.share(name, loss)
    verb = "kept" if name in ends.faithful else "removed"
    return f"{in_percent(share)} {verb}" if math.isfinite(share) else ""


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


class _Family(NamedTuple):
    """Baselines that differ in one number, if in any."""

    label: str
    number: str | None
    rows: pd.DataFrame

    @property
    def nearest(self) -> pd.DataFrame:
        """The row that is nearest to the front, where there are several."""
        return self.rows[self.rows["nearest"]].head(int(len(self.rows) > 1))

    @property
    def nearest_name(self) -> str | None:
        """The number that is nearest to the front, for the legend."""
        if self.number is None or self.nearest.empty:
            return None
        value = self.nearest[self.number].iloc[0]
        name = drawn(self.number.removeprefix("parameter.").replace("_", " "))
        return f"{self.label}: {name} {value:.3g} is nearest"


def _draw_family(
    axes: Axes, drawn_family: _Family, place: int, windows: tuple[Window, Window]
) -> None:
    family, label = drawn_family.rows, drawn_family.label
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
    nearest = drawn_family.nearest
    if nearest.empty:
        return
    axes.plot(
        nearest["x"],
        nearest["y"],
        linestyle="none",
        marker=_MARKERS[place % len(_MARKERS)],
        markersize=7,
        color=CYCLE[place % len(CYCLE)],
        markeredgecolor="0.15",
        label=drawn_family.nearest_name,
        zorder=3.5,
    )


def _families(others: pd.DataFrame) -> Iterator[_Family]:
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
            ordered = family if run is None else family.sort_values(run)
            yield _Family(drawn(label), run, ordered)


def _label(name: str, units: Mapping[str, str] | None, power: int = 0) -> str:
    unit = drawn((units or {}).get(name, ""))
    in_tens = f"$10^{{{power}}}$" if power else ""
    beside = " ".join(filter(None, [in_tens, unit]))
    loss = f"{drawn(name.replace('_', ' '))} loss"
    return f"{loss}, {beside}" if beside else loss
