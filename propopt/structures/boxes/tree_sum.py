"""Sums of trees, before anything is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

from propopt.structures.boxes.boxes import DOUBLE_TOLERANCE, Boxes
from propopt.structures.boxes.maps import SameColumn
from propopt.structures.boxes.trees import LeafSets, Tree, leaf_sets


@final
@dataclass(frozen=True, eq=False)
class TreeSum:
    """f(x) = base + Σ trees, of D columns of a table.

    Parameters
    ----------
    trees : tuple of Tree
        By the columns of the table.
    base : float
        What is added to them.
    columns : tuple of SameColumn (D,)
        The columns of the table.
    tolerance : float
        How far the sum may be from the model, over the range of f.
    """

    trees: tuple[Tree, ...]
    base: float
    columns: tuple[SameColumn, ...]
    tolerance: float = DOUBLE_TOLERANCE

    def boxes(self) -> Boxes:
        """The sum of boxes that it is."""
        return Boxes.of_trees(
            self.trees,
            self.base,
            n_columns=len(self.columns),
            maps=self.columns,
            tolerance=self.tolerance,
        )

    def leaves(self) -> list[LeafSets]:
        """The sets that lead to the leaves of each tree."""
        return [leaf_sets(tree, self.columns) for tree in self.trees]

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
            parts[0].columns,
            max(part.tolerance for part in parts),
        )
