"""Pictures of tables: they draw, and compute nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from propopt.errors import InvalidInput


OPTIMIZED = "optimized"
_COLOURS = ["#c44e52", "#dd8452", "#8172b3", "#937860", "#da8bc3", "#8c8c8c", "#ccb974"]
_MARKERS = ["s", "^", "D", "v", "P", "X", "*"]


def plot_trade_offs(
    frame: pd.DataFrame, x: str, y: str, *, ax: Axes | None = None
) -> Axes:
    """Draw one loss against another: the optimised front, and each baseline.

    The axes make room for the front, and for baselines up to twice as far; the legend
    tells of those farther out.

    Parameters
    ----------
    frame : DataFrame
        The table of a sweep (see :meth:`propopt.TradeOffs.to_frame`).
    x, y : str
        Names of losses.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    for name in (x, y):
        if f"loss.{name}" not in frame:
            known = [c.removeprefix("loss.") for c in frame if c.startswith("loss.")]
            raise InvalidInput(
                f"plot: no loss is called {name!r}; there are {', '.join(known)}"
            )
    axes = (
        plt.subplots(figsize=(5.2, 3.9), layout="constrained")[1] if ax is None else ax
    )
    table = frame.rename(columns={f"loss.{x}": "x", f"loss.{y}": "y"})
    front = table[table["method"] == OPTIMIZED]
    limits = _limits(table, front)
    for place, (label, family) in enumerate(_families(table.drop(front.index))):
        _draw_family(axes, family, label, place, limits)
    _draw_front(axes, front)
    axes.set(
        xlim=(0, limits[0]), ylim=(0, limits[1]), xlabel=_label(x), ylabel=_label(y)
    )
    axes.ticklabel_format(scilimits=(-3, 4), useMathText=True)
    axes.grid(True, color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small")
    return axes


def _limits(table: pd.DataFrame, front: pd.DataFrame) -> tuple[float, float]:
    """Room for the front, and for baselines up to twice as far."""
    found = []
    for axis in ("x", "y"):
        reach = front[axis].max() if len(front) else np.inf
        near = table[axis][table[axis] <= 2.0 * reach]
        found.append(1.05 * float(near.max()) or 1.0)
    return found[0], found[1]


def _draw_front(axes: Axes, front: pd.DataFrame) -> None:
    ordered = front.sort_values(["x", "y"])
    axes.plot(
        ordered["x"],
        ordered["y"],
        "o-",
        color="#1f4e79",
        markersize=3.5,
        linewidth=1.6,
        label="optimised",
        clip_on=False,
        zorder=3,
    )


def _draw_family(
    axes: Axes,
    family: pd.DataFrame,
    label: str,
    place: int,
    limits: tuple[float, float],
) -> None:
    outside = (family["x"] > limits[0]) | (family["y"] > limits[1])
    count = f"{outside.sum()} of {len(family)} " if len(family) > 1 else ""
    axes.plot(
        family["x"],
        family["y"],
        linestyle="-" if len(family) > 1 else "none",
        linewidth=0.8,
        marker=_MARKERS[place % len(_MARKERS)],
        markersize=5,
        color=_COLOURS[place % len(_COLOURS)],
        label=f"{label} ({count}off the chart)" if outside.any() else label,
        zorder=2,
    )


def _families(others: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each baseline, in one family for all values of its first varying number."""
    for method, rows in others.groupby("method", sort=False):
        columns = [c for c in rows if c.startswith("parameter.")]
        varying = [c for c in columns if rows[c].nunique() > 1]
        if not varying:
            yield str(method), rows
            continue
        run, *fixed = sorted(varying, key=lambda c: -rows[c].nunique())
        groups = (
            rows.groupby(fixed, sort=False, dropna=False) if fixed else [((), rows)]
        )
        for key, family in groups:
            values = ", ".join(
                f"{c.removeprefix('parameter.')}={v}"
                for c, v in zip(fixed, key, strict=True)
            )
            label = f"{method} ({values})" if values else str(method)
            yield label, family.sort_values(run)


def _label(name: str) -> str:
    return f"{name.replace('_', ' ')} loss"
