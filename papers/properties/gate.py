"""Deliberate errors in optima, baselines, weights and enclosures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy, deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from papers.engine.figure import AnyPanel
from papers.engine.frontier import Enclosure, Frontier
from papers.engine.gate import Gate, Mistake, panels
from papers.engine.panels import Panel
from papers.properties import errors
from papers.properties.trends import Trends
from propopt.base.arrays import Array
from propopt.explaining.explainers import Lime, Shap, SmoothGrad
from propopt.explaining.explainers.baseline import Findings
from propopt.explaining.trade_offs import TradeOffs
from propopt.losses import Objective
from propopt.problems import Problem, read_problem, read_sections
from propopt.results.explanation import Explanation


_Change: TypeAlias = Callable[[Array], Array]
_SWEEP: Final = ((Problem, "sweep"),)
_BASELINES: Final = ((Problem, "baselines"),)
_DRAWS, _WEIGHTS, _POINTS, _COUNTS = 200, 5, 100, (10, 30, 60, 100)


# ---- cheap copies of panels


def cheap(panel: AnyPanel) -> AnyPanel:
    """The same with fewer weights, draws, points and repetitions."""
    if not isinstance(panel, Panel) or not isinstance(panel.problem, Path):
        return panel
    sections = deepcopy(read_problem(panel.problem).source.content)
    for loss, weights in sections.get("sweep", {}).items():
        if isinstance(weights, dict):
            sections["sweep"][loss] = {**weights, "points": _WEIGHTS}
    for baseline in sections.get("baselines", []):
        if "n_samples" in baseline:
            baseline["n_samples"] = _DRAWS
    data = sections["data"]
    if "uniform" in data:
        data["uniform"]["points"] = _POINTS * data["uniform"]["points"] // 1000
        if "explain" in data:
            data["explain"] = _POINTS
    for inducing in sections.get("inductive", {}).get("inducing", []):
        inducing["counts"] = list(_COUNTS)
    if "model" in sections:
        sections["model"]["hidden"] = [8]
        data["explain"] = 40
    problem = read_sections(sections, name=panel.problem.stem)
    return replace(panel, problem=problem, seeds=panel.seeds[:1])


# ---- errors


def _of_optima(change: _Change) -> Callable[[TradeOffs], TradeOffs]:
    """A change of attributions after they were certified."""

    def changed(trade_offs: TradeOffs) -> TradeOffs:
        optima = [_with(best, change) for best in trade_offs.optimized]
        return replace(trade_offs, optimized=tuple(optima))

    return changed


def _of_baselines(
    change: _Change,
) -> Callable[[Iterable[Explanation]], Iterator[Explanation]]:
    """A change of attributions before they are measured."""

    def changed(baselines: Iterable[Explanation]) -> Iterator[Explanation]:
        return (_with(one, change) for one in baselines)

    return changed


def _with(one: Explanation, change: _Change) -> Explanation:
    return replace(one, attributions=change(one.attributions))


def _of_findings(change: _Change) -> Callable[[Findings], Findings]:
    """A change of what a method finds."""

    def changed(findings: Findings) -> Findings:
        return replace(findings, attributions=change(findings.attributions))

    return changed


def _next_row(W: Array) -> Array:
    return np.roll(W, 1, axis=0)


def _times(factor: float) -> _Change:
    return lambda W: factor * W


def _swept_weights(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Weights that are swept, ten per cent larger."""
    problem = copy(arguments[0])
    problem.weights = {
        name: [1.1 * weight for weight in weights]
        for name, weights in problem.weights.items()
    }
    return (problem, *arguments[1:])


