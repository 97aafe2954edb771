"""Figure 4: SHAP beside the others, whole and enlarged."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from propopt.reproduce.charts import (
    add_legend,
    draw_panel,
    label_axes,
    panel_grid,
)
from propopt.reproduce.figure import SETUPS, PaperFigure
from propopt.reproduce.findings import Finding
from propopt.reproduce.laws import WITH_GRADIENTS
from propopt.reproduce.panels import Panel, Result, Solved, paper_file


FRAMES = {
    "all": ("smoothgrad", "lime", "shap output", "shap gradient"),
    "enlarged": ("smoothgrad", "lime"),
}


def figure() -> PaperFigure:
    """x³ in two set-ups."""
    return PaperFigure(
        title="SHAP beside the others",
        about=_ABOUT,
        panels=tuple(
            Panel(
                column=f"x³, {SETUPS[setup]}",
                row="",
                file=paper_file(f"fig4_cubic_{setup}"),
                laws=(*WITH_GRADIENTS, shap_is_unfaithful, shap_is_not_robust),
            )
            for setup in ("d1", "authors")
        ),
        draw=_draw,
    )


_ABOUT = """\
Exact Shapley values against the mean of the points, in output units as SHAP gives them,
and divided by x − mean, which is comparable with gradients. The lower panels leave SHAP
in output units out of the frame."""


def shap_is_unfaithful(solved: Solved) -> Finding:
    """SHAP's faithfulness loss over the largest of the others."""
    return _off_the_chart(solved, 0)


def shap_is_not_robust(solved: Solved) -> Finding:
    """SHAP's robustness loss over the largest of the others."""
    return _off_the_chart(solved, 1)


def _off_the_chart(solved: Solved, place: int) -> Finding:
    name = solved.problem.axes[place]
    losses = [
        (b.parameters.get("units") == "output", b.losses[name])
        for b in solved.trade_offs.baselines
    ]
    others = max(loss for is_shap, loss in losses if not is_shap)
    shap = max(loss for is_shap, loss in losses if is_shap)
    return Finding(
        statement=f"SHAP in output units lies off the chart: its {_plain(name)} loss "
        "over the largest of the other baselines",
        value=shap / others,
        sense=">=",
        limit=1.0,
        note=f"{shap:.4g} against {others:.4g}",
    )


def _plain(name: str) -> str:
    return "robustness" if name.endswith("robustness") else "faithfulness"


def _draw(results: Sequence[Result]) -> Figure:
    figure, grid = panel_grid(len(FRAMES), len(results), (3.6, 2.6))
    shown = set()
    for place, result in enumerate(results):
        for axes, (name, framed) in zip(grid[:, place], FRAMES.items(), strict=True):
            shown |= draw_panel(axes, result, framed)
            axes.set_title(f"{result.panel.column}: {name}", fontsize=10)
    label_axes(figure, results[0].axes)
    add_legend(figure, shown)
    return figure
