"""Interaction scores as heat maps, intervals and networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from matplotlib.axes import Axes

from propopt.base.arrays import Array, Indices, Values
from propopt.base.checks import read_count
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import matplotlib_text
from propopt.interactions.features import pairs_matrix
from propopt.interactions.inference import Adjustment
from propopt.interactions.scores import (
    InteractionScores,
    clear_scores,
    intervals_in_words,
    require_pairs,
    score_bars,
    signs_in_words,
)
from propopt.plots.attributions import (
    DIVERGING,
    LOWERS,
    RAISES,
    axes_or_new,
    hatched,
    largest,
    legend_below,
)
from propopt.plots.blocks import draw_bars
from propopt.plots.lime import shortened


def indices_of_strongest(
    result: InteractionScores, sizes: Values, n_features: int
) -> Indices:
    """Features with the largest scores of pairs, largest first; sizes (Q,)."""
    most = max(2, read_count(n_features, "n_features"))
    best = np.full(len(result.names), -1.0)
    np.maximum.at(best, result.sets, sizes[:, None])
    order = np.argsort(-best, kind="stable")
    return order[best[order] >= 0.0][:most]


def title_with_intervals(
    axes: Axes,
    result: InteractionScores,
    in_words: str,
    shown: int,
    number: int,
    noun: str,
) -> None:
    """A title with the error, the intervals, and how many scores are omitted."""
    lines = [matplotlib_text(capitalised(result.explained)), matplotlib_text(in_words)]
    if shown < number:
        lines.append(f"the {shown} strongest of {number:,} {noun}")
    axes.set_title("\n".join(lines), loc="left", fontsize="medium")


def capitalised(text: str) -> str:
    """The text with a capital first letter; other letters do not change."""
    return text[:1].upper() + text[1:]


def score_label(result: InteractionScores) -> str:
    """The label of an axis of scores, with their unit."""
    name = "LOCO score" if result.order == 1 else "iLOCO score"
    return matplotlib_text(f"{name}, in {result.units}")


_NAME_LENGTH: Final = 24
"""Characters of a name that fit below a cell."""


@suggests_arguments
def interaction_heatmap(
    result: InteractionScores,
    *,
    n_features: int = 20,
    level: float = 0.9,
    adjust: Adjustment = "bonferroni",
    ax: Axes | None = None,
) -> Axes:
    """Draw scores of pairs as a triangle of cells, the strongest features first.

    A cell shows the sign of its score, + or −, if its interval excludes zero and the
    score that a model without interactions would have. Pairs without a score are
    hatched.

    Parameters
    ----------
    result : InteractionScores
        Scores of pairs.
    n_features : int
        The number of features to draw, those with the largest scores.
    level : float
        The confidence level of the intervals.
    adjust : Adjustment
        The correction for multiple intervals, as in
        :meth:`InteractionScores.intervals`.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidInput
        If the scores are not those of pairs.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.random.default_rng(0).normal(size=(120, 3))
    >>> scheme = po.interactions.DataSplit()
    >>> pairs = po.interactions.ILOCO(DecisionTreeRegressor(), scheme)
    >>> pairs = pairs.fit(X, 3 * X[:, 0] * X[:, 1])
    >>> axes = po.plots.interaction_heatmap(pairs.result_)
    >>> print(axes.get_title(loc="left"))
    Squared error of prediction of DecisionTreeRegressor
    90 % intervals, Bonferroni of 3
    """
    above, below = clear_scores(result, level, adjust)
    require_pairs(result, "interaction_heatmap")
    signs = above.astype(np.float64) - below
    in_words = intervals_in_words(result, level, adjust)
    beyond = "zero and main effects" if _leaks(result.leak) else "zero"
    sizes = np.nan_to_num(np.abs(result.estimates))
    features = indices_of_strongest(result, sizes, n_features)
    cells = np.tril(np.ones((len(features), len(features)), dtype=bool), -1)
    scores, marks = (
        np.where(cells, matrix[np.ix_(features, features)], other)[1:, :-1]
        for matrix, other in (
            (result.matrix(), np.nan),
            (pairs_matrix(signs, result.sets, len(result.names)), 0.0),
        )
    )
    side = 1.6 + 0.42 * len(features)
    axes = axes_or_new(ax, side + 1.4, side)
    _draw(axes, scores, score_label(result))
    sizes = np.nan_to_num(np.abs(scores))
    dark = sizes > 0.55 * sizes.max()
    for row, column in np.argwhere(np.nan_to_num(marks) != 0.0):
        axes.text(  # a sign in addition to the colour
            column,
            row,
            "+" if marks[row, column] > 0 else "−",
            ha="center",
            va="center",
            weight="bold",
            color="white" if dark[row, column] else "0.15",
        )
    for row, column in np.argwhere(cells[1:, :-1] & np.isnan(scores)):
        axes.add_patch(hatched(column, row, 1, "0.8"))
    names = [
        matplotlib_text(shortened(str(result.names[j]), _NAME_LENGTH)) for j in features
    ]
    axes.set_yticks(np.arange(len(names) - 1), names[1:])
    axes.set_xticks(np.arange(len(names) - 1), names[:-1], rotation=90)
    axes.set_xlabel(f"+, −: the interval excludes {beyond}", fontsize="small")
    title_with_intervals(
        axes, result, in_words, len(names), len(result.names), "features"
    )
    return axes


def _leaks(leak: Values) -> bool:
    return bool(np.nan_to_num(leak, nan=0.0).any())


def _draw(axes: Axes, scores: Array, label: str) -> None:
    reach = float(np.nan_to_num(np.abs(scores)).max()) or 1.0
    image = axes.imshow(
        np.ma.masked_invalid(scores),
        cmap=DIVERGING,
        vmin=-reach,
        vmax=reach,
        interpolation="none",
        rasterized=True,
    )
    axes.grid(False)
    positions = np.arange(len(scores))
    axes.hlines(positions - 0.5, -0.5, positions + 0.5, color="white", linewidth=1.5)
    axes.vlines(positions + 0.5, positions - 0.5, len(scores) - 0.5, color="white")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    bar = axes.figure.colorbar(image, ax=axes)
    bar.set_label(label, fontsize="small")
    bar.outline.set_visible(False)


@suggests_arguments
def interaction_intervals(
    result: InteractionScores,
    *,
    n_sets: int = 20,
    level: float = 0.9,
    adjust: Adjustment = "bonferroni",
    ax: Axes | None = None,
) -> Axes:
    """Draw the largest scores as bars with confidence intervals.

    They are the bars of ``result.document()``, for any number of sets, level and
    correction. Orange bars are sets whose features are needed together; blue bars are
    features that can replace each other. A grey tick is the score that a model without
    interactions would have, if it is not zero.

    Parameters
    ----------
    result : InteractionScores
        Scores of sets of any size; for single features they are LOCO scores.
    n_sets : int
        The number of sets to draw, those with the largest |score|.
    level : float
        The confidence level of the intervals.
    adjust : Adjustment
        The correction for multiple intervals, which counts all scored sets, as in
        :meth:`InteractionScores.intervals`.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidInput
        If the result is not an ``InteractionScores``.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.random.default_rng(0).normal(size=(120, 3))
    >>> scheme = po.interactions.DataSplit()
    >>> pairs = po.interactions.ILOCO(DecisionTreeRegressor(), scheme)
    >>> pairs = pairs.fit(X, 3 * X[:, 0] * X[:, 1])
    >>> axes = po.plots.interaction_intervals(pairs.result_)
    >>> print(axes.get_title(loc="left"))
    Squared error of prediction of DecisionTreeRegressor
    90 % intervals, Bonferroni of 3
    """
    clear_scores(result, level, adjust)
    ends = result.intervals(level=level, adjust=adjust)
    most = read_count(n_sets, "n_sets")
    bars = score_bars(result, ends, most, score_label(result))
    rows = [replace(row, name=shortened(row.name)) for row in bars.rows]
    axes = draw_bars(replace(bars, rows=rows), ax)
    order = largest(result.estimates, most)
    if _leaks(result.leak[order]):
        axes.scatter(
            np.nan_to_num(result.leak[order], nan=0.0),
            np.arange(len(order)),
            marker="|",
            s=110,
            c="0.1",
            linewidths=1.6,
            label="main effects alone",
        )
        legend_below(axes, columns=2)
    in_words = intervals_in_words(result, level, adjust)
    title_with_intervals(axes, result, in_words, len(order), len(result), "sets")
    return axes


_SMALLEST: Final = 50.0
_GROWN: Final = 190.0
"""Area of a dot in square points, and the addition for the largest main effect."""
_THINNEST: Final = 0.6
_THICKEST: Final = 6.0
_HORIZONTAL_NAMES: Final = 12
"""The most features with horizontal names; names of more features run outwards."""
_NARROW: Final = 1.3
_WIDE: Final = 2.2
"""Limits of the axes in radii, for horizontal names and for names that run outwards."""


@suggests_arguments
def interaction_network(
    result: InteractionScores,
    *,
    n_features: int = 20,
    level: float = 0.9,
    adjust: Adjustment = "bonferroni",
    ax: Axes | None = None,
) -> Axes:
    """Draw features on a circle, with a line for each pair that clearly interacts.

    The interval of such a pair excludes zero and the score that a model without
    interactions would have. Solid orange lines join features that are needed together;
    dashed blue lines join features that can replace each other. Thicker lines have
    larger scores. Larger dots have larger main effects, if ``result.main`` has them.

    Parameters
    ----------
    result : InteractionScores
        Scores of pairs.
    n_features : int
        The number of features to draw, those with the largest clear scores, in the
        order of the table.
    level : float
        The confidence level of the intervals.
    adjust : Adjustment
        The correction for multiple intervals, as in
        :meth:`InteractionScores.intervals`.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidInput
        If the scores are not those of pairs.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> scheme = po.interactions.DataSplit()
    >>> pairs = po.interactions.ILOCO(DecisionTreeRegressor(), scheme)
    >>> pairs = pairs.fit(X, 3 * X[:, 0] * X[:, 1])
    >>> axes = po.plots.interaction_network(pairs.result_)
    >>> sorted(text.get_text() for text in axes.texts)
    ['0', '1', '2']
    """
    above, below = clear_scores(result, level, adjust)
    require_pairs(result, "interaction_network")
    sizes = np.where(above | below, np.abs(result.estimates), 0.0)
    features = np.sort(indices_of_strongest(result, sizes, n_features))
    outwards = len(features) > _HORIZONTAL_NAMES
    reach = _WIDE if outwards else _NARROW
    axes = axes_or_new(ax, 3.0 + 1.9 * reach, 2.6 + 1.9 * reach)
    # clockwise from the top
    angles = 0.5 * np.pi - 2.0 * np.pi * np.arange(len(features)) / len(features)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    names = [str(result.names[j]) for j in features]
    areas = np.full(len(result.names), _SMALLEST)
    if result.main is not None:
        effects = np.nan_to_num(np.maximum(result.main.estimates, 0.0))
        areas[result.main.sets[:, 0]] += _GROWN * effects / (effects.max() or 1.0)
    _draw_nodes(axes, circle, names, areas[features])
    nodes = np.full(len(result.names), -1)
    nodes[features] = np.arange(len(features))
    ends = nodes[result.sets]  # both nodes of each pair, −1 if not drawn
    _draw_lines(axes, circle, ends, result, sizes * (ends >= 0).all(axis=1))
    axes.set_aspect("equal")
    axes.set(xlim=(-reach, reach), ylim=(-reach - 0.25, reach))
    axes.axis("off")
    in_words = intervals_in_words(result, level, adjust)
    title_with_intervals(
        axes, result, in_words, len(features), len(result.names), "features"
    )
    return axes


def _draw_nodes(axes: Axes, circle: Array, names: Sequence[str], areas: Values) -> None:
    """Dots with names, which run outwards where horizontal ones would overlap."""
    axes.scatter(circle[:, 0], circle[:, 1], s=areas, c="0.25", zorder=3)
    outwards = len(names) > _HORIZONTAL_NAMES
    for (x, y), name in zip(circle, names, strict=True):
        upright = abs(x) < 0.2 and not outwards
        angle = np.degrees(np.arctan2(y, x)) if outwards else 0.0
        axes.text(
            1.1 * x,
            1.1 * y,
            matplotlib_text(shortened(name, _NAME_LENGTH)),
            rotation=angle - 180.0 * (x < 0) if outwards else 0.0,
            rotation_mode="anchor",
            ha="center" if upright else "left" if x >= 0 else "right",
            va=("bottom" if y > 0 else "top") if upright else "center",
            fontsize="small",
        )


def _draw_lines(
    axes: Axes, circle: Array, ends: Indices, result: InteractionScores, sizes: Values
) -> None:
    """Lines of clear pairs, strong ones on top, and a legend."""
    if not sizes.any():
        axes.text(
            0.0, 0.0, "no pair clearly interacts", ha="center", va="center", color="0.4"
        )
        return
    meanings = signs_in_words(result)
    widths = _THINNEST + (_THICKEST - _THINNEST) * sizes / sizes.max()
    for q in np.argsort(sizes, kind="stable"):
        if sizes[q] > 0.0:
            joint = result.estimates[q] > 0.0
            axes.plot(
                *circle[ends[q]].T,
                color=RAISES if joint else LOWERS,
                linestyle="-" if joint else (0, (3, 1.5)),
                linewidth=widths[q],
                alpha=0.85,
                solid_capstyle="round",
                zorder=2,
                label=meanings[int(joint)],
            )
    lines, names = axes.get_legend_handles_labels()
    kinds = dict(sorted(zip(names, lines, strict=True), key=lambda entry: entry[0]))
    axes.legend(
        kinds.values(),
        kinds.keys(),
        loc="upper center",
        bbox_to_anchor=(0.5, 0.02),
        frameon=False,
        fontsize="small",
        ncols=2,
        handlelength=4.0,
        title="thicker line: larger score; larger dot: larger main effect",
        title_fontsize="small",
    )
