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
from propopt.base.row_sample import RowSample
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import matplotlib_text
from propopt.results.certain import NearOptimalConclusions
from propopt.results.clear import Clear
from propopt.results.explanation import Explanation, explanation_of
from propopt.tables.imported import AttributionsLike


# ---- The style of all plots: sizes, colours, frames


OPTIMIZED_COLOUR = "#1f4e79"
RAISES = BAR_RAISES
LOWERS = BAR_LOWERS
OTHERS = "0.7"
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
    method = explanation.method
    quantity = explanation.quantity
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
    the attributions; larger ones have the colour of the end. For more than 2,000 rows a
    sample of 2,000 is drawn, and its size is on the axis.

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
    sample = RowSample.of(len(W))
    doubtful = uncertain(certain, W.shape)[sample.rows]
    W = W[sample.rows]
    left, _, _ = np.linalg.svd(W - W.mean(axis=0), full_matrices=False)
    rows = np.argsort(left[:, 0], kind="stable")
    doubtful = doubtful[rows][:, features].T
    axes = axes_or_new(ax, 6.4, 1.4 + 0.26 * len(features))
    _draw(axes, W[rows][:, features].T, units_label(result, 40))
    # one patch for each run of cells
    edges = np.diff(np.pad(doubtful.astype(int), ((0, 0), (1, 1))), axis=1)
    starts = np.argwhere(edges == 1).tolist()
    stops = np.argwhere(edges == -1).tolist()
    for (feature, start), (_, stop) in zip(starts, stops, strict=True):
        axes.add_patch(hatched(start, feature, stop - start, "0.35"))
    names = [matplotlib_text(name) for name in feature_names(result)]
    axes.set_yticks(np.arange(len(features)), [names[j] for j in features])
    labelled = evenly_spaced(len(rows), _ROW_LABELS)
    names_of_rows = [result.labels.row(n) for n in sample.rows[rows[labelled]].tolist()]
    ticks = [matplotlib_text(name) for name in names_of_rows]
    axes.set_xticks(labelled, ticks, rotation=90, fontsize="x-small")
    some = "" if len(labelled) == len(rows) else f", {len(labelled)} of them labelled"
    shown = f"{len(rows)} rows" if sample.is_whole else sample.in_words()
    label = f"{shown}, similar ones next to each other{some}"
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
