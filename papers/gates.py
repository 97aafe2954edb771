"""The gate of each paper: which errors its figures have to see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from papers.engine.figure import PaperFigure
from papers.engine.gate import Gate, panels
from papers.iloco.gate import ILOCO_GATE
from papers.lime.gate import lime_gate
from papers.properties.gate import PROPERTIES_GATE
from papers.registry import find_paper


_FIRST: Final = panels(0)

_READ_FOREST = "the forest as it was read is the forest on 200 texts"
_READ_WORDS = "f of words is the model on 200 texts"
_BEFORE = "of the model as it was read, before anything is measured"

GATES: Final[dict[str, Gate]] = {
    "properties": PROPERTIES_GATE,
    "iloco": ILOCO_GATE,
    "tabular-lime": lime_gate(
        {
            "fig2": panels(0, 1),
            "fig3": panels(0, 2),
            "fig4": _FIRST,
            "fig5": panels(0, 2),
            "fig6": panels(0, 1),
            "fig7": _FIRST,
            "fig8": _FIRST,
            "fig9": _FIRST,
            "fig10": panels(0, 1),
            "fig11": _FIRST,
            "fig12": _FIRST,
            "fig13": panels(0, 1),
            "fig14": _FIRST,
            "fig15": _FIRST,
            "fig16": _FIRST,
            "box": panels(0, 1),
            "theory": panels(0, 1, 2),
            "errors": panels(0, 1, 2, 3, 4),
        },
        excused={
            ("fig2", "the kernel twice"): "it shows samples, without their weights",
            ("fig2", "bits of another sample"): "it shows samples, without their bits",
            ("fig7", "no intercept"): "coefficients alone are kept",
            ("fig9", "columns of limits permuted"): "there is one column",
        },
        apart={
            ("fig6", "f is another: its difference"): "of f itself at two rows",
        },
    ),
    "linear-lime": lime_gate(
        {
            "fig2": _FIRST,
            "fig3": _FIRST,
            "fig4": _FIRST,
            "fig5": _FIRST,
            "fig6": _FIRST,
            "fig7": _FIRST,
            "fig8": panels(0, 1),
            "errors": panels(0, 1, 2, 3),
        },
        excused={
            ("fig2", "columns of limits permuted"): "there is one column",
            ("errors", "samples × 1.1"): "it is of bits and weights of the draws",
        },
        apart={
            (
                "fig3",
                "bins that end elsewhere: largest difference",
            ): "of the bins of a law, without draws",
            (
                "errors",
                "figures 4 and 7 have one set-up: distance of the critical width of "
                "the row of figure 4 from 0.53",
            ): "no width is critical at that row, so the distance is infinite",
        },
    ),
    "text-lime": lime_gate(
        {
            "fig1": _FIRST,
            "fig2": _FIRST,
            "fig3": _FIRST,
            "fig4": _FIRST,
            "fig5": _FIRST,
            "fig6": _FIRST,
            "fig7": _FIRST,
            "fig9": panels(0, 1),
            "fig12": _FIRST,
            "fig13": panels(0, 1),
            "fig14": _FIRST,
            "fig15": _FIRST,
            "fig16": panels(0, 1),
            "fig17": _FIRST,
            "rule": panels(0, 1, 2),
            "bounds": panels(0, 1, 2),
            "errors": panels(0, 1),
        },
        left_out={
            "package": "runs of the package itself, ten seconds each; as fig6 and fig7"
        },
        excused={("fig4", "bits of another sample"): "bits alone are drawn there"},
        apart={
            (
                "errors",
                "Eq. 39: β_0 = 2 E f − (3/d) Σ_k E[f | k kept] as printed, of f = 1: "
                "difference from β_0 = 1",
            ): "arithmetic of the printed formula",
            (
                "fig3",
                "weights of draws are those of the package with kernel width 25: "
                "largest difference",
            ): "of a formula and the package, of no run",
            (
                "fig3",
                "ψ → 0 for ν → ∞ (as printed): ψ(1/2) at ν = 1000",
            ): "arithmetic of the printed formula",
            (
                "fig9",
                "α_0, ..., α_5, c_d, σ / c_d of d = 29, ν = 0.25 are known: largest "
                "difference",
            ): "arithmetic of formulas, of no run",
            **{
                (figure, f"{_READ_FOREST}: largest difference"): _BEFORE
                for figure in ("fig1", "fig5")
            },
            **{
                (figure, f"{_READ_WORDS}: largest difference"): _BEFORE
                for figure in ("fig7", "fig15", "fig16", "fig17")
            },
            (
                "bounds",
                "Theorem 2 asks for 4.6e95 samples: decimal digits: largest difference",
            ): "arithmetic of the printed formula",
        },
    ),
}


def figures_in_turn(
    names: Sequence[str], turn: int = 0, turns: int = 1
) -> Iterator[tuple[str, Mapping[str, Callable[[], PaperFigure]]]]:
    """Every so many figures of these papers, from one on.

    Parameters
    ----------
    names : sequence of str
        The papers.
    turn, turns : int
        The first of the figures, counted over all papers, and the step.
    """
    pairs = [(name, figure) for name in names for figure in GATES[name].thinned]
    chosen = pairs[turn::turns]
    for name in names:
        made = find_paper(name).figures
        yield name, {figure: made[figure] for paper, figure in chosen if paper == name}
