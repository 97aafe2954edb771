"""Who is similar to whom, by distances to reference rows: the nearest, and how near.

Each row is compared with its k nearest rows. Similarity falls with distance,

    s = min(1, (h/d)⁴),

with h the 90 % quantile of the distances of the rows to their k-th neighbour: a row far
from all others is similar to none. Rows that are equally far share the last places, so
that the order of rows means nothing. Rows that are equal are no neighbours: they have
the same attributions anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, final

import numpy as np
import scipy.sparse as sp

from propopt.base.arrays import Array, Indices, Points, Sparse
from propopt.base.checks import read_count
from propopt.base.resources import BATCH_BUDGET
from propopt.base.suggestions import suggests_arguments
from propopt.losses.graphs.points import (
    Distances,
    SimilarityGraph,
    distances_between,
    nearest_neighbours,
    pair_distances,
)


REACH_QUANTILE: Final = 0.9
_TIED: Final = 1e-9
"""Relative: distances that differ by less are equal but for rounding."""

_DENSE: Final = 2_000
"""Rows of which all distances are taken; of more, four times as many as are asked."""


N_NEIGHBORS: Final = 8
N_REFERENCE: Final = 500


@final
@suggests_arguments
@dataclass(frozen=True)
class Nearest:
    """Each row is compared with its nearest reference rows.

    Parameters
    ----------
    n_neighbors : int
        Reference rows that each row is compared with.
    n_reference : int
        Reference rows that are drawn from ``data`` where it has more, without
        replacement. They follow from ``data`` alone. With 500, the default, there are
        fewer where contributions of a row take long.
    same_pattern : bool
        Compare no rows in which other columns are missing. Without it a warning counts
        such neighbours where they are more than 5 % of all: slopes are compared with
        effects there.

    Raises
    ------
    InvalidInput
        If a count is not a positive integer.

    Examples
    --------
    >>> import propopt as po
    >>> po.graphs.Nearest(n_neighbors=4)
    Nearest(n_neighbors=4, n_reference=500, same_pattern=False)
    """

    n_neighbors: int = N_NEIGHBORS
    n_reference: int = N_REFERENCE
    same_pattern: bool = False

    def __post_init__(self) -> None:
        read_count(self.n_neighbors, "n_neighbors")
        read_count(self.n_reference, "n_reference")


class RowMatches(NamedTuple):
    """The neighbours of a row."""

    positions: Indices  # (m,): nearest first
    similarities: Array  # (m,)


@final
@dataclass(frozen=True, eq=False)
class RowNeighbours:
    """Reference rows in coordinates in which distances mean something."""

    coordinates: Points  # (n, M)
    count: int  # k: how many each row is compared with

    def of(self, positions: Points) -> list[RowMatches]:
        """Of new rows (m, M), each of which equals none of them."""
        return [self._nearest(apart) for apart in self._distances.of(positions)]

    @cached_property
    def _distances(self) -> Distances:
        return Distances(self.coordinates)

    def _nearest(self, apart: Array) -> RowMatches:
        chosen, shares = nearest_with_ties(apart, self.count)
        return RowMatches(chosen, shares * self.falling(apart[chosen]))

    def falling(self, apart: Array) -> Array:
        """Min(1, (h/d)⁴) of distances d."""
        ratio = np.ones(apart.shape)
        if self.reach > 0.0:
            far = apart > self.reach
            ratio[far] = (self.reach / apart[far]) ** 4
        return ratio

    @cached_property
    def _listed(self) -> tuple[Indices, Indices, Array, Array]:
        """Row, neighbour, distance and share of the last places, one for each pair."""
        rows, others, distances, shares = [], [], [], []
        for n, positions, apart in self._candidates():
            chosen, share = nearest_with_ties(apart, self.count)
            rows.append(np.full(len(chosen), n))
            others.append(positions[chosen])
            distances.append(apart[chosen])
            shares.append(share)
        return tuple(map(np.concatenate, (rows, others, distances, shares)))  # type: ignore[return-value]

    def _candidates(self) -> Iterator[tuple[int, Indices, Array]]:
        """Of each row those that may be its neighbours, and how far they are."""
        n_rows, some = len(self.coordinates), min(4 * self.count, 64)
        if n_rows <= _DENSE or n_rows <= some + 1:
            for block in BATCH_BUDGET.blocks(n_rows, 8 * self.coordinates.size):
                apart = distances_between(self.coordinates[block], self.coordinates)
                for n, own in zip(range(block.start, block.stop), apart, strict=True):
                    positions = np.flatnonzero(own > 0.0)
                    yield n, positions, own[positions]
            return
        near = nearest_neighbours(self.coordinates, some).indices.reshape(n_rows, some)
        first = np.repeat(np.arange(n_rows), some)
        pairs = np.column_stack([first, near.ravel()])
        distances = pair_distances(self.coordinates, pairs).reshape(n_rows, some)
        for n, (positions, apart) in enumerate(zip(near, distances, strict=True)):
            there = apart > 0.0
            last = apart.max()
            if there.sum() < self.count or (
                np.partition(apart[there], self.count - 1)[self.count - 1]
                >= last * (1.0 - _TIED)
            ):  # equal rows, or ties, may go on behind the last
                own = distances_between(self.coordinates[[n]], self.coordinates)[0]
                where = np.flatnonzero(own > 0.0)
                yield n, where, own[where]
            else:
                yield n, positions[there], apart[there]

    @cached_property
    def reach(self) -> float:
        """The distance h up to which rows are similar; 0 if all rows are equal."""
        row, _, apart, _ = self._listed
        if not len(row):
            return 0.0
        last = np.zeros(len(self.coordinates))
        np.maximum.at(last, row, apart)
        return float(np.quantile(last[last > 0.0], REACH_QUANTILE))

    @cached_property
    def graph(self) -> SimilarityGraph:
        """Of the reference rows among each other: joined if either is near the other.

        Similarities are times k over the mean number of neighbours so joined: the mean
        degree would be k if none fell, whatever the rows.
        """
        row, other, apart, share = self._listed
        n_rows = len(self.coordinates)

        def either(values: Array) -> Sparse:
            own = sp.csr_array((values, (row, other)), shape=(n_rows, n_rows))
            return sp.csr_array(own.maximum(own.T))

        joined = either(share)
        degree = float(joined.sum()) / n_rows
        similarities = either(share * self.falling(apart))
        if degree > 0.0:
            similarities = similarities * (self.count / degree)
        parameters = {"n_neighbors": self.count, "reach": self.reach}
        return SimilarityGraph(similarities, "nearest, falling", parameters)

    def joined(self, n: int) -> RowMatches:
        """Those that a reference row is joined with in the graph."""
        own = self.graph.similarities[[n]]
        return RowMatches(np.asarray(own.indices, np.intp), np.asarray(own.data))


def nearest_with_ties(apart: Array, count: int) -> tuple[Indices, Array]:
    """The ``count`` nearest of distances (n,), nearest first, and the share of each.

    Those that are as far as the last share the places that are left.
    """
    if len(apart) <= count:
        order = np.argsort(apart, kind="stable")
        return order, np.ones(len(order))
    last = float(np.partition(apart, count - 1)[count - 1])
    near = np.flatnonzero(apart <= last * (1.0 + _TIED))
    near = near[np.argsort(apart[near], kind="stable")]
    inside = apart[near] < last * (1.0 - _TIED)
    n_inside = int(inside.sum())
    left = (count - n_inside) / max(len(near) - n_inside, 1)
    return near, np.where(inside, 1.0, left)
