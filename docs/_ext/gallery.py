"""The style of plots in the gallery: that of `po.plots`."""

import matplotlib as mpl


_STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "grid.color": "0.92",
    "legend.frameon": False,
}


def apply_style(gallery_conf, fname):  # noqa: ARG001
    """Give each example the style after matplotlib was reset."""
    mpl.rcParams.update(_STYLE)
