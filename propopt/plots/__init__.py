"""Pictures: they draw, take ``ax``, return the axes, and never call ``show``."""

from propopt.plots.agreement import plot_agreement
from propopt.plots.comparison import plot_comparison
from propopt.plots.heatmap import plot_heatmap
from propopt.plots.highlighting import highlight
from propopt.plots.images import plot_image_maps
from propopt.plots.interactions.heatmap import interaction_heatmap
from propopt.plots.interactions.intervals import interaction_intervals
from propopt.plots.interactions.network import interaction_network
from propopt.plots.lime.cells import lime_map
from propopt.plots.lime.coefficients import lime_coefficients
from propopt.plots.lime.path import lime_path
from propopt.plots.lime.profile import lime_profile
from propopt.plots.lime.text_words import lime_words
from propopt.plots.lime.word_path import lime_word_path
from propopt.plots.rows import plot_row
from propopt.plots.trade_offs import plot_trade_offs


__all__ = [
    "highlight",
    "interaction_heatmap",
    "interaction_intervals",
    "interaction_network",
    "lime_coefficients",
    "lime_map",
    "lime_path",
    "lime_profile",
    "lime_word_path",
    "lime_words",
    "plot_agreement",
    "plot_comparison",
    "plot_heatmap",
    "plot_image_maps",
    "plot_row",
    "plot_trade_offs",
]
