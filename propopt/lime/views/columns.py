"""Edges of bins around values, and columns in other bins."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from propopt._typing import Array, Values
from propopt.lime.bins.numbers import NumberBins
from propopt.lime.bins.rules import BinRule
from propopt.lime.laws.binned import BinnedColumn
from propopt.lime.laws.column import LimeColumn
from propopt.lime.laws.from_data import number_column
from propopt.lime.laws.gaussian import NormalColumn
from propopt.lime.laws.glime import without_glime
from propopt.lime.laws.smooth.column import SmoothColumn


__all__ = [
    "Edge",
    "data_ends",
    "inner_edges",
    "nearest_edge",
    "own_width",
    "values_in_bins",
    "with_bins",
    "without_glime",
]


class Edge(NamedTuple):
    """The edge nearest to a value."""

    distance: float
    """In widths of the bin of the value."""

    edge: float
    beyond: float
    """The nearest value in the adjacent bin."""


def _own_bins(column: LimeColumn) -> LimeColumn:
    """The column that has the bins, without weights by distance within them."""
    own = without_glime(column)
    return own.binned if isinstance(own, SmoothColumn) else own


def inner_edges(column: LimeColumn) -> Array:
    """Where bins of numbers end; none for categories."""
    own = _own_bins(column)
    if isinstance(own, BinnedColumn) and not own.coded:
        return own.edges
    return own.edges if isinstance(own, NormalColumn) else np.zeros(0)


def data_ends(column: LimeColumn) -> tuple[float, float]:
    """The lowest and the highest number of the data; infinite under normal laws."""
    own = _own_bins(column)
    return own.extent if isinstance(own, BinnedColumn) else (-np.inf, np.inf)


def own_width(column: LimeColumn, x: float) -> float:
    """The width of the bin of a number; σ where it has no end."""
    edges, (low, high) = inner_edges(column), data_ends(column)
    ends = np.concatenate([[low], edges, [high]])
    place = int(column.place(np.array([x]))[0])
    width = float(ends[place + 1] - ends[place])
    own = _own_bins(column)
    if np.isinf(width) and isinstance(own, NormalColumn):
        return own.scale
    return width


def nearest_edge(column: LimeColumn, x: float) -> Edge | None:
    """The nearest inner edge of the bin of a number; None if it has none."""
    edges = inner_edges(column)
    if len(edges) == 0 or np.isnan(x):
        return None
    place = int(column.place(np.array([x]))[0])
    sides = [k for k in (place - 1, place) if 0 <= k < len(edges)]
    k = min(sides, key=lambda side: abs(x - edges[side]))
    target = place - 1 if k == place - 1 else place + 1
    around = np.array(
        [np.nextafter(edges[k], -np.inf), edges[k], np.nextafter(edges[k], np.inf)]
    )
    beyond = around[column.place(around) == target]
    width = own_width(column, x)
    if len(beyond) == 0 or not width > 0.0:
        return None
    return Edge(abs(x - edges[k]) / width, float(edges[k]), float(beyond[0]))


def values_in_bins(column: LimeColumn) -> Values:
    """A value in each bin, (B,), NaN for the bin of missing numbers."""
    own = _own_bins(column)
    if isinstance(own, BinnedColumn) and own.coded:
        return own.pieces.mean
    edges = inner_edges(column)
    if isinstance(own, NormalColumn):
        first = edges[0] - own.scale if len(edges) > 0 else own.mean
        values = np.append(first, edges)
    else:
        last = np.nextafter(edges[-1], np.inf) if len(edges) > 0 else data_ends(own)[0]
        values = np.append(edges, last)
    return np.append(values, np.nan) if len(column.bins) > len(values) else values


def with_bins(
    column: LimeColumn, n_bins: int, reference: Values | None
) -> BinnedColumn | NormalColumn | None:
    """The column in another number of bins; None where that makes no sense."""
    own = without_glime(column)
    if isinstance(own, NormalColumn):
        mean, scale, unit = own.mean, own.scale, own.unit
        return NormalColumn.of_rule(mean, scale, BinRule(n_bins), unit, own.missing)
    if reference is None or not isinstance(own, BinnedColumn) or own.coded:
        return None
    known = reference[~np.isnan(reference)]
    bins = NumberBins.of(reference, BinRule(n_bins).inner_edges(known))
    if (bins.n_missing > 0) != (own.missing >= 0):
        return None
    return replace(number_column(bins), scale=own.scale)
