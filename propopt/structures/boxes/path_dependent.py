"""Path-dependent Shapley values of sums of trees, and their interactions, exactly.

Where a column is unknown, both branches of a node are followed, weighted by their
shares of the training rows (Lundberg et al. 2018, Algorithm 2). So a leaf with value v
and p sets A_u, one for each player with columns on its path, is worth

    v Π_{u in S} 1[x ∈ A_u] Π_{u not in S} s_u

to the players S, where s_u is the product of the shares along the path at nodes of
player u. A player who is known with probability t gives a factor f_u(t) = s_u (1 − t) +
1[x ∈ A_u] t, and the Shapley value is an integral over t (Owen 1972):

    φ_u  = v (1[x ∈ A_u] − s_u) ∫₀¹ Π_{w ≠ u} f_w(t) dt,
    I_uw = v (1[x ∈ A_u] − s_u) (1[x ∈ A_w] − s_w) ∫₀¹ Π_{z ≠ u, w} f_z(t) dt.

These are polynomials of degree p − 1 and p − 2, which Gauss–Legendre quadrature with
half as many nodes integrates exactly. Factors are never negative, so that nothing
cancels, however deep the tree. Products without a factor are those of all before it
times those of all behind it. Rows in the same sets of a leaf share one result; for a
row by itself, leaves of as many sets are treated together.

Changes of node means on the path of a row (Saabas 2014) have the same shares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache, cached_property, partial
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions, Indices, Mask, Points, Values
from propopt.base.kernels import kernel
from propopt.base.resources import BATCH_BUDGET
from propopt.base.text import Reason
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.boxes.nodes import MOST_SETS, TreeNodes, ends_of
from propopt.structures.boxes.shapley import NO_ROWS, POINTS_AT_ONCE, TABLE_BYTES


NO_COVERS: Final = (
    "path-dependent values need the number of training rows at each node of the trees, "
    "by splits on one column, which the model does not store; those against a "
    "background, data=, do not"
)

_LEAVES_AT_ONCE: Final = 8
"""Leaves of as many sets that the kernel treats at once."""

_WHOLE: Final = 1e-6
"""Allowed difference of the shares of all leaves of a tree from 1."""


@final
@dataclass(frozen=True, eq=False)
class PathDependent:
    """The path-dependent game of a sum of trees."""

    nodes: TreeNodes
    means: Values  # (n,): of the leaves below each node, weighted by training rows
    base: float  # v(∅), the mean of all

    @classmethod
    def of(cls, boxes: Boxes) -> Self | Reason:
        """The game, or the reason why there is none, such as trees without shares."""
        if boxes.trees is None:
            return Reason(NO_COVERS)
        nodes = boxes.trees.nodes
        nodes.refuse_long_paths("columns")
        roots = nodes.roots[:-1]
        shares = _means(nodes, np.ones(len(nodes.column)))[roots]
        if not (np.abs(shares - 1.0) <= _WHOLE).all():
            return Reason(NO_COVERS)
        means = _means(nodes, nodes.number)
        return cls(nodes, means, boxes.base + float(means[roots].sum()))

    # ---- Shapley values, and interactions of pairs

    def values(self, points: Points) -> Attributions:
        """Values of points (N, D), exactly 0.0 for columns without a set, (N, D)."""
        return self._added(points, self.nodes.n_players, 1).T

    def pairs(self, points: Points) -> Array:
        """Interactions of each two columns, symmetric with zeros between, (N, D, D)."""
        P = self.nodes.n_players
        first, second = np.triu_indices(P, 1)
        sums = self._added(points, len(first), 2)
        interactions = np.zeros((len(points), P, P))
        interactions[:, first, second] = interactions[:, second, first] = sums.T
        return interactions

    def saabas(self, points: Points) -> Attributions:
        """The changes of node means on the paths of points (N, D), for each column."""
        nodes = self.nodes
        inner = np.flatnonzero(nodes.column >= 0)
        player = nodes.owner[nodes.column[inner]]
        phi = np.zeros((nodes.n_players, len(points)))
        for rows in BATCH_BUDGET.blocks(len(points), len(nodes.column)):
            reached = nodes.reached(points[rows])
            for child in (inner + 1, nodes.right[inner]):
                change = self.means[child] - self.means[inner]
                np.add.at(phi[:, rows], player, change[:, None] * reached[child])
        return phi.T

    def _added(self, points: Points, n_sums: int, order: int) -> Array:
        """Values, or interactions of pairs, of points (N, D) in rows, (n_sums, N)."""
        nodes = self.nodes
        visit = self._by_numpy if kernel("path_dependent") is None else self._compiled
        steps = float((nodes.lengths ** (1 + order)).sum())
        sums = np.empty((n_sums, len(points)))
        row_bytes = 8 * (n_sums * len(nodes.units) + MOST_SETS**order)
        for rows in POINTS_AT_ONCE.blocks(len(points), row_bytes):
            some = partial(visit, np.ascontiguousarray(points[rows].T), order)
            shape = sums[:, rows].shape
            sums[:, rows] = nodes.sums(some, shape, steps * shape[1])
        return sums

    def _compiled(self, columns: Array, order: int, unit: slice, phi: Array) -> None:
        """Add what the trees of a unit give to points, as columns (D, N)."""
        nodes = self.nodes
        longest = int(nodes.lengths.max(initial=0))
        rule = _quadrature(max(1, (longest + 1) // 2))
        by_rule = rule.shape[2], rule
        n_terms = math.comb(longest, order)
        n_points = columns.shape[1]
        if n_points == 1:
            one_row = kernel("path_row")
            assert one_row is not None, "see _added"
            ends, terms = self._terms(order, unit)
            parent, _, leaves, *_, row = terms
            n_leaves = len(leaves)
            words = len(parent) + n_leaves + 1 + len(row) + _LEAVES_AT_ONCE * n_terms
            codes = nodes.members.shape[1], order, nodes.column, nodes.codes
            rest = nodes.number, nodes.missing_left, nodes.members
            given = columns, *by_rule, phi, np.empty(words, np.uint64)
            one_row(*ends, n_leaves, *codes, *rest, *terms, *given)
            return
        compiled = kernel("path_dependent")
        assert compiled is not None, "see _added"
        change = np.empty((n_terms, n_points))
        given, scratch = nodes.arguments(unit, (*NO_ROWS, 1.0), columns)
        compiled(*given, order, nodes.share, *by_rule, change, phi, scratch)

    def _terms(
        self, order: int, unit: slice
    ) -> tuple[tuple[int, int], tuple[NDArray[Any], ...]]:
        """The nodes of a unit, and what its leaves give to any row, for the kernel."""
        key = order, unit.start
        if key in self._of_units:
            return self._of_units[key]
        nodes = self.nodes
        roots = nodes.roots[unit.start : unit.stop + 1]
        root, end = roots[[0, -1]].tolist()
        leaves = nodes.leaves_of(unit)
        lengths = nodes.lengths[leaves]
        first = ends_of(lengths)
        start = ends_of(_n_terms(lengths, order))
        parent = np.empty(end - root, np.int32)
        sets = np.empty(end - root, np.uint8)
        product = np.empty(first[-1])
        row = np.empty(start[-1], np.int32)
        depths = len(nodes.levels) + 1
        prepare = kernel("path_sets")
        assert prepare is not None, "see _added"
        prepare(
            *(len(roots) - 1, nodes.n_players, depths, order, roots, nodes.column),
            *(nodes.right, nodes.owner, nodes.share, first, start, parent, sets),
            *(product, row, np.empty(4 * depths + nodes.n_players, np.uint64)),
        )
        by_length = np.argsort(lengths, kind="stable")
        values = nodes.number[nodes.leaves[leaves]]
        made = (
            (root, end),
            (parent, sets, by_length, values, first, start, product, row),
        )
        every = nodes.lengths
        if (8 * every + 4 * _n_terms(every, order)).sum() <= TABLE_BYTES:
            self._of_units[key] = made
        return made

    @cached_property
    def _of_units(self) -> dict[tuple[int, int], Any]:
        """The terms of units for values and for pairs, once they are needed."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in vars(self).items() if name != "_of_units"}

    def _by_numpy(self, columns: Array, order: int, unit: slice, phi: Array) -> None:
        """The same, leaf by leaf, in the same order of operations."""
        P = self.nodes.n_players
        for owner, share, inside, value in self._leaves(columns, unit):
            p = len(owner)
            if p < order:
                continue
            q = (p - order) // 2 + 1
            t, weight = _quadrature(q)[q - 1, :, :q]
            unknown = share[:, None] * (1.0 - t)
            factor = unknown[..., None] + t[:, None] * inside[:, None]
            ones = np.ones((1, *factor.shape[1:]))
            front = np.multiply.accumulate(
                np.concatenate([weight[:, None] * ones, factor[:-1]])
            )
            behind = np.multiply.accumulate(np.concatenate([ones, factor[:0:-1]]))
            behind = behind[::-1]
            change = inside - share[:, None]
            for u in range(p):
                if order == 1:
                    integral = np.cumsum(front[u] * behind[u], axis=0)[-1]
                    phi[owner[u]] += integral * (value * change[u])
                    continue
                between = front[u]
                for w in range(u + 1, p):
                    integral = np.cumsum(between * behind[w], axis=0)[-1]
                    between = between * factor[w]
                    first, last = sorted((owner[u], owner[w]))
                    row = first * (2 * P - first - 1) // 2 + last - first - 1
                    phi[row] += integral * (value * change[u] * change[w])

    def _leaves(
        self, columns: Array, unit: slice
    ) -> Iterator[tuple[Indices, Values, Mask, float]]:
        """The players of each leaf, their shares, the rows in their sets, the value."""
        nodes = self.nodes
        start, stop = nodes.roots[[unit.start, unit.stop]].tolist()
        inner = start + np.flatnonzero(nodes.column[start:stop] >= 0)
        children = np.concatenate([inner + 1, nodes.right[inner]])
        sides = nodes.sides(inner).contain(columns.T)
        rows_at = dict(zip(children.tolist(), sides, strict=True))
        stack = [(i, _NO_SETS) for i in nodes.roots[unit][::-1].tolist()]
        while stack:
            node, sets = stack.pop()
            if nodes.column[node] < 0:
                if sets and nodes.number[node] != 0.0:
                    value = float(nodes.number[node])
                    shares, inside = map(np.array, zip(*sets.values(), strict=True))
                    yield np.array(list(sets)), shares, inside, value
                continue
            player = int(nodes.owner[nodes.column[node]])
            share, held = sets.get(player, (1.0, _HELD))
            for child in (int(nodes.right[node]), node + 1):
                below = share * nodes.share[child], held & rows_at[child]
                stack.append((child, {**sets, player: below}))


