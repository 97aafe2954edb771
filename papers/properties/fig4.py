"""Figure 4: SHAP beside the others, whole and enlarged."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from papers.engine.charts import add_legend, draw_panel, label_axes, panel_grid
from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Invariant
from papers.engine.panels import ClaimStatement, Panel, PanelResult, Solved, Statement
from papers.engine.statements import EVERYWHERE, give_away
from papers.properties.setups import DIFFERENCES, PROBLEM_FILES, SETUPS
from propopt.base.arrays import Array
from propopt.results.explanation import Explanation


_FRAMES = {
    "all": ("smoothgrad", "lime", "shap output", "shap gradient"),
    "enlarged": ("smoothgrad", "lime"),
}


def figure_4() -> PaperFigure:
    """x³ in two set-ups."""
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
            for setup in ("d1", "authors")
        ),
        draw=_draw,
    )


_ABOUT = """\
Exact Shapley values against the mean of the points, in output units as SHAP gives them,
and divided by x − mean, which is comparable with gradients. The lower panels leave SHAP
in output units out of the frame."""


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


def shap_is_unfaithful(solved: Solved, *, difference: str = "") -> Claim:
    """No optimum is less faithful than the best constant."""
    G = np.asarray(solved.problem.function.gradient(solved.problem.points))
    constant = np.broadcast_to(G.mean(axis=0), G.shape)
    return _off_the_chart(solved, 0, constant, difference)


def shap_is_not_robust(solved: Solved, *, difference: str = "") -> Claim:
    """No optimum is less robust than the gradient."""
    G = np.asarray(solved.problem.function.gradient(solved.problem.points))
    return _off_the_chart(solved, 1, G, difference)


def _off_the_chart(solved: Solved, place: int, end: Array, difference: str) -> Claim:
    """SHAP's loss over the largest on the chart, where the front has this end."""
    loss = solved.problem.objective.losses[place]
    shap = _in_output_units(solved)
    others = [b for b in solved.trade_offs.baselines if b not in shap]
    chart = max(loss.value(end), *(b.losses[loss.name] for b in others))
    largest = max(b.losses[loss.name] for b in shap)
    return Claim(
        statement=f"SHAP in output units lies off the chart: its {_plain(loss.name)} "
        "loss over the largest of all optima and of the other baselines",
        value=largest / chart,
        sense=">=",
        limit=1.0,
        note=f"{largest:.4g} against {chart:.4g}",
        difference=difference,
    )


def _in_output_units(solved: Solved) -> list[Explanation]:
    shap = solved.of_method("shap")
    return [b for b in shap if b.parameters.get("units") == "output"]


def _plain(name: str) -> str:
    return "robustness" if name.endswith("robustness") else "faithfulness"


def _statements(setup: str) -> tuple[Statement, ...]:
    claims: tuple[ClaimStatement, ...] = (
        shap_is_unfaithful,
        shap_is_not_robust,
        give_away,
    )
    statements = (partial(claim, difference=DIFFERENCES[setup]) for claim in claims)
    return (*EVERYWHERE, shap_has_its_closed_form, *statements)


def _draw(results: Sequence[PanelResult]) -> Figure:
    figure, grid = panel_grid(len(_FRAMES), len(results), (3.6, 2.6))
    looks = set()
    for place, result in enumerate(results):
        for axes, (name, methods) in zip(grid[:, place], _FRAMES.items(), strict=True):
            looks |= draw_panel(axes, result, methods)
            axes.set_title(f"{result.panel.column}: {name}", fontsize=10)
    label_axes(figure, results[0].axes)
    add_legend(figure, looks)
    return figure
