"""Features on a circle, and lines between those that matter jointly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
from matplotlib.axes import Axes

from propopt._typing import Array, Positions, Truths, Values
from propopt.checks import known_word, read_count
from propopt.interactions.inference.adjust import Adjustment
from propopt.interactions.reading.clear import (
    ClearScores,
    clear_scores,
    require_pairs,
)
from propopt.interactions.result import InteractionScores
from propopt.output.text import drawn
from propopt.plots.axes import LOWERS, RAISES, given_or_new
from propopt.plots.interactions.chosen import (
    places_of_strongest,
    say_intervals,
    signs_in_words,
)
from propopt.plots.lime.words import shortened


DrawnPairs: TypeAlias = Literal["clear", "all"]
"""Those whose intervals are beyond zero and leak, or all."""

_SMALLEST: Final = 50.0
_GROWN: Final = 190.0
"""Area of a dot, in square points, and what the largest main effect adds."""
_THINNEST: Final = 0.6
_THICKEST: Final = 6.0
_SIDE_BY_SIDE: Final = 12
"""Names that have room as they are read."""
_NEAR: Final = 1.3
_FAR: Final = 2.2
"""Of the axes, in radii of the circle."""
_ROOM: Final = 24
"""Characters of a name beside the circle."""


def interaction_network(
    result: InteractionScores,
    *,
    pairs: DrawnPairs = "clear",
    n_features: int = 20,
    level: float = 0.9,
    adjust: Adjustment = "bonferroni",
    ax: Axes | None = None,
) -> Axes:
    """Draw features on a circle, and a line for each pair, as thick as its score.

    Solid red lines join features that contribute jointly, dashed blue ones those that
    stand in for each other. Dots are larger the more the feature matters by itself,
    where the result knows that (``result.main``).

    Parameters
    ----------
    result : InteractionScores
        Of pairs.
    pairs : {"clear", "all"}
        Lines for pairs whose intervals are beyond zero, and beyond what a model without
        interactions would show; or for all of them, those that are not clear faint.
    n_features : int
        How many features to draw, those with the largest scores of such pairs; in the
        order of the table.
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
    >>> axes = po.plots.interaction_network(pairs.result_, pairs="all")
    >>> sorted(text.get_text() for text in axes.texts)
    ['0', '1', '2']
    """
    clear = clear_scores(result, level, adjust)
    require_pairs(result, "interaction_network")
    known_word(pairs, DrawnPairs, "pairs")
    decided = clear.above | clear.below
    wanted = decided if pairs == "clear" else np.ones_like(decided)
    wanted &= np.isfinite(clear.estimates)
    sizes = np.where(wanted, np.abs(clear.estimates), 0.0)
    most = max(2, read_count(n_features, "n_features"))
    features = np.sort(places_of_strongest(result, sizes, most))
    outwards = len(features) > _SIDE_BY_SIDE
    reach = _FAR if outwards else _NEAR
    axes = given_or_new(ax, 3.0 + 1.9 * reach, 2.6 + 1.9 * reach)
    circle = _circle(len(features))
    names = [str(result.names[j]) for j in features]
    _draw_nodes(axes, circle, names, _areas(result, features))
    ends = _ends(result, features)
    wanted &= (ends >= 0).all(axis=1)
    _draw_lines(axes, circle, ends, clear, wanted, signs_in_words(result))
    axes.set_aspect("equal")
    axes.set(xlim=(-reach, reach), ylim=(-reach - 0.25, reach))
    axes.axis("off")
    say_intervals(axes, result, clear, len(features), len(result.names), "features")
    return axes


def _circle(count: int) -> Array:
    """Places of nodes, (count, 2), clockwise from above."""
    angles = 0.5 * np.pi - 2.0 * np.pi * np.arange(count) / count
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _ends(result: InteractionScores, features: Positions) -> Positions:
    """Where both features of each pair are on the circle, (Q, 2); −1 if nowhere."""
    place = np.full(len(result.names), -1)
    place[features] = np.arange(len(features))
    return np.asarray(place[result.sets])


def _areas(result: InteractionScores, features: Positions) -> Values:
    """Of dots: the score of each feature by itself, where it is known."""
    areas = np.full(len(result.names), _SMALLEST)
    if result.main is not None:
        own = np.nan_to_num(np.maximum(result.main.estimates, 0.0))
        areas[result.main.sets[:, 0]] += _GROWN * own / (own.max() or 1.0)
    return np.asarray(areas[features])


def _draw_nodes(axes: Axes, circle: Array, names: Sequence[str], areas: Values) -> None:
    """Dots and names, which run outwards where they would overlap side by side."""
    axes.scatter(circle[:, 0], circle[:, 1], s=areas, c="0.25", zorder=3)
    outwards = len(names) > _SIDE_BY_SIDE
    for (x, y), name in zip(circle, names, strict=True):
        upright = abs(x) < 0.2 and not outwards
        angle = np.degrees(np.arctan2(y, x)) if outwards else 0.0
        axes.text(
            1.1 * x,
            1.1 * y,
            drawn(shortened(name, _ROOM)),
            rotation=angle - 180.0 * (x < 0) if outwards else 0.0,
            rotation_mode="anchor",
            ha="center" if upright else "left" if x >= 0 else "right",
            va=("bottom" if y > 0 else "top") if upright else "center",
            fontsize="small",
        )


def _draw_lines(
    axes: Axes,
    circle: Array,
    ends: Positions,
    clear: ClearScores,
    wanted: Truths,
    words: tuple[str, str],
) -> None:
    """The weakest first, so that strong ones are on top; and what they mean."""
    if not wanted.any():
        axes.text(0.0, 0.0, "no pair is clear", ha="center", va="center", color="0.4")
        return
    sizes = np.nan_to_num(np.abs(clear.estimates))
    widths = _THINNEST + (_THICKEST - _THINNEST) * sizes / (sizes[wanted].max() or 1.0)
    decided = clear.above | clear.below
    for q in np.argsort(sizes, kind="stable"):
        if wanted[q]:
            joint = clear.estimates[q] > 0.0
            axes.plot(
                *circle[ends[q]].T,
                color=RAISES if joint else LOWERS,
                linestyle="-" if joint else (0, (3, 1.5)),
                linewidth=widths[q],
                alpha=0.85 if decided[q] else 0.2,
                solid_capstyle="round",
                zorder=2,
                label=words[0 if joint else 1] if decided[q] else "_",
            )
    _write_legend(axes)


def _write_legend(axes: Axes) -> None:
    """What each kind of line means, once."""
    lines, names = axes.get_legend_handles_labels()
    kinds = dict(sorted(zip(names, lines, strict=True), key=lambda own: own[0]))
    if kinds:
        axes.legend(
            kinds.values(),
            kinds.keys(),
            loc="lower center",
            frameon=False,
            fontsize="small",
            ncols=2,
            handlelength=4.0,
        )
