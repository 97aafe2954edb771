"""Three columns of three bins, four functions, and what LIME tends to for them.

The numbers agree with an enumeration of all 27 cells, quadrature inside of them and the
normal equations; ``brute_force`` does that again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from propopt._typing import Array
from propopt.lime.laws import TabularLaw
from propopt.lime.laws.binned import BinnedColumn
from propopt.structures.boxes import Boxes, Tree
from propopt.structures.products import (
    Bumps,
    Normals,
    Pieces,
    Powers,
    Products,
    SumOfProducts,
)


EDGES = np.array([-3.0, -1.0, 1.0, 3.0])
MEANS = np.array([-1.8, 0.1, 1.7])
DEVIATIONS = np.array([0.5, 0.6, 0.55])
ROW = np.array([[-2.0, 0.0, 2.0]])  # in the bins 0, 1 and 2
BINS_OF_ROW = (0, 1, 2)
WIDTHS = (1.0, 0.75 * np.sqrt(3.0), 1e6)


def column() -> BinnedColumn:
    """One column in its three bins."""
    normals = Normals.of(MEANS, DEVIATIONS, EDGES[:-1], EDGES[1:])
    shares = np.full(3, 1 / 3)
    names = ("low", "middle", "high")
    return BinnedColumn(Pieces.of_normals(normals), shares, EDGES[1:-1], names)


def law(kernel_width: float) -> TabularLaw:
    """Three of them."""
    return TabularLaw.of((column(),) * 3, kernel_width)


def _product(factors: Bumps | Powers) -> SumOfProducts:
    path = np.arange(len(factors))[None, :]
    return SumOfProducts(Products(0.0, np.ones(1), path, factors.column, 3), (factors,))


def _box() -> SumOfProducts:
    """1[x_1 ≤ 0.5] 1[x_2 > 0]."""
    tree = Tree.of(
        feature=[0, 1, -1, -1, -1],
        threshold=[0.5, 0, 0, 0, 0],
        left=[1, 2, -1, -1, -1],
        right=[4, 3, -1, -1, -1],
        value=[0, 0, 0, 1, 0],
    )
    return Boxes.of_trees([tree], n_columns=3).as_products()


FUNCTIONS = {
    "linear": SumOfProducts.additive(
        0.7, np.array([2.0, -1.0, 0.5]), Powers.first(np.arange(3)), 3
    ),
    "bump": _product(Bumps(np.arange(3), np.array([0.2, -0.5, 1.0]), np.full(3, 0.8))),
    "box": _box(),
    "product": _product(Powers.first(np.arange(2))),
}

_LINEAR = [2.138123122, -5.5523225422, -0.0894796207, 1.3433408252]
GOLDEN = {
    "linear": (_LINEAR, _LINEAR, _LINEAR),
    "bump": (
        [0.0370402015, -0.0780420219, 0.0721702676, 0.0447127718],
        [0.0327119199, -0.0699313704, 0.0741547460, 0.0447427234],
        [0.0283183577, -0.0594237687, 0.0762056807, 0.0440955980],
    ),
    "box": (
        [0.1916394949, 0.316573797, 0.0367996874, 0.0],
        [0.1930494912, 0.3149226158, 0.0351485062, 0.0],
        [0.1947257066, 0.3126432989, 0.0328691894, 0.0],
    ),
    "product": (
        [0.0262976271, -0.0392579345, -0.0291275575, 0.0],
        [0.0157351587, -0.0268887188, -0.0167583417, 0.0],
        [0.0031784087, -0.009814056, 0.000316321, 0.0],
    ),
}
"""(β_0, β_1, β_2, β_3) at the three widths."""


def brute_force(function: SumOfProducts, kernel_width: float) -> Array:
    """(β_0, ..., β_3) from all 27 cells, quadrature and the normal equations."""
    nodes = [_nodes(b) for b in range(3)]
    eps = np.exp(-0.5 / kernel_width**2)
    gram, moments = np.zeros((4, 4)), np.zeros(4)
    for cell in itertools.product(range(3), repeat=3):
        bits = [float(b == own) for b, own in zip(cell, BINS_OF_ROW, strict=True)]
        z = np.array([1.0, *bits])
        weight = eps ** (3 - sum(bits)) / 27
        gram += weight * np.outer(z, z)
        moments += weight * z * _mean(function.value, [nodes[b] for b in cell])
    return np.linalg.solve(gram, moments)


def _nodes(b: int, n_panels: int = 40) -> tuple[Array, Array]:
    """Gauss-Legendre nodes of a bin, split where the box jumps."""
    ends = np.unique(
        [*np.linspace(EDGES[b], EDGES[b + 1], n_panels // 4 + 1), 0.0, 0.5]
    )
    ends = ends[(ends >= EDGES[b]) & (ends <= EDGES[b + 1])]
    x, w = np.polynomial.legendre.leggauss(5)
    half, middle = np.diff(ends) / 2, (ends[1:] + ends[:-1]) / 2
    at = (middle[:, None] + half[:, None] * x).ravel()
    weights = (half[:, None] * w).ravel()
    weights = weights * np.exp(-0.5 * ((at - MEANS[b]) / DEVIATIONS[b]) ** 2)
    return at, weights / weights.sum()


def _mean(value: Callable[[Array], Array], nodes: list[tuple[Array, Array]]) -> float:
    grids = np.meshgrid(*(at for at, _ in nodes), indexing="ij")
    weights = np.einsum("i,j,k->ijk", *(weight for _, weight in nodes))
    values = value(np.stack([grid.ravel() for grid in grids], axis=1))
    return float(values @ weights.ravel())