_HELD: Final = np.ones((), bool)
_NO_SETS: Final[dict[int, tuple[float, Mask]]] = {}


def _n_terms(lengths: Indices, order: int) -> Indices:
    """The numbers of sets of leaves, or of their pairs."""
    return lengths if order == 1 else lengths * (lengths - 1) // 2


def _means(nodes: TreeNodes, of_leaves: Values) -> Values:
    """The mean of leaves below each node (n,), weighted by shares of training rows."""
    means = np.where(nodes.column < 0, of_leaves, 0.0)
    for level in nodes.levels[::-1]:
        for child in (level + 1, nodes.right[level]):
            means[level] += nodes.share[child] * means[child]
    return means


# ---- Quadrature


@cache
def _quadrature(most: int) -> Array:
    """Nodes and weights on [0, 1] of rules with 1, 2, ... nodes, (most, 2, width).

    Roots of Legendre polynomials by Newton's method, with the same digits everywhere.
    The width is a multiple of four, with zeros behind them.
    """
    rules = np.zeros((most, 2, most + -most % 4))
    with localcontext(prec=40):
        for n in range(1, most + 1):
            for i in range(n):
                x = Decimal(math.cos(math.pi * (i + 0.75) / (n + 0.5)))
                for _ in range(_NEWTON):
                    before = Decimal(1)
                    at = x
                    for k in range(2, n + 1):
                        before, at = at, ((2 * k - 1) * x * at - (k - 1) * before) / k
                    slope = n * (x * at - before) / (x * x - 1)
                    weight = 1 / ((1 - x * x) * slope * slope)
                    x -= at / slope
                rules[n - 1, :, i] = (1 + x) / 2, weight
    return rules


_NEWTON: Final = 6
"""Steps from an error of 0.01, which each of them squares, beyond 40 digits."""
