"""Bars of one row, and of two explanations next to each other."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from propopt.base.arrays import Array
from propopt.base.checks import read_count
from propopt.base.document import Bar, Bars, Table, minus
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import matplotlib_text, value_in_words
from propopt.plots.attributions import (
    HATCH,
    OTHERS,
    SignConclusions,
    feature_names,
    hatching_label,
    largest,
    legend_below,
    title_of,
    uncertain,
    units_label,
)
from propopt.plots.blocks import draw_bars, draw_columns
from propopt.results.explanation import Explanation, explanation_of, inputs_of
from propopt.tables.imported import AttributionsLike, aligned, is_shap


@suggests_arguments
def plot_row(
    explanation: AttributionsLike,
    row: Hashable = None,
    *,
    X: object = None,
    n_features: int = 10,
    certain: SignConclusions | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the attributions of one row as bars with their numbers, largest on top.

    Features beyond the first ``n_features`` share one bar with the sum of their
    attributions. Lines across the bars are intervals of two standard errors.

    Contributions with a ``base_value`` are drawn as steps (a waterfall plot): from the
    base at the bottom to the prediction at the top, on an axis of the model's output.
    Slopes are drawn from zero, because they do not add up to a prediction.

    Parameters
    ----------
    explanation : Explanation, shap.Explanation, DataFrame or array
        Attributions W (N, D).
    row : label or int, optional
        The row's label in the index of the inputs, or its position if they had no
        index. Not needed for a single row.
    X : array or DataFrame (N, D), optional
        The inputs, to write each feature's value after its name, if the explanation has
        no inputs. A DataFrame is reordered to the explanation's columns.
    n_features : int
        The number of features with separate bars.
    certain : Clear or NearOptimalConclusions, optional
        The result of ``explanation.clear()`` or ``explanation.certain()``: bars with an
        uncertain sign are hatched.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidInput
        If the row does not exist, if no row is given for several rows, or if X has
        another shape than the attributions.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> best = po.solve(1.0 * po.GradientMatching(np.array([[3.0, -1.0, 0.5]])))
    >>> axes = po.plots.plot_row(best, 0)
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['x0', 'x1', 'x2']
    """
    result = explanation_of(explanation, "given")
    labels = result.labels.points
    count = len(result.attributions)
    if row is None and (labels is None or None not in labels):
        row = 0 if labels is None else labels[0]
        if count > 1:
            raise InvalidInput(
                f"row: there are {count} rows; name one, such as {row!r}"
            )
    n = result.labels.position(row, count)
    doubtful = uncertain(certain, result.shape)[n]
    w = result.attributions[n]
    names = _names_with_values(result, X, n)
    order = largest(w, read_count(n_features, "n_features"))
    errors = np.full(len(w), np.nan)
    if result.standard_errors is not None:
        errors = np.asarray(result.standard_errors[n])
    ends = np.stack([w - 2.0 * errors, w + 2.0 * errors]).T
    bars = [
        Bar(name=names[j], value=float(w[j]), interval=(ends[j, 0], ends[j, 1]))
        for j in order
    ]
    if rest := [j for j in range(len(w)) if j not in order]:
        name = "1 other" if len(rest) == 1 else f"{len(rest)} others"
        bars.append(Bar(name=name, value=float(w[rest].sum())))
    base = None
    along = units_label(result)
    if result.units == "output" and result.base_value is not None:
        base = float(result.base_value[n])
        quantity = result.quantity
        along = "output" if quantity is None else quantity.in_words()
    widths = np.array([bar.value for bar in bars])
    steps = None if base is None else base + np.cumsum(widths[::-1])[::-1] - widths
    axes = draw_bars(Bars(bars, along), ax, steps)
    for bar in axes.patches:
        if isinstance(bar, Rectangle):
            index = round(bar.get_y() + 0.5 * bar.get_height())
            if index < len(order) and doubtful[order[index]]:
                bar.set(hatch=HATCH, edgecolor="white")
    if base is not None:
        _mark_base_and_prediction(axes, base, widths)
    axes.set_title(title_of(result, f"row {row}"), fontsize="medium")
    if doubtful[order].any():
        label = hatching_label(certain)
        axes.fill_between(
            [], [], label=label, hatch=HATCH, edgecolor="white", facecolor=OTHERS
        )
        legend_below(axes, 3)
    return axes


