"""Curves of trade-offs, comparisons and agreement."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from textwrap import fill
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from pandas.api.types import is_numeric_dtype

from propopt.base.arrays import Array
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Quantity, in_percent, matplotlib_text
from propopt.losses.graphs.points import Graph
from propopt.plots.attributions import (
    CYCLE,
    OPTIMIZED_COLOUR,
    axes_or_new,
    draw_share_axes,
    feature_names,
    largest,
    legend_below,
    styled,
    units_label,
)
from propopt.proofs.ideal_nadir import IdealNadir
from propopt.results.explanation import (
    Explanation,
    common_quantity,
    explanation_of,
    explanations_of,
)
from propopt.tables.imported import AttributionsLike, aligned, is_shap


@suggests_arguments
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
    pair = explanation_of(first, "first"), explanation_of(second, "second")
    units = [  # a bare table is taken for what it meets
        one.units
        for one, given in zip(pair, (first, second), strict=True)
        if isinstance(given, Explanation) or is_shap(given)
    ]
    if len(set(units)) > 1:
        raise InvalidInput(
            f"second: expected the units of the first, {units[0]!r}, got {units[1]!r}; "
            "slopes and parts of the output are not compared: convert one of them, or "
            "explain both in the same units"
        )
    own = pair[0].attributions
    other = aligned(pair[1], pair[0].labels, "second", "the first")
    if other.shape != own.shape:
        raise InvalidInput(
            f"second: expected the shape of the first, {own.shape}, got {other.shape}"
        )
    if row is None:
        widths = np.abs([own, other]).mean(axis=1)
    else:
        place = pair[0].labels.position(row, len(own))
        widths = np.stack([own[place], other[place]])
    order = largest(np.abs(widths).max(axis=0), read_count(n_features, "n_features"))
    axes = axes_or_new(ax, 5.2, 1.0 + 0.36 * len(order))
    positions = np.arange(len(order))
    for k, colour in enumerate([OPTIMIZED_COLOUR, CYCLE[0]]):
        named = pair[0].method != pair[1].method
        label = matplotlib_text(pair[k].method) if named else f"{k + 1}"
        shift = 0.38 * (k - 0.5)
        axes.barh(positions + shift, widths[k, order], 0.36, color=colour, label=label)
    names = feature_names(pair[0])
    axes.set_yticks(positions, [matplotlib_text(names[j]) for j in order])
    axes.invert_yaxis()
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    # the angle between rows; of a zero row with any other 0
    sizes = np.linalg.norm(own, axis=1) * np.linalg.norm(other, axis=1)
    cosines, products = np.zeros(len(own)), np.einsum("nd,nd->n", own, other)
    np.divide(products, sizes, out=cosines, where=sizes > 0)
    along = units_label(pair[0])
    which = "all rows" if row is None else matplotlib_text(f"row {row}")
    axes.set(
        xlabel=f"mean size of the\n{along}" if row is None else along,
        title=f"{which}; median cosine {np.median(cosines):.2f}",
    )
    axes.legend(frameon=False, fontsize="small")
    return styled(axes)


# ---- A closer look at the corner where good explanations crowd


Box: TypeAlias = tuple[float, float, float, float]

CORNER = 0.15
"""Of both axes: the corner that is looked at."""


_PLACES: tuple[Box, ...] = (
    (0.52, 0.52, 0.45, 0.45),
    (0.3, 0.52, 0.45, 0.45),
    (0.52, 0.3, 0.45, 0.45),
)
"""Left, bottom, width and height in shares of the axes."""


def draw_corner(
    axes: Axes, front: pd.DataFrame, every: pd.DataFrame, draw: Callable[[Axes], None]
) -> Axes | None:
    """An inset with the corner near zero, if many optima are there and it has room."""
    reach = np.array([axes.get_xlim()[1], axes.get_ylim()[1]])
    optima = front[["x", "y"]].to_numpy(dtype=np.float64)
    near = (optima <= CORNER * reach).all(axis=1)
    shares = every[["x", "y"]].to_numpy(dtype=np.float64) / reach
    free = [  # where no point is covered
        box
        for box in _PLACES
        if not ((shares >= box[:2]) & (shares <= np.add(box[:2], box[2:]))).all(1).any()
    ]
    # a crowd in the corner: so large a share of the optima, and at least four
    if near.sum() < max(4.0, 0.3 * len(front)) or not free:
        return None
    inset = axes.inset_axes(free[0])
    draw(inset)
    closest = 1.15 * optima[near].max(axis=0)
    closest = np.where(closest > 0.0, closest, CORNER * reach)
    inset.set(xlim=(-0.03 * closest[0], closest[0]))
    inset.set(ylim=(-0.03 * closest[1], closest[1]))
    inset.tick_params(labelsize="x-small", length=2.0)
    inset.set_facecolor("white")
    axes.indicate_inset_zoom(inset, edgecolor="0.5")
    return inset


AxisScale: TypeAlias = Literal["linear", "log"]
Window: TypeAlias = tuple[float, float]

_OPTIMIZED = "optimized"
_FEWEST = 3
"""Optima that have a knee."""

_MARKERS = ["s", "^", "D", "v", "P", "X", "*"]


@suggests_arguments
def plot_trade_offs(
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    scale: AxisScale = "linear",
    ends: IdealNadir | None = None,
    units: Mapping[str, str] | None = None,
    quantity: Quantity | None = None,
    nearest: Sequence[int] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw one loss against another: the optimized front, and each baseline.

    The axes make room for the front, and for baselines up to twice as far; the legend
    tells of those farther out. The optimum at the knee has a ring. Where the ends of
    the trade-off are known, shares stand on the upper and the right edge; where many
    optima crowd near zero, they are drawn once more, larger.

    Parameters
    ----------
    frame : DataFrame
        The table of a sweep (see :meth:`propopt.TradeOffs.to_frame`).
    x, y : str
        Names of losses.
    scale : {"linear", "log"}
        Of both axes. On logarithmic ones a loss of zero is off the chart, and shares
        have no axis.
    ends : Ends, optional
        Losses at both ends, as ``ends`` of :class:`propopt.TradeOffs`, for shares.
    units : mapping, optional
        What losses are in, by name.
    quantity : Quantity, optional
        What is explained, for the title.
    nearest : sequence of int
        Positions of rows of baselines that get a filled marker: those of a family that
        are nearest to the front, as :meth:`propopt.TradeOffs.nearest` finds them.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    """
    if scale not in get_args(AxisScale):
        raise InvalidInput(f"scale: expected 'linear' or 'log', got {scale!r}")
    columns = [c for c in map(str, frame) if c.startswith("loss.")]
    for name in (x, y):
        if f"loss.{name}" not in columns:
            names = ", ".join(column.removeprefix("loss.") for column in columns)
            raise InvalidInput(f"plot: no loss is called {name!r}; there are {names}")
    axes = axes_or_new(ax, 6.0, 5.0)
    table = frame.assign(
        x=frame[f"loss.{x}"],
        y=frame[f"loss.{y}"],
        nearest=np.isin(np.arange(len(frame)), np.asarray(nearest, np.intp)),
    )
    optimized = table["method"] == _OPTIMIZED
    front, others = table[optimized], table[~optimized]
    windows = (
        _window(table["x"], front["x"], scale),
        _window(table["y"], front["y"], scale),
    )
    families = list(_families(others))

    def draw(on: Axes) -> None:
        if len(front):
            _draw_front(on, front)
        for place, family in enumerate(families):
            _draw_family(on, family, place, windows)

    draw(axes)
    knee = _knee(front)
    if knee is not None:
        _ring(axes, knee, _knee_label(knee, x, y, ends))
    axes.set(xscale=scale, yscale=scale, xlim=windows[0], ylim=windows[1])
    powers = [_power(window[1], scale) for window in windows]
    axes.set(xlabel=_label(x, units, powers[0]), ylabel=_label(y, units, powers[1]))
    title = f"{matplotlib_text(y.replace('_', ' '))} against {matplotlib_text(x.replace('_', ' '))}"
    if quantity is not None:
        title = f"explanations of the {matplotlib_text(quantity)}\n{title}"
    axes.set_title(title, fontsize="medium")
    styled(axes)
    inset = None
    if scale == "linear":
        for axis, power in zip((axes.xaxis, axes.yaxis), powers, strict=True):
            if power:  # which no corner of the picture has room for
                axis.set_major_formatter(partial(_divided, 10.0**power))
        inset = draw_corner(axes, front, table, draw)
        if ends is not None:
            draw_share_axes(axes, x, y, ends)
    if inset is not None and knee is not None:
        _ring(inset, knee, None)
    labels = axes.get_legend_handles_labels()[1]
    # two labels of so many letters stand side by side
    n_columns = 2 if max(map(len, labels), default=0) <= 40 else 1
    legend_below(axes, columns=n_columns)
    lines, figure = math.ceil(len(labels) / n_columns), axes.get_figure(root=True)
    if figure is not None and figure.axes == [axes] and lines > _LINES:
        figure.set_figheight(figure.get_figheight() + 0.2 * (lines - _LINES))
    return axes


