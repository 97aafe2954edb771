"""Main effects of sums of trees over background rows, exactly.

The mean of f over the background, with the columns of player j from x, is a sum over
leaves v z_u 1[x ∈ A_u] and terms without x. Here A_u is the set of j at the leaf, and
z_u is the share of background rows in all its other sets. So only rows count that at
most one set of a leaf lacks, and others are left out on the way down a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Points, Values
from propopt.base.kernels import kernel
from propopt.structures.boxes.shapley import BackgroundRows


_ROUNDING: Final = 1e-15
"""An effect up to this, relative to the absolute sum of its terms, is rounding."""


def effect_tables(
    parts: Sequence[BackgroundRows],
) -> dict[int, tuple[Array, Values]]:
    """The upper ends of cells with equal main effects, for each column.

    With the main effect of each cell; the last one, for missing numbers, has no end.
    Cells of a category are its codes.
    """
    nodes = parts[0].nodes
    cut = np.zeros(len(nodes.column), np.int32)
    counts = np.zeros(len(nodes.owner), np.intp)
    ends = {}
    for j in nodes.columns.tolist():
        testing = np.flatnonzero(nodes.column == j)
        cuts, position = np.unique(nodes.number[testing], return_inverse=True)
        cut[testing] = position + 1
        n_codes = nodes.n_codes[j]
        counts[j] = len(cuts) + 3 if n_codes is None else n_codes
        ends[j] = cuts if n_codes is None else np.arange(n_codes - 1.0)
    first = np.cumsum([0, *counts])
    cells = np.zeros(first[-1])
    none = np.zeros((0, len(nodes.owner)))
    mean, rounding, _ = _visited(parts, none, cut, first, cells)
    tables = {}
    for j, cuts in ends.items():
        values = cells[first[j] : first[j + 1]]
        if nodes.n_codes[j] is None:
            values = np.append(np.cumsum(values[:-2]), values[-1])
            cuts = np.append(cuts, np.inf)
        values = values - mean[j]
        tables[j] = cuts, np.where(np.abs(values) > rounding[j], values, 0.0)
    return tables


def effects_of_players(parts: Sequence[BackgroundRows], points: Points) -> Attributions:
    """The main effects of groups of columns at points (N, D), shape (N, P)."""
    nothing = np.zeros(1, np.int32), np.zeros(1, np.intp), np.zeros(0)
    mean, rounding, G = _visited(parts, points, *nothing)
    effects = np.ascontiguousarray(G.T) - mean
    return np.where(np.abs(effects) > rounding, effects, 0.0)


def _visited(
    parts: Sequence[BackgroundRows],
    points: Points,
    *cells: NDArray[Any],
) -> tuple[Values, Values, Array]:
    """Means and what is rounding (P,), and effects (P, N); cells are added to."""
    visit = kernel("effects")
    assert visit is not None, "others have no such rows"
    nodes = parts[0].nodes
    means = np.zeros((2, nodes.n_players))
    G = np.zeros((nodes.n_players, len(points)))
    columns = np.ascontiguousarray(points.T)
    whole = slice(0, len(nodes.roots) - 1)
    for part in parts:
        rows = *part.ranked, part.total
        given, scratch = nodes.arguments(whole, rows, columns)
        visit(*given, cells[-1].size > 0, *cells, means, G, scratch)
    return means[0], _ROUNDING * means[1], G
