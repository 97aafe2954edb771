"""Pictures: they draw, take ``ax``, return the axes, and never call ``show``."""

from propopt.plots.agreement import plot_agreement
from propopt.plots.comparison import plot_comparison
from propopt.plots.heatmap import plot_heatmap
from propopt.plots.images import plot_image_maps
from propopt.plots.rows import plot_row
from propopt.plots.trade_offs import plot_trade_offs


__all__ = [
    "plot_agreement",
    "plot_comparison",
    "plot_heatmap",
    "plot_image_maps",
    "plot_row",
    "plot_trade_offs",
]
