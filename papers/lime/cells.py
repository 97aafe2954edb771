"""How far from the row LIME's coefficients come from, by cells of bins."""

from __future__ import annotations

from typing import cast

import numpy as np

from propopt.base.arrays import Array, Indices, Points
from propopt.lime.exact_limits import ExactLimits, powers_in
from propopt.lime.laws.lime_law import FactorMeans
from propopt.structures.products.families import Powers
from propopt.structures.products.sums import SumOfProducts


def split_by_cells(exact: ExactLimits, points: Points) -> Array:
    """Coefficients by how many columns of a cell are not in the row's bin, (n, M, D).

    Cells are those of the grid of all columns that f depends on. Those with m columns
    out of the row's bins contribute

    E_Q[f 1[m others out] | z_j = 1] − E_Q[f 1[m − 1 others out] | z_j = 0],

    which of a product are the coefficients of t^m in
    (a_j − t b_j) Π_k (α_k a_k + t (1 − α_k) b_k), a and b the means of its factors in
    the row's bins and outside (Garreau and von Luxburg 2020, Proposition 6). A constant
    that is added to f moves these parts, but not those of
    :func:`~propopt.lime.exact_limits.split_by_columns`.
    """
    used = exact.function.columns
    products = _on_all_columns(exact.function, used)
    widths = exact.law.widths(points)
    means = _with_ones(exact.factor_means(points, widths), products.column)

    def contrasts(t: complex) -> Array:
        out = cast("Array", t * means.zero)
        measures = means.mixed(means.one, out), means.contrast(means.one, out)
        return products.contrasts(*measures)[1]

    parts = powers_in(contrasts, int(products.lengths.max(initial=1)) + 1)
    parts[:, :, ~np.isin(np.arange(products.n_columns), used)] = 0.0
    return parts


def _on_all_columns(products: SumOfProducts, used: Indices) -> SumOfProducts:
    """The same sum with a factor for each column in each product, 1 where it had none.

    These are numbered behind the others, one for each column that is used.
    """
    n_factors, n_products = len(products.column), len(products.values)
    paths = np.tile(n_factors + np.arange(len(used)), (n_products + 1, 1))
    product, k = np.nonzero(products.paths >= 0)
    factors = products.paths[product, k]
    paths[product, np.searchsorted(used, products.column[factors])] = factors
    values = np.append(products.values, products.base)
    families = (*products.factors, Powers.first(used))
    return SumOfProducts(0.0, values, paths, families, products.n_columns)


def _with_ones(means: FactorMeans, column: Indices) -> FactorMeans:
    """Means of the same factors, and of others, of these columns, that are 1."""
    more = len(column) - len(means.column)
    ones = np.ones((more, means.one.shape[1]))
    one, zero = (np.concatenate([part, ones]) for part in (means.one, means.zero))
    return FactorMeans(means.tilts, column, one, zero)
