"""Curves of coefficients over widths: their colours, changes of sign, and frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from matplotlib.axes import Axes

from propopt._typing import Array, Values
from propopt.lime.paths import SignChanges
from propopt.output.text import drawn
from propopt.plots.axes import CYCLE, framed
from propopt.plots.lime.words import shortened


_STYLES: Final = ("-", "--", ":", "-.")
_NAME: Final = 28
"""Letters of a name in a legend."""


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
    for k, (j, name) in enumerate(names.items()):
        colour, style = CYCLE[k % len(CYCLE)], _STYLES[k // len(CYCLE) % len(_STYLES)]
        label, own = drawn(shortened(name, _NAME)), coefficients[:, j]
        axes.plot(widths, own, color=colour, linestyle=style, label=label)
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


def frame_curves(axes: Axes, own: float, own_name: str) -> None:
    """A line at zero, one at the width of the law, a logarithmic scale, a legend.

    Parameters
    ----------
    axes : matplotlib Axes
        Where curves are drawn.
    own : float
        The width of the law; none is drawn where it is infinite.
    own_name : str
        Its name in the legend.
    """
    axes.axhline(0.0, color="0.3", linewidth=0.8)
    if np.isfinite(own):
        axes.axvline(own, color="0.45", linestyle=":", linewidth=1.0, label=own_name)
    axes.set_xscale("log")
    axes.set(ylabel="coefficient, in units of the output")
    axes.legend(
        loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small"
    )
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
