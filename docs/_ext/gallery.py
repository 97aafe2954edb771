"""The style of plots in the gallery: that of `po.plots`."""

import matplotlib as mpl

from propopt.plots.style import STYLE


def apply_style(gallery_conf, fname):  # noqa: ARG001
    """Give each example the style after matplotlib was reset."""
    mpl.rcParams.update(STYLE)
