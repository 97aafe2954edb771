"""All attributions at once."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from propopt._typing import Array
from propopt.checks import read_count
from propopt.output.text import drawn
from propopt.plots.axes import DIVERGING, given_or_new
from propopt.plots.doubt import CertainSigns, hatch_cells, say_hatching, uncertain
from propopt.plots.naming import feature_names, largest, title_of, units_label
from propopt.results.explanation import Explanation
from propopt.results.foreign import AttributionsLike, explanation_of


OUTLIERS = 1.0
"""Per cent of attributions beyond the ends of a colour bar."""

_NAMED = 12
"""Names of rows that have room below a heat map."""


def plot_heatmap(
    explanation: AttributionsLike,
    *,
    n_features: int = 20,
    certain: CertainSigns | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw all attributions as a heat map, features down and rows across.

    Features stand in the order of their mean |w|; rows in the order of their first
    principal component, so that rows explained alike stand side by side, with the names
    of some below. The colours reach as far as 99 % of the attributions; the few beyond
    have the colour of the end.

    Parameters
    ----------
    explanation : Explanation, shap.Explanation, DataFrame or array
        W (N, D).
    n_features : int
        How many features to draw.
    certain : Certain, optional
        What ``explanation.certain()`` returned: attributions whose sign is not certain
        are hatched.
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
    features = largest(np.abs(W).mean(axis=0), read_count(n_features, "n_features"))
    rows = _along_component(W)
    picture = W[rows][:, features].T
    doubtful = uncertain(certain, W.shape)[rows][:, features].T
    axes = given_or_new(ax, 6.4, 1.4 + 0.26 * len(features))
    _draw(axes, picture, units_label(result, 40))
    hatch_cells(axes, doubtful)
    names = feature_names(result)
    axes.set_yticks(np.arange(len(features)), [drawn(names[j]) for j in features])
    _name_rows(axes, result, rows)
    say_hatching(axes, bool(doubtful.any()))
    axes.set_title(title_of(result))
    return axes


def _draw(axes: Axes, picture: Array, units: str) -> None:
    """Cells of one colour each, features apart; their colours reach to outliers."""
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
    for edge in np.arange(1, len(picture)) - 0.5:
        axes.axhline(edge, color="white", linewidth=1.5)
    beyond = "both" if np.abs(picture).max() > reach else "neither"
    bar = axes.figure.colorbar(image, ax=axes, extend=beyond)
    bar.set_label(units, fontsize="small")
    bar.outline.set_visible(False)


def _name_rows(axes: Axes, result: Explanation, rows: NDArray[np.intp]) -> None:
    """The names of all rows where there is room, else of some."""
    names = result.labels.points or range(len(rows))
    shown = np.unique(np.linspace(0, len(rows) - 1, _NAMED).round().astype(int))
    axes.set_xticks(
        shown,
        [drawn(str(names[rows[place]])) for place in shown],
        rotation=90,
        fontsize="x-small",
    )
    some = "" if len(shown) == len(rows) else f", {len(shown)} of them named"
    axes.set_xlabel(f"{len(rows)} rows, alike side by side{some}")


def _along_component(W: Array) -> NDArray[np.intp]:
    """The rows in the order of the first principal component."""
    centred = W - W.mean(axis=0)
    left, _, _ = np.linalg.svd(centred, full_matrices=False)
    return np.argsort(left[:, 0], kind="stable")
