"""How far from the row coefficients come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast, final

import numpy as np

from propopt._typing import Array, Points, Positions, Values
from propopt.lime.expectations import ExactLimits, FactorMeans
from propopt.structures.products import Products, SetMeasures


@final
@dataclass(frozen=True, eq=False)
class LocalitySplit:
    """Coefficients as sums over distances from the row, β_j = Σ_m β_j^(m).

    Parameters
    ----------
    parts : array (n, M, D)
        β_j^(m), for m from 0.
    """

    parts: Array

    @property
    def coefficients(self) -> Array:
        """β, (n, D)."""
        return np.asarray(self.parts.sum(axis=1))

    @property
    def outside(self) -> Array:
        """Σ_{m≥1} |β_j^(m)| / Σ_m |β_j^(m)|, (n, D); 0 where all is zero."""
        sizes = np.abs(self.parts)
        whole = sizes.sum(axis=1)
        far = sizes[:, 1:].sum(axis=1)
        return np.divide(far, whole, out=np.zeros(whole.shape), where=whole > 0.0)


def split_by_cells(
    exact: ExactLimits, points: Points, widths: Values | None = None
) -> LocalitySplit:
    """Coefficients by how many columns of a cell are not in the row's bin.

    Cells are those of the grid of all columns that f depends on. Those with m columns
    out of the row's bins contribute

    E_Q[f 1[m others out] | z_j = 1] − E_Q[f 1[m − 1 others out] | z_j = 0],

    which of a product are the coefficients of t^m in
    (a_j − t b_j) Π_k (α_k a_k + t (1 − α_k) b_k), a and b the means of its factors in
    the row's bins and outside (Garreau and von Luxburg 2020, Proposition 6). A constant
    that is added to f moves these parts, but not those of :func:`split_by_columns`.

    Parameters
    ----------
    exact : ExactLimits
        A sum of products and a law.
    points : array (n, D)
        Encoded rows.
    widths : array (n,), optional
        Kernel widths, one for each row; by default the law's.
    """

    def measures(means: FactorMeans, t: complex) -> SetMeasures:
        out = _marked(t, means.zero)
        return SetMeasures(means.mixed(means.one, out), means.contrast(means.one, out))

    function = exact.function
    everywhere = _on_all_columns(function.products, function.columns)
    return _split(exact, points, widths, measures, everywhere, 1)


def split_by_columns(
    exact: ExactLimits, points: Points, widths: Values | None = None
) -> LocalitySplit:
    """Coefficients by how many other columns leave the row's bin for them.

    Part 0 is the contrast E[f | z = 1] − E[f | z_j = 0, all others 1], with all other
    columns in the row's bins: β_j for ν → 0. Part m is what m others add when they
    leave, with their probabilities to do so: the coefficients of t^m in
    (a_j − b_j) Π_k (a_k + t (1 − α_k) (b_k − a_k)), a and b the means of factors in the
    row's bins and outside. It is the same however f is written, and of an additive
    function all is in part 0.

    Parameters
    ----------
    exact : ExactLimits
        A sum of products and a law.
    points : array (n, D)
        Encoded rows.
    widths : array (n,), optional
        Kernel widths, one for each row; by default the law's.
    """

    def measures(means: FactorMeans, t: complex) -> SetMeasures:
        moved = means.one + _marked(t, means.zero - means.one)
        return SetMeasures(
            means.mixed(means.one, moved), means.contrast(means.one, means.zero)
        )

    return _split(exact, points, widths, measures, exact.function.products, 0)


def _marked(t: complex, means: Array) -> Array:
    """Means times t, which are complex."""
    return cast("Array", t * means)


def _on_all_columns(products: Products, used: Positions) -> Products:
    """The same sum with a factor for each column in each product, 1 where it had none.

    These are numbered behind the others, one for each column that is used.
    """
    n_factors, n_products = len(products.column), len(products.values)
    paths = np.tile(n_factors + np.arange(len(used)), (n_products + 1, 1))
    product, k = np.nonzero(products.paths >= 0)
    factors = products.paths[product, k]
    paths[product, np.searchsorted(used, products.column[factors])] = factors
    column = np.concatenate([products.column, used])
    values = np.append(products.values, products.base)
    return Products(0.0, values, paths, column, products.n_columns)


def _with_ones(means: FactorMeans, column: Positions) -> FactorMeans:
    """Means of the same factors, and of others, of these columns, that are 1."""
    more = len(column) - len(means.column)
    ones = np.ones((more, means.one.shape[1]))
    one, zero = (np.concatenate([part, ones]) for part in (means.one, means.zero))
    return FactorMeans(means.tilts, column, one, zero)


def _split(
    exact: ExactLimits,
    points: Points,
    widths: Values | None,
    measures: Callable[[FactorMeans, complex], SetMeasures],
    products: Products,
    own: int,
) -> LocalitySplit:
    """Coefficients of a generating function, by its values at roots of unity."""
    n_parts = int(products.lengths.max(initial=1)) + own
    # half of the roots: the others have conjugate values
    roots = np.exp(2j * np.pi * np.arange(n_parts // 2 + 1) / n_parts)
    all_widths = exact.law.widths(points, widths)
    parts = np.empty((len(points), n_parts, products.n_columns))
    for some in exact.blocks(len(points)):
        means = exact.factor_means(points[some], all_widths[some])
        means = _with_ones(means, products.column)
        values = [products.contrasts(measures(means, t))[1] for t in roots]
        spectrum = np.conj(np.stack(values, axis=1))
        parts[some] = np.fft.irfft(spectrum, n=n_parts, axis=1)
    parts[:, :, ~np.isin(np.arange(products.n_columns), exact.function.columns)] = 0.0
    return LocalitySplit(parts)
