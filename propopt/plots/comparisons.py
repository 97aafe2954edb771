"""Plots of comparisons: the distance of each column, compared with chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import matplotlib_text
from propopt.plots.attributions import (
    OPTIMIZED_COLOUR,
    OTHERS,
    RAISES,
    axes_or_new,
    largest,
    legend_below,
    styled,
)
from propopt.plots.lime import LONGEST, shortened
from propopt.results.comparison import Comparison


@suggests_arguments
def plot_changes(
    comparison: Comparison,
    *,
    n_features: int = 15,
    features: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the distance between two versions in each column, the largest first.

    A bar is the distance of a column; grey dots are those between refits, or between
    random divisions of the rows. The line is the level, one for all columns: bars
    beyond it are flagged, and are red.

    Parameters
    ----------
    comparison : Comparison
        The result of :func:`propopt.compare`.
    n_features : int
        The number of columns to draw.
    features : sequence of str, optional
        The columns to draw, in this order, such as the same ones in several panels. By
        default those with the largest distances.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes with the plot.

    Raises
    ------
    InvalidInput
        If a name is no column of the comparison.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from matplotlib.figure import Figure
    >>> old = po.results.Explanation(attributions=np.eye(2), method="old")
    >>> new = po.results.Explanation(attributions=2.0 * np.eye(2), method="new")
    >>> axes = Figure().subplots()
    >>> po.plots.plot_changes(po.compare(old, new), ax=axes) is axes
    True
    """
    shown = largest(comparison.distances, read_count(n_features, "n_features"))
    if features is not None:
        unknown = [name for name in features if name not in comparison.features]
        if unknown:
            raise InvalidInput(
                f"features: {unknown[0]!r} is no column of the comparison"
            )
        shown = np.array([comparison.features.index(name) for name in features])
    axes = axes_or_new(ax, height=1.4 + 0.3 * len(shown))
    level = comparison.level
    flagged = comparison.distance_flagged[shown]
    heights = np.arange(len(shown))
    distances = comparison.distances[shown]
    colours = np.where(flagged, RAISES, OPTIMIZED_COLOUR).tolist()
    axes.barh(heights, distances, 0.6, color=colours, zorder=2)
    axes.fill_between([], [], color=RAISES, label="beyond the level")
    if level is not None:
        null = level.distances[:, shown]
        where = np.broadcast_to(heights, null.shape)
        dots = "refits" if comparison.kind == "versions" else "random divisions"
        axes.plot(
            null.ravel(), where.ravel(), "o", color=OTHERS, ms=3, zorder=3, label=dots
        )
        axes.axvline(
            level.limit, color="0.25", lw=1.0, ls="--", label="level of chance"
        )
        legend_below(axes, 3)
    names = [shortened(matplotlib_text(comparison.features[j]), LONGEST) for j in shown]
    axes.set_yticks(heights, names)
    axes.invert_yaxis()
    noun = "output" if comparison.quantity is None else comparison.quantity.in_words()
    sides = " and ".join(comparison.names)
    axes.set_xlabel(
        f"distance of {matplotlib_text(sides)}, in {matplotlib_text(comparison.unit)}"
    )
    axes.set_title(matplotlib_text(noun), loc="left", fontsize="medium")
    return styled(axes)