_LINES: Final = 4
"""Of a legend that a picture of the usual size has room for."""


_ORDERS: Final = (-3, 4)
"""Powers of ten beyond which they stand beside the name of the axis."""


def _power(high: float, scale: AxisScale) -> int:
    """The power of ten that a linear axis up to ``high`` is in."""
    order = math.floor(math.log10(high)) if scale == "linear" and high > 0.0 else 0
    return 0 if _ORDERS[0] <= order < _ORDERS[1] else order


def _divided(unit: float, value: float, _: int) -> str:
    return f"{value / unit:.4g}"


def _knee(front: pd.DataFrame) -> pd.Series | None:
    """The optimum with the least sum of losses, each from 0 to 1 over the front."""
    losses = front[["x", "y"]]
    span = losses.max() - losses.min()
    if len(front) < _FEWEST or not (span > 0.0).all():
        return None
    sums = ((losses - losses.min()) / span).sum(axis=1)
    return front.iloc[int(sums.to_numpy().argmin())]


def _ring(axes: Axes, knee: pd.Series, label: str | None) -> None:
    axes.scatter(
        knee["x"],
        knee["y"],
        s=100.0,
        facecolors="none",
        edgecolors="0.15",
        linewidths=1.4,
        label=label,
        zorder=4,
    )


