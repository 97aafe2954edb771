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
    measured_again,
    none_beats,
)
from papers.properties import held_out, induction
from papers.properties.setups import PROBLEM_FILES
from propopt.base.arrays import Array
from propopt.results.explanation import Explanation


_DIGIT = 8
"""The image that is shown is the first of it."""
_SCALES = (0.2, 0.5, 1.0)
_PAIRS = ((0.0, 0.1), (0.01, 0.0), (0.01, 0.1), (0.01, 1.0), (0.1, 1.0))
"""Weights of robustness and of smoothness whose maps are shown."""
_INDUCTIVE_PAIRS = ((0.01, 0.03), (0.1, 0.0), (0.1, 0.3))
"""The same, for optima and inductive maps side by side."""
_IMAGE, _SIDE = "image", 8
_BASELINES, _OPTIMIZED = "baselines", "optimized, all images together"
_KNOWN, _INDUCTIVE = "held out: optimized, with its gradient", "held out: inductive"


def figure_6() -> PaperFigure:
    """A network on handwritten digits."""
    statements: tuple[Statement, ...] = (
        *EVERYWHERE,
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
and ResNet-50; explained are the log-odds of an eight. Each row of maps has one scale:
red speaks for an eight, blue against. λ_r is the weight of robustness over images and
λ_s that of smoothness over neighbouring pixels. Below, maps of an image that the
network was not fitted on, as the optimum gives them with its gradient, and as they
follow without it from the gradients at the 1497 others (robustness by the precision of
a gaussian kernel of lengthscale 8)."""


def digit_maps(solved: Solved) -> Mapping[str, Array]:
    """The image, and rows of its maps: of the baselines, and of the optimum."""
    row = _row_of_digit(solved)
    (gradient,) = solved.of_method("gradient")
    smoothed = [
        baseline.attributions[row]
        for baseline in solved.of_method("smoothgrad")
        if baseline.parameters["scale"] in _SCALES
    ]
    return {
        _IMAGE: _image(solved, row),
        _BASELINES: np.stack([gradient.attributions[row], *smoothed]),
        _OPTIMIZED: _maps(solved.trade_offs.optimized, _PAIRS, row),
    }


def inductive_maps(solved: Solved) -> Mapping[str, Array]:
    """The image, and rows of its maps: of the optimum, and inductive ones."""
    row = _row_of_digit(solved)
    inductive = solved.of_method(induction.INDUCTIVE)
    return {
        _IMAGE: _image(solved, row),
        _KNOWN: _maps(solved.trade_offs.optimized, _INDUCTIVE_PAIRS, row),
        _INDUCTIVE: _maps(inductive, _INDUCTIVE_PAIRS, row),
    }


_INDUCTIVE_STATEMENTS: tuple[Statement, ...] = (
    certified,
    measured_again,
    none_beats,
    partial(held_out.inductive_loss_falls, loss="kernel_robustness"),
    partial(held_out.inductive_loss_falls, loss="smoothness"),
    held_out.is_smooth,
    held_out.beats_smoothgrad,
)


def _row_of_digit(solved: Solved) -> int:
    labels = load_digits().target[solved.problem.points.index]
    return int((labels == _DIGIT).argmax())


def _image(solved: Solved, row: int) -> Array:
    index = solved.problem.points.index  # rows of the table from scikit-learn
    return np.asarray(load_digits().images[index[row]])


def _maps(
    outcomes: Sequence[Explanation], pairs: Sequence[tuple[float, float]], row: int
) -> Array:
    """The maps (K, D) under the nearest weights; gradient matching has weight one."""
    weights = np.array([tuple(one.weights.values())[1:] for one in outcomes])
    nearest = [int(np.abs(weights - pair).sum(axis=1).argmin()) for pair in pairs]
    return np.stack([outcomes[k].attributions[row] for k in nearest])


def _titled(pair: tuple[float, float]) -> str:
    return f"$λ_r$ = {pair[0]:g}, $λ_s$ = {pair[1]:g}"


_TITLES = {
    _BASELINES: ("gradient", *(f"SmoothGrad, δ = {scale:g}" for scale in _SCALES)),
    _OPTIMIZED: tuple(map(_titled, _PAIRS)),
    _KNOWN: tuple(map(_titled, _INDUCTIVE_PAIRS)),
    _INDUCTIVE: tuple(map(_titled, _INDUCTIVE_PAIRS)),
}


def _draw(results: Sequence[PanelResult]) -> Figure:
    figure = Figure(figsize=(13.0, 5.6 * len(results)), layout="constrained")
    parts = figure.subfigures(len(results), 1, squeeze=False).ravel()
    for part, result in zip(parts, results, strict=True):
        _draw_maps(part, result.pictures)
    return figure


def _draw_maps(part: SubFigure, pictures: Mapping[str, Array]) -> None:
    """The image at the left, and beside it rows of maps with a scale each."""
    left, right = part.subfigures(1, 2, width_ratios=[1.0, 4.2], squeeze=False)[0]
    axes = left.subplots()
    axes.imshow(pictures[_IMAGE], cmap="gray_r")
    _bare(axes, _IMAGE)
    names = [name for name in pictures if name != _IMAGE]
    parts = right.subfigures(len(names), 1, squeeze=False).ravel()
    for rows, name in zip(parts, names, strict=True):
        maps = pictures[name]
        largest = float(np.abs(maps).max())
        grid = rows.subplots(1, len(maps), squeeze=False)[0]
        for axes, picture, title in zip(grid, maps, _TITLES[name], strict=True):
            shown = axes.imshow(
                picture.reshape(_SIDE, _SIDE),
                cmap="RdBu_r",
                vmin=-largest,
                vmax=largest,
            )
            _bare(axes, title)
        rows.colorbar(shown, ax=grid, shrink=0.8)
        rows.suptitle(name, fontsize=11)


def _bare(axes: Axes, title: str) -> None:
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize=10)
    axes.spines[:].set_color("0.8")
