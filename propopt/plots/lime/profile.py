"""The means of a function over the bins of one column."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from matplotlib.axes import Axes

from propopt.lime.explanation.result import LimeExplanation
from propopt.output.text import drawn
from propopt.plots.axes import OPTIMIZED_COLOUR, OTHERS, framed, given_or_new
from propopt.plots.lime.words import row_title, shortened


_UPRIGHT = 14
"""Characters of all names of bins, over their number, that need no turning."""


def lime_profile(
    explanation: LimeExplanation,
    feature: str | int | None = None,
    row: Hashable | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean of f with one row moved to each bin of a column.

    The bin of the row is dark. Its coefficient is the distance from there to the dashed
    line, the mean of the other bins by their shares; it is written above the picture. A
    column may matter, and its coefficient be small, if its bin is near that mean.

    Parameters
    ----------
    explanation : LimeExplanation
        Of :func:`propopt.lime.limits`.
    feature : str or int, optional
        The column; by default that with the largest coefficient.
    row : label or int, optional
        Its name in the index of X, or its position where X had no names; by default the
        first.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    InvalidInput
        If there is no such row or column.
    Refused
        If the explanation was loaded.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> tree = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0])
    >>> axes = po.plots.lime_profile(po.lime.limits(tree, X[:1], data=X))
    >>> len(axes.patches)
    4
    """
    n = explanation.position(row)
    beta = explanation.coefficients[n]
    j = int(np.abs(beta).argmax()) if feature is None else explanation.column(feature)
    profile = explanation.profile(row)
    means, words, own = profile.means[j], profile.bins[j], int(profile.own[j])
    axes = given_or_new(ax, 1.8 + 0.8 * len(means), 3.7)
    colours = [OPTIMIZED_COLOUR if b == own else OTHERS for b in range(len(means))]
    others = means[own] - beta[j]
    # bars from the mean of the others: their lengths are differences, as β is
    axes.bar(
        np.arange(len(means)), means - others, bottom=others, width=0.7, color=colours
    )
    axes.axhline(others, color="0.3", linewidth=1.0, linestyle="--")
    name = drawn(shortened(profile.features[j], 30))
    axes.set_ylabel(f"mean {drawn(shortened(explanation.explained_in_words, 40))}")
    axes.set_xlabel(f"bin of {name}")
    # an interval on two lines, one for each end
    shown = [drawn(shortened(word, 28)).replace(" and ", "\nand ") for word in words]
    longest = max(len(part) for word in shown for part in word.split("\n"))
    turned = longest > _UPRIGHT * 5 // max(len(words), 5)
    axes.set_xticks(
        np.arange(len(words)),
        shown,
        rotation=30 if turned else 0,
        ha="right" if turned else "center",
    )
    axes.margins(y=0.1)
    title = f"{row_title(explanation, n)}\n{name}: coefficient {beta[j]:.4g}"
    axes.set_title(title, fontsize="medium")
    return framed(axes)
