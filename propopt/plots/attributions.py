"""How plots look, what they call rows and features, and heat maps of attributions."""

from __future__ import annotations

from textwrap import fill
from typing import Any, Final, TypeAlias

import numpy as np
from matplotlib import colormaps
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle
from matplotlib.transforms import ScaledTranslation
from numpy.typing import NDArray

from propopt.base.arrays import Array
from propopt.base.cards import BAR_LOWERS, BAR_RAISES
from propopt.base.checks import evenly_spaced, read_count
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import matplotlib_text
from propopt.results.certain import NearOptimalConclusions
from propopt.results.clear import Clear
from propopt.results.explanation import Explanation, explanation_of
from propopt.tables.imported import AttributionsLike


# ---- The style of all plots: sizes, colours, frames


OPTIMIZED_COLOUR = "#1f4e79"
RAISES, LOWERS, OTHERS = BAR_RAISES, BAR_LOWERS, "0.7"
"""Colours of positive attributions, of negative ones, and of reference points."""

CYCLE = ["#c44e52", "#dd8452", "#8172b3", "#937860", "#da8bc3", "#8c8c8c", "#ccb974"]
"""Colours of methods other than the optimized one, in order."""

DIVERGING = LinearSegmentedColormap.from_list(
    "propopt", ["#123a66", LOWERS, "#ffffff", RAISES, "#6b3003"]
)
"""The colour map of attributions, white at zero; matplotlib knows it as "propopt"."""
colormaps.register(DIVERGING, force=True)

STYLE: Final[dict[str, Any]] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "grid.color": "0.92",
    "legend.frameon": False,
}
"""Settings of matplotlib that give other plots the look of these."""


