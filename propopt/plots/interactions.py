"""Interaction scores as heat maps, intervals and networks."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.axes import Axes

from propopt.base.arrays import Array, Indices, Values
from propopt.base.checks import read_count
from propopt.base.document import Bar, Bars
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import matplotlib_text
from propopt.interactions.features import pairs_matrix
from propopt.interactions.inference import Adjustment
from propopt.interactions.scores import (
    InteractionScores,
    clear_scores,
    intervals_in_words,
    require_pairs,
    signs_in_words,
)
from propopt.plots.attributions import (
    DIVERGING,
    axes_or_new,
    hatched,
    largest,
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
    sizes = np.nan_to_num(np.abs(result.scores))
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
    axes.set_xlabel("+, −: the interval excludes zero", fontsize="small")
    title_with_intervals(
        axes, result, in_words, len(names), len(result.names), "features"
    )
    return axes


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
    features that can replace each other.

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
    ends = result.intervals(level=level, adjust=adjust).tolist()
    most = read_count(n_sets, "n_sets")
    order = largest(result.scores, most)
    scores = result.scores.tolist()
    rows = [
        Bar(
            name=shortened(result.name_of(q)),
            value=scores[q],
            interval=(ends[q][0], ends[q][1]),
        )
        for q in order.tolist()
    ]
    bars = Bars(rows, score_label(result), directions=signs_in_words(result))
    axes = draw_bars(bars, ax)
    in_words = intervals_in_words(result, level, adjust)
    title_with_intervals(axes, result, in_words, len(order), len(result), "sets")
    return axes
