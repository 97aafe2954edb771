"""What pictures of coefficients share: noise of runs, standard errors, names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from propopt._typing import Array, Positions
from propopt.output.text import drawn
from propopt.plots.axes import legend_below
from propopt.plots.lime.words import shortened


def draw_runs(
    axes: Axes, places: Positions, means: Array, noise: Array, n_samples: int
) -> None:
    """Two standard deviations around the mean of runs, and the mean, as it is known.

    Parameters
    ----------
    axes : matplotlib Axes
        Where to draw.
    places : array (k,)
        Heights.
    means, noise : array (k,)
        Of runs of ``n_samples``; NaN where they are not known.
    n_samples : int
        Of a run.
    """
    if np.isnan(means).any():
        return
    if not np.isnan(noise).any():
        axes.barh(
            places,
            4.0 * noise,
            left=means - 2.0 * noise,
            height=0.55,
            color="0.86",
            zorder=1,
            label=f"one run of {n_samples:,} samples, ± 2 sd",
        )
    axes.scatter(
        means,
        places,
        marker="|",
        s=130,
        c="0.35",
        linewidths=1.4,
        zorder=3,
        label="mean of runs",
    )


def draw_whiskers(axes: Axes, places: Positions, own: Array, errors: Array) -> None:
    """Two standard errors to each side of coefficients.

    Parameters
    ----------
    axes : matplotlib Axes
        Where to draw.
    places, own, errors : array (k,)
        Heights, coefficients and their standard errors.
    """
    axes.errorbar(
        own,
        places,
        xerr=2.0 * errors,
        fmt="none",
        ecolor="0.2",
        elinewidth=1.0,
        capsize=2.5,
        zorder=4,
    )


def name_coefficients(axes: Axes, names: Sequence[str], what: str) -> None:
    """A line at zero, names at the left, the first above, and a legend below.

    Parameters
    ----------
    axes : matplotlib Axes
        Where coefficients are drawn.
    names : sequence of str
        As matplotlib takes them.
    what : str
        What is explained.
    """
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    axes.set_yticks(np.arange(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set(xlabel=f"LIME coefficient, {drawn(shortened(what, 48))}")
    axes.locator_params(axis="x", nbins=5)
    legend_below(axes)
