"""Attributions of one row, of all rows, and of two explanations side by side."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from numbers import Real

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.checks import read_count
from propopt.errors import InvalidInput
from propopt.output.text import drawn
from propopt.plots.axes import (
    CYCLE,
    DIVERGING,
    LOWERS,
    OPTIMIZED_COLOUR,
    OTHERS,
    RAISES,
    framed,
    given_or_new,
)
from propopt.results.explanation import Explanation
from propopt.results.foreign import AttributionsLike, explanation_of
from propopt.tables.alignment import aligned, order_of
from propopt.tables.frames import as_frame
from propopt.tables.names import Labels


_WHOSE = "the explanation"
OUTLIERS = 1.0
"""Per cent of attributions beyond the ends of a colour bar."""


def plot_row(
    explanation: AttributionsLike,
    row: Hashable,
    *,
    X: object = None,
    n_features: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw the attributions of one row as bars, the largest on top.

    Features beyond the first ``n_features`` share one bar, the sum of theirs.

    Parameters
    ----------
    explanation : Explanation, shap.Explanation, DataFrame or array
        W (N, D).
    row : label or int
        The row's name in the index of the inputs; its position where they had none.
    X : array or DataFrame (N, D), optional
        The inputs, to write the value of each feature beside its name; those with names
        are put in the order of the explanation.
    n_features : int
        How many features have a bar of their own.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    InvalidInput
        If there is no such row, or X has another shape than the attributions.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> best = po.solve(1.0 * po.GradientMatching(np.array([[3.0, -1.0, 0.5]])))
    >>> [float(bar.get_width()) for bar in po.plots.plot_row(best, 0).patches]
    [3.0, -1.0, 0.5]
    """
    result = explanation_of(explanation, "given")
    place = _position(result.labels, row, len(result.attributions))
    widths = result.attributions[place]
    names = _names_with_values(result, X, place)
    order = _largest(widths, read_count(n_features, "n_features"))
    bars, ticks = widths[order], [names[j] for j in order]
    colours = [RAISES if width >= 0 else LOWERS for width in bars]
    rest = np.delete(widths, order)
    if rest.size:
        bars, ticks = np.append(bars, rest.sum()), [*ticks, f"{rest.size} others"]
        colours.append(OTHERS)
    axes = given_or_new(ax, 5.2, 0.9 + 0.28 * len(bars))
    axes.barh(np.arange(len(bars)), bars, height=0.7, color=colours)
    axes.set_yticks(np.arange(len(bars)), [drawn(name) for name in ticks])
    axes.invert_yaxis()
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    axes.set(xlabel="attribution", title=drawn(f"{result.method}, row {row}"))
    return framed(axes)


