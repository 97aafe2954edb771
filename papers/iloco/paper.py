"""The figures by name."""

from functools import partial
from pathlib import Path

from papers.engine.paper import Paper
from papers.iloco import (
    coverage,
    curves,
    orders,
    tables,
    timing,
)
from papers.iloco.misprints.figure import misprints_figure
from papers.iloco.scale import FULL, REDUCED, Scale


def _paper(
    scale: Scale, *, recorded: Path | None, values: Path | None, full: Paper | None
) -> Paper:
    return Paper(
        name="iloco",
        title="Little, Zheng and Allen, iLOCO: Distribution-Free Inference for Feature "
        "Interactions (arXiv 2502.06661)",
        figures={
            "fig1": partial(orders.orders_figure, scale),
            "fig2": partial(curves.classification_figure, scale),
            "fig3": partial(coverage.coverage_figure, scale),
            "figA1": partial(orders.orders_forest_figure, scale),
            "figA2": partial(curves.nonlinear_regression_figure, scale),
            "figA3": partial(curves.linear_classification_figure, scale),
            "figA4": partial(curves.linear_regression_figure, scale),
            "figA5": partial(curves.correlated_figure, scale),
            "figA6": partial(coverage.signal_coverage_figure, scale),
            "table1": timing.timing_figure,
            "tables": tables.tables_figure,
            "errors": misprints_figure,
        },
        recorded=recorded,
        said=Path(__file__).with_name("sentences.csv"),
        values=values,
        full=full,
    )


ILOCO_PAPER = _paper(
    REDUCED,
    recorded=Path(__file__).with_name("recorded.csv"),
    values=Path(__file__).with_name("values.csv"),
    full=_paper(FULL, recorded=None, values=None, full=None),
)
