"""Sums of boxes, the exact structure of trees and of sums of trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Self, cast, final

import numpy as np

from propopt.base.arrays import Indices, Mask, Points, Values
from propopt.base.kernels import kernel
from propopt.base.resources import BATCH_BUDGET
from propopt.structures.boxes.nodes import TreeNodes
from propopt.structures.boxes.sets import Sets, Tree
from propopt.structures.products.sums import SumOfProducts, padded_paths, ranks


# ---- Functions that are sums of boxes


DOUBLE_TOLERANCE: Final = 1e-9
"""Allowed difference of sums in float64 from the model, relative to the range of f."""

SINGLE_TOLERANCE: Final = 2e-5
"""The same tolerance for models that add up in float32."""


_EXPANDED: Final = ("values", "paths", "factors")
"""What boxes of trees have once it is used."""


@dataclass(frozen=True, eq=False, repr=False)
class Boxes(SumOfProducts):
    """A sum over boxes, each a product of indicators of one set for each column.

    f(x) = base + Σ_l v_l Π_{u in path l} 1[x_j(u) ∈ A_u]

    Boxes of trees have their sets only once they are used: values are those of the
    leaves that points reach.
    """

    trees: TreeSum | None = field(default=None, init=False)  # the same function

    @classmethod
    def of_trees(cls, trees: TreeSum) -> Self:
        """The boxes of the leaves of trees."""
        boxes = cls.__new__(cls)
        whole = {"base": trees.base, "n_columns": len(trees.n_codes), "trees": trees}
        vars(boxes).update(whole, tolerance=trees.tolerance)
        return boxes

    def __getattr__(self, name: str) -> Any:
        """The sets of the leaves of trees, made when they are first used."""
        if self.trees is None or name not in _EXPANDED:
            raise AttributeError(name, obj=self)
        expanded = vars(self.trees.expanded())
        vars(self).update({part: expanded[part] for part in _EXPANDED})
        return expanded[name]

    @cached_property
    def columns(self) -> Indices:
        """The columns that f depends on, increasing."""
        return super().columns if self.trees is None else self.trees.nodes.columns

    def __repr__(self) -> str:
        count = len(self.values if self.trees is None else self.trees.nodes.leaves)
        return f"{type(self).__name__}({count} boxes in {self.n_columns} columns)"

    @cached_property
    def sets(self) -> Sets:
        """The sets of all boxes; each occurs once after :meth:`deduplicate`."""
        return Sets.concatenate(cast("Sequence[Sets]", self.factors))

    def value(self, points: Points | Mask) -> Values:
        """Values of f at points (N, D), by leaves or boxes that contain them."""
        rows = np.ascontiguousarray(points, np.float64)
        compiled = None if self.trees is None else kernel("walk")
        if compiled is None or self.trees is None:
            return self._by_bits(rows)
        nodes = self.trees.nodes
        values = np.full(len(rows), self.base)
        sizes = len(nodes.roots) - 1, *rows.shape, nodes.members.shape[1]
        compiled(*sizes, nodes.roots, *nodes.arrays, rows, values)
        return values

    def _by_bits(self, points: Points) -> Values:
        """Values at points, eight of which are in a byte for each set."""
        values = np.empty(len(points))
        for rows in BATCH_BUDGET.blocks(len(points), max(1, 8 * self.n_factors)):
            held = np.packbits(self.sets.contain(points[rows]), axis=1)
            # the last row is for the padding of paths, −1
            held = np.pad(held, ((0, 1), (0, 0)), constant_values=255)
            sums = np.full(8 * held.shape[1], self.base)
            for block in BATCH_BUDGET.blocks(len(self.values), 16 * len(sums)):
                inside = np.bitwise_and.reduce(held[self.paths[block]], axis=1)
                terms = np.unpackbits(inside, axis=1) * self.values[block, None]
                terms[:1] += sums  # so that boxes are added in their order
                sums = terms.sum(axis=0)
            values[rows] = sums[: len(values[rows])]
        return values

    def deduplicate(self) -> Self:
        """The same function with equal sets merged and empty boxes dropped."""
        sets, position = self.sets.unique()
        position = np.append(np.where(sets.full[position], -1, position), -1)
        nonempty = ~np.append(self.sets.empty, False)[self.paths].any(axis=1)
        paths = _packed(position[self.paths[nonempty]])
        return replace(self, values=self.values[nonempty], paths=paths, factors=(sets,))

    def combine_equal(self) -> Boxes:
        """The same function with boxes of equal sets added up."""
        position = ranks(self.paths.T) if self.paths.shape[1] > 0 else self.lengths
        order = np.lexsort([self.values, position])
        _, first, group = np.unique(
            position[order], return_index=True, return_inverse=True
        )
        values = np.bincount(group, self.values[order]).astype(np.float64)
        return replace(self, values=values, paths=self.paths[order[first]])

    def split_by(self, by: Sequence[Callable[[Sets], Sets]]) -> Boxes:
        """The same function with the sets of each column j replaced by ``by[j]``."""
        ends = ("low", "high", "missing", "group")
        fields = {name: getattr(self.sets, name).copy() for name in ends}
        for j in np.unique(self.sets.column).tolist():
            of_column = np.flatnonzero(self.sets.column == j)
            replaced = by[j](self.sets.take(of_column))
            for name in ends:
                fields[name][of_column] = getattr(replaced, name)
        result = replace(self, factors=(replace(self.sets, **fields),))
        return result.deduplicate().combine_equal()


def _packed(paths: Indices) -> Indices:
    """Paths with their factors sorted, and −1 at the end."""
    largest = np.iinfo(paths.dtype).max
    sorted_paths = np.sort(np.where(paths < 0, largest, paths), axis=1)
    packed = np.where(sorted_paths == largest, -1, sorted_paths)
    width = int((packed >= 0).sum(axis=1).max(initial=0))
    return packed[:, :width]


# ---- Sums of trees


@final
@dataclass(frozen=True, eq=False)
class TreeSum:
    """A sum of trees, f(x) = base + Σ trees, of D columns of a table."""

    trees: tuple[Tree, ...]  # nodes test columns of the table; several in an array
    base: float  # the constant
    # (D,): the number of codes of each column of the table; None for numbers
    n_codes: tuple[int | None, ...]
    # allowed difference from the model, relative to the range of f
    tolerance: float = DOUBLE_TOLERANCE

    def boxes(self) -> Boxes:
        """The same function as a sum of boxes, one for each leaf."""
        _ = self.nodes  # refuses codes of numbers
        return Boxes.of_trees(self)

    @cached_property
    def nodes(self) -> TreeNodes:
        """The nodes of all trees, in preorder."""
        leaf = Tree.of([-1], [0.0], [-1], [-1], [0.0])
        return TreeNodes.of(self.trees or (leaf,), self.n_codes)

    def expanded(self) -> SumOfProducts:
        """The boxes with their sets, each different one once."""
        nodes = self.nodes
        parts = []
        for unit in nodes.units:
            leaf, sets, values = nodes.leaf_sets(unit)
            paths = padded_paths(leaf, np.arange(len(sets)), len(values))
            parts.append(
                Boxes(0.0, values, paths, (sets,), len(self.n_codes), self.tolerance)
            )
        return Boxes.sum_of(parts).plus(self.base)

    def first(self, count: int) -> TreeSum:
        """The sum of the first trees."""
        if count == 0:
            return replace(self, trees=())
        joined = Tree.concatenate_trees(self.trees)
        return replace(self, trees=(replace(joined, roots=joined.roots[:count]),))

    def scaled(self, weight: float) -> TreeSum:
        """The sum of trees multiplied by a number."""
        trees = tuple(replace(t, value=weight * t.value) for t in self.trees)
        return replace(self, trees=trees, base=weight * self.base)

    @classmethod
    def sum_of(cls, parts: Sequence[TreeSum]) -> TreeSum:
        """The sum of several sums of trees of the same columns, at least one."""
        return cls(
            tuple(tree for part in parts for tree in part.trees),
            sum(part.base for part in parts),
            parts[0].n_codes,
            max(part.tolerance for part in parts),
        )