def _knee_label(knee: pd.Series, x: str, y: str, ends: IdealNadir | None) -> str:
    """The knee, with what is kept and removed there, where that is defined."""
    words = []
    for column, name in (("x", x), ("y", y)):
        if ends is not None and name in ends.at_target:
            share = ends.share(name, float(knee[column]))
            verb = "kept" if name in ends.faithful else "removed"
            words += [f"{in_percent(share)} {verb}"] * math.isfinite(share)
    return f"knee: {', '.join(words)}" if words else "knee"


def _window(values: pd.Series, front: pd.Series, scale: AxisScale) -> Window:
    """The ends of an axis; markers on a linear axis stay whole."""
    # room for the front, and for baselines up to twice as far
    reach = float(front.max()) if len(front) else 0.0
    near = values[values <= 2.0 * (reach or np.inf)]
    high = 1.05 * float(near.max()) or 1.0
    if scale == "linear":
        return -0.02 * high, high
    positive = front[front > 0.0] if (front > 0.0).any() else values[values > 0.0]
    return 0.7 * float(positive.min()) if len(positive) else 0.1 * high, 1.4 * high


def _draw_front(axes: Axes, front: pd.DataFrame) -> None:
    """A line through optima that none beats in both losses, others behind it."""
    optima = front.sort_values(["x", "y"])
    ahead = optima["y"] <= optima["y"].cummin()
    for part, line, alpha, label in [
        (optima[ahead], "-", 1.0, "optimized"),
        (optima[~ahead], "none", 0.4, None),
    ]:
        axes.plot(
            part["x"],
            part["y"],
            marker="o",
            linestyle=line,
            color=OPTIMIZED_COLOUR,
            alpha=alpha,
            markersize=3.5,
            linewidth=1.6,
            label=label,
            zorder=3,
        )


_Family: TypeAlias = tuple[str, str | None, pd.DataFrame]
"""A label, the number in which baselines differ, if in any, and their rows."""


def _draw_family(
    axes: Axes, family_entry: _Family, place: int, windows: tuple[Window, Window]
) -> None:
    label, number, family = family_entry
    inside = family["x"].between(*windows[0]) & family["y"].between(*windows[1])
    outside, several = int((~inside).sum()), len(family) > 1
    count = f"{outside} of {len(family)} " if several else ""
    how: dict[str, Any] = {
        "marker": _MARKERS[place % len(_MARKERS)],
        "color": CYCLE[place % len(CYCLE)],
    }
    axes.plot(
        family["x"],
        family["y"],
        linestyle="-" if several else "none",
        linewidth=0.8,
        markersize=5,
        markerfacecolor="none",  # what lies beneath another stays visible
        label=f"{label}, {count}off the chart" if outside else label,
        zorder=2,
        **how,
    )
    nearest = family[family["nearest"]].head(int(several))
    if nearest.empty:
        return
    named = None
    if number is not None:
        name = matplotlib_text(number.removeprefix("parameter.").replace("_", " "))
        named = f"{label}: {name} {nearest[number].iloc[0]:.3g} is nearest"
    axes.plot(
        nearest["x"],
        nearest["y"],
        linestyle="none",
        markersize=7,
        markeredgecolor="0.15",
        label=named,
        zorder=3.5,
        **how,
    )


