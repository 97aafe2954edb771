"""Coefficients of two columns in each cell, as arrows."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from propopt.lime.explanation.result import LimeExplanation
from propopt.output.text import drawn
from propopt.plots.axes import OPTIMIZED_COLOUR, given_or_new
from propopt.plots.lime.words import shortened


def lime_map(
    explanation: LimeExplanation,
    first: str | int,
    second: str | int,
    row: Hashable | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw the coefficients of two columns in each cell of their bins, as arrows.

    An arrow points to where the surrogate of its cell says that f increases: β of the
    first column to the right, of the second one upwards. Cells are drawn of one size,
    that of the row is marked, and an arrow of the largest coefficients reaches over
    most of a cell.

    Parameters
    ----------
    explanation : LimeExplanation
        Of :func:`propopt.lime.limits`.
    first, second : str or int
        The columns, by name or position: across and upwards.
    row : label or int, optional
        What the other columns are; by default the first row.
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
    >>> tree = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0] * X[:, 1])
    >>> axes = po.plots.lime_map(po.lime.limits(tree, X[:1], data=X), "x0", "x1")
    >>> axes.get_xlabel()
    'bin of x0'
    """
    cells = explanation.cells_of(first, second, row)
    beta = cells.coefficients
    wide, high = beta.shape[:2]
    axes = given_or_new(ax, 3.4 + 0.75 * wide, 2.2 + 0.75 * high)
    own = Rectangle(
        (cells.own[0] - 0.5, cells.own[1] - 0.5),
        1.0,
        1.0,
        facecolor=OPTIMIZED_COLOUR,
        alpha=0.16,
        edgecolor="none",
    )
    axes.add_patch(own)
    longest = float(np.nanmax(np.hypot(beta[..., 0], beta[..., 1])))
    unit = 0.8 / longest if longest > 0.0 else 1.0
    across, up = np.meshgrid(np.arange(wide), np.arange(high), indexing="ij")
    axes.quiver(
        across,
        up,
        unit * beta[..., 0],
        unit * beta[..., 1],
        pivot="mid",
        angles="xy",
        scale_units="xy",
        scale=1.0,
        color="0.15",
        width=0.006,
        zorder=3,
    )
    names = [drawn(shortened(name, 30)) for name in cells.features]
    words = [[drawn(shortened(word, 24)) for word in part] for part in cells.bins]
    axes.set_xticks(np.arange(wide), words[0], rotation=30, ha="right")
    axes.set_yticks(np.arange(high), words[1])
    axes.set_xticks(np.arange(wide + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(high + 1) - 0.5, minor=True)
    axes.grid(True, which="minor", color="0.85", linewidth=0.8)
    axes.tick_params(which="both", length=0.0)
    axes.set_xlim(-0.5, wide - 0.5)
    axes.set_ylim(-0.5, high - 0.5)
    axes.set_aspect("equal")
    axes.set(xlabel=f"bin of {names[0]}", ylabel=f"bin of {names[1]}")
    axes.set_title(
        f"{drawn(shortened(explanation.explained_in_words, 48))}\n"
        f"LIME in each cell; longest arrow: {longest:.3g}",
        fontsize="medium",
    )
    axes.set_axisbelow(True)
    return axes
