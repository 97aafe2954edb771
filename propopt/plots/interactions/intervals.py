"""Scores of sets of features as dots, with their intervals."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes

from propopt._typing import Truths
from propopt.checks import read_count
from propopt.interactions.inference.adjust import Adjustment
from propopt.interactions.reading.clear import (
    ClearScores,
    clear_scores,
)
from propopt.interactions.result import InteractionScores
from propopt.plots.axes import LOWERS, RAISES, framed, given_or_new, legend_below
from propopt.plots.interactions.chosen import (
    name_of_set,
    say_intervals,
    score_in,
    signs_in_words,
    some,
)
from propopt.plots.naming import largest


_UNCLEAR: Final = "0.45"


def interaction_intervals(
    result: InteractionScores,
    *,
    n_sets: int = 20,
    level: float = 0.9,
    adjust: Adjustment = "bonferroni",
    ax: Axes | None = None,
) -> Axes:
    """Draw scores with their intervals, the largest above, and a line at zero.

    Triangles to the right are joint contributions, and triangles to the left features
    that stand in for each other: their intervals are beyond zero, and beyond what a
    model without interactions would show, which is a grey tick where it is known.
    Circles are scores whose intervals are not, and crosses sets with a feature that no
    learner uses.

    Parameters
    ----------
    result : InteractionScores
        Of sets of any size: of single features it is LOCO.
    n_sets : int
        How many to draw, the largest in size.
    level : float
        Of the intervals.
    adjust : Adjustment
        How intervals count the sets that were looked at, those that are not drawn too:
        as :meth:`InteractionScores.intervals` has it.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    InvalidInput
        If the result is none of interactions.

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
    clear = clear_scores(result, level, adjust)
    strongest = largest(clear.estimates, read_count(n_sets, "n_sets"))
    order = strongest[np.argsort(-clear.estimates[strongest], kind="stable")]
    shown = some(clear, order)
    axes = given_or_new(ax, 6.4, 1.6 + 0.27 * len(order))
    _draw(axes, shown, signs_in_words(result))
    axes.set_yticks(np.arange(len(order)), [name_of_set(own) for own in shown.names])
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlabel(score_in(result))
    axes.locator_params(axis="x", nbins=6)
    say_intervals(axes, result, clear, len(order), len(clear.estimates), "sets")
    return framed(axes)


def _draw(axes: Axes, shown: ClearScores, words: tuple[str, str]) -> None:
    axes.axvline(0.0, color="0.3", linewidth=0.9)
    if shown.leak.any():
        axes.scatter(
            shown.leak,
            np.arange(len(shown.leak)),
            marker="|",
            s=110,
            c="0.6",
            linewidths=1.6,
            zorder=2,
            label="main effects alone",
        )
    decided = shown.above | shown.below | ~shown.used
    _draw_some(axes, shown, shown.above, words[0], color=RAISES, fmt=">")
    _draw_some(axes, shown, shown.below, words[1], color=LOWERS, fmt="<")
    _draw_some(
        axes,
        shown,
        ~decided,
        "not clear",
        color=_UNCLEAR,
        fmt="o",
        markerfacecolor="white",
    )
    _draw_some(axes, shown, ~shown.used, "not used", color=_UNCLEAR, fmt="x")
    legend_below(axes, columns=2)


def _draw_some(
    axes: Axes, shown: ClearScores, own: Truths, label: str, **looks: Any
) -> None:
    """Dots of some sets, with their intervals."""
    if not own.any():
        return
    reach = shown.estimates - shown.low, shown.high - shown.estimates
    axes.errorbar(
        shown.estimates[own],
        np.flatnonzero(own),
        xerr=[side[own] for side in reach],
        markersize=6.0,
        elinewidth=1.3,
        capsize=2.5,
        zorder=3,
        label=label,
        **looks,
    )