def _fixed_weights(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Weights that are not, but for the first, which is the unit of others."""
    problem = copy(arguments[0])
    first, *others = problem._whole.terms  # noqa: SLF001
    fixed = [
        (weight if loss.name in problem.weights else 1.1 * weight, loss)
        for weight, loss in others
    ]
    vars(problem)["_whole"] = Objective((first, *fixed))
    return (problem, *arguments[1:])


def _losses_off(trade_offs: TradeOffs) -> TradeOffs:
    """Losses of optima, a thousandth larger than their attributions have them."""
    optima = [
        replace(best, losses={name: 1.001 * x for name, x in best.losses.items()})
        for best in trade_offs.optimized
    ]
    return replace(trade_offs, optimized=tuple(optima))


def _bounds_off(trade_offs: TradeOffs) -> TradeOffs:
    """Lower bounds of optima, a per cent smaller than they are proved."""
    optima = [
        replace(
            best,
            certificate=best.certificate
            and replace(
                best.certificate, lower_bound=0.99 * best.certificate.lower_bound
            ),
        )
        for best in trade_offs.optimized
    ]
    return replace(trade_offs, optimized=tuple(optima))


def _enclosed_above(enclosure: Enclosure) -> Enclosure:
    """The best loss, a tenth of that of the baseline too high."""
    return replace(enclosure, upper=enclosure.upper + 0.1 * enclosure.cost)


_OPTIMA: Final[Mapping[str, _Change]] = {
    "× 1.5": _times(1.5),
    "× 1.001": _times(1.001),
    "of the next row": _next_row,
    "of zero": np.zeros_like,
    "with the other sign": np.negative,
}
_OTHERS: Final[Mapping[str, _Change]] = {
    "× 1.1": _times(1.1),
    "of the next row": _next_row,
    "with the other sign": np.negative,
}
PROPERTIES_MISTAKES: Final = (
    *(
        Mistake(
            name=f"optima {told}, certified", places=_SWEEP, change=_of_optima(change)
        )
        for told, change in _OPTIMA.items()
    ),
    Mistake(name="losses of optima × 1.001", places=_SWEEP, change=_losses_off),
    Mistake(name="lower bounds × 0.99", places=_SWEEP, change=_bounds_off),
    *(
        Mistake(
            name=f"baselines {told}", places=_BASELINES, change=_of_baselines(change)
        )
        for told, change in _OTHERS.items()
    ),
    Mistake(
        name="LIME's kernel",
        places=((Lime, "_findings"),),
        arguments=lambda own: (replace(own[0], kernel_width=own[0].scale), *own[1:]),
    ),
    Mistake(
        name="LIME's intercept",
        places=((Lime, "_findings"),),
        arguments=lambda own: (
            replace(own[0], fit_intercept=not own[0].fit_intercept),
            *own[1:],
        ),
    ),
    Mistake(
        name="SmoothGrad with 1.1 δ",
        places=((SmoothGrad, "_findings"),),
        arguments=lambda own: (replace(own[0], scale=1.1 * own[0].scale), *own[1:]),
    ),
    Mistake(
        name="SHAP × 1.1",
        places=((Shap, "_findings"),),
        change=_of_findings(_times(1.1)),
    ),
    Mistake(name="swept weights × 1.1", places=_SWEEP, arguments=_swept_weights),
    Mistake(name="fixed weights × 1.1", places=_SWEEP, arguments=_fixed_weights),
    Mistake(
        name="enclosures a tenth too high",
        places=((Frontier, "enclose"),),
        change=_enclosed_above,
    ),
    Mistake(
        name="losses of limits × 1.01",
        places=((Trends, "losses"),),
        change=lambda losses: {name: 1.01 * own for name, own in losses.items()},
    ),
    Mistake(
        name="a kernel that is not symmetric",
        places=((errors, "kernel"),),
        change=lambda K: K + 0.1 * np.eye(len(K), k=1),
    ),
    Mistake(
        name="excess × 1.01",
        places=((TradeOffs, "distances"),),
        change=lambda table: table.assign(excess=1.01 * table["excess"]),
    ),
)
"""What the figures of the paper on properties have to see."""

_ONE_WEIGHT = "no weight but the first is fixed"
PROPERTIES_GATE: Final = Gate(
    mistakes=PROPERTIES_MISTAKES,
    thinned={
        "fig1": panels(0, 24, change=cheap),
        "fig2": panels(2, change=cheap),
        "fig3": panels(0, change=cheap),
        "fig4": panels(0, change=cheap),
        "fig5": panels(0, 7, change=cheap),
        "fig6": panels(0, change=cheap),
        "appendix": panels(0, change=cheap),
        "tables": panels(2, change=cheap),
        "trends": panels(0, 5),
        "errors": panels(0, 1, 4),
    },
    excused={
        (figure, "fixed weights × 1.1"): _ONE_WEIGHT
        for figure in ("fig1", "fig3", "fig4", "fig5", "fig6", "appendix", "tables")
    },
)
