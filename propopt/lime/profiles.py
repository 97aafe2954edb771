"""Profiles and cells: the means of f in the bins of one column or two."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from propopt.base.arrays import Array, Points, Values
from propopt.base.errors import InvalidInput
from propopt.lime.bins import BinRule
from propopt.lime.expectations import ExactLimits, Limits
from propopt.lime.laws.binned_columns import BinnedColumn, binned_columns
from propopt.lime.laws.gaussian_law import NormalColumn
from propopt.lime.laws.lime_law import LimeColumn, LimeLaw


# ---- Means of a function by the bin of one column, and coefficients along its bins


def bin_profiles(
    exact: ExactLimits, points: Points, widths: Values | None = None
) -> tuple[Array, ...]:
    """h_j(b) = E_Q[f | V_j in bin b] of all columns, for all rows, (n, B_j) each.

    NaN in bins that are never drawn from.
    """
    binned = binned_columns(exact.law)
    columns = tuple(column for column in binned if column is not None)
    if len(columns) < len(binned):
        raise InvalidInput(
            f"law: {exact.law!r} weights samples by their distance from the row, so a "
            "bin has no mean of its own; a TabularLaw weights them by bins"
        )
    own_widths = exact.law.widths(points, widths)
    parts = [
        _means(exact, columns, points[some], own_widths[some])
        for some in exact.blocks(len(points))
    ]
    return tuple(
        np.where(
            column.shares > 0.0, np.concatenate([part[j] for part in parts]), np.nan
        )
        for j, column in enumerate(columns)
    )


def _means(
    exact: ExactLimits,
    columns: tuple[BinnedColumn, ...],
    points: Points,
    widths: Values,
) -> list[Array]:
    """h_j(b) = E_Q f + Σ_u (∂ E_Q f / ∂ E g_u) (E[g_u | b] − E_Q g_u), (n, B_j)."""
    means = exact.factor_means(points, widths)
    total, slopes = exact.function.slopes(means.mean)
    profiles = [np.repeat(total[:, None], len(c.shares), axis=1) for c in columns]
    for j in exact.function.columns.tolist():
        for numbers, in_pieces in exact.piece_means(j, means.tilts[j]):
            own = slopes[numbers]
            profiles[j] += own.T @ in_pieces
            profiles[j] -= np.einsum("un,un->n", own, means.mean[numbers])[:, None]
    return profiles


# ---- Edges of bins around values, and columns in other bins


def inner_edges(column: LimeColumn) -> Array:
    """Where bins of numbers end; none for categories."""
    if isinstance(column, BinnedColumn) and not column.coded:
        return column.edges
    return column.edges if isinstance(column, NormalColumn) else np.zeros(0)


def data_ends(column: LimeColumn) -> tuple[float, float]:
    """The lowest and the highest number of the data; infinite under normal laws."""
    return column.extent if isinstance(column, BinnedColumn) else (-np.inf, np.inf)


def own_widths(column: LimeColumn, x: Values) -> Values:
    """The width of the bin of each number (n,); σ where it has no end."""
    edges, (low, high) = inner_edges(column), data_ends(column)
    ends, place = np.concatenate([[low], edges, [high]]), column.place(x)
    widths = ends[place + 1] - ends[place]
    endless = np.isinf(widths)
    if isinstance(column, NormalColumn):
        widths[endless] = column.scale
    if isinstance(column, BinnedColumn):
        widths[endless] = column.pieces.sd[place[endless]]
    return widths


def nearest_edges(column: LimeColumn, x: Values) -> Array:
    """The nearest inner edge of the bin of each value, (3, n); NaN if it has none.

    Its distance in widths of the bin, the edge, and the nearest value beyond it.
    """
    edges, result = inner_edges(column), np.full((3, len(x)), np.nan)
    known = np.flatnonzero(~np.isnan(x))
    if len(edges) == 0:
        return result
    x = x[known]
    place, last = column.place(x), len(edges) - 1
    low, high = edges[np.maximum(place - 1, 0)], edges[np.minimum(place, last)]
    below = (place > last) | ((place > 0) & (np.abs(x - low) <= np.abs(x - high)))
    edge = np.where(below, low, high)
    around = np.stack([np.nextafter(edge, -np.inf), edge, np.nextafter(edge, np.inf)])
    target = np.where(below, place - 1, place + 1)
    beyond = column.place(around.ravel()).reshape(around.shape) == target
    widths = own_widths(column, x)
    some = np.flatnonzero(beyond.any(axis=0) & (widths > 0.0))
    values = around[beyond.argmax(axis=0), np.arange(len(x))]
    distance = np.abs(x - edge)[some] / widths[some]
    result[:, known[some]] = distance, edge[some], values[some]
    return result


def values_in_bins(column: LimeColumn) -> Values:
    """A value in each bin, (B,), NaN for the bin of missing numbers."""
    if isinstance(column, BinnedColumn) and column.coded:
        return column.pieces.mean
    edges = inner_edges(column)
    if isinstance(column, NormalColumn):
        first = edges[0] - column.scale if len(edges) > 0 else column.mean
        values = np.append(first, edges)
    else:
        low, _ = data_ends(column)
        last = np.nextafter(edges[-1], np.inf) if len(edges) > 0 else low
        values = np.append(edges, last)
    return np.append(values, np.nan) if len(column.bins) > len(values) else values


def with_bins(
    column: LimeColumn, n_bins: int, reference: Values | None
) -> BinnedColumn | NormalColumn | None:
    """The column in another number of bins; None where that makes no sense."""
    own = column
    if isinstance(own, NormalColumn):
        mean, scale, unit = own.mean, own.scale, own.unit
        return NormalColumn.of_rule(mean, scale, BinRule(n_bins), unit, own.missing)
    if reference is None or not isinstance(own, BinnedColumn) or own.coded:
        return None
    known = reference[~np.isnan(reference)]
    bins = BinnedColumn.of_data(reference, BinRule(n_bins).inner_edges(known))
    return bins if (bins.missing >= 0) == (own.missing >= 0) else None


# ---- Means of a function over the bins of a column, the other columns as LIME has them


def profile_means(
    limits: Callable[[Points], Limits], law: LimeLaw, points: Points, j: int
) -> Array:
    """h_j(b) = E_Q f + (1 − α_j) β_j with rows moved to bin b of column j, (N, B_j).

    points (N, D).
    """
    column = law.columns[j]
    values = values_in_bins(column)
    moved = np.repeat(points, len(values), axis=0)
    moved[:, j] = np.tile(values, len(points))
    result = limits(moved)
    inside = result.mean + (1.0 - result.alpha[:, j]) * result.coefficients[:, j]
    means = np.full((len(points), len(column.bins)), np.nan)
    means[:, column.place(values)] = inside.reshape(len(points), len(values))
    return means


# ---- Coefficients of two columns in each cell of their bins


def cell_coefficients(
    limits: Callable[[Points], Limits],
    law: LimeLaw,
    point: Points,  # shape (1, D)
    pair: tuple[int, int],
) -> Array:
    """β of a pair of columns with one row (1, D) moved to each cell, (B_1, B_2, 2)."""
    one, other = (law.columns[j] for j in pair)
    first, second = values_in_bins(one), values_in_bins(other)
    moved = np.repeat(point, len(first) * len(second), axis=0)
    moved[:, pair[0]] = np.repeat(first, len(second))
    moved[:, pair[1]] = np.tile(second, len(first))
    result = limits(moved).coefficients[:, list(pair)]
    cells = np.full((len(one.bins), len(other.bins), 2), np.nan)
    indices = np.ix_(one.place(first), other.place(second))
    cells[indices] = result.reshape(len(first), len(second), 2)
    return cells
