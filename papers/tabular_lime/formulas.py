"""Formulas of the paper as they are printed, for bins that are equally likely.

They are written down once more, on SciPy's normals, so that what is computed elsewhere
can be held against them. All give intercepts first, (D + 1,).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.stats import norm, truncnorm
from sklearn.tree import DecisionTreeRegressor

from propopt.base.arrays import Array, Indices, Values
from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.lime.laws.tabular_law import TabularLaw


def printed_linear(slopes: Values, base: float, law: TabularLaw, row: Values) -> Values:
    """Corollary 4: β_j = λ_j / (p − 1) Σ_b (μ̃_{b*} − μ̃_b)."""
    means = np.stack([truncated(column).mean() for column in law.columns])
    own = _own(means, places_of(law, row))
    others = (means.sum(axis=1) - own) / (means.shape[1] - 1)
    return np.r_[base + slopes @ others, slopes * (own - others)]


def printed_additive(means: Array, law: TabularLaw, row: Values) -> Values:
    """Proposition 3, of E[f_j | bin b], (D, p)."""
    p, eps, c = weights_of(law)
    indices = places_of(law, row)
    weights = np.full(means.shape, eps)
    weights[np.arange(len(means)), indices] = 1.0
    e = weights * means
    slopes = p * c / (p * c - 1.0) * (_own(e, indices) - e.mean(axis=1) / c)
    intercept = (e.sum() - _own(e, indices).sum()) / (p * c - 1.0)
    return np.r_[intercept, slopes]


def printed_wide(mean: float, with_bits: Values, n_bins: int) -> Values:
    """Eqs. 9 and 10, of E[f] and E[z_j f] (D,)."""
    p, d = n_bins, len(with_bits)
    slopes = -p / (p - 1) * mean + p**2 / (p - 1) * with_bits
    intercept = (1 + d / (p - 1)) * mean - p / (p - 1) * with_bits.sum()
    return np.r_[intercept, slopes]


def printed_gaussian(
    center: Values, width: float, law: TabularLaw, row: Values
) -> Values:
    """Propositions 5 and 8 for exp(−‖x − center‖² / (2 width²))."""
    pairs = zip(law.columns, center, strict=True)
    means = np.stack([_bump_means(column, z, width) for column, z in pairs])
    return _product(means, law, places_of(law, row))


def printed_box(low: Values, high: Values, law: TabularLaw, row: Values) -> Values:
    """Proposition 6, of a box that lies in one cell of the bins."""
    middle = 0.5 * (low + high)
    cell, indices = places_of(law, middle), places_of(law, row)
    mass = 1.0
    for column, b, start, stop in zip(law.columns, cell, low, high, strict=True):
        ends = truncated(column).cdf([[start], [stop]])[:, b]
        mass *= float(ends[1] - ends[0])
    p, eps, c = weights_of(law)
    apart = cell != indices
    D, d = int(apart.sum()), len(low)
    aligned = mass * eps**D / (p * c) ** (d - 1)
    other = -mass * eps ** (D - 1) / ((p - 1) * (p * c) ** (d - 1))
    slopes = np.where(apart, other, aligned)
    intercept = mass * eps**D / (p * c) ** d - slopes.sum() / (p * c)
    return np.r_[intercept, slopes]


def printed_leaf(low: Values, high: Values, law: TabularLaw, row: Values) -> Values:
    """Proposition 5 of Eq. 34, the share of each bin that lies in (low, high]."""
    ends = zip(law.columns, low, high, strict=True)
    shares = np.stack([_shares(column, a, b) for column, a, b in ends])
    return _product(shares, law, places_of(law, row))


def printed_tree(tree: DecisionTreeRegressor, law: TabularLaw, row: Values) -> Values:
    """Corollary 7: values of leaves times what :func:`printed_leaf` gives."""
    return np.sum(
        [
            value * printed_leaf(low, high, law, row)
            for value, low, high in _leaves(tree, len(row))
        ],
        axis=0,
    )


def printed_limit(cells: Array, law: TabularLaw, row: Values) -> Values:
    """Eq. 5 of two columns, as it is printed, from E[f | cell] (p, p): β_1 and β_2.

    c^{−d} (−p c / (p c − 1) E[π f] + p² c² / (p c − 1) E[π z_j f]): p c − 1 is
    (p − 1) ε, of which double precision leaves nothing for small ν.
    """
    p, eps, c = weights_of(law)
    i, j = places_of(law, row)
    same = np.arange(p)[:, None] == [i, j]
    weighted = cells * np.multiply.outer(*np.where(same.T, 1.0, eps)) / p**2
    mean = weighted.sum()
    own = np.array([weighted[i].sum(), weighted[:, j].sum()])
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.float64(p * c) - 1.0
        one, other = p * c / left, p**2 * c**2 / left
        return np.asarray((-one * mean + other * own) / c**2)


def printed_smooth_step(
    rows: Values, mean: float, scale: float, width: float
) -> Values:
    """Example 11: θ of rows (n,) with four bins between quantiles, (n,).

    [exp(−(x − m)² / (2 s²)) / (s √(2π))] between the ends of the bin of the row, with m
    and s those of the weighted law.
    """
    ends = norm(mean, scale).ppf(np.arange(5) / 4)
    bin_index = np.searchsorted(ends, rows, side="right")
    total = width**2 + scale**2
    middle, s = (width**2 * mean + scale**2 * rows) / total, width * scale / total**0.5
    law = norm(middle, s)
    return np.asarray(law.pdf(ends[bin_index]) - law.pdf(ends[bin_index - 1]))


def _leaves(
    tree: DecisionTreeRegressor, n_columns: int
) -> Iterator[tuple[float, Values, Values]]:
    """Value, lower and upper ends of each leaf."""
    nodes = tree.tree_
    todo = [(0, np.full(n_columns, -np.inf), np.full(n_columns, np.inf))]
    while todo:
        node, low, high = todo.pop()
        j, cut = nodes.feature[node], nodes.threshold[node]
        if j < 0:
            yield float(nodes.value[node].item()), low, high
            continue
        left, right = high.copy(), low.copy()
        left[j], right[j] = min(high[j], cut), max(low[j], cut)
        todo.append((nodes.children_left[node], low, left))
        todo.append((nodes.children_right[node], right, high))


def _shares(column: BinnedColumn, low: float, high: float) -> Values:
    law = truncated(column)
    return np.asarray(law.cdf(high) - law.cdf(low))


def _product(means: Array, law: TabularLaw, indices: Indices) -> Values:
    """Proposition 5, of E[f_j | bin b], (D, p)."""
    p, eps, c = weights_of(law)
    own = _own(means, indices)
    totals = (own + eps * (means.sum(axis=1) - own)) / p  # c_j^f
    level = np.prod(totals / c)
    ratios = own * c / totals
    slopes = level * p * c / (p * c - 1.0) * (ratios - 1.0)
    intercept = level * (1.0 + np.sum(1.0 - ratios) / (p * c - 1.0))
    return np.r_[intercept, slopes]


def _bump_means(column: BinnedColumn, z: float, width: float) -> Values:
    """Proposition 8: the mean of exp(−(x − z)² / (2 width²)) in each bin, (p,)."""
    pieces = column.pieces
    mu, var, g = pieces.mean, pieces.sd**2, width**2
    middle, tau = (g * mu + var * z) / (g + var), np.sqrt(g * var / (g + var))
    inside = norm(middle, tau).cdf(pieces.high) - norm(middle, tau).cdf(pieces.low)
    whole = norm(mu, pieces.sd).cdf(pieces.high) - norm(mu, pieces.sd).cdf(pieces.low)
    apart = np.exp(-((mu - z) ** 2) / (2.0 * (g + var)))
    return np.asarray(tau / pieces.sd * inside / whole * apart)


def truncated(column: BinnedColumn) -> truncnorm:
    """The laws of values in the bins of a column, of SciPy."""
    pieces = column.pieces
    ends = ((end - pieces.mean) / pieces.sd for end in (pieces.low, pieces.high))
    return truncnorm(*ends, loc=pieces.mean, scale=pieces.sd)


def weights_of(law: TabularLaw) -> tuple[int, float, float]:
    """Number of bins p, ε = exp(−1 / (2 ν²)) and c = 1/p + (1 − 1/p) ε."""
    p = len(law.columns[0].bins)
    eps = math.exp(-0.5 / law.kernel_width**2)
    return p, eps, 1.0 / p + (1.0 - 1.0 / p) * eps


def places_of(law: TabularLaw, row: Values) -> Indices:
    """b*, the bin of the row in each column, (D,)."""
    pairs = zip(law.columns, row, strict=True)
    return np.array([int(column.bin_index(np.array([x]))[0]) for column, x in pairs])


def _own(means: Array, indices: Indices) -> Values:
    return np.asarray(means[np.arange(len(means)), indices])
