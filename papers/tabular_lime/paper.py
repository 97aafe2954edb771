"""The figures by name."""

from pathlib import Path

from papers.engine.paper import Paper
from papers.tabular_lime import (
    arrows,
    bandwidth,
    bins,
    boxes,
    central,
    diabetes,
    errors,
    kernels,
    linear,
    locality,
    theory,
    trees,
    wine,
)


TABULAR_LIME = Paper(
    name="tabular-lime",
    title="Garreau and von Luxburg, Looking Deeper into Tabular LIME "
    "(arXiv 2008.11092)",
    figures={
        "fig2": bins.bins_figure,
        "fig3": linear.ridge_figure,
        "fig4": diabetes.forest_figure,
        "fig5": kernels.sum_figure,
        "fig6": wine.cell_figure,
        "fig7": bandwidth.bandwidth_figure,
        "fig8": linear.linear_figure,
        "fig9": central.central_figure,
        "fig10": linear.odd_bins_figure,
        "fig11": arrows.rectangle_figure,
        "fig12": trees.trees_figure,
        "fig13": locality.locality_figure,
        "fig14": kernels.bump_runs_figure,
        "fig15": arrows.bump_figure,
        "fig16": wine.unused_figure,
        "box": boxes.box_figure,
        "theory": theory.theory_figure,
        "errors": errors.errors_figure,
    },
    recorded=Path(__file__).with_name("recorded.csv"),
    values=Path(__file__).with_name("values.csv"),
    said=Path(__file__).with_name("sentences.csv"),
)
