"""Figure 6: maps of images under pairs of robustness and smoothness weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from sklearn.datasets import load_digits

from propopt._typing import Array
from propopt.reproduce import held_out, induction
from propopt.reproduce.figure import KERNEL_ITSELF, PaperFigure
from propopt.reproduce.laws import (
    EVERYWHERE,
    certified,
    falls_with_its_weight,
    give_away,
    none_beats,
)
from propopt.reproduce.panels import Law, Panel, Result, Solved, paper_file
from propopt.results.explanation import Explanation


DIGITS = (8, 3, 9, 5, 0, 1)
"""One image of each is shown."""
SCALES = (0.2, 0.5, 1.0)
PAIRS = ((0.0, 0.1), (0.01, 0.0), (0.01, 0.1), (0.01, 1.0), (0.1, 1.0))
"""Weights of robustness and of smoothness whose maps are shown."""
INDUCTIVE_PAIRS = ((0.01, 0.03), (0.1, 0.0), (0.1, 0.3))
"""The same, for optima and inductive maps side by side."""
NETWORK = "digits and a small network instead of ImageNet and ResNet-50"
IMAGE, SIDE = "image", 8


def figure() -> PaperFigure:
    """A network on handwritten digits."""
    laws: tuple[Law, ...] = (
        *EVERYWHERE,
        partial(give_away, difference=f"{NETWORK}; {KERNEL_ITSELF}"),
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
            Panel(
                column="held-out digits",
                row="",
                file=paper_file("fig6_digits_inductive"),
                laws=INDUCTIVE_LAWS,
                pictures=inductive_maps,
                distances=induction.distances,
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


def maps(solved: Solved) -> Mapping[str, Array]:
    """One image of each digit and its maps, by the titles of columns."""
    return {
        **_known_maps(solved, SCALES),
        **{
            _titled(pair): _optimum(solved.trade_offs.optimized, pair, solved)
            for pair in PAIRS
        },
    }


def inductive_maps(solved: Solved) -> Mapping[str, Array]:
    """The same with inductive maps, beside the optima of their weights."""
    found = _known_maps(solved, SCALES[1:])
    for pair in INDUCTIVE_PAIRS:
        for name, given in (
            ("optimum", solved.trade_offs.optimized),
            ("inductive", solved.of_method(induction.INDUCTIVE)),
        ):
            found[f"{name}\n{_titled(pair)}"] = _optimum(given, pair, solved)
    return found


INDUCTIVE_LAWS: tuple[Law, ...] = (
    certified,
    none_beats,
    partial(held_out.falls_with_its_weight, loss="kernel_robustness"),
    partial(held_out.falls_with_its_weight, loss="smoothness"),
    held_out.is_smooth,
    held_out.beats_smoothgrad,
)


def _known_maps(solved: Solved, scales: Sequence[float]) -> dict[str, Array]:
    """Images, gradients and SmoothGrad."""
    digits = load_digits()
    index = solved.problem.points.index  # rows of the table from scikit-learn
    shown = _shown(solved)
    found = {IMAGE: digits.images[index[shown]]}
    for baseline in solved.trade_offs.baselines:
        scale = baseline.parameters.get("scale")
        if baseline.method == "gradient":
            found["gradient"] = baseline.attributions[shown]
        elif scale in scales:
            found[f"SmoothGrad\nδ = {scale:g}"] = baseline.attributions[shown]
    return found


def _shown(solved: Solved) -> list[int]:
    labels = load_digits().target[solved.problem.points.index]
    return [int((labels == digit).argmax()) for digit in DIGITS]


def _optimum(
    given: Sequence[Explanation], pair: tuple[float, float], solved: Solved
) -> Array:
    """The maps under a pair of weights; gradient matching has weight one."""
    (found,) = (e for e in given if tuple(e.weights.values())[1:] == pair)
    return found.attributions[_shown(solved)]


def _titled(pair: tuple[float, float]) -> str:
    return f"$λ_r$ = {pair[0]:g}\n$λ_s$ = {pair[1]:g}"


def _draw(results: Sequence[Result]) -> Figure:
    n_columns = max(len(result.pictures) for result in results)
    height = (1.1 * len(DIGITS) + 1.0) * len(results)
    figure = Figure(figsize=(1.15 * n_columns, height), layout="constrained")
    parts = figure.subfigures(len(results), 1, squeeze=False).ravel()
    for part, result in zip(parts, results, strict=True):
        _draw_maps(part, result.pictures, n_columns)
    return figure


def _draw_maps(part: SubFigure, pictures: Mapping[str, Array], n_columns: int) -> None:
    grid = part.subplots(len(DIGITS), n_columns, squeeze=False)
    for axes in grid[:, len(pictures) :].ravel():
        axes.set_visible(False)
    for place, (title, maps_of_column) in enumerate(pictures.items()):
        grid[0, place].set_title(title, fontsize=10)
        for axes, picture in zip(grid[:, place], maps_of_column, strict=True):
            _draw_picture(axes, title, picture.reshape(SIDE, SIDE))


def _draw_picture(axes: Axes, title: str, picture: Array) -> None:
    if title == IMAGE:
        axes.imshow(picture, cmap="gray_r")
    else:
        largest = float(np.abs(picture).max())
        axes.imshow(picture, cmap="RdBu_r", vmin=-largest, vmax=largest)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color("0.8")
