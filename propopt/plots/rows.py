"""Bars of one row, and of two explanations next to each other."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from propopt.base.arrays import Array
from propopt.base.checks import read_count
from propopt.base.document import Bar, Bars, minus
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import value_in_words
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
from propopt.plots.blocks import draw_bars
from propopt.results.explanation import Explanation, explanation_of, inputs_of
from propopt.tables.imported import AttributionsLike


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
