"""How all pictures look: sizes, colours, frames."""

from __future__ import annotations

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation


OPTIMIZED_COLOUR = "#1f4e79"
RAISES, LOWERS, OTHERS = "#b2182b", "#2166ac", "0.7"
"""Colours of positive attributions, of negative ones, and of sums."""

DIVERGING = "RdBu_r"
"""The map whose ends are those two, with white at zero."""

CYCLE = ["#c44e52", "#dd8452", "#8172b3", "#937860", "#da8bc3", "#8c8c8c", "#ccb974"]


def given_or_new(ax: Axes | None, width: float = 5.2, height: float = 3.9) -> Axes:
    """The axes to draw on; those of a new figure, in inches, where none are given."""
    if ax is not None:
        return ax
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def framed(axes: Axes) -> Axes:
    """The same axes with a quiet grid behind the data, and open above and right."""
    axes.grid(True, color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def legend_below(axes: Axes, columns: int = 1) -> None:
    """A legend at the right end below the picture, as far down in any size."""
    down = ScaledTranslation(0.0, -0.5, axes.figure.dpi_scale_trans)
    axes.legend(
        loc="upper right",
        bbox_to_anchor=(1.0, 0.0),
        bbox_transform=axes.transAxes + down,
        borderaxespad=0.0,
        frameon=False,
        fontsize="small",
        ncols=columns,
    )
