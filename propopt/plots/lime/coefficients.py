"""Exact coefficients, and what single runs make of them."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation

from propopt._typing import Array, Positions
from propopt.checks import read_count
from propopt.lime.explanation.result import LimeExplanation
from propopt.lime.explanation.table import known_noise, named_coefficients
from propopt.output.text import drawn
from propopt.plots.axes import LOWERS, RAISES, framed, given_or_new
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
    _bands(axes, places, means, known_noise(explanation)[n, shown], explanation)
    errors = explanation.standard_errors
    if errors is not None:
        axes.errorbar(
            own[shown],
            places,
            xerr=2.0 * errors[n, shown],
            fmt="none",
            ecolor="0.2",
            elinewidth=1.0,
            capsize=2.5,
            zorder=3,
        )
    colours = [RAISES if value >= 0 else LOWERS for value in own[shown]]
    label = "exact limit" if explanation.is_exact else "estimated limit, 2 errors"
    axes.scatter(own[shown], places, s=26, c=colours, zorder=4, label=label)
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    axes.set_yticks(places, [drawn(shortened(names[j])) for j in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set(xlabel="coefficient, in units of the output")
    axes.set_title(row_title(explanation, n), loc="right", fontsize="medium")
    axes.locator_params(axis="x", nbins=5)
    _legend(axes)
    return framed(axes)


def _bands(
    axes: Axes,
    places: Positions,
    means: Array,
    noise: Array,
    explanation: LimeExplanation,
) -> None:
    """Two standard deviations around the mean of runs, and the mean."""
    size = f"{explanation.n_samples:,} samples"
    if not np.isnan(noise).any():
        axes.barh(
            places,
            4.0 * noise,
            left=means - 2.0 * noise,
            height=0.55,
            color="0.86",
            zorder=1,
            label=f"one run of {size}, ± 2 sd",
        )
    axes.scatter(
        means,
        places,
        marker="|",
        s=130,
        c="0.35",
        linewidths=1.4,
        zorder=2,
        label="mean of runs",
    )


def _legend(axes: Axes) -> None:
    """Below the picture, at its right end, as far down in any size."""
    down = ScaledTranslation(0.0, -0.5, axes.figure.dpi_scale_trans)
    axes.legend(
        loc="upper right",
        bbox_to_anchor=(1.0, 0.0),
        bbox_transform=axes.transAxes + down,
        borderaxespad=0.0,
        frameon=False,
        fontsize="small",
    )
