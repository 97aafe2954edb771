"""Coefficients over kernel widths, and where they change their sign."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from propopt.checks import read_count
from propopt.lime.explanation.result import LimeExplanation
from propopt.output.text import drawn
from propopt.plots.axes import CYCLE, framed, given_or_new
from propopt.plots.lime.words import row_title, shortened


_STYLES = ("-", "--", ":", "-.")


def lime_path(
    explanation: LimeExplanation,
    row: Hashable | None = None,
    *,
    widths: ArrayLike | None = None,
    features: Sequence[str | int] | None = None,
    n_features: int = 6,
    ax: Axes | None = None,
) -> Axes:
    """Draw the coefficients of one row over the kernel width, with changes of sign.

    A dotted line marks the width of the law, and a circle each width at which a
    coefficient that is drawn changes its sign. All of it is exact.

    Parameters
    ----------
    explanation : LimeExplanation
        With exact coefficients, of :func:`propopt.lime.limits`.
    row : label or int, optional
        Its name in the index of X, or its position where X had no names; by default the
        first.
    widths : array (M,), optional
        Kernel widths; by default 50 around that of the law.
    features : sequence of str or int, optional
        The columns to draw; by default the ``n_features`` that are largest somewhere.
    n_features : int
        See there.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Raises
    ------
    InvalidInput
        If there is no such row or column.
    Refused
        If coefficients are not exact, or the explanation was loaded.

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
    path = explanation.path(row, widths)
    count = read_count(n_features, "n_features")
    shown = _columns(explanation, path.coefficients, features, count)
    changes = path.sign_changes
    names = explanation.labels.feature_names(explanation.shape[1])
    axes = given_or_new(ax, 6.8, 3.9)
    for k, j in enumerate(shown):
        curve = path.coefficients[:, j]
        colour, style = CYCLE[k % len(CYCLE)], _STYLES[k // len(CYCLE) % len(_STYLES)]
        name = drawn(shortened(names[j], 28))
        axes.plot(path.widths, curve, color=colour, linestyle=style, label=name)
        roots = changes[j].crossings
        roots = roots[(roots >= path.widths[0]) & (roots <= path.widths[-1])]
        axes.plot(
            roots,
            np.zeros(len(roots)),
            "o",
            color=colour,
            markersize=5,
            markerfacecolor="white",
            zorder=4,
        )
    axes.axhline(0.0, color="0.3", linewidth=0.8)
    own = explanation.law.kernel_width
    axes.axvline(
        own, color="0.45", linestyle=":", linewidth=1.0, label="width of the law"
    )
    axes.set_xscale("log")
    axes.set(xlabel="kernel width", ylabel="coefficient, in units of the output")
    title = row_title(explanation, explanation.position(row))
    axes.set_title(title, fontsize="medium")
    axes.legend(
        loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small"
    )
    return framed(axes)


def _columns(
    explanation: LimeExplanation,
    coefficients: NDArray[np.float64],
    features: Sequence[str | int] | None,
    count: int,
) -> list[int]:
    if features is not None:
        return [explanation.column(feature) for feature in features]
    sizes = np.abs(coefficients).max(axis=0)
    order = np.argsort(-sizes, kind="stable")[:count]
    return [j for j in order.tolist() if sizes[j] > 0.0]
