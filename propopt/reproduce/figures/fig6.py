"""Figure 6: maps of images under pairs of robustness and smoothness weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from propopt._typing import Array
from propopt.reproduce.figure import PaperFigure
from propopt.reproduce.laws import WITH_GRADIENTS, falls_with_its_weight
from propopt.reproduce.panels import Law, Panel, Result, Solved, paper_file


DIGITS = (8, 3, 9, 5, 0, 1)
"""One image of each is shown."""
SCALES = (0.2, 0.5, 1.0)
PAIRS = ((0.0, 0.1), (0.01, 0.0), (0.01, 0.1), (0.01, 1.0), (0.1, 1.0))
"""Weights of robustness and of smoothness whose maps are shown."""
IMAGE, SIDE = "image", 8


def figure() -> PaperFigure:
    """A network on handwritten digits."""
    laws: tuple[Law, ...] = (
        *WITH_GRADIENTS,
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
                file=paper_file("fig6_digits"),
                laws=laws,
                pictures=maps,
            ),
        ),
        draw=_draw,
    )


_ABOUT = """\
scikit-learn's 8 × 8 digits and a network with two hidden layers, in place of ImageNet
and ResNet-50; explained are the log-odds of an eight. Each map has a scale of its own:
red speaks for an eight, blue against. λ_r is the weight of robustness over images and
λ_s that of smoothness over neighbouring pixels. The inductive half of the figure is not
part of this."""


def maps(solved: Solved) -> Mapping[str, Array]:
    """One image of each digit and its maps, by the titles of columns."""
    digits = load_digits()
    index = solved.problem.points.index  # rows of the table from scikit-learn
    shown = [int((digits.target[index] == digit).argmax()) for digit in DIGITS]
    found = {IMAGE: digits.images[index[shown]]}
    for baseline in solved.trade_offs.baselines:
        scale = baseline.parameters.get("scale")
        if baseline.method == "gradient":
            found["gradient"] = baseline.attributions[shown]
        elif scale in SCALES:
            found[f"SmoothGrad\nδ = {scale:g}"] = baseline.attributions[shown]
    optima = {
        (best.weights["pairwise_robustness"], best.weights["smoothness"]): best
        for best in solved.trade_offs.optimized
    }
    for robust, smooth in PAIRS:
        title = f"$λ_r$ = {robust:g}\n$λ_s$ = {smooth:g}"
        found[title] = optima[robust, smooth].attributions[shown]
    return found


def _draw(results: Sequence[Result]) -> Figure:
    pictures = results[0].pictures
    figure = Figure(
        figsize=(1.15 * len(pictures), 1.1 * len(DIGITS) + 0.7), layout="constrained"
    )
    grid = figure.subplots(len(DIGITS), len(pictures), squeeze=False)
    for place, (title, maps_of_column) in enumerate(pictures.items()):
        grid[0, place].set_title(title, fontsize=10)
        for axes, picture in zip(grid[:, place], maps_of_column, strict=True):
            _draw_picture(axes, title, picture.reshape(SIDE, SIDE))
    return figure


def _draw_picture(axes: Axes, title: str, picture: Array) -> None:
    if title == IMAGE:
        axes.imshow(picture, cmap="gray_r")
    else:
        largest = float(np.abs(picture).max())
        axes.imshow(picture, cmap="RdBu_r", vmin=-largest, vmax=largest)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color("0.8")
