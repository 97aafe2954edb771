"""Figure 4: SHAP beside the others, whole and enlarged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from papers.engine.charts import (
    Frame,
    add_legend,
    draw_panel,
    label_axes,
    linear,
    logarithmic,
    panel_grid,
)
from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant
from papers.engine.panels import Panel, PanelResult, Solved, Statement
from papers.engine.statements import EVERYWHERE, trades_off
from papers.properties.limits import cubic, sampled_as_known
from papers.properties.setups import DIFFERENCES, PROBLEM_FILES, ROBUSTNESS, SETUPS
from propopt.base.arrays import Array
from propopt.results.explanation import Explanation


_NEAR = ("smoothgrad", "lime")
_ALL = (*_NEAR, "shap output", "shap gradient")
_FRAMES: Mapping[str, tuple[Sequence[str], Frame]] = {
    "all": (_ALL, linear),
    "enlarged": (_NEAR, linear),
    "logarithmic": (_ALL, logarithmic),
}


def figure_4() -> PaperFigure:
    """x³ in three set-ups."""
    return PaperFigure(
        title="SHAP beside the others",
        about=_ABOUT,
        panels=tuple(
            Panel(
                column=f"x³, {SETUPS[setup]}",
                row="",
                problem=PROBLEM_FILES.path(f"fig4_cubic_{setup}"),
                statements=_statements(setup),
            )
            for setup in ("d1", "p1", "authors")
        ),
        draw=_draw,
    )


_ABOUT = """\
Exact Shapley values against the mean of the points, in output units as SHAP gives them,
and divided by x − mean, which is comparable with gradients. Above in linear axes, as
in the paper, with its enlargement, which leaves SHAP in output units out of the
frame."""


def shap_has_its_closed_form(solved: Solved) -> Invariant:
    """Shapley values of Σ x_d³ against the points' mean are x³ − mean³."""
    X = np.asarray(solved.problem.points, float)
    exact = X**3 - X.mean(axis=0) ** 3
    (shap,) = _in_output_units(solved)
    errors = np.abs(shap.attributions - exact)
    return Invariant(
        statement="x³: SHAP in output units is x³ − mean³: largest difference, of the "
        "largest",
        value=float(errors.max() / np.abs(exact).max()),
        sense="<=",
        limit=1e-9,
    )


def shap_is_unfaithful(solved: Solved) -> Claim:
    """Neither an optimum nor a limit of LIME or SmoothGrad is so unfaithful.

    No optimum is less faithful than the best constant.
    """
    X = np.asarray(solved.problem.points, float)
    constant = np.broadcast_to(cubic(X, 0.0).mean(axis=0), X.shape)
    scales = [float(b.parameters.get("scale") or 0.0) for b in _others(solved)]
    return _off_the_chart(solved, 0, (constant, cubic(X, max(scales))))


def shap_is_not_robust(solved: Solved, *, difference: str = "") -> Claim:
    """Neither an optimum nor a limit of LIME or SmoothGrad is so little robust.

    No optimum is less robust than the gradient, and limits differ from it by 3δ², which
    robustness does not see: what LIME has beyond is the noise of its draws.
    """
    X = np.asarray(solved.problem.points, float)
    claim = _off_the_chart(solved, 1, (cubic(X, 0.0),))
    return replace(claim, difference=difference, choice="limits of LIME and SmoothGrad")


def shap_is_less_robust_than_draws(solved: Solved, *, difference: str = "") -> Claim:
    """The paper draws samples, and their noise counts as a lack of robustness."""
    X = np.asarray(solved.problem.points, float)
    claim = _off_the_chart(solved, 1, (cubic(X, 0.0),), sampled=())
    return replace(claim, difference=difference, choice="draws, as in the figure")


def _off_the_chart(
    solved: Solved,
    place: int,
    ends: Sequence[Array],
    sampled: Sequence[str] = ("smoothgrad", "lime"),
) -> Claim:
    """SHAP's loss over the largest on the chart: ends of the front and limits."""
    loss = solved.problem.objective.losses[place]
    exact = [b for b in _others(solved) if b.method not in sampled]
    chart = max(
        *(loss.value(end) for end in ends), *(b.losses[loss.name] for b in exact)
    )
    largest = max(b.losses[loss.name] for b in _in_output_units(solved))
    return Claim(
        statement=f"SHAP in output units lies off the chart: its {_plain(loss.name)} "
        "loss over the largest of all optima and of other baselines",
        value=largest / chart,
        sense=">=",
        limit=1.0,
        note=f"{largest:.4g} against {chart:.4g}",
    )


def _others(solved: Solved) -> list[Explanation]:
    shap = _in_output_units(solved)
    return [b for b in solved.trade_offs.baselines if b not in shap]


def _in_output_units(solved: Solved) -> list[Explanation]:
    shap = solved.of_method("shap")
    return [b for b in shap if b.parameters.get("units") == "output"]


def _plain(name: str) -> str:
    return "robustness" if name.endswith("robustness") else "faithfulness"


def _statements(setup: str) -> tuple[Statement, ...]:
    return (
        *EVERYWHERE,
        partial(trades_off, loss=ROBUSTNESS[setup]),
        partial(sampled_as_known, function="cubic"),
        shap_has_its_closed_form,
        shap_is_unfaithful,
        partial(shap_is_not_robust, difference=DIFFERENCES[setup]),
        partial(shap_is_less_robust_than_draws, difference=DIFFERENCES[setup]),
    )


def _draw(results: Sequence[PanelResult]) -> Figure:
    figure, grid = panel_grid(len(_FRAMES), len(results), (3.6, 2.6))
    looks = set()
    for place, result in enumerate(results):
        for axes, (name, own) in zip(grid[:, place], _FRAMES.items(), strict=True):
            looks |= draw_panel(axes, result, *own)
            axes.set_title(f"{result.panel.column}: {name}", fontsize=10)
    label_axes(figure, results[0].axes)
    add_legend(figure, looks)
    return figure
