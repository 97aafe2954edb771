"""The three columns of three bins of which all numbers of LIME are known."""

import numpy as np
from normal_samples import least_squares, pieces_of, product_rule

from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.families import Bumps, Powers
from propopt.structures.products.normals import Normals
from propopt.structures.products.sums import SumOfProducts


EDGES = np.array([-3.0, -1.0, 1.0, 3.0])
MEANS = np.array([-1.8, 0.1, 1.7])
SDS = np.array([0.5, 0.6, 0.55])
POINT = np.array([-2.0, 0.0, 2.0])
ROW = POINT[None]
WIDTHS = np.array([1.0, 0.75 * np.sqrt(3.0), 1e6])
UNEQUAL = [[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]]
"""Shares of bins that differ, so that nothing cancels."""


def law(width=None, shares=None, n_columns=3):
    """Its columns, all alike but for their shares (D, 3)."""
    pieces = pieces_of(Normals(MEANS, SDS, EDGES[:-1], EDGES[1:]))
    w = np.full((n_columns, 3), 1 / 3) if shares is None else np.asarray(shares)
    columns = tuple(
        BinnedColumn(pieces, column_shares, EDGES[1:-1], ("low", "middle", "high"))
        for column_shares in w
    )
    return TabularLaw.of(columns, width)


def column():
    """One of them."""
    return law(1.0).columns[0]


def powers(values, paths, base=0.0, n_columns=3):
    """base + Σ v Π x_j, paths of columns padded with −1."""
    terms, values = Powers.first(np.arange(n_columns)), np.asarray(values, float)
    return SumOfProducts(base, values, np.asarray(paths), (terms,), n_columns)


LINEAR = SumOfProducts.additive(
    0.7, np.array([2.0, -1.0, 0.5]), Powers.first(np.arange(3)), 3
)
PRODUCT = powers([1.0], [[0, 1]])
_BUMPS = Bumps(np.arange(3), np.array([0.2, -0.5, 1.0]), np.full(3, 0.8))
BUMP = SumOfProducts(0.0, np.ones(1), np.array([[0, 1, 2]]), (_BUMPS,), 3)
_SETS = Sets.of_numbers([0, 1], [-np.inf, 0.0], [0.5, np.inf], [False, False])
BOX = SumOfProducts(0.0, np.ones(1), np.array([[0, 1]]), (_SETS,), 3)
FUNCTIONS = {"linear": LINEAR, "bump": BUMP, "box": BOX, "product": PRODUCT}
GOLDEN = {
    "linear": [[2.138123122, -5.5523225422, -0.0894796207, 1.3433408252]] * 3,
    "bump": [
        [0.0370402015, -0.0780420219, 0.0721702676, 0.0447127718],
        [0.0327119199, -0.0699313704, 0.0741547460, 0.0447427234],
        [0.0283183577, -0.0594237687, 0.0762056807, 0.0440955980],
    ],
    "box": [
        [0.1916394949, 0.316573797, 0.0367996874, 0.0],
        [0.1930494912, 0.3149226158, 0.0351485062, 0.0],
        [0.1947257066, 0.3126432989, 0.0328691894, 0.0],
    ],
    "product": [
        [0.0262976271, -0.0392579345, -0.0291275575, 0.0],
        [0.0157351587, -0.0268887188, -0.0167583417, 0.0],
        [0.0031784087, -0.009814056, 0.000316321, 0.0],
    ],
}
"""β_0 to β_3 at the three widths."""


def quadrature(law, width, nodes=7):
    """Points of a product rule under Q, their bits, bins and probabilities.

    Bins are cut at multiples of 0.5, so that boxes that end there are exact.
    """
    t, v = np.polynomial.legendre.leggauss(nodes)
    eps = np.exp(-0.5 / width**2)
    axes = []
    for column, x in zip(law.columns, POINT, strict=True):
        row_bin = int(column.bin_index(np.array([x]))[0])
        parts = [
            _rule_of_bin(column, b, t, v, 1.0 if b == row_bin else eps)
            for b in range(len(column.shares))
        ]
        values, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        bins = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
        axes.append((values, weights / weights.sum(), bins, bins == row_bin))
    samples, weights, bins, bits = product_rule(axes)
    return samples, bits.astype(float), bins, np.prod(weights, axis=1)


def by_quadrature(f, law, width):
    """β over all cells, β_0 first."""
    samples, bits, _, weights = quadrature(law, width)
    return least_squares(bits, weights, f.value(samples))


def _rule_of_bin(column, b, t, v, kernel):
    pieces = column.pieces
    cuts = np.arange(pieces.low[b], pieces.high[b], 0.5)
    x = (cuts[:, None] + 0.25 * (t + 1.0)).ravel()
    density = np.exp(-0.5 * ((x - pieces.mean[b]) / pieces.sd[b]) ** 2)
    weight = density * np.tile(v, len(cuts))
    return x, column.shares[b] * kernel * weight / weight.sum()