def plot_heatmap(
    explanation: AttributionsLike, *, n_features: int = 20, ax: Axes | None = None
) -> Axes:
    """Draw all attributions as a heat map, features down and rows across.

    Features stand in the order of their mean |w|; rows in the order of their first
    principal component, so that rows explained alike stand side by side. The colours
    reach as far as 99 % of the attributions; the few beyond have the colour of the end.

    Parameters
    ----------
    explanation : Explanation, shap.Explanation, DataFrame or array
        W (N, D).
    n_features : int
        How many features to draw.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> best = po.solve(1.0 * po.GradientMatching(np.diag([1.0, 2.0, 3.0])))
    >>> axes = po.plots.plot_heatmap(best)
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['x2', 'x1', 'x0']
    """
    result = explanation_of(explanation, "given")
    W = result.attributions
    mean_sizes = np.abs(W).mean(axis=0)
    features = _largest(mean_sizes, read_count(n_features, "n_features"))
    picture = W[_along_component(W)][:, features].T
    reach = float(np.percentile(np.abs(picture), 100.0 - OUTLIERS))
    reach = reach or float(np.abs(picture).max()) or 1.0
    axes = given_or_new(ax, 6.4, 1.2 + 0.24 * len(features))
    image = axes.imshow(
        picture, cmap=DIVERGING, vmin=-reach, vmax=reach, aspect="auto", rasterized=True
    )
    names = _features(result)
    axes.set_yticks(np.arange(len(features)), [drawn(names[j]) for j in features])
    axes.set(xlabel=f"{len(W)} rows, alike side by side", title=drawn(result.method))
    beyond = "both" if np.abs(picture).max() > reach else "neither"
    bar = axes.figure.colorbar(image, ax=axes, extend=beyond, label="attribution")
    bar.outline.set_visible(False)
    return axes


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
        If the two have different shapes or features, or there is no such row.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> G = np.array([[1.0, -2.0], [0.5, 1.0]])
    >>> one = po.solve(1.0 * po.GradientMatching(G))
    >>> other = po.solve(po.GradientMatching(G) + 2.0 * po.Sparsity())
    >>> po.plots.plot_comparison(one, other).get_title()
    'all rows; median cosine 0.45'
    """
    pair = _alike(explanation_of(first, "first"), explanation_of(second, "second"))
    widths = np.array([_of_row(explanation, row) for explanation in pair])
    order = _largest(np.abs(widths).max(axis=0), read_count(n_features, "n_features"))
    axes = given_or_new(ax, 5.2, 1.0 + 0.36 * len(order))
    places = np.arange(len(order))
    for k, colour in enumerate([OPTIMIZED_COLOUR, CYCLE[0]]):
        named = pair[0].method != pair[1].method
        label = drawn(pair[k].method) if named else f"{k + 1}"
        shift = 0.38 * (k - 0.5)
        axes.barh(places + shift, widths[k, order], 0.36, color=colour, label=label)
    names = _features(pair[0])
    axes.set_yticks(places, [drawn(names[j]) for j in order])
    axes.invert_yaxis()
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    cosine = np.median(_cosines(pair[0].attributions, pair[1].attributions))
    which = "all rows" if row is None else drawn(f"row {row}")
    axes.set(
        xlabel="mean |attribution|" if row is None else "attribution",
        title=f"{which}; median cosine {cosine:.2f}",
    )
    axes.legend(frameon=False, fontsize="small")
    return framed(axes)


def _position(labels: Labels, row: Hashable, n_points: int) -> int:
    """Where a row stands, by its name or, without names, by its number."""
    names = range(n_points) if labels.points is None else labels.points
    if row not in names:
        raise InvalidInput(
            f"row: there is no row {row!r}; there are {n_points}, from "
            f"{names[0]!r} to {names[-1]!r}"
        )
    return names.index(row)  # type: ignore[arg-type]  # a range has whole numbers


def _features(explanation: Explanation) -> list[str]:
    return [str(name) for name in explanation.to_frame().columns]


def _names_with_values(explanation: Explanation, X: object, place: int) -> list[str]:
    """The features' names, each with its value where X is given."""
    names = _features(explanation)
    if X is None:
        return names
    frame = as_frame(X, "X")
    table = pd.DataFrame(np.asarray(X)) if frame is None else frame.table
    if table.shape != explanation.shape:
        raise InvalidInput(
            f"X: expected the shape of the attributions, {explanation.shape}, got "
            f"{table.shape}"
        )
    row, columns = place, np.arange(table.shape[1])
    if table is X:
        rows = order_of(
            tuple(X.index), explanation.labels.points, "X: its rows", _WHOSE
        )
        row = place if rows is None else int(rows[place])
        labels = tuple(map(str, X.columns))
        order = order_of(labels, explanation.labels.features, "X: its columns", _WHOSE)
        columns = columns if order is None else order
    values: list[object] = [table.iat[row, int(j)] for j in columns]
    pairs = zip(names, values, strict=True)
    return [
        f"{name} = {value:.4g}" if isinstance(value, Real) else f"{name} = {value}"
        for name, value in pairs
    ]


def _largest(sizes: Array, most: int) -> NDArray[np.intp]:
    """Positions of the largest |sizes|, in falling order."""
    return np.argsort(-np.abs(sizes), kind="stable")[:most]


def _along_component(W: Array) -> NDArray[np.intp]:
    """The rows in the order of the first principal component."""
    centred = W - W.mean(axis=0)
    left, _, _ = np.linalg.svd(centred, full_matrices=False)
    return np.argsort(left[:, 0], kind="stable")


def _of_row(explanation: Explanation, row: Hashable | None) -> Array:
    if row is None:
        return np.abs(explanation.attributions).mean(axis=0)
    return explanation.attributions[
        _position(explanation.labels, row, len(explanation.attributions))
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
