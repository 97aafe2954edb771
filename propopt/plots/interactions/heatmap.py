"""Scores of pairs as cells, one for each two features."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from propopt._typing import Array, Positions
from propopt.checks import read_count
from propopt.interactions.comparisons.pairs import PairScores
from propopt.interactions.features import pairs_matrix
from propopt.interactions.inference.adjust import Adjustment
from propopt.interactions.reading.clear import (
    ClearScores,
    clear_scores,
    require_pairs,
)
from propopt.interactions.result import InteractionScores
from propopt.output.text import drawn
from propopt.plots.axes import DIVERGING, given_or_new
from propopt.plots.interactions.chosen import (
    places_of_strongest,
    say_intervals,
    score_in,
)
from propopt.plots.lime.words import shortened


_ROOM: Final = 24
"""Characters of a name that have room below a cell."""
_DARK: Final = 0.55
"""Of the largest score: signs are white on cells beyond it."""


def interaction_heatmap(
    result: InteractionScores | PairScores,
    *,
    n_features: int = 20,
    level: float = 0.9,
    adjust: Adjustment = "bonferroni",
    ax: Axes | None = None,
) -> Axes:
    """Draw scores of pairs as a triangle of cells, the strongest features first.

    A cell has the sign of its score, + or −, where the interval is beyond zero, and
    beyond what a model without interactions would show. Pairs without a score are
    hatched.

    Parameters
    ----------
    result : InteractionScores or PairScores
        Of pairs. Those of :class:`PairScores` have no intervals, and no signs.
    n_features : int
        How many features to draw, those with the largest scores.
    level : float
        Of the intervals.
    adjust : Adjustment
        As :meth:`InteractionScores.intervals` has it.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    InvalidInput
        If the result is none of pairs.

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
    clear = _intervals(result, level, adjust)
    most = max(2, read_count(n_features, "n_features"))
    sizes = np.nan_to_num(np.abs(clear.estimates))
    features = places_of_strongest(result, sizes, most)
    cells = np.tril(np.ones((len(features), len(features)), dtype=bool), -1)
    scores = np.where(cells, _square(result, clear.estimates, features), np.nan)
    signs = np.where(cells, _square(result, _signs(clear), features), 0.0)
    side = 1.6 + 0.42 * len(features)
    axes = given_or_new(ax, side + 1.4, side)
    _draw(axes, scores[1:, :-1], _label(result))
    _write_signs(axes, signs[1:, :-1], scores[1:, :-1])
    _hatch(axes, (cells & np.isnan(scores))[1:, :-1])
    names = [drawn(shortened(str(result.names[j]), _ROOM)) for j in features]
    axes.set_yticks(np.arange(len(names) - 1), names[1:])
    axes.set_xticks(np.arange(len(names) - 1), names[:-1], rotation=90)
    axes.set_xlabel(_meaning(clear), fontsize="small")
    say_intervals(axes, result, clear, len(names), len(result.names), "features")
    return axes


def _intervals(
    result: InteractionScores | PairScores, level: float, adjust: Adjustment
) -> ClearScores:
    """With intervals that are not known where there are none."""
    if isinstance(result, PairScores):
        unknown = np.full(len(result.sets), np.nan)
        return ClearScores(
            names=(),
            estimates=result.estimates,
            low=unknown,
            high=unknown,
            leak=np.zeros(len(unknown)),
            in_words=result.method,
        )
    clear = clear_scores(result, level, adjust)
    require_pairs(result, "interaction_heatmap")
    return clear


def _label(result: InteractionScores | PairScores) -> str:
    if isinstance(result, PairScores):
        return drawn(f"in {result.units}")
    return score_in(result)


def _meaning(clear: ClearScores) -> str:
    """What signs in cells mean."""
    if np.isnan(clear.low).all():
        return "scores without intervals"
    beyond = "zero and main effects" if clear.leak.any() else "zero"
    return f"+, −: the interval is beyond {beyond}"


def _signs(clear: ClearScores) -> Array:
    """+1 and −1 of scores that are clear, else 0, (Q,)."""
    return clear.above.astype(np.float64) - clear.below


def _square(
    result: InteractionScores | PairScores, values: Array, features: Positions
) -> Array:
    """Numbers of pairs as a symmetric matrix of some features; NaN of no pair."""
    matrix = pairs_matrix(values, result.sets, len(result.names))
    return matrix[np.ix_(features, features)]


def _draw(axes: Axes, scores: Array, label: str) -> None:
    reach = float(np.nan_to_num(np.abs(scores)).max()) or 1.0
    image = axes.imshow(
        np.ma.masked_invalid(scores),
        cmap=colormaps[DIVERGING],
        vmin=-reach,
        vmax=reach,
        interpolation="none",
        rasterized=True,
    )
    places = np.arange(len(scores))
    axes.hlines(places - 0.5, -0.5, places + 0.5, color="white", linewidth=1.5)
    axes.vlines(places + 0.5, places - 0.5, len(scores) - 0.5, color="white")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    bar = axes.figure.colorbar(image, ax=axes)
    bar.set_label(label, fontsize="small")
    bar.outline.set_visible(False)


def _write_signs(axes: Axes, signs: Array, scores: Array) -> None:
    """+ and − in the middle of cells, as no colour alone should say it."""
    sizes = np.nan_to_num(np.abs(scores))
    dark = sizes > _DARK * sizes.max()
    for row, column in np.argwhere(np.nan_to_num(signs) != 0.0):
        axes.text(
            column,
            row,
            "+" if signs[row, column] > 0 else "−",
            ha="center",
            va="center",
            weight="bold",
            color="white" if dark[row, column] else "0.15",
        )


def _hatch(axes: Axes, unscored: NDArray[np.bool_]) -> None:
    for row, column in np.argwhere(unscored):
        axes.add_patch(
            Rectangle(
                (column - 0.5, row - 0.5),
                1.0,
                1.0,
                fill=False,
                hatch="////",
                edgecolor="0.8",
                linewidth=0.0,
            )
        )
