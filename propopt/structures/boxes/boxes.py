"""Sums of boxes, what trees are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Self, cast, final

import numpy as np

from propopt.base.arrays import Indices, Mask, Points, Values
from propopt.base.resources import BATCH_BUDGET
from propopt.structures.boxes.sets import Sets, Tree, leaf_sets
from propopt.structures.products.sums import SumOfProducts, padded_paths, ranks


# ---- Functions that are sums of boxes: what trees and sums of trees are


DOUBLE_TOLERANCE: Final = 1e-9
"""How far sums in float64 may be from the model, over the range of f."""

SINGLE_TOLERANCE: Final = 2e-5
"""The same for models that sum in float32."""


@dataclass(frozen=True, eq=False, repr=False)
class Boxes(SumOfProducts):
    """A sum over boxes, as sums of trees are, one set for each column.

    f(x) = base + Σ_l v_l Π_{u in path l} 1[x_j(u) ∈ A_u]
    """

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.values)} boxes of "
            f"{self.n_factors} sets in {self.n_columns} columns)"
        )

    @cached_property
    def sets(self) -> Sets:
        """The sets, each once where boxes are merged."""
        return Sets.concatenate(cast("Sequence[Sets]", self.factors))

    def holding(self, points: Points | Mask) -> Mask:
        """Which sets hold each point, (U, n)."""
        return self.sets.contain(np.asarray(points, np.float64))

    def value(self, points: Points | Mask) -> Values:
        """Values of f at points (N, D): sums over the boxes that each is in."""
        values = np.full(len(points), self.base)
        for rows in BATCH_BUDGET.blocks(len(points), max(1, 8 * self.n_factors)):
            n_points = len(points[rows])
            # eight points in a byte; the last row is for no set
            packed = np.packbits(self.holding(points[rows]), axis=1)
            every = np.full((1, packed.shape[1]), 255, np.uint8)
            packed = np.concatenate([packed, every])
            for some in BATCH_BUDGET.blocks(len(self.values), 16 * n_points):
                held = np.bitwise_and.reduce(packed[self.paths[some]], axis=1)
                held = np.unpackbits(held, axis=1, count=n_points)
                values[rows] += self.values[some] @ held
        return values

    def deduplicate(self) -> Self:
        """With each set once but those that hold everything, and no empty box."""
        sets, place = self.sets.unique()
        place = np.append(np.where(sets.full[place], -1, place), -1)
        kept = ~np.append(self.sets.empty, False)[self.paths].any(axis=1)
        paths = _packed(place[self.paths[kept]])
        return replace(self, values=self.values[kept], paths=paths, factors=(sets,))

    def combine_equal(self) -> Boxes:
        """The same with boxes of the same sets as one, in whatever order they come."""
        place = ranks(self.paths.T) if self.paths.shape[1] > 0 else self.lengths
        order = np.lexsort([self.values, place])
        _, first, where = np.unique(
            place[order], return_index=True, return_inverse=True
        )
        values = np.bincount(where, self.values[order]).astype(np.float64)
        return replace(self, values=values, paths=self.paths[order[first]])

    def split_by(self, by: Callable[[int, Sets], Sets]) -> Boxes:
        """The same with sets of a column as ``by`` has them; equal boxes are one."""
        ends = ("low", "high", "missing", "group")
        fields = {name: getattr(self.sets, name).copy() for name in ends}
        for j in np.unique(self.sets.column).tolist():
            own = np.flatnonzero(self.sets.column == j)
            alike = by(j, self.sets.take(own))
            for name in ends:
                fields[name][own] = getattr(alike, name)
        told = replace(self, factors=(replace(self.sets, **fields),))
        return told.deduplicate().combine_equal()


def _packed(paths: Indices) -> Indices:
    """Paths with their factors sorted in front, and −1 behind."""
    largest = np.iinfo(paths.dtype).max
    sorted_paths = np.sort(np.where(paths < 0, largest, paths), axis=1)
    packed = np.where(sorted_paths == largest, -1, sorted_paths)
    width = int((packed >= 0).sum(axis=1).max(initial=0))
    return packed[:, :width]


# ---- Sums of trees


@final
@dataclass(frozen=True, eq=False)
class TreeSum:
    """f(x) = base + Σ trees, of D columns of a table."""

    trees: tuple[Tree, ...]  # by the columns of the table
    base: float  # what is added to them
    # (D,): how many codes the columns of the table have; None for numbers
    n_codes: tuple[int | None, ...]
    # how far the sum may be from the model, over the range of f
    tolerance: float = DOUBLE_TOLERANCE

    def boxes(self) -> Boxes:
        """The sum of boxes that it is."""
        leaf, sets, values = leaf_sets(self.trees, self.n_codes)
        paths = padded_paths(leaf, np.arange(len(sets)), len(values))
        whole = (self.base, values, paths, (sets,), len(self.n_codes), self.tolerance)
        return Boxes(*whole).deduplicate()

    def scaled(self, weight: float) -> TreeSum:
        """``weight`` · f."""
        trees = tuple(replace(t, value=weight * t.value) for t in self.trees)
        return replace(self, trees=trees, base=weight * self.base)

    @classmethod
    def sum_of(cls, parts: Sequence[TreeSum]) -> TreeSum:
        """The sum of several, at least one, of the same columns."""
        return cls(
            tuple(tree for part in parts for tree in part.trees),
            sum(part.base for part in parts),
            parts[0].n_codes,
            max(part.tolerance for part in parts),
        )
