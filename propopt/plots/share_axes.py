"""Second axes beside losses: the share of faithfulness kept, and of others removed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import PercentFormatter

from propopt._typing import Array
from propopt.output.text import drawn
from propopt.results.conclusions.ends import Ends


_Scale: TypeAlias = tuple[Callable[[Any], Array], Callable[[Any], Array]]


_SAME = 1e-12
"""Ends that differ by less, relatively, are one."""


def draw_share_axes(axes: Axes, x: str, y: str, ends: Ends) -> None:
    """Shares along the upper edge for loss ``x`` and along the right for ``y``.

    Nothing where a share is not defined.
    """
    along_x, along_y = _scale(x, ends), _scale(y, ends)
    if along_x is not None:
        top = axes.secondary_xaxis("top", functions=along_x)
        top.set_xlabel(_title(x, ends), fontsize="small")
        _dress(top, top.xaxis, "top")
    if along_y is not None:
        right = axes.secondary_yaxis("right", functions=along_y)
        right.set_ylabel(_title(y, ends), fontsize="small")
        _dress(right, right.yaxis, "right")


def _dress(along: Any, ticks: Axis, side: str) -> None:
    """In per cent, and quieter than the losses."""
    ticks.set_major_formatter(PercentFormatter(1.0, decimals=0))
    along.tick_params(labelsize="small", color="0.6")
    along.spines[side].set_color("0.6")


def _title(name: str, ends: Ends) -> str:
    if name in ends.faithful:
        return "faithfulness kept"
    return f"{drawn(name.replace('_', ' '))} removed"


def _scale(name: str, ends: Ends) -> _Scale | None:
    """The share of a loss, and the loss of a share; None where one is not defined."""
    near, far = ends.at_target.get(name, math.nan), ends.far.get(name, math.nan)
    is_root = name in ends.roots
    if is_root:
        near, far = math.sqrt(near), math.sqrt(far)
    # of faithfulness nothing is kept at the far end, of others all is removed there
    none, whole = (far, near) if name in ends.faithful else (near, far)
    known = math.isfinite(near) and math.isfinite(far)
    if not known or abs(none - whole) <= _SAME * max(none, whole):
        return None

    def share(loss: Any) -> Array:
        return np.asarray((none - (_root(loss) if is_root else loss)) / (none - whole))

    def loss(share: Any) -> Array:
        value = none - np.asarray(share) * (none - whole)
        return np.asarray(value * np.abs(value) if is_root else value)

    return share, loss


def _root(loss: Any) -> Array:
    """√loss, and its mirror image below zero, where the frame of a plot reaches."""
    return np.asarray(np.sign(loss) * np.sqrt(np.abs(loss)))
