"""Curves of coefficients over widths: their colours, changes of sign, and frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from matplotlib.axes import Axes

from propopt._typing import Array, Values
from propopt.lime.paths import SignChanges
from propopt.output.text import drawn
from propopt.plots.axes import framed
from propopt.plots.lime.words import shortened


_STYLES: Final = ("-", "--", ":", "-.")
_COLOURS: Final = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#a6761d",
    "#222222",
    "#56b4e9",
)
"""One blue, orange, green, pink, brown, black and light blue, told apart by all."""

_NAME: Final = 28
"""Letters of a name at the end of a line."""

_POINTS: Final = 9.0
"""Their size."""


def draw_curves(
    axes: Axes,
    names: Mapping[int, str],
    widths: Values,
    coefficients: Array,
    changes: SignChanges,
    errors: Array | None = None,
) -> None:
    """Curves of some columns, circles at changes of sign, and bands of two errors.

    Parameters
    ----------
    axes : matplotlib Axes
        Where to draw.
    names : mapping of int to str
        The columns j, and what they are called.
    widths : array (M,)
        ν.
    coefficients : array (M, D)
        β_j(ν).
    changes : SignChanges
        Of all columns.
    errors : array (M, D), optional
        Standard errors.
    """
    ends: list[tuple[float, str, str]] = []
    for k, (j, name) in enumerate(names.items()):
        colour = _COLOURS[k % len(_COLOURS)]
        style = _STYLES[k // len(_COLOURS) % len(_STYLES)]
        label, own = drawn(shortened(name, _NAME)), coefficients[:, j]
        axes.plot(widths, own, color=colour, linestyle=style, label=label)
        ends.append((float(own[-1]), label, colour))
        if errors is not None:
            low, high = own - 2.0 * errors[:, j], own + 2.0 * errors[:, j]
            axes.fill_between(widths, low, high, color=colour, alpha=0.15, linewidth=0)
        roots = changes[j].crossings
        inside = roots[(roots >= widths[0]) & (roots <= widths[-1])]
        axes.plot(
            inside,
            np.zeros(len(inside)),
            "o",
            color=colour,
            markersize=5,
            markerfacecolor="white",
            zorder=4,
        )
    axes.axhline(0.0, color="0.3", linewidth=0.8)
    axes.margins(x=0.0)
    _name_ends(axes, ends)


def _name_ends(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Names beside the right ends of lines, in their colours, a line of text apart."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)
    # a layout leaves some three quarters for the lines
    height = 0.75 * axes.get_window_extent().height / axes.figure.dpi * 72.0
    step = 1.25 * _POINTS / max(height, _POINTS)
    heights = np.array([(y - low) / (high - low) for y, *_ in ends])
    order = np.argsort(heights, kind="stable")
    # the nearest heights that are a step apart: groups stand around their mean
    steps = step * np.arange(len(order))
    groups: list[tuple[float, int]] = []
    for free in (heights[order] - steps).tolist():
        mean, size = free, 1
        while groups and groups[-1][0] > mean:
            below, count = groups.pop()
            mean, size = (mean * size + below * count) / (size + count), size + count
        groups.append((mean, size))
    placed = np.repeat([mean for mean, _ in groups], [size for _, size in groups])
    placed = placed + steps
    for height, place in zip(placed, order, strict=True):
        y, name, colour = ends[place]
        axes.annotate(
            name,
            xy=(1.0, (y - low) / (high - low)),
            xytext=(1.03, height),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=_POINTS,
            color=colour,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6},
        )


def frame_curves(axes: Axes, own: float, own_name: str, what: str) -> None:
    """A line at zero, one at the width of the law, a logarithmic scale, words.

    Parameters
    ----------
    axes : matplotlib Axes
        Where curves are drawn.
    own : float
        The width of the law; none is drawn where it is infinite.
    own_name : str
        Its name, written beside it.
    what : str
        What is explained.
    """
    if np.isfinite(own):
        axes.axvline(own, color="0.45", linestyle=":", linewidth=1.0)
        axes.text(
            own,
            1.0,
            own_name,
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize="small",
            color="0.35",
        )
    axes.set_xscale("log")
    axes.set(ylabel=f"LIME coefficient,\n{drawn(shortened(what, 40))}")
    framed(axes)


def largest_curves(curves: Array, count: int) -> list[int]:
    """The columns of curves (M, D) that are largest somewhere, without those of zeros.

    Parameters
    ----------
    curves : array (M, D)
        The curves.
    count : int
        How many.
    """
    sizes = np.abs(curves).max(axis=0)
    order = np.argsort(-sizes, kind="stable")[:count]
    return [j for j in order.tolist() if sizes[j] > 0.0]
