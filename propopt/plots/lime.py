"""Plots of LIME's limits: coefficients, paths over widths, and profiles."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from propopt.base.checks import did_you_mean, read_count
from propopt.base.document import Bar, Bars
from propopt.base.errors import InvalidInput, Refused
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import matplotlib_text
from propopt.lime.documents import LimeDocuments
from propopt.lime.explanation import RUN_LEVEL, LimeExplanation, normal_interval
from propopt.lime.sampled_limits import LimeSubject
from propopt.plots.attributions import (
    OPTIMIZED_COLOUR,
    OTHERS,
    axes_or_new,
    styled,
)
from propopt.plots.blocks import draw_bars
from propopt.tables.frames import listed


LONGEST: Final = 42
"""The longest name next to a plot, in characters."""


def shortened(name: str, most: int = LONGEST) -> str:
    """A name without its middle if it is too long, as the bin is at its end."""
    if len(name) <= most:
        return name
    ahead = (most - 1) * 2 // 5
    return f"{name[:ahead]}…{name[len(name) - (most - 1 - ahead) :]}"


def _explained(explanation: LimeExplanation, most: int) -> str:
    """What is explained, for an axis; "prediction" if only the model has a name."""
    quantity = explanation.quantity
    words = "prediction" if quantity is not None and quantity.is_by_name else None
    return matplotlib_text(shortened(words or explanation.explained_in_words, most))


def _title(explanation: LimeExplanation, n: int) -> str:
    """What is explained and for which row, with f and the surrogate there."""
    noun = explanation.nouns[0]
    label = f"{_explained(explanation, 40)}, {noun} {explanation.row_names[n]}"
    return (
        f"{shortened(label, 60)}\nit is {explanation.values[n]:.4g}, LIME's sum "
        f"{explanation.at_row[n]:.4g}"
    )


def _subject_of(explanation: LimeExplanation, label: str) -> LimeSubject:
    """The model and the law of rows; refuses documents."""
    if isinstance(explanation, LimeDocuments):
        raise Refused(f"{label}: expected rows of a table, got texts")
    return explanation.require_subject(label)


def _features(explanation: LimeExplanation) -> tuple[str, ...]:
    return explanation.labels.feature_names(explanation.shape[1])


def _position(
    names: Sequence[str], feature: str | int, where: str = "column {}"
) -> int:
    """The position of a column or word, from its name or its position."""
    if feature in names:
        return names.index(str(feature))
    if isinstance(feature, int) and 0 <= feature < len(names):
        return feature
    raise InvalidInput(
        f"feature: there is no {where.format(repr(feature))}"
        f"{did_you_mean(feature, names)}; there are {listed(names)}"
    )


# ---- Curves of coefficients over widths: their colours, changes of sign, and frame


_STYLES: Final = ("-", "--", ":", "-.")
_COLOURS: Final = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#a6761d",
    "#222222",
    "#56b4e9",
)
"""Blue, orange, green, pink, brown, black and light blue, safe for colour blindness."""


@suggests_arguments
def lime_path(
    explanation: LimeExplanation,
    row: Hashable | None = None,
    *,
    widths: ArrayLike | None = None,
    features: Sequence[str | int] | None = None,
    n_features: int = 6,
    ax: Axes | None = None,
) -> Axes:
    """Draw the coefficients of one row or text over kernel widths.

    A dotted line marks the width of the law, and circles the widths at which a
    coefficient changes its sign. Bands show two standard errors of estimated
    coefficients of words; all other curves are exact.

    Parameters
    ----------
    explanation : LimeExplanation
        A result of :func:`propopt.lime.limits` with exact coefficients, or of
        :func:`propopt.lime.text_limits`.
    row : label or int, optional
        Its name in the index of X, or its position where X had no names; by default the
        first.
    widths : array (M,), optional
        Kernel widths, or bandwidths ν of a text; by default 50 around that of the law.
    features : sequence of str or int, optional
        The columns or words to draw; by default the ``n_features`` with the largest
        coefficient at any width.
    n_features : int
        The number of columns or words if ``features`` is not given.
    ax : matplotlib Axes, optional
        The axes of the plot; by default those of a new figure.

    Returns
    -------
    matplotlib Axes
        The axes of the plot.

    Raises
    ------
    InvalidInput
        If there is no such row, column or word.
    Refused
        If coefficients of columns are not exact, the explanation was loaded, or LIME
        has no coefficients for the document.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> tree = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0] * X[:, 1])
    >>> axes = po.plots.lime_path(po.lime.limits(tree, X[:1], data=X))
    >>> axes.get_xscale()
    'log'
    """
    count = read_count(n_features, "n_features")
    path = explanation.path(row, widths)
    n = explanation.position(row)
    grid = path.widths
    errors = path.standard_errors
    if isinstance(explanation, LimeDocuments):
        names = explanation.records[n].names
        where = "word {} in the document"
        law_width = explanation.law.bandwidth
        noun = "bandwidth"
        along = "bandwidth ν; the package's kernel width is 100 ν"
    else:
        names = _features(explanation)
        where = "column {}"
        law_width = explanation.law.kernel_width
        noun = "width"
        along = "kernel width"
    if features is None:
        sizes = np.abs(path.coefficients).max(axis=0)
        largest_first = np.argsort(-sizes, kind="stable")[:count]
        shown = [j for j in largest_first.tolist() if sizes[j] > 0.0]
    else:
        shown = [_position(names, one, where) for one in features]
    axes = axes_or_new(ax, 6.8, 3.9)
    changes = path.sign_changes
    for k, j in enumerate(shown):
        colour = _COLOURS[k % len(_COLOURS)]
        style = _STYLES[k // len(_COLOURS) % len(_STYLES)]
        name = matplotlib_text(shortened(names[j], 28))
        curve = path.coefficients[:, j]
        axes.plot(grid, curve, color=colour, linestyle=style, label=name)
        if errors is not None:
            low = curve - 2.0 * errors[:, j]
            high = curve + 2.0 * errors[:, j]
            axes.fill_between(grid, low, high, color=colour, alpha=0.15, linewidth=0)
        roots = changes[j]
        inside = roots[(roots >= grid[0]) & (roots <= grid[-1])]
        axes.plot(
            inside,
            np.zeros(len(inside)),
            "o",
            color=colour,
            markersize=5,
            markerfacecolor="white",
            zorder=4,
        )
    axes.axhline(0.0, color="0.3", linewidth=0.8)
    axes.margins(x=0.0)
    if shown:
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            frameon=False,
            fontsize="small",
        )
    if np.isfinite(law_width):
        axes.axvline(law_width, color="0.45", linestyle=":", linewidth=1.0)
        axes.text(
            law_width,
            1.0,
            f"{noun} of the law",
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize="small",
            color="0.35",
        )
    axes.set_xscale("log")
    explained = _explained(explanation, 40)
    axes.set(xlabel=along, ylabel=f"LIME coefficient,\n{explained}")
    styled(axes)
    axes.set_title(_title(explanation, n), fontsize="medium", pad=16)
    return axes


@suggests_arguments
def lime_profile(
    explanation: LimeExplanation,
    feature: str | int | None = None,
    row: Hashable | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw LIME's mean output around a row, with a column in each of its bins.

    The bin of the row is dark. The coefficient, in the title, is its distance from the
    dashed line, the mean of the other bins by their shares. A column that matters may
    have a small coefficient, if the bin of the row is close to that mean.

    Parameters
    ----------
    explanation : LimeExplanation
        A result of :func:`propopt.lime.limits`.
    feature : str or int, optional
        The column; by default the one with the largest coefficient.
    row : label or int, optional
        Its name in the index of X, or its position where X had no names; by default the
        first.
    ax : matplotlib Axes, optional
        The axes of the plot; by default those of a new figure.

    Returns
    -------
    matplotlib Axes
        The axes of the plot.

    Raises
    ------
    InvalidInput
        If there is no such row or column.
    Refused
        If the explanation was loaded, its law weights by distance, or nearly all shared
        samples have a weight of zero at the row.

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
    features = _features(explanation)
    j = int(np.abs(beta).argmax())
    if feature is not None:
        j = _position(features, feature)
    subject = _subject_of(explanation, "lime_profile")
    point = subject.points[[n]]
    column = subject.law.columns[j]
    means = subject.profiles(point)[j][0]
    words = column.bins
    row_bin = int(column.bin_index(point[:, j])[0])
    axes = axes_or_new(ax, 1.8 + 0.8 * len(means), 3.7)
    colours = [OPTIMIZED_COLOUR if b == row_bin else OTHERS for b in range(len(means))]
    mean_of_others = means[row_bin] - beta[j]
    # bars start at the mean of the others: their lengths are differences, as β is
    labels = ["other bins" if b == (row_bin == 0) else "_" for b in range(len(means))]
    labels[row_bin] = "bin of the row"
    positions = np.arange(len(means))
    heights = means - mean_of_others
    axes.bar(positions, heights, 0.7, mean_of_others, color=colours, label=labels)
    label_of_mean = "mean of the other bins"
    axes.axhline(
        mean_of_others, color="0.3", linewidth=1.0, linestyle="--", label=label_of_mean
    )
    axes.legend(frameon=False, fontsize="small")
    name = matplotlib_text(shortened(features[j], 30))
    axes.set_ylabel(f"mean {_explained(explanation, 40)}")
    axes.set_xlabel(f"bin of {name}")
    # an interval on two lines, one for each end
    shown = [
        matplotlib_text(shortened(word, 28)).replace(" and ", "\nand ")
        for word in words
    ]
    longest = max(len(part) for word in shown for part in word.split("\n"))
    # short labels need no rotation
    turned = longest > 14 * 5 // max(len(words), 5)
    axes.set_xticks(
        np.arange(len(words)),
        shown,
        rotation=30 if turned else 0,
        ha="right" if turned else "center",
    )
    axes.margins(y=0.1)
    title = f"{_title(explanation, n)}\n{name}: coefficient {beta[j]:.4g}"
    axes.set_title(title, fontsize="medium")
    return styled(axes)


@suggests_arguments
def lime_coefficients(
    explanation: LimeExplanation,
    row: Hashable | None = None,
    *,
    n_features: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw the coefficients of one row or text, with the range of single runs of LIME.

    Bars are the limits of coefficients. Lines across them show where 95 % of single
    runs of ``explanation.n_samples`` fall: around the mean of such runs, which the
    ridge, and the row itself as a sample, move away from the limit.

    Parameters
    ----------
    explanation : LimeExplanation
        A result of :func:`propopt.lime.limits` or :func:`propopt.lime.text_limits`.
    row : label or int, optional
        Its name in the index of X, or its position where X had no names; by default the
        first.
    n_features : int
        The number of columns or words to draw, the largest; at most 15.
    ax : matplotlib Axes, optional
        The axes of the plot; by default those of a new figure.

    Returns
    -------
    matplotlib Axes
        The axes of the plot.

    Raises
    ------
    InvalidInput
        If there is no such row.
    Refused
        If LIME has no coefficients for the document.

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
    count = read_count(n_features, "n_features")
    record = explanation.records[n]
    if not record.has_coefficients:
        reason = f"LIME has no coefficients for this document: {record.reason}"
        raise Refused(f"lime_coefficients: {reason}")
    frame = explanation.top(count, row)
    means = frame["expected"].to_numpy(float)
    ends = normal_interval(means, frame["single_run_sd"].to_numpy(float)).tolist()
    named = zip(record.sorted_by_size(), ends, strict=False)
    bars = [
        Bar(name=shortened(record.names[j]), value=beta, interval=(low, high))
        for (j, beta), (low, high) in named
    ]
    caption = f"LIME coefficient, {_explained(explanation, 48)}"
    if any(bar.line for bar in bars):
        runs = f"{100.0 * RUN_LEVEL:g} % of runs of {explanation.n_samples:,} samples"
        caption += f"; lines: {runs}"
    axes = draw_bars(Bars(bars, caption), ax)
    axes.set_title(_title(explanation, n), loc="right", fontsize="medium")
    return axes
