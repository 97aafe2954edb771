"""Figure 6: maps of images under pairs of robustness and smoothness weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from sklearn.datasets import load_digits

from papers.engine.figure import PaperFigure
from papers.engine.panels import Panel, PanelResult, Solved, Statement
from papers.engine.statements import (
    EVERYWHERE,
    certified,
    falls_with_its_weight,
    give_away,
    none_beats,
)
from papers.properties import held_out, induction
from papers.properties.setups import KERNEL_ITSELF, PROBLEM_FILES
from propopt.base.arrays import Array
from propopt.results.explanation import Explanation


_DIGITS = (8, 3, 9, 5, 0, 1)
"""One image of each is shown."""
_SCALES = (0.2, 0.5, 1.0)
_PAIRS = ((0.0, 0.1), (0.01, 0.0), (0.01, 0.1), (0.01, 1.0), (0.1, 1.0))
"""Weights of robustness and of smoothness whose maps are shown."""
_INDUCTIVE_PAIRS = ((0.01, 0.03), (0.1, 0.0), (0.1, 0.3))
"""The same, for optima and inductive maps side by side."""
_NETWORK = "digits and a small network instead of ImageNet and ResNet-50"
_IMAGE, _SIDE = "image", 8


def figure_6() -> PaperFigure:
    """A network on handwritten digits."""
    statements: tuple[Statement, ...] = (
        *EVERYWHERE,
        partial(give_away, difference=f"{_NETWORK}; {KERNEL_ITSELF}"),
        partial(falls_with_its_weight, loss="pairwise_robustness"),
        partial(falls_with_its_weight, loss="smoothness"),
    )
    return PaperFigure(
        title="Maps of images under pairs of robustness and smoothness weights",
        about=_ABOUT,
        panels=(
            Panel(
                column="digits",
                row="",
                problem=PROBLEM_FILES.path("fig6_digits"),
                statements=statements,
                pictures=digit_maps,
            ),
            Panel(
                column="held-out digits",
                row="",
                problem=PROBLEM_FILES.path("fig6_digits_inductive"),
                statements=_INDUCTIVE_STATEMENTS,
                pictures=inductive_maps,
                distances=induction.inductive_distances,
            ),
        ),
        draw=_draw,
    )


_ABOUT = """\
scikit-learn's 8 × 8 digits and a network with two hidden layers, in place of ImageNet
and ResNet-50; explained are the log-odds of an eight. Each map has a scale of its own:
red speaks for an eight, blue against. λ_r is the weight of robustness over images and
λ_s that of smoothness over neighbouring pixels. Below, maps of images that the network
was not fitted on, as the optimum gives them with their gradients, and as they follow
without these from the gradients at the 1497 others (robustness by the precision of a
gaussian kernel of lengthscale 8)."""


def digit_maps(solved: Solved) -> Mapping[str, Array]:
    """One image of each digit and its maps, by the titles of columns."""
    return {
        **_maps_of_baselines(solved, _SCALES),
        **{
            _titled(pair): _optimum(solved.trade_offs.optimized, pair, solved)
            for pair in _PAIRS
        },
    }


def inductive_maps(solved: Solved) -> Mapping[str, Array]:
    """The same with inductive maps, beside the optima of their weights."""
    pictures = _maps_of_baselines(solved, _SCALES[1:])
    for pair in _INDUCTIVE_PAIRS:
        for name, outcomes in (
            ("optimum", solved.trade_offs.optimized),
            ("inductive", solved.of_method(induction.INDUCTIVE)),
        ):
            pictures[f"{name}\n{_titled(pair)}"] = _optimum(outcomes, pair, solved)
    return pictures


_INDUCTIVE_STATEMENTS: tuple[Statement, ...] = (
    certified,
    none_beats,
    partial(held_out.inductive_loss_falls, loss="kernel_robustness"),
    partial(held_out.inductive_loss_falls, loss="smoothness"),
    held_out.is_smooth,
    held_out.beats_smoothgrad,
)


def _maps_of_baselines(solved: Solved, scales: Sequence[float]) -> dict[str, Array]:
    """Images, gradients and SmoothGrad."""
    digits = load_digits()
    index = solved.problem.points.index  # rows of the table from scikit-learn
    rows = _rows_of_digits(solved)
    pictures = {_IMAGE: digits.images[index[rows]]}
    for baseline in solved.trade_offs.baselines:
        scale = baseline.parameters.get("scale")
        if baseline.method == "gradient":
            pictures["gradient"] = baseline.attributions[rows]
        elif scale in scales:
            pictures[f"SmoothGrad\nδ = {scale:g}"] = baseline.attributions[rows]
    return pictures


def _rows_of_digits(solved: Solved) -> list[int]:
    labels = load_digits().target[solved.problem.points.index]
    return [int((labels == digit).argmax()) for digit in _DIGITS]


def _optimum(
    outcomes: Sequence[Explanation], pair: tuple[float, float], solved: Solved
) -> Array:
    """The maps under a pair of weights; gradient matching has weight one."""
    (outcome,) = (e for e in outcomes if tuple(e.weights.values())[1:] == pair)
    return outcome.attributions[_rows_of_digits(solved)]


def _titled(pair: tuple[float, float]) -> str:
    return f"$λ_r$ = {pair[0]:g}\n$λ_s$ = {pair[1]:g}"


def _draw(results: Sequence[PanelResult]) -> Figure:
    n_columns = max(len(result.pictures) for result in results)
    height = (1.1 * len(_DIGITS) + 1.0) * len(results)
    figure = Figure(figsize=(1.15 * n_columns, height), layout="constrained")
    parts = figure.subfigures(len(results), 1, squeeze=False).ravel()
    for part, result in zip(parts, results, strict=True):
        _draw_maps(part, result.pictures, n_columns)
    return figure


def _draw_maps(part: SubFigure, pictures: Mapping[str, Array], n_columns: int) -> None:
    grid = part.subplots(len(_DIGITS), n_columns, squeeze=False)
    for axes in grid[:, len(pictures) :].ravel():
        axes.set_visible(False)
    for place, (title, maps_of_column) in enumerate(pictures.items()):
        grid[0, place].set_title(title, fontsize=10)
        for axes, picture in zip(grid[:, place], maps_of_column, strict=True):
            _draw_picture(axes, title, picture.reshape(_SIDE, _SIDE))


def _draw_picture(axes: Axes, title: str, picture: Array) -> None:
    if title == _IMAGE:
        axes.imshow(picture, cmap="gray_r")
    else:
        largest = float(np.abs(picture).max())
        axes.imshow(picture, cmap="RdBu_r", vmin=-largest, vmax=largest)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color("0.8")
