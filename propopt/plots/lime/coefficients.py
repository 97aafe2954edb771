"""Exact coefficients, and what single runs make of them."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from matplotlib.axes import Axes

from propopt.checks import read_count
from propopt.lime.explanation.result import LimeExplanation
from propopt.lime.explanation.table import known_noise, named_coefficients
from propopt.output.text import drawn
from propopt.plots.axes import LOWERS, RAISES, framed, given_or_new
from propopt.plots.lime.runs import draw_runs, draw_whiskers, name_coefficients
from propopt.plots.lime.words import row_title, shortened
from propopt.plots.naming import largest


def lime_coefficients(
    explanation: LimeExplanation,
    row: Hashable | None = None,
    *,
    n_features: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw the coefficients of one row, with the noise of a single run of LIME.

    Dots are what coefficients tend to. Bands reach two standard deviations of one run
    of ``explanation.n_samples`` to each side of the mean of such runs, which is a tick:
    with ridge, and with the row itself as a sample, it may lie beside the dot. Where
    coefficients are estimated, whiskers reach two standard errors.

    Parameters
    ----------
    explanation : LimeExplanation
        Of :func:`propopt.lime.limits`.
    row : label or int, optional
        Its name in the index of X, or its position where X had no names; by default the
        first.
    n_features : int
        How many to draw, the largest.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    InvalidInput
        If there is no such row.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> lime = po.lime.limits(lambda X: X[:, 0] - X[:, 1], X[:1], data=X)
    >>> axes = po.plots.lime_coefficients(lime, n_features=2)
    >>> len(axes.get_yticklabels())
    2
    """
    n = explanation.position(row)
    own = explanation.coefficients[n]
    shown = largest(own, read_count(n_features, "n_features"))
    names = named_coefficients(explanation, n)
    axes = given_or_new(ax, 6.8, 1.9 + 0.3 * len(shown))
    places = np.arange(len(shown))
    means = explanation.expected()[n, shown]
    noise = known_noise(explanation)[n, shown]
    draw_runs(axes, places, means, noise, explanation.n_samples)
    if explanation.standard_errors is not None:
        errors = explanation.standard_errors[n, shown]
        draw_whiskers(axes, places, own[shown], errors)
    colours = [RAISES if value >= 0 else LOWERS for value in own[shown]]
    label = "exact limit" if explanation.is_exact else "estimated limit, 2 errors"
    axes.scatter(own[shown], places, s=26, c=colours, zorder=4, label=label)
    words = [drawn(shortened(names[j])) for j in shown]
    name_coefficients(axes, words, explanation.explained_in_words)
    axes.set_title(row_title(explanation, n), loc="right", fontsize="medium")
    return framed(axes)
