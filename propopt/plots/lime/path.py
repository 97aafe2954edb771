"""Coefficients over kernel widths, and where they change their sign."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from propopt.checks import read_count
from propopt.lime.explanation.result import LimeExplanation
from propopt.plots.axes import given_or_new
from propopt.plots.lime.curves import draw_curves, frame_curves, largest_curves
from propopt.plots.lime.words import row_title


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
    features_of = explanation.labels.feature_names(explanation.shape[1])
    names = {j: features_of[j] for j in shown}
    axes = given_or_new(ax, 6.8, 3.9)
    draw_curves(axes, names, path.widths, path.coefficients, path.sign_changes)
    what = explanation.explained_in_words
    frame_curves(axes, explanation.law.kernel_width, "width of the law", what)
    axes.set(xlabel="kernel width")
    title = row_title(explanation, explanation.position(row))
    axes.set_title(title, fontsize="medium", pad=16)
    return axes


def _columns(
    explanation: LimeExplanation,
    coefficients: NDArray[np.float64],
    features: Sequence[str | int] | None,
    count: int,
) -> list[int]:
    if features is not None:
        return [explanation.column(feature) for feature in features]
    return largest_curves(coefficients, count)