def _names_with_values(explanation: Explanation, X: object, row: int) -> list[str]:
    """Names of the features with the values of one row, if X or the result has them."""
    names = feature_names(explanation)
    if X is not None:
        numbers, originals = inputs_of(X, explanation)
        values: Any = numbers if originals is None else originals
        coded = explanation.categories
        cells = [  # categories have all digits
            str(x) if name in coded and x == x and isinstance(x, float) else shown
            for name, x, shown in zip(
                names, values[row], map(value_in_words, values[row]), strict=True
            )
        ]
    elif explanation.points is None:
        return names
    else:
        cells = [explanation.value_of(row, j) for j in range(len(names))]
    return [f"{x} = {minus(cell)}" for x, cell in zip(names, cells, strict=True)]


def _mark_base_and_prediction(axes: Axes, base: float, widths: Array) -> None:
    """Lines at the base and the prediction, with their values above and below."""
    prediction = base + float(widths.sum())
    last = len(widths) - 0.5
    sides = ("left", "right") if prediction >= base else ("right", "left")
    for x, y, text, style, side in (
        (base, last + 0.15, f"base {base:.4g}", ":", sides[0]),
        (prediction, -0.7, f"prediction {prediction:.4g}", "-", sides[1]),
    ):
        axes.axvline(x, color="0.4", linewidth=0.8, linestyle=style)
        gap = 4.0 if side == "left" else -4.0
        axes.annotate(
            minus(text),
            (x, y),
            xytext=(gap, 0.0),
            textcoords="offset points",
            fontsize="small",
            ha=side,
            va="center",
        )
    axes.set_ylim(last + 0.35, -0.9)


@suggests_arguments
def plot_comparison(
    first: AttributionsLike,
    second: AttributionsLike,
    *,
    row: Hashable | None = None,
    n_features: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw two explanations as bars next to each other: one row, or means over all.

    The title has the median cosine similarity of their rows.

    Parameters
    ----------
    first, second : Explanation, shap.Explanation, DataFrame or array
        Attributions W (N, D) of the same rows and features. The second is reordered to
        the first by its names.
    row : label or int, optional
        The row to compare; by default the mean |w| over all rows is drawn.
    n_features : int
        The number of features to draw, those that are largest in either explanation.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidInput
        If the two have different shapes, features or units, or if the row does not
        exist.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> G = np.array([[1.0, -2.0], [0.5, 1.0]])
    >>> one = po.solve(1.0 * po.GradientMatching(G))
    >>> other = po.solve(po.GradientMatching(G) + 2.0 * po.Sparsity())
    >>> po.plots.plot_comparison(one, other).get_title()
    'all rows; median cosine 0.45'
    """
    pair = explanation_of(first, "first"), explanation_of(second, "second")
    units = [  # a table without units has those of the other
        result.units
        for result, given in zip(pair, (first, second), strict=True)
        if isinstance(given, Explanation) or is_shap(given)
    ]
    if len(set(units)) > 1:
        raise InvalidInput(
            f"second: expected an explanation in the units of the first, {units[0]!r}, "
            f"got {units[1]!r}; convert one of them, or explain both in the same units"
        )
    W = pair[0].attributions
    V = aligned(pair[1], pair[0].labels, "second", "the first")
    if V.shape != W.shape:
        raise InvalidInput(
            f"second: expected the shape of the first, {W.shape}, got {V.shape}"
        )
    unit = units_label(pair[0])
    if row is None:
        widths = np.abs([W, V]).mean(axis=1)
        rows = "all rows"
        unit = f"mean size of the {unit}"
    else:
        n = pair[0].labels.position(row, len(W))
        widths = np.stack([W[n], V[n]])
        rows = f"row {row}"
    order = largest(np.abs(widths).max(axis=0), read_count(n_features, "n_features"))
    names = feature_names(pair[0])
    methods = [result.method for result in pair]
    if methods[0] == methods[1]:
        methods = ["1", "2"]
    frame = pd.DataFrame(
        widths[:, order].T, index=[names[j] for j in order], columns=methods
    )
    axes = draw_columns(Table(frame, unit), ax)
    # a zero row has the cosine 0 with any other
    sizes = np.linalg.norm(W, axis=1) * np.linalg.norm(V, axis=1)
    cosines = np.zeros(len(W))
    products = np.einsum("nd,nd->n", W, V)
    np.divide(products, sizes, out=cosines, where=sizes > 0)
    title = f"{matplotlib_text(rows)}; median cosine {np.median(cosines):.2f}"
    axes.set_title(title, fontsize="medium")
    return axes
