"""The locality and the fidelity of LIME's surrogate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

import numpy as np

from propopt.base.arrays import Array, Points, Values
from propopt.base.resources import BATCH_BUDGET
from propopt.lime.exact_limits import ExactLimits
from propopt.lime.laws.lime_law import FactorMeans, LimeLaw, draws_at


def effective_share(
    law: LimeLaw, points: Points, widths: Values | None = None
) -> Values:
    """The effective sample size over n, (E π)² / E π² = C(ν)² / C(ν / √2), (n,).

    At 1 all samples have the same weight at any distance; close to 0 few samples count.
    """
    row_widths = law.widths(points, widths)
    log_squares = law.log_weights(points, law.squared_widths(row_widths))
    return np.asarray(np.exp(2.0 * law.log_weights(points, row_widths) - log_squares))


# ---- The distance from the row at which coefficients arise


def split_by_columns(
    exact: ExactLimits, points: Points, widths: Values | None = None
) -> Array:
    """The parts of coefficients by the number of other columns outside the row's bins.

    β_j = Σ_m β_j^(m), the coefficients of t^m in
    (a_j − b_j) Π_k (a_k + t (1 − α_k) (b_k − a_k)), a and b the means of factors in the
    row's bins and outside. The result is (n, M, D). Part 0 is β_j for ν → 0, and all of
    β_j for an additive function.
    """
    products = exact.function
    n_parts = int(products.lengths.max(initial=1))
    all_widths = exact.law.widths(points, widths)
    parts = np.empty((len(points), n_parts, products.n_columns))
    for block in exact.blocks(len(points)):
        means = exact.factor_means(points[block], all_widths[block])

        def leaving(t: complex, means: FactorMeans = means) -> Array:
            # other columns outside the row's bins t times, (n, D)
            moved = means.one + cast("Array", t * (means.zero - means.one))
            one = means.mixed(means.one, moved)
            return products.contrasts(one, means.contrast(means.one, means.zero))[1]

        parts[block] = powers_in(leaving, n_parts)
    parts[:, :, ~np.isin(np.arange(products.n_columns), products.columns)] = 0.0
    return parts


def powers_in(function: Callable[[complex], Array], n_powers: int) -> Array:
    """The coefficients of t^m of polynomials (n, D), from values at roots of unity."""
    # half of the roots: the others have conjugate values
    roots = np.exp(2j * np.pi * np.arange(n_powers // 2 + 1) / n_powers)
    spectrum = np.conj(np.stack([function(t) for t in roots], axis=1))
    return np.asarray(np.fft.irfft(spectrum, n=n_powers, axis=1))


def share_outside(parts: Array) -> Array:
    """The share Σ_{m≥1} |β_j^(m)| / Σ_m |β_j^(m)|, (n, D); 0 if all parts are 0."""
    sizes = np.abs(parts)
    whole = sizes.sum(axis=1)
    outside = sizes[:, 1:].sum(axis=1)
    return np.divide(outside, whole, out=np.zeros(whole.shape), where=whole > 0.0)


# ---- The variance of single columns under the weighted law


_NODES: Final = 128
"""Nodes of the law of a column: variances of steps have an error of 1 %."""


def additive_variance(exact: ExactLimits, points: Points, widths: Values) -> Values:
    """Σ_j Var_Q E_Q[f | V_j], (n,), over the midpoints of 128 parts of equal weight.

    E_Q[f | V_j] = E_Q f + Σ_u (∂ E_Q f / ∂ E g_u) (g_u(V_j) − E g_u), u of column j.
    """
    columns = exact.law.columns
    function = exact.function
    uniforms = ((np.arange(_NODES) + 0.5) / _NODES)[None, :, None]
    total = np.zeros(len(points))
    row_bytes = 16 * _NODES * (function.n_factors + 1)
    for block in BATCH_BUDGET.blocks(len(points), row_bytes):
        x = points[block]
        row_widths = widths[block]
        _, slopes = function.slopes(exact.factor_means(x, row_widths).mean)
        for j in function.columns.tolist():
            grid = np.broadcast_to(uniforms, (len(x), _NODES, 1))
            nodes = draws_at(columns[j : j + 1], x[:, j : j + 1], row_widths, grid)
            values = nodes.samples[:, :, 0]
            moved = np.zeros(values.shape)
            for numbers, factors in function.of_column(j):
                at = factors.at(values.ravel()).reshape(-1, *values.shape)
                moved += np.einsum("un,unq->nq", slopes[numbers], at)
            total[block] += moved.var(axis=1)
    return total
