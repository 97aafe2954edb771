"""Sums of trees by measures of the cells of their columns, for independent columns.

The mean of f, and its contrast in a column, are sums over leaves of products of
measures of sets. Those of a set are differences of two cells, or sums of several: the
numbers of a column up to each cut, missing ones, and codes. So a measure of cells is
enough, and the leaves are visited without a list of their sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Indices, Values
from propopt.base.kernels import kernel
from propopt.structures.boxes.boxes import TreeSum
from propopt.structures.boxes.nodes import TreeNodes
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.sums import SumOfProducts


@final
@dataclass(frozen=True, eq=False, repr=False)
class TreeCells(SumOfProducts):
    """A sum of trees by different cells, its factors, for a compiled kernel."""

    nodes: TreeNodes = field(kw_only=True)
    of_cell: Indices = field(kw_only=True)  # the factor of each cell

    @classmethod
    def of(cls, trees: TreeSum, by: Sequence[Callable[[Sets], Sets]]) -> Self:
        """The cells of each column j, replaced by ``by[j]``, equal ones once."""
        nodes = trees.nodes
        parts = []
        for j, cuts in nodes.cells[2].items():
            if (n_codes := nodes.n_codes[j]) is not None:
                cells = Sets.of_codes([j] * n_codes, np.eye(n_codes, dtype=bool))
            else:
                high = np.array([-np.inf, *cuts, np.inf, -np.inf])
                missing = np.arange(len(high)) == len(high) - 1
                low = np.full(len(high), -np.inf)
                cells = Sets.of_numbers([j] * len(high), low, high, missing)
            parts.append(by[j](cells))
        sets, of_cell = Sets.concatenate(parts).unique()
        return cls(
            trees.base,
            np.zeros(0),
            np.zeros((0, 0), np.intp),
            (sets,),
            len(trees.n_codes),
            trees.tolerance,
            nodes=nodes,
            of_cell=of_cell,
        )

    @property
    def columns(self) -> Indices:
        """The columns that f depends on, increasing."""
        return self.nodes.columns

    def contrasts(self, P: Array, R: Array) -> tuple[Values, Attributions]:
        """The mean of f, and its contrast in each column, by those of cells (U, N)."""
        compiled = kernel("tree_contrasts")
        assert compiled is not None, "others are expanded"
        nodes = self.nodes
        n = P.shape[1]
        total = np.full(n, self.base)
        contrasts = np.zeros((self.n_columns, n))
        depths = len(nodes.levels) + 1
        width = nodes.members.shape[1]
        scratch = np.empty(depths * (5 + width // 8) + (3 * depths + 1) * n, np.uint64)
        compiled(
            *(len(nodes.roots) - 1, n, width, depths, nodes.roots, *nodes.arrays),
            *(*nodes.cells[:2], self.of_cell, P, R, total, contrasts, scratch),
        )
        return total, np.ascontiguousarray(contrasts.T)
