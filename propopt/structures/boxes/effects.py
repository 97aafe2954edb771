"""Main effects of sums of trees over background rows, exactly.

The mean of f over the background, with the columns of player j from x, is a sum over
leaves v z_u 1[x ∈ A_u] and terms without x. Here A_u is the set of j at the leaf, and
z_u is the share of background rows in all its other sets. So only rows count that at
most one set of a leaf lacks, and others are left out on the way down a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

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
    _, first, ends = nodes.cells
    cells = np.zeros(first[-1])
    mean, rounding, _ = _visited(parts, np.zeros((0, len(nodes.owner))), cells)
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
    mean, rounding, G = _visited(parts, points, np.zeros(0))
    effects = np.ascontiguousarray(G.T) - mean
    return np.where(np.abs(effects) > rounding, effects, 0.0)


def _visited(
    parts: Sequence[BackgroundRows],
    points: Points,
    cells: Array,
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
        visit(*given, cells.size > 0, *nodes.cells[:2], cells, means, G, scratch)
    return means[0], _ROUNDING * means[1], G
