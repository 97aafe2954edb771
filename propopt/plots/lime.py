"""LIME's limits: coefficients, paths, profiles, cells, words."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from propopt.base.arrays import Indices
from propopt.base.checks import did_you_mean, read_count
from propopt.base.errors import InvalidInput, Refused
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import matplotlib_text
from propopt.lime.exact_limits import cell_coefficients
from propopt.lime.explanation import LimeExplanation
from propopt.plots.attributions import (
    LOWERS,
    OPTIMIZED_COLOUR,
    OTHERS,
    RAISES,
    axes_or_new,
    largest,
    legend_below,
    styled,
    whiskers,
)
from propopt.tables.frames import listed


LONGEST: Final = 42
"""Characters of a name that have room beside a picture."""


def shortened(name: str, most: int = LONGEST) -> str:
    """A name with its middle left out where it is too long: the bin is at its end."""
    if len(name) <= most:
        return name
    ahead = (most - 1) * 2 // 5
    return f"{name[:ahead]}…{name[len(name) - (most - 1 - ahead) :]}"


def _explained(explanation: LimeExplanation, most: int) -> str:
    """What is explained, for an axis: a class of models is no name of a number."""
    known = explanation.quantity
    words = "prediction" if known is not None and known.is_by_name else None
    return matplotlib_text(shortened(words or explanation.explained_in_words, most))


def _title(explanation: LimeExplanation, n: int) -> str:
    """What is explained, and where; what it is there and what LIME makes of it."""
    noun = "document" if explanation.documents else "row"
    label = f"{_explained(explanation, 40)}, {noun} {explanation.row_names[n]}"
    return (
        f"{shortened(label, 60)}\nit is {explanation.values[n]:.4g}, LIME's sum "
        f"{explanation.at_row[n]:.4g}"
    )


def _features(explanation: LimeExplanation) -> tuple[str, ...]:
    return explanation.labels.feature_names(explanation.shape[1])


def _place(names: Sequence[str], feature: str | int, where: str = "column {}") -> int:
    """Where a column or word stands, by its name or its position."""
    if feature in names:
        return names.index(str(feature))
    if isinstance(feature, int) and 0 <= feature < len(names):
        return feature
    raise InvalidInput(
        f"feature: there is no {where.format(repr(feature))}"
        f"{did_you_mean(feature, names)}; there are {listed(names)}"
    )


@suggests_arguments
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
    subject = explanation.require_table("lime_map")
    features = _features(explanation)
    pair = _place(features, first), _place(features, second)
    if pair[0] == pair[1]:
        raise InvalidInput("lime_map: expected two columns, got one twice")
    point = subject.points[[explanation.position(row)]]
    beta = cell_coefficients(subject.limits, subject.law, point, pair)
    columns = [subject.law.columns[j] for j in pair]
    across, up = (
        int(column.bin_index(point[:, j])[0])
        for column, j in zip(columns, pair, strict=True)
    )
    wide, high = beta.shape[:2]
    axes = axes_or_new(ax, 3.4 + 0.75 * wide, 2.2 + 0.75 * high)
    own = Rectangle((across - 0.5, up - 0.5), 1.0, 1.0, color=OPTIMIZED_COLOUR)
    own.set(alpha=0.16, linewidth=0.0)
    axes.add_patch(own)
    longest = float(np.nanmax(np.hypot(beta[..., 0], beta[..., 1])))
    unit = 0.8 / longest if longest > 0.0 else 1.0
    axes.quiver(
        *np.meshgrid(np.arange(wide), np.arange(high), indexing="ij"),
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
    names = [matplotlib_text(shortened(features[j], 30)) for j in pair]
    words = [
        [matplotlib_text(shortened(bin, 24)) for bin in column.bins]
        for column in columns
    ]
    axes.set_xticks(np.arange(wide), words[0], rotation=30, ha="right")
    axes.set_yticks(np.arange(high), words[1])
    axes.set_xticks(np.arange(wide + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(high + 1) - 0.5, minor=True)
    axes.grid(True, which="minor", color="0.85", linewidth=0.8)
    axes.tick_params(which="both", length=0.0)
    axes.set(
        xlim=(-0.5, wide - 0.5),
        ylim=(-0.5, high - 0.5),
        aspect="equal",
        xlabel=f"bin of {names[0]}",
        ylabel=f"bin of {names[1]}",
    )
    axes.set_title(
        f"{_explained(explanation, 48)}\n"
        f"LIME in each cell; longest arrow: {longest:.3g}",
        fontsize="medium",
    )
    axes.set_axisbelow(True)
    return axes


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
"""One blue, orange, green, pink, brown, black and light blue, told apart by all."""


_POINTS: Final = 9.0
"""Their size."""


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
    """Draw the coefficients of one row or text over widths, with changes of sign.

    A dotted line marks the width of the law, and a circle each width at which a
    coefficient that is drawn changes its sign. Bands reach two standard errors, where
    coefficients of words are estimated; all else is exact.

    Parameters
    ----------
    explanation : LimeExplanation
        With exact coefficients, of :func:`propopt.lime.limits`; or of
        :func:`propopt.lime.text_limits`.
    row : label or int, optional
        Its name in the index of X, or its position where X had no names; by default the
        first.
    widths : array (M,), optional
        Kernel widths, or bandwidths ν of a text; by default 50 around that of the law.
    features : sequence of str or int, optional
        The columns, or words, to draw; by default the ``n_features`` that are largest
        somewhere.
    n_features : int
        See there.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    InvalidInput
        If there is no such row, column or word.
    Refused
        If coefficients of columns are not exact, the explanation was loaded, or LIME
        says nothing of the document.

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
    path, n = explanation.path(row, widths), explanation.position(row)
    grid, errors = path.widths, path.standard_errors
    if explanation.documents:
        names, where = explanation.records[n].names, "word {} in the document"
        own, noun = explanation.law.bandwidth, "bandwidth"
        along = "bandwidth ν; the package's kernel width is 100 ν"
    else:
        names, where = _features(explanation), "column {}"
        own, noun, along = explanation.law.kernel_width, "width", "kernel width"
    if features is None:
        sizes = np.abs(path.coefficients).max(axis=0)
        largest_first = np.argsort(-sizes, kind="stable")[:count]
        shown = [j for j in largest_first.tolist() if sizes[j] > 0.0]
    else:
        shown = [_place(names, one, where) for one in features]
    axes, changes = axes_or_new(ax, 6.8, 3.9), path.sign_changes
    ends: list[tuple[float, str, str]] = []
    for k, j in enumerate(shown):
        colour = _COLOURS[k % len(_COLOURS)]
        style = _STYLES[k // len(_COLOURS) % len(_STYLES)]
        # so many letters of a name have room at the end of a line
        name, curve = matplotlib_text(shortened(names[j], 28)), path.coefficients[:, j]
        axes.plot(grid, curve, color=colour, linestyle=style, label=name)
        ends.append((float(curve[-1]), name, colour))
        if errors is not None:
            low, high = curve - 2.0 * errors[:, j], curve + 2.0 * errors[:, j]
            axes.fill_between(grid, low, high, color=colour, alpha=0.15, linewidth=0)
        roots = changes[j].crossings
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
    _name_ends(axes, ends)
    if np.isfinite(own):
        axes.axvline(own, color="0.45", linestyle=":", linewidth=1.0)
        axes.text(
            own,
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


def _name_ends(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Names beside the right ends of lines, in their colours, a line of text apart."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)
    # a layout leaves some three quarters for the lines
    height = 0.75 * axes.get_window_extent().height / axes.figure.dpi * 72.0
    step = 1.25 * _POINTS / max(height, _POINTS)
    heights = np.array([(y - low) / (high - low) for y, *_ in ends])
    order = np.argsort(heights, kind="stable")
    # the nearest heights that are a step apart: groups stand around their mean
    steps = step * np.arange(len(order))
    placed = isotonic_regression(heights[order] - steps).x + steps
    for height, bin_index in zip(placed, order, strict=True):
        y, name, colour = ends[bin_index]
        axes.annotate(
            name,
            xy=(1.0, (y - low) / (high - low)),
            xytext=(1.03, height),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=_POINTS,
            color=colour,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6},
        )


@suggests_arguments
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
    features, j = _features(explanation), int(np.abs(beta).argmax())
    if feature is not None:
        j = _place(features, feature)
    subject = explanation.require_table("lime_profile")
    point, column = subject.points[[n]], subject.law.columns[j]
    means, words = subject.profiles(point)[j][0], column.bins
    own = int(column.bin_index(point[:, j])[0])
    axes = axes_or_new(ax, 1.8 + 0.8 * len(means), 3.7)
    colours = [OPTIMIZED_COLOUR if b == own else OTHERS for b in range(len(means))]
    others = means[own] - beta[j]
    # bars from the mean of the others: their lengths are differences, as β is
    labels = ["other bins" if b == (own == 0) else "_" for b in range(len(means))]
    labels[own] = "bin of the row"
    places, heights = np.arange(len(means)), means - others
    axes.bar(places, heights, 0.7, others, color=colours, label=labels)
    said = "mean of the other bins"
    axes.axhline(others, color="0.3", linewidth=1.0, linestyle="--", label=said)
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
    # so many characters for each bin need no turning
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
    """Draw the coefficients of one row or text, with the noise of a run of LIME.

    Dots are what coefficients tend to. Bands reach two standard deviations of one run
    of ``explanation.n_samples`` to each side of the mean of such runs, which is a tick:
    with ridge, and with the row itself as a sample, it may lie beside the dot. Where
    coefficients are estimated, whiskers reach two standard errors.

    Parameters
    ----------
    explanation : LimeExplanation
        Of :func:`propopt.lime.limits`, or of :func:`propopt.lime.text_limits`.
    row : label or int, optional
        Its name in the index of X, or its position where X had no names; by default the
        first.
    n_features : int
        How many columns, or words, to draw, the largest.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    InvalidInput
        If there is no such row.
    Refused
        If LIME says nothing of the document.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> lime = po.lime.limits(lambda X: X[:, 0] - X[:, 1], X[:1], data=X)
    >>> axes = po.plots.lime_coefficients(lime, n_features=2)
    >>> len(axes.get_yticklabels())
    2
    """
    n, errors = explanation.position(row), explanation.standard_errors
    errors = None if errors is None or not np.any(errors[n]) else errors[n]
    record = explanation.records[n]
    if not record.has_coefficients:
        reason = f"LIME has no coefficients for this document: {record.reason}"
        raise Refused(f"lime_coefficients: {reason}")
    own = record.coefficients
    shown = largest(own, read_count(n_features, "n_features"))
    axes = axes_or_new(ax, 6.8, 1.9 + 0.3 * len(shown))
    positions = np.arange(len(shown))
    _draw_noise(axes, explanation, n, shown)
    if errors is not None:
        whiskers(axes, own[shown], errors[shown])
    colours = [RAISES if value >= 0 else LOWERS for value in own[shown]]
    label = "exact limit" if errors is None else "estimated limit, 2 errors"
    axes.scatter(own[shown], positions, s=26, c=colours, zorder=4, label=label)
    axes.use_sticky_edges = False  # of bars of noise, at which dots would be cut
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    names = [matplotlib_text(shortened(name)) for name, _ in explanation.as_list(row)]
    axes.set_yticks(positions, names[: len(shown)])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    label = _explained(explanation, 48)
    axes.set(xlabel=f"LIME coefficient, {label}")
    axes.locator_params(axis="x", nbins=5)
    legend_below(axes)
    axes.set_title(_title(explanation, n), loc="right", fontsize="medium")
    return styled(axes)


def _draw_noise(
    axes: Axes, explanation: LimeExplanation, n: int, shown: Indices
) -> None:
    """Two standard deviations around the mean of runs, and the mean, as it is known."""
    positions = np.arange(len(shown))
    means, noise = (
        explanation.expected()[n][shown],
        explanation.available_noise[n][shown],
    )
    if np.isnan(means).any():
        return
    if not np.isnan(noise).any():
        axes.barh(
            positions,
            4.0 * noise,
            left=means - 2.0 * noise,
            height=0.55,
            color="0.86",
            zorder=1,
            label=f"one run of {explanation.n_samples:,} samples, ± 2 sd",
        )
    axes.scatter(
        means,
        positions,
        marker="|",
        s=130,
        c="0.35",
        linewidths=1.4,
        zorder=3,
        label="mean of runs",
    )