def axes_or_new(ax: Axes | None, width: float = 5.2, height: float = 3.9) -> Axes:
    """The given axes, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def styled(axes: Axes) -> Axes:
    """Give axes a light grid behind the data, without a frame above and right."""
    axes.grid(True, color=STYLE["grid.color"], linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.title.set_fontsize(STYLE["axes.titlesize"])
    return axes


def legend_below(axes: Axes, columns: int = 1) -> None:
    """Put the legend below the label of the x axis, for any figure size."""
    inches = 0.33 + 0.17 * len(axes.get_xlabel().split("\n"))
    down = ScaledTranslation(0.0, -inches, axes.figure.dpi_scale_trans)
    axes.legend(
        loc="upper right",
        bbox_to_anchor=(1.0, 0.0),
        bbox_transform=axes.transAxes + down,
        borderaxespad=0.0,
        frameon=False,
        fontsize="small",
        ncols=columns,
    )


def whiskers(axes: Axes, values: Array, errors: Array) -> None:
    """Draw intervals of two standard errors around horizontal values."""
    if errors.any():
        axes.errorbar(
            values,
            np.arange(len(values)),
            xerr=2.0 * errors,
            fmt="none",
            ecolor="0.25",
            elinewidth=0.9,
            capsize=2.0,
            zorder=4,
        )


# ---- Signs that are uncertain


HATCH: Final = "////"

SignConclusions: TypeAlias = NearOptimalConclusions | Clear
"""Results with a sign for each attribution, 0 where it is uncertain."""


def uncertain(
    certain: SignConclusions | None, shape: tuple[int, int]
) -> NDArray[np.bool_]:
    """True where a sign is uncertain, (N, D); nowhere without conclusions."""
    if certain is None:
        return np.zeros(shape, dtype=bool)
    signs = np.asarray(certain.signs)
    if signs.shape != shape:
        raise InvalidInput(
            f"certain: expected signs of shape {shape}, got {signs.shape}; give what "
            "certain() or clear() of this explanation returned"
        )
    return signs == 0


def hatched(first: int, row: int, width: int, colour: str) -> Rectangle:
    """A hatched patch over neighbouring cells in one row of a heat map."""
    return Rectangle(
        (first - 0.5, row - 0.5),
        width,
        1.0,
        fill=False,
        hatch=HATCH,
        edgecolor=colour,
        linewidth=0.0,
    )


def hatching_label(signs: SignConclusions | None) -> str:
    """The meaning of hatched bars and cells."""
    return f"sign not {'clear' if isinstance(signs, Clear) else 'certain'}"


# ---- Names and units


def units_label(explanation: Explanation, width: int = 60) -> str:
    """The unit of the attributions in words, broken into lines along an axis."""
    return fill(matplotlib_text(explanation.units_in_words), width)


def title_of(explanation: Explanation, row: str = "") -> str:
    """A title with the explained output, the row if given, and the method."""
    method, quantity = explanation.method, explanation.quantity
    if quantity is None:
        title = ", ".join(filter(None, [method, row]))
    else:
        title = ", ".join(filter(None, [quantity.in_words(), row])) + f" ({method})"
    return fill(matplotlib_text(title), 50)


def feature_names(explanation: Explanation) -> list[str]:
    """Names of the columns of W; ``x0, x1, ...`` if it has none."""
    return [str(name) for name in explanation.to_frame().columns]


def largest(sizes: Array, most: int) -> NDArray[np.intp]:
    """Indices of the largest |sizes|, in falling order."""
    return np.argsort(-np.abs(sizes), kind="stable")[:most]


OUTLIERS = 1.0
"""Per cent of attributions beyond the ends of a colour bar."""

_ROW_LABELS = 12
"""Labels of rows that fit below a heat map."""


@suggests_arguments
def plot_heatmap(
    explanation: AttributionsLike,
    *,
    n_features: int = 20,
    certain: SignConclusions | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw all attributions as a heat map, features down and rows across.

    Features are sorted by their mean |w|, and rows by their first principal component,
    which places rows with similar attributions next to each other. Colours span 99 % of
    the attributions; larger ones have the colour of the end.

    Parameters
    ----------
    explanation : Explanation, shap.Explanation, DataFrame or array
        Attributions W (N, D).
    n_features : int
        The number of features to draw, those with the largest mean |w|.
    certain : Clear or NearOptimalConclusions, optional
        The result of ``explanation.clear()`` or ``explanation.certain()``: attributions
        with an uncertain sign are hatched.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes

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
    features = largest(np.abs(W).mean(axis=0), read_count(n_features, "n_features"))
    left, _, _ = np.linalg.svd(W - W.mean(axis=0), full_matrices=False)
    rows = np.argsort(left[:, 0], kind="stable")
    doubtful = uncertain(certain, W.shape)[rows][:, features].T
    axes = axes_or_new(ax, 6.4, 1.4 + 0.26 * len(features))
    _draw(axes, W[rows][:, features].T, units_label(result, 40))
    # one patch for each run of cells
    edges = np.diff(np.pad(doubtful.astype(int), ((0, 0), (1, 1))), axis=1)
    starts, stops = np.argwhere(edges == 1).tolist(), np.argwhere(edges == -1).tolist()
    for (feature, start), (_, stop) in zip(starts, stops, strict=True):
        axes.add_patch(hatched(start, feature, stop - start, "0.35"))
    names = [matplotlib_text(name) for name in feature_names(result)]
    axes.set_yticks(np.arange(len(features)), [names[j] for j in features])
    labelled = evenly_spaced(len(rows), _ROW_LABELS)
    ticks = [matplotlib_text(result.labels.row(rows[index])) for index in labelled]
    axes.set_xticks(labelled, ticks, rotation=90, fontsize="x-small")
    some = "" if len(labelled) == len(rows) else f", {len(labelled)} of them labelled"
    label = f"{len(rows)} rows, similar ones next to each other{some}"
    if doubtful.any():
        label += f"\nhatched: {hatching_label(certain)}"
    axes.set_xlabel(label)
    axes.set_title(title_of(result), fontsize="medium")
    return axes


def _draw(axes: Axes, picture: Array, units: str) -> None:
    """Cells with white lines between features, and a colour bar."""
    reach = float(np.percentile(np.abs(picture), 100.0 - OUTLIERS))
    reach = reach or float(np.abs(picture).max()) or 1.0
    image = axes.imshow(
        picture,
        cmap=DIVERGING,
        vmin=-reach,
        vmax=reach,
        aspect="auto",
        interpolation="none",  # else colours of neighbouring features are mixed
        rasterized=True,
    )
    axes.grid(False)
    for edge in np.arange(1, len(picture)) - 0.5:
        axes.axhline(edge, color="white", linewidth=1.5)
    beyond = "both" if np.abs(picture).max() > reach else "neither"
    bar = axes.figure.colorbar(image, ax=axes, extend=beyond)
    bar.set_label(units, fontsize="small")
    bar.outline.set_visible(False)


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
    """Draw the attributions of one row as bars with their numbers, the largest on top.

    Features beyond the first ``n_features`` share one bar, the sum of theirs. Where
    standard errors are known, whiskers reach two of them to each side, and bars that
    are smaller than that are faded.

    Parts of the output that come with their ``base_value`` are drawn as steps: from the
    base, at the bottom, to the base and all contributions, which is the prediction
    where they add up to it. The axis then has the output itself, such
    as a probability. Slopes are drawn from zero: they do not add up, and no step of
    theirs ends at a prediction; ``kind="contributions"`` of :func:`propopt.explain` and
    :class:`propopt.Explainer` gives parts that do.

    Parameters
    ----------
    explanation : Explanation, shap.Explanation, DataFrame or array
        W (N, D).
    row : label or int, optional
        The row's name in the index of the inputs; its position where they had none.
        Not needed where there is one row.
    X : array or DataFrame (N, D), optional
        The inputs, to write the value of each feature beside its name, where the
        explanation does not know them; those with names are put in its order.
    n_features : int
        How many features have a bar of their own.
    certain : Clear or Certain, optional
        What ``explanation.clear()`` or ``explanation.certain()`` returned: bars whose
        sign is not clear, or not certain, are hatched.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    InvalidInput
        If there is no such row, or none is named and there are several; or X has
        another shape than the attributions.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> best = po.solve(1.0 * po.GradientMatching(np.array([[3.0, -1.0, 0.5]])))
    >>> [float(bar.get_width()) for bar in po.plots.plot_row(best, 0).patches]
    [3.0, -1.0, 0.5]
    """
    result = explanation_of(explanation, "given")
    names, count = result.labels.points, len(result.attributions)
    if row is None and (names is None or None not in names):
        row = 0 if names is None else names[0]
        if count > 1:
            raise InvalidInput(
                f"row: there are {count} rows; name one, such as {row!r}"
            )
    place = result.labels.position(row, count)
    doubtful = uncertain(certain, result.shape)[place]
    told = names_with_values(result, X, place)
    w = result.attributions[place]
    order = largest(w, read_count(n_features, "n_features"))
    # the largest from the top down, and one bar for the sum of the others
    rest = np.delete(w, order)
    others = min(rest.size, 1)
    widths = np.append(w[order], [rest.sum()] * others)
    errors = np.zeros(len(widths))
    if result.standard_errors is not None:  # that of the sum is not known
        errors = np.append(result.standard_errors[place, order], [np.nan] * others)
    doubtful = np.append(doubtful[order], np.zeros(others, dtype=bool))
    axes = axes_or_new(ax, 6.4, 1.3 + 0.3 * len(widths))
    base = None  # of slopes, and where it is not known
    if result.units == "output" and result.base_value is not None:
        base = float(result.base_value[place])
    starts = np.zeros(len(widths))
    if base is not None:
        # the largest step ends at the prediction, at the top
        starts = base + np.cumsum(widths[::-1])[::-1] - widths
    axes.use_sticky_edges = False  # steps have room on both sides
    colours = [RAISES if width >= 0 else LOWERS for width in widths]
    colours[len(order) :] = [OTHERS] * others
    rows = np.arange(len(widths))
    axes.barh(rows, widths, left=starts, height=0.7, color=colours)
    for k, bar in enumerate(axes.patches[-len(widths) :]):
        bar.set_alpha(FADED if abs(widths[k]) < 2.0 * errors[k] else 1.0)
        if doubtful[k]:
            bar.set(hatch=HATCH, edgecolor="white")
    whiskers(axes, starts + widths, errors)
    _write_numbers(axes, starts, widths, 2.0 * np.nan_to_num(errors))
    if base is None:
        axes.axvline(0.0, color="0.3", linewidth=0.8)
        along = units_label(result)
    else:  # the output itself
        _mark_ends(axes, base, widths)
        quantity = result.quantity
        along = "output" if quantity is None else matplotlib_text(quantity.in_words())
    suggestions = "1 other" if rest.size == 1 else f"{rest.size} others"
    named = [*(told[j] for j in order), *[suggestions] * others]
    axes.set_yticks(rows, [matplotlib_text(name) for name in named])
    axes.invert_yaxis()
    axes.set(xlabel=along, title=title_of(result, f"row {row}"))
    label_hatching(axes, certain, bool(doubtful.any()))
    styled(axes)
    axes.grid(False, axis="y")  # bars have names
    return axes


_ROOM: Final = 0.16
"""Beside the bars, for their numbers, of what they span."""


def _signed(width: float, digits: int) -> str:
    """A number with its sign, 0 if it rounds to it, by powers of ten if far off."""
    if width and not -6 <= digits <= 6:
        return f"{width:+.2e}".replace("-", "−")
    places = max(digits, 0)
    rounded = round(width, places)
    return f"{rounded:+,.{places}f}".replace("-", "−") if rounded else "0"


def _write_numbers(axes: Axes, starts: Array, widths: Array, reach: Array) -> None:
    """Each width beside the end of its bar, all to the digits of the largest."""
    largest_width = float(np.abs(widths).max(initial=0.0))
    digits = 2 - math.floor(math.log10(largest_width)) if largest_width else 0
    ends = starts + widths
    for place, width in enumerate(widths.tolist()):
        side = -1.0 if width < 0.0 else 1.0
        axes.annotate(
            _signed(width, digits),
            (float(ends[place] + side * reach[place]), place),
            xytext=(4.0 * side, 0.0),
            textcoords="offset points",
            fontsize="small",
            ha="right" if side < 0.0 else "left",
            va="center",
            annotation_clip=False,
            bbox={"facecolor": axes.get_facecolor(), "linewidth": 0.0, "pad": 0.8},
        )
    edges = np.concatenate([starts, ends, ends + reach, ends - reach])
    low, high = float(edges.min()), float(edges.max())
    room = _ROOM * ((high - low) or 1.0)
    left = low - (room if (widths < 0.0).any() else 0.3 * room)
    axes.set_xlim(left, high + (room if (widths >= 0.0).any() else 0.3 * room))


def _mark_ends(axes: Axes, base: float, widths: Array) -> None:
    """The base and the prediction, and lines from each step to the next."""
    end = base + float(widths.sum())
    ends = base + np.cumsum(widths[::-1])[::-1]
    for place in range(len(widths) - 1):  # from the step below to this one
        axes.plot(
            [ends[place + 1]] * 2,
            [place + 0.35, place + 0.65],
            color="0.4",
            linewidth=0.8,
        )
    axes.axvline(base, color="0.55", linewidth=0.8, linestyle=":")
    axes.axvline(end, color="0.3", linewidth=0.8)
    last = len(widths) - 0.5
    inwards = "left" if base <= end else "right"
    outwards = "left" if base >= end else "right"
    for x, y, text, ha in (
        (base, last + 0.15, f"base {base:.4g}", inwards),
        (end, -0.7, f"prediction {end:.4g}", outwards),
    ):
        axes.annotate(
            text,
            (x, y),
            xytext=(4.0 if ha == "left" else -4.0, 0.0),
            textcoords="offset points",
            fontsize="small",
            ha=ha,
            va="center",
            annotation_clip=False,
        )
    axes.set_ylim(-0.9, last + 0.35)


_Scale: TypeAlias = tuple[Callable[[Any], Array], Callable[[Any], Array]]


_SAME = 1e-12
"""Ends that differ by less, relatively, are one."""


def draw_share_axes(axes: Axes, x: str, y: str, ends: IdealNadir) -> None:
    """Shares above for loss ``x``, at the right for ``y``, where they are defined."""
    for axis, side, name in (("x", "top", x), ("y", "right", y)):
        along = _scale(name, ends)
        if along is None:
            continue
        label = f"{matplotlib_text(name.replace('_', ' '))} removed"
        if name in ends.faithful:
            label = "faithfulness retained"
        second = getattr(axes, f"secondary_{axis}axis")(side, functions=along)
        getattr(second, f"set_{axis}label")(label, fontsize="small")
        # in per cent, and quieter than the losses
        ticks = getattr(second, f"{axis}axis")
        ticks.set_major_formatter(PercentFormatter(1.0, decimals=0))
        second.tick_params(labelsize="small", color="0.6")
        second.spines[side].set_color("0.6")


def _scale(name: str, ends: IdealNadir) -> _Scale | None:
    """The share of a loss, and the loss of a share; None where one is not defined."""
    near, far = ends.at_target.get(name, math.nan), ends.far.get(name, math.nan)
    is_root = name in ends.roots
    if is_root:
        near, far = math.sqrt(near), math.sqrt(far)
    # of faithfulness nothing is kept at the far end, of others all is removed there
    none, whole = (far, near) if name in ends.faithful else (near, far)
    known = math.isfinite(near) and math.isfinite(far)
    if not known or abs(none - whole) <= _SAME * max(none, whole):
        return None

    def share(loss: Any) -> Array:
        if is_root:  # and its mirror image below zero, where the frame reaches
            loss = np.sign(loss) * np.sqrt(np.abs(loss))
        return np.asarray((none - loss) / (none - whole))

    def loss(share: Any) -> Array:
        value = none - np.asarray(share) * (none - whole)
        return np.asarray(value * np.abs(value) if is_root else value)

    return share, loss