def _families(others: pd.DataFrame) -> Iterator[_Family]:
    """The rows of each baseline that differ in one number only, in its order."""
    names = [c for c in map(str, others) if c.startswith("parameter.")]
    for method, rows in others.groupby("method", sort=False):
        varying = [c for c in names if rows[c].nunique(dropna=False) > 1]
        numbers = [c for c in varying if is_numeric_dtype(rows[c].infer_objects())]
        run = max(numbers, key=lambda c: rows[c].nunique(), default=None)
        fixed = [c for c in varying if c != run]
        groups = (
            rows.groupby(fixed, sort=False, dropna=False) if fixed else [((), rows)]
        )
        for key, family in groups:
            values = ", ".join(
                f"{column.removeprefix('parameter.')}={value}"
                for column, value in zip(fixed, key, strict=True)
            )
            label = f"{method} ({values})" if values else str(method)
            ordered = family if run is None else family.sort_values(run)
            yield matplotlib_text(label), run, ordered


def _label(name: str, units: Mapping[str, str] | None, power: int = 0) -> str:
    unit = matplotlib_text((units or {}).get(name, ""))
    in_tens = f"$10^{{{power}}}$" if power else ""
    beside = " ".join(filter(None, [in_tens, unit]))
    loss = f"{matplotlib_text(name.replace('_', ' '))} loss"
    return f"{loss}, {beside}" if beside else loss


@suggests_arguments
def plot_agreement(
    explanations: Sequence[AttributionsLike] | Mapping[str, AttributionsLike],
    graph: Graph,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw how much of the similarity joins rows that are explained alike.

    For each explanation, against t: the share of similarity Σ S_nn' between rows with
    ‖w_n − w_n'‖ ≤ t · rms_n ‖w_n‖. Higher is more robust, and shrinking all
    attributions alone moves no line.

    Parameters
    ----------
    explanations : sequence, or mapping from names
        Each gets a line: an Explanation, a ``shap.Explanation``, a DataFrame or an
        array (N, D).
    graph : Graph
        Which rows are similar, as in the robustness losses.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    InvalidInput
        If the graph has no edges, or another number of nodes than an explanation rows.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.linspace(-1, 1, 9)[:, None]
    >>> best = po.solve(1.0 * po.GradientMatching(3 * X**2))
    >>> po.plots.plot_agreement([best], po.graphs.chain_graph(9)).get_ylabel()
    'share of similar pairs'
    """
    if not len(explanations):
        raise InvalidInput("explanations: expected at least one, got none")
    axes = axes_or_new(ax)
    outcomes = list(explanations_of(explanations, "explanation"))
    for place, outcome in enumerate(outcomes):
        differences, shares = _distribution(outcome, graph)
        optimized = outcome.method == "optimized"
        colour = OPTIMIZED_COLOUR if optimized else CYCLE[place % len(CYCLE)]
        scale = None if optimized else outcome.parameters.get("scale")
        varied = "" if scale is None else f", scale={scale}"
        label = matplotlib_text(f"{outcome.method}{varied}")
        axes.step(differences, shares, where="post", color=colour, label=label)
    axes.set(
        xlabel="difference between neighbours, in rms attributions",
        ylabel="share of similar pairs",
        ylim=(0.0, 1.02),
    )
    axes.set_xlim(left=0.0)
    if known := common_quantity(outcomes):
        axes.set_title(
            fill(f"explanations of the {matplotlib_text(known.in_words())}", 50)
        )
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    return styled(axes)


def _distribution(outcome: Explanation, graph: Graph) -> tuple[Array, Array]:
    """Differences in rising order, and the share of similarity up to each."""
    W = outcome.attributions
    if len(W) != graph.n_nodes or not len(graph.edges):
        raise InvalidInput(
            f"graph: expected edges between the {len(W)} rows of the explanation, got "
            f"{graph!r}"
        )
    first, second = graph.edges.T
    typical = float(np.sqrt((W**2).sum() / len(W)))
    differences = np.linalg.norm(W[first] - W[second], axis=1) / (typical or 1.0)
    order = np.argsort(differences)
    shares = np.cumsum(graph.strengths[order])
    shares /= shares[-1]
    # a line of a million steps would look the same
    kept = np.unique(np.linspace(0, len(order) - 1, 400).astype(int))
    return np.append(0.0, differences[order][kept]), np.append(0.0, shares[kept])
