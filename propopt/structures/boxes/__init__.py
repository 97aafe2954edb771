"""Sums of boxes: what trees are, as one function of the measures of sets.

- :class:`~propopt.structures.boxes.trees.Tree`: arrays of nodes, by the columns that a
  model sees; :class:`~propopt.structures.boxes.maps.ColumnMap`: how such a column comes
  from one of the table.
- :class:`~propopt.structures.boxes.tree_sum.TreeSum`: sums of them, before anything
  is made of them.
- :class:`~propopt.structures.boxes.boxes.Boxes`: the sum of boxes that trees are, by
  the columns of the table.
- :class:`~propopt.structures.boxes.sets.Sets`: the sides of boxes, each of one column.
"""

from propopt.structures.boxes.boxes import (
    DOUBLE_TOLERANCE,
    SINGLE_TOLERANCE,
    Boxes,
)
from propopt.structures.boxes.maps import ColumnMap, SameColumn
from propopt.structures.boxes.sets import Sets
from propopt.structures.boxes.tree_sum import TreeSum
from propopt.structures.boxes.trees import LeafSets, Tree


__all__ = [
    "DOUBLE_TOLERANCE",
    "SINGLE_TOLERANCE",
    "Boxes",
    "ColumnMap",
    "LeafSets",
    "SameColumn",
    "Sets",
    "Tree",
    "TreeSum",
]
