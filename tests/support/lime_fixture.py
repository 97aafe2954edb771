"""The golden columns and functions, at one row, and all their cells one by one."""

from __future__ import annotations

from lime_golden import GOLDEN as _GOLDEN
from lime_golden import POINT, WIDTHS, golden_law
from random_trees import boxes_of_trees

from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.structures.boxes.sets import Tree
from propopt.structures.products.families import Powers
from propopt.structures.products.sums import SumOfProducts


__all__ = [
    "BINS_OF_ROW",
    "FUNCTIONS",
    "GOLDEN",
    "ROW",
    "WIDTHS",
    "Powers",
    "SumOfProducts",
    "column",
    "law",
]

ROW = POINT[None]
BINS_OF_ROW = (0, 1, 2)


def law(kernel_width: float) -> TabularLaw:
    """Three columns of three bins."""
    return golden_law(kernel_width)


def column() -> BinnedColumn:
    """One of them."""
    return golden_law(1.0).columns[0]


def _box() -> SumOfProducts:
    """1[x_1 ≤ 0.5] 1[x_2 > 0]."""
    tree = Tree.of(
        feature=[0, 1, -1, -1, -1],
        threshold=[0.5, 0, 0, 0, 0],
        left=[1, 2, -1, -1, -1],
        right=[4, 3, -1, -1, -1],
        value=[0, 0, 0, 1, 0],
    )
    return boxes_of_trees([tree], n_columns=3)


FUNCTIONS = {name: f() for name, (f, _) in _GOLDEN.items()} | {"box": _box()}
GOLDEN = {name: numbers for name, (_, numbers) in _GOLDEN.items()}
"""(β_0, β_1, β_2, β_3) at the three widths."""
