"""Similarity of rows by distance, with their nearest reference rows.

Each row is compared with its k nearest rows. Similarity falls with distance d,

    s = min(1, (h/d)⁴),

with h the 90 % quantile of the distances of the rows to their k-th neighbour: a row far
from all others is similar to none. Rows at equal distance share the last neighbours, so
the order of rows does not matter. Equal rows are not neighbours, as they have the same
attributions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, final

import numpy as np
import scipy.sparse as sp

from propopt.base.arrays import Array, Indices, Mask, Points, Sparse
from propopt.base.checks import read_count
from propopt.base.resources import BATCH_BUDGET
from propopt.base.suggestions import suggests_arguments
from propopt.losses.graphs.distances import Distances, distances_between, pair_distances
from propopt.losses.graphs.nearest import NearestRows, nearest_rows
from propopt.losses.graphs.points import SimilarityGraph


REACH_QUANTILE: Final = 0.9
_TIED: Final = 1e-9
"""Relative difference of distances that counts as rounding."""

_DENSE: Final = 2_000
"""Up to this many rows, all distances are computed; else 4k nearest rows."""


N_NEIGHBORS: Final = 8
N_REFERENCE: Final = 500


@final
@suggests_arguments
@dataclass(frozen=True)
class Nearest:
    """Settings of a graph that joins each row to its nearest reference rows.

    Parameters
    ----------
    n_neighbors : int
        The number of reference rows that each row is compared with.
    n_reference : int
        The number of reference rows if ``data`` has more. A digest of each row decides,
        so they depend only on the set of rows of ``data``, not on its order. The
        default, 500, is reduced if contributions of a row take long.
    same_pattern : bool
        Compare only rows with the same missing columns. Otherwise a warning reports
        more than 5 % of other neighbours, where slopes are compared with effects.

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
    """The neighbours of a row, with their similarities."""

    positions: Indices  # (m,): nearest first
    similarities: Array  # (m,)


@final
@dataclass(frozen=True, eq=False)
class RowNeighbours:
    """Nearest neighbours among reference rows in scaled coordinates."""

    coordinates: Points  # (n, M)
    count: int  # k, the neighbours of each row

    def of(self, positions: Points) -> list[RowMatches]:
        """Neighbours of new rows (m, M) that differ from all reference rows."""
        return [self._nearest(apart) for apart in self._distances.of(positions)]

    @cached_property
    def _distances(self) -> Distances:
        return Distances(self.coordinates)

    def _nearest(self, apart: Array) -> RowMatches:
        _, chosen, shares, _ = shares_of_ties(apart[None], self.count)
        order = np.argsort(apart[chosen], kind="stable")
        nearest = chosen[order]
        return RowMatches(nearest, shares[order] * self.falling(apart[nearest]))

    def falling(self, apart: Array) -> Array:
        """The similarity min(1, (h/d)⁴) at distances d."""
        ratio = np.ones(apart.shape)
        if self.reach > 0.0:
            far = apart > self.reach
            ratio[far] = (self.reach / apart[far]) ** 4
        return ratio

    @cached_property
    def _searched(self) -> NearestRows | None:
        """More rows than are needed near each row; None for small tables."""
        n_rows = len(self.coordinates)
        n_candidates = min(4 * self.count, 64)
        if n_rows <= _DENSE or n_rows <= n_candidates + 1:
            return None
        return nearest_rows(self.coordinates, n_candidates)

    @cached_property
    def _listed(self) -> tuple[Indices, Indices, Array, Array]:
        """Row, neighbour, distance and share of ties for each pair."""
        in_full = np.arange(len(self.coordinates))
        parts = []
        if self._searched is not None:
            listed, goes_on = self._among_searched(self._searched)
            in_full = np.flatnonzero(goes_on)
            parts.append([x[~goes_on[listed[0]]] for x in listed])
        for block in BATCH_BUDGET.blocks(len(in_full), 8 * self.coordinates.size):
            rows = in_full[block]
            apart = distances_between(self.coordinates[rows], self.coordinates)
            row, other, share, _ = shares_of_ties(apart, self.count)
            parts.append([rows[row], other, apart[row, other], share])
        return tuple(map(np.concatenate, zip(*parts, strict=True)))  # type: ignore[return-value]

    def _among_searched(self, searched: NearestRows) -> tuple[list[Any], Mask]:
        """The pairs among the rows found, and which rows may have ties beyond them.

        The latter are compared with all rows, unless the search was approximate.
        """
        nearest = searched.indices
        n_rows, n_candidates = nearest.shape
        first = np.repeat(np.arange(n_rows), n_candidates)
        pairs = np.column_stack([first, nearest.ravel()])
        apart = pair_distances(self.coordinates, pairs).reshape(nearest.shape)
        row, column, share, last = shares_of_ties(apart, self.count)
        # also if there are fewer different rows, as ``last`` is infinite
        goes_on = last >= apart.max(axis=1) * (1.0 - _TIED)
        if searched.recall is not None:
            goes_on[:] = False
        other = nearest[row, column].astype(np.intp)
        return [row, other, apart[row, column], share], goes_on

    @cached_property
    def reach(self) -> float:
        """The distance h with full similarity; 0 if all rows are equal."""
        row, _, apart, _ = self._listed
        if not len(row):
            return 0.0
        last = np.zeros(len(self.coordinates))
        np.maximum.at(last, row, apart)
        return float(np.quantile(last[last > 0.0], REACH_QUANTILE))

    @cached_property
    def graph(self) -> SimilarityGraph:
        """The graph of the reference rows: joined if either is a neighbour.

        Similarities are multiplied by k over the mean number of neighbours, so that the
        mean degree is k without the decay.
        """
        row, other, apart, share = self._listed
        n_rows = len(self.coordinates)

        def either(values: Array) -> Sparse:
            matrix = sp.csr_array((values, (row, other)), shape=(n_rows, n_rows))
            return sp.csr_array(matrix.maximum(matrix.T))

        degree = float(either(share).sum()) / n_rows
        similarities = either(share * self.falling(apart))
        if degree > 0.0:
            similarities = similarities * (self.count / degree)
        searched = self._searched
        parameters = {
            "n_neighbors": self.count,
            "reach": self.reach,
            **({} if searched is None else searched.parameters),
        }
        return SimilarityGraph(similarities, "nearest, falling", parameters)

    def joined(self, rows: Sequence[int]) -> list[RowMatches]:
        """The neighbours of reference rows in the graph."""
        joined = self.graph.similarities[list(rows)]
        ends = joined.indptr[1:-1]
        positions = np.split(np.asarray(joined.indices, np.intp), ends)
        similarities = np.split(joined.data, ends)
        return [*map(RowMatches, positions, similarities)][: len(rows)]


def shares_of_ties(apart: Array, count: int) -> tuple[Indices, Indices, Array, Array]:
    """The ``count`` smallest distances above zero of each row (n, m), with ties.

    Row, column and share of each, and the last distance of each row, infinite if it has
    fewer. Ties at the last distance share the remaining count. Equal rows are no
    neighbours.
    """
    apart = np.where(apart == 0.0, np.inf, apart)
    last = np.partition(apart, count - 1, axis=1)[:, count - 1]
    chosen = (apart <= last[:, None] * (1.0 + _TIED)) & np.isfinite(apart)
    inside = apart < last[:, None] * (1.0 - _TIED)
    n_inside = inside.sum(axis=1)
    tied = np.maximum(chosen.sum(axis=1) - n_inside, 1)
    shares = np.where(inside, 1.0, ((count - n_inside) / tied)[:, None])
    row, column = np.nonzero(chosen)
    return row, column, shares[row, column], last
