"""Deliberate errors in scores, learners' data and theory of patches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from papers.engine.figure import PaperFigure
from papers.engine.gate import Gate, Mistake, Thinned, panels
from papers.iloco import coverage, curves, methods, orders, simulations, theory
from papers.iloco.misprints import designs
from papers.iloco.scale import REDUCED, Scale
from papers.iloco.simulations import Simulation
from propopt.base.arrays import Values
from propopt.interactions import refits


_SCALE: Final = replace(
    REDUCED,
    n_patches={"KRBF": 60, "MLP": 60, "RF": 60},
    n_replicates={"KRBF": 2, "MLP": 2, "RF": 2},
    n_orders=1,
    n_coverage=10,
    n_covered=60,
    n_new=200,
    ratios=(0.0, 6.0),
    main=(("i", "KRBF"),),
)
_SCORES: Final = ((refits, "set_scores"),)


def _small(make: Callable[[Scale], PaperFigure]) -> Thinned:
    """The first panel of the same figure with few replicates and patches."""

    def thinned(figure: PaperFigure) -> PaperFigure:
        del figure
        return panels(0)(make(_SCALE))

    return thinned


def _of_estimates(
    change: Callable[[Values], Values],
) -> Callable[[dict[str, Values]], dict[str, Values]]:
    def changed(fields: dict[str, Values]) -> dict[str, Values]:
        return {**fields, "scores": change(fields["scores"])}

    return changed


def _of_each(change: Callable[[Values], Values]) -> Callable[[dict[str, Any]], Any]:
    def changed(scores: dict[str, Values]) -> dict[str, Values]:
        return {name: change(own) for name, own in scores.items()}

    return changed


ILOCO_MISTAKES: Final = (
    Mistake(
        name="scores with the other sign",
        places=_SCORES,
        change=_of_estimates(np.negative),
    ),
    Mistake(
        name="scores of the next pair",
        places=_SCORES,
        change=_of_estimates(lambda z: np.roll(z, 1)),
    ),
    Mistake(name="no product", places=((Simulation, "_joint"),), change=np.zeros_like),
    Mistake(
        name="scores of other methods, of the next pair",
        places=((methods, "comparison_scores"),),
        change=_of_each(lambda own: np.roll(own, 1)),
    ),
    Mistake(
        name="shares of patches × 1.01",
        places=((theory.FixedColumns, "share"),),
        change=lambda share: 1.01 * share,
    ),
    Mistake(
        name="ideal scores, each a tenth above the one before",
        places=((theory, "ideal_scores"),),
        change=lambda scores: scores + 0.1 * np.arange(1, len(scores) + 1),
    ),
    Mistake(
        name="scores of a sigmoid × 1.1",
        places=((designs, "sigmoid_score"),),
        change=lambda scores: 1.1 * scores,
    ),
    Mistake(
        name="the next place of table A1",
        places=((designs, "_place"),),
        change=lambda place: place + 1.0,
    ),
    Mistake(
        name="a precision with 1 at all ends",
        places=((simulations, "printed_precision"),),
        change=lambda precision: precision + np.eye(len(precision)),
    ),
)
"""What the figures of the paper on iLOCO have to see."""

ILOCO_GATE: Final = Gate(
    mistakes=ILOCO_MISTAKES,
    thinned={
        "fig1": _small(orders.orders_figure),
        "fig2": _small(curves.classification_figure),
        "fig3": _small(coverage.coverage_figure),
        "figA1": _small(orders.orders_forest_figure),
        "figA2": _small(curves.nonlinear_regression_figure),
        "figA3": _small(curves.linear_classification_figure),
        "figA4": _small(curves.linear_regression_figure),
        "figA5": _small(curves.correlated_figure),
        "figA6": _small(coverage.signal_coverage_figure),
        "errors": panels(0, 1, 2, 3, 4),
    },
    left_out={
        "table1": "it has times alone",
        "tables": "1500 trees for each table; scores and patches are those of fig2",
    },
    excused={
        ("fig3", "scores with the other sign"): "targets change their sign, too",
        ("figA6", "scores with the other sign"): "targets change their sign, too",
        ("fig3", "no product"): "its snr is 0",
    },
)
