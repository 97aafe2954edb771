"""A closer look at the corner where good explanations crowd."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from propopt._typing import Array


Box: TypeAlias = tuple[float, float, float, float]

CORNER = 0.15
"""Of both axes: the corner that is looked at."""

_CROWD = 0.3
"""Of the optima: as many in the corner are a crowd, if they are no fewer than four."""

_PLACES: tuple[Box, ...] = (
    (0.52, 0.52, 0.45, 0.45),
    (0.3, 0.52, 0.45, 0.45),
    (0.52, 0.3, 0.45, 0.45),
)
"""Left, bottom, width and height in shares of the axes."""


def draw_corner(
    axes: Axes, front: pd.DataFrame, every: pd.DataFrame, draw: Callable[[Axes], None]
) -> Axes | None:
    """An inset with the corner near zero, where many optima are there and it has room.

    Parameters
    ----------
    axes : matplotlib Axes
        Linear axes, whose limits are set.
    front, every : DataFrame
        Columns x and y of the optima, and of all that is drawn.
    draw : callable
        Draws the same on other axes.
    """
    reach = np.array([axes.get_xlim()[1], axes.get_ylim()[1]])
    optima = front[["x", "y"]].to_numpy(dtype=np.float64)
    near = (optima <= CORNER * reach).all(axis=1)
    place = _free_place(every[["x", "y"]].to_numpy(dtype=np.float64) / reach)
    if near.sum() < max(4.0, _CROWD * len(front)) or place is None:
        return None
    inset = axes.inset_axes(place)
    draw(inset)
    closest = 1.15 * optima[near].max(axis=0)
    closest = np.where(closest > 0.0, closest, CORNER * reach)
    inset.set(xlim=(-0.03 * closest[0], closest[0]))
    inset.set(ylim=(-0.03 * closest[1], closest[1]))
    inset.tick_params(labelsize="x-small", length=2.0)
    inset.set_facecolor("white")
    axes.indicate_inset_zoom(inset, edgecolor="0.5")
    return inset


def _free_place(shares: Array) -> Box | None:
    """The first place that covers no point."""
    for left, bottom, width, height in _PLACES:
        x, y = shares.T
        inside = (x >= left) & (x <= left + width) & (y >= bottom)
        if not (inside & (y <= bottom + height)).any():
            return left, bottom, width, height
    return None
