"""Two explanations side by side."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes

from propopt._typing import Array
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.output.text import drawn
from propopt.plots.axes import CYCLE, OPTIMIZED_COLOUR, framed, given_or_new
from propopt.plots.naming import feature_names, largest, units_label
from propopt.results.explanation import Explanation
from propopt.results.foreign import AttributionsLike, explanation_of
from propopt.tables.alignment import aligned, is_shap


def plot_comparison(
    first: AttributionsLike,
    second: AttributionsLike,
    *,
    row: Hashable | None = None,
    n_features: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw two explanations side by side: of one row, or the mean |w| over all.

    The title has the median over the rows of the cosine between both.

    Parameters
    ----------
    first, second : Explanation, shap.Explanation, DataFrame or array
        Of the same rows and features; those of the second are put in the order of the
        first by their names.
    row : label or int, optional
        Compare this row; by default all, by the mean size of their attributions.
    n_features : int
        How many features to draw: those largest in either.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    InvalidInput
        If the two have different shapes, features or units, or there is no such row.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> G = np.array([[1.0, -2.0], [0.5, 1.0]])
    >>> one = po.solve(1.0 * po.GradientMatching(G))
    >>> other = po.solve(po.GradientMatching(G) + 2.0 * po.Sparsity())
    >>> po.plots.plot_comparison(one, other).get_title()
    'all rows; median cosine 0.45'
    """
    _refuse_other_units(first, second)
    pair = _alike(explanation_of(first, "first"), explanation_of(second, "second"))
    widths = np.array([_of_row(explanation, row) for explanation in pair])
    order = largest(np.abs(widths).max(axis=0), read_count(n_features, "n_features"))
    axes = given_or_new(ax, 5.2, 1.0 + 0.36 * len(order))
    places = np.arange(len(order))
    for k, colour in enumerate([OPTIMIZED_COLOUR, CYCLE[0]]):
        named = pair[0].method != pair[1].method
        label = drawn(pair[k].method) if named else f"{k + 1}"
        shift = 0.38 * (k - 0.5)
        axes.barh(places + shift, widths[k, order], 0.36, color=colour, label=label)
    names = feature_names(pair[0])
    axes.set_yticks(places, [drawn(names[j]) for j in order])
    axes.invert_yaxis()
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    cosine = np.median(_cosines(pair[0].attributions, pair[1].attributions))
    units = units_label(pair[0])
    which = "all rows" if row is None else drawn(f"row {row}")
    axes.set(
        xlabel=f"mean size of the\n{units}" if row is None else units,
        title=f"{which}; median cosine {cosine:.2f}",
    )
    axes.legend(frameon=False, fontsize="small")
    return framed(axes)


def _refuse_other_units(first: AttributionsLike, second: AttributionsLike) -> None:
    """Slopes are no contributions; a bare table is taken for what it meets."""
    units = [
        explanation_of(given, "given").units
        for given in (first, second)
        if isinstance(given, Explanation) or is_shap(given)
    ]
    if len(set(units)) > 1:
        raise InvalidInput(
            f"second: expected the units of the first, {units[0]!r}, got {units[1]!r}; "
            "slopes and parts of the output are not compared: convert one of them, or "
            "explain both in the same units"
        )


def _of_row(explanation: Explanation, row: Hashable | None) -> Array:
    if row is None:
        return np.abs(explanation.attributions).mean(axis=0)
    return explanation.attributions[
        explanation.labels.position(row, len(explanation.attributions))
    ]


def _alike(first: Explanation, second: Explanation) -> tuple[Explanation, Explanation]:
    """Both, the second with rows and columns in the order of the first."""
    W = aligned(second, first.labels, "second", "the first")
    if W.shape != first.attributions.shape:
        raise InvalidInput(
            f"second: expected the shape of the first, {first.attributions.shape}, "
            f"got {W.shape}"
        )
    alike = replace(
        second, attributions=W, labels=first.labels, standard_errors=None, details={}
    )
    return first, alike


def _cosines(V: Array, W: Array) -> Array:
    """Cosine of the angle between rows; of a zero row with any other 0."""
    sizes = np.linalg.norm(V, axis=1) * np.linalg.norm(W, axis=1)
    products = np.einsum("nd,nd->n", V, W)
    cosines: Array = np.zeros(len(V))
    np.divide(products, sizes, out=cosines, where=sizes > 0)
    return cosines
