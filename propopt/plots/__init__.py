"""Plots on axes of matplotlib: each takes ``ax``, returns it, and never shows it."""

from typing import TYPE_CHECKING

from propopt.base.suggestions import suggesting_getattr as _suggesting_getattr
from propopt.plots.attributions import plot_heatmap
from propopt.plots.blocks import draw
from propopt.plots.comparisons import plot_changes
from propopt.plots.documents import highlight
from propopt.plots.images import plot_image_maps
from propopt.plots.interactions import interaction_heatmap, interaction_intervals
from propopt.plots.lime import lime_coefficients, lime_path, lime_profile
from propopt.plots.rows import plot_row


__all__ = [
    "draw",
    "highlight",
    "interaction_heatmap",
    "interaction_intervals",
    "lime_coefficients",
    "lime_path",
    "lime_profile",
    "plot_changes",
    "plot_heatmap",
    "plot_image_maps",
    "plot_row",
]


if not TYPE_CHECKING:  # for which every name would be an object
    __getattr__ = _suggesting_getattr("po.plots", __all__)
