"""How all plots look: sizes, colours, names, and where words are put."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pandas as pd

from propopt.base.arrays import Values, largest_first
from propopt.base.cards import BAR_LOWERS, BAR_RAISES
from propopt.base.document import minus
from propopt.base.text import matplotlib_text


if TYPE_CHECKING:  # matplotlib is imported when something is drawn
    import matplotlib.axes
    import matplotlib.colors

Axes: TypeAlias = "matplotlib.axes.Axes"

PLAIN: Final = "#1f4e79"
QUIET: Final = "0.55"
"""Colours of dots without a value, and of words and dots of missing values."""

SERIES: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a6761d", "#222222")
"""Blue, orange, green, pink, brown and black of Okabe and Ito, without yellow."""

CATEGORIES: Final = ("#332288", "#2a9d8f", "#882255", "#8a7a12", "#cc6699", "#117733")
"""Colours without an order, which can be read as letters; from those of Paul Tol."""

_LOW_TO_HIGH: Final = (BAR_LOWERS, "#c9c2bb", BAR_RAISES)
_AROUND_ZERO: Final = ("#123a66", BAR_LOWERS, "#ffffff", BAR_RAISES, "#6b3003")

LONGEST: Final = 42
"""The most characters of a name next to an axis."""


# ---- Axes


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """The given axes, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def frame(axes: Axes, title: str, grid: str = "both") -> None:
    """A light grid behind the data, no frame above and on the right, and a title."""
    axes.grid(False)
    if grid != "none":
        axes.grid(True, axis=grid, color="0.92", linewidth=0.8)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if title:
        axes.set_title(words(title), fontsize="medium")


def color_map(*, around_zero: bool) -> matplotlib.colors.Colormap:
    """Colours from low to high, or around a white zero."""
    from matplotlib.colors import LinearSegmentedColormap

    colors = _AROUND_ZERO if around_zero else _LOW_TO_HIGH
    return LinearSegmentedColormap.from_list("propopt", list(colors), N=257)


def color_bar(axes: Axes, mappable: Any, label: str, **settings: Any) -> Any:
    """A narrow colour bar without a frame."""
    bar = axes.figure.colorbar(mappable, ax=axes, aspect=40, pad=0.02, **settings)
    bar.set_label(label)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    return bar


def value_bar(axes: Axes, label: str) -> None:
    """The colour bar of values from low to high."""
    from matplotlib.cm import ScalarMappable

    colors = ScalarMappable(cmap=color_map(around_zero=False))
    bar = color_bar(axes, colors, label, ticks=[0.0, 1.0])
    bar.ax.set_yticklabels(["low", "high"])
    bar.ax.yaxis.labelpad = -16  # between the two words


# ---- Words


def words(text: str, width: int = 60) -> str:
    """A text for matplotlib, with minus signs, broken into lines."""
    lines = [matplotlib_text(minus(line)) for line in text.split("\n")]
    return "\n".join(fill(line, width, break_on_hyphens=False) for line in lines)


def number(x: float, digits: int = 3, sign: str = "-") -> str:
    """A number with some digits, and all digits before the decimal point."""
    is_long = 10.0**digits <= abs(x) < 1e16
    return minus(f"{x:{sign},.0f}" if is_long else f"{x:{sign}.{digits}g}")


def shortened(name: str, most: int = LONGEST) -> str:
    """A name without its middle if it is too long, as the bin is at its end."""
    if len(name) <= most:
        return name
    ahead = (most - 1) * 2 // 5
    return f"{name[:ahead]}…{name[len(name) - (most - 1 - ahead) :]}"


def short_names(names: Sequence[str], most: int = LONGEST) -> list[str]:
    """Names for the ticks of an axis."""
    return [matplotlib_text(minus(shortened(name, most))) for name in names]


def colored_words(
    axes: Axes,
    named: Sequence[tuple[str, str]],
    at: tuple[float, float],
    **coordinates: Any,
) -> None:
    """Words in their colours on one line, which stays between the sides of the axes."""
    from matplotlib.offsetbox import AnnotationBbox, HPacker, TextArea

    style: dict[str, Any] = {"fontsize": "x-small", "fontweight": "bold"}
    areas: list[Any] = [
        TextArea(text, textprops={"color": c, **style}) for text, c in named
    ]
    box = HPacker(children=areas, pad=0.0, sep=7.0)
    axes.add_artist(
        AnnotationBbox(
            box,
            at,
            box_alignment=(at[0], 0.5),
            frameon=False,
            pad=0.0,
            annotation_clip=False,
            **coordinates,
        )
    )


# ---- Values as colours and places


def shares_of_ranks(x: Values) -> Values:
    """Values as shares from 0 (low) to 1 (high) by their ranks; NaN if missing."""
    ranks = pd.Series(x).rank().to_numpy()
    above = ranks - np.fmin.reduce(ranks)
    span = np.fmax.reduce(above)
    return above / span if span > 0.0 else above + 0.5


_NARROW: Final = 60
"""Characters of the names of categories on one line."""

_OTHER: Final = "0.7"


def category_colors(
    codes: Values, along: Values, categories: Sequence[str]
) -> tuple[Any, list[tuple[str, str]]]:
    """A colour for each value (N,), and the names with their colours.

    Names are in the order of the medians of ``along``. Rare categories are counted if
    there is no room for their names.
    """
    present, counts = np.unique(codes[np.isfinite(codes)], return_counts=True)
    frequent = present[largest_first(counts)]
    texts = {code: shortened(str(categories[int(code)]), 18) for code in frequent}
    lengths = np.cumsum([len(text) + 2 for text in texts.values()])
    n_named = min(int((lengths <= _NARROW).sum()), len(CATEGORIES))
    named = frequent[:n_named].tolist()
    named.sort(key=lambda code: float(np.median(along[codes == code])))
    colors = dict(zip(named, CATEGORIES, strict=False))
    entries = [(matplotlib_text(texts[code]), colors[code]) for code in named]
    if rest := len(frequent) - n_named:
        entries.append((f"others: {rest}", _OTHER))
    each = [colors.get(code, _OTHER) for code in codes.tolist()]
    return np.array(each, dtype=object), entries


def heights_in_swarm(w: Values, span: float, reach: float) -> Values:
    """How far each point is moved sideways so that near ones do not overlap, (N,).

    Points of one bin, a ninetieth of the span, are stacked in their order, around the
    middle. Nothing is random.
    """
    width = span / 90.0 if span > 0.0 else 1.0
    bins = pd.Series(w).groupby(np.round(w / width))
    sizes = bins.transform("size").to_numpy()
    step = min(0.05, 2.0 * reach / sizes.max(initial=1))
    heights: Values = step * (bins.cumcount().to_numpy() - (sizes - 1.0) / 2.0)
    return heights
