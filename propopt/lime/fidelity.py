"""The locality and the fidelity of LIME's surrogate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, cast

import numpy as np

from propopt.base.arrays import Array, Indices, Points, Values
from propopt.base.resources import BATCH_BUDGET
from propopt.lime.exact_limits import ExactLimits
from propopt.lime.laws.lime_law import FactorMeans, LimeLaw, Tilt, draws_at
from propopt.structures.boxes.sets import Sets
from propopt.structures.products.families import Bumps, Factors, Pieces, Powers
from propopt.structures.products.normals import LOG_TAIL, Normals, normal_nodes
from propopt.structures.products.sums import SumOfProducts


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


# ---- Means of products of two factors of one column


_PAIRS_NODES: Final = 64


def pair_means(pieces: Pieces, first: Factors, second: Factors) -> Array | None:
    """E g_u(V) g_v(V) in each piece, (U, V, B) or (U, V, B, n).

    None for families without a closed form.
    """
    shape = len(first), len(second), *pieces.mean.shape
    means = np.empty(shape)
    single = pieces.single
    values = pieces.mean[single]
    means[:, :, single] = first.at(values)[:, None] * second.at(values)[None]
    if not single.all():
        normals = pieces.normals
        match first, second:
            case Sets(), Sets():
                means[:, :, ~single] = _common_share(normals, first, second)
            case Bumps(), Bumps():
                means[:, :, ~single] = _bump_of_two(normals, first, second)
            case Powers(), Powers():
                means[:, :, ~single] = _powers_of_both(normals, first, second)
            case _:
                return None
    return means


def _common_share(normals: Normals, first: Sets, second: Sets) -> Array:
    """Means of products of indicators: the probabilities of intersections."""
    low = np.maximum.outer(first.low, second.low)
    high = np.minimum.outer(first.high, second.high)
    overlap = low < high
    if first is second:
        overlap &= np.tri(len(low), dtype=bool)
    shape = (-1, *(1,) * len(normals.shape))
    means = np.zeros((*low.shape, *normals.shape))
    means[overlap] = normals.shares(
        low[overlap].reshape(shape), high[overlap].reshape(shape)
    )
    if first is second:
        one, other = np.nonzero(overlap)
        means[other, one] = means[one, other]
    return means


def _bump_of_two(normals: Normals, first: Bumps, second: Bumps) -> Array:
    """One of 1/w² = 1/w_1² + 1/w_2², times exp(−(c_1 − c_2)² / (2 (w_1² + w_2²)))."""
    c, d = first.center[:, None], second.center
    v, w = first.width[:, None] ** 2, second.width**2
    center = (c * w + d * v) / (v + w)
    width = np.sqrt(v * w / (v + w))
    apart = np.exp(-0.5 * (c - d) ** 2 / (v + w))
    both = Bumps(np.zeros(center.size, np.intp), center.ravel(), width.ravel())
    means = both.under(normals).reshape(*center.shape, *normals.shape)
    return means * apart.reshape(*center.shape, *(1,) * len(normals.shape))


def _powers_of_both(normals: Normals, first: Powers, second: Powers) -> Array:
    """Means of products of powers by Gauss-Legendre nodes, as centres may differ."""
    degree = int(first.degree.max() + second.degree.max())
    x, weights = normal_nodes(normals, _PAIRS_NODES + 2 * degree, LOG_TAIL + 2 * degree)
    return np.einsum("u...q,v...q,...q->uv...", first.at(x), second.at(x), weights)


# ---- The variance of a sum of products under the weighted law, by pairs of products


PAIRS_AT_MOST: Final = 2**27
"""The number of pairs of products, columns and situations that takes some seconds."""

_NODES: Final = 128
"""Nodes of the law of a column: variances of steps have an error of 1 %."""


def n_pairs(function: SumOfProducts, n: int) -> int:
    """The number of multiplications of :func:`exact_variance` in n situations."""
    n_products = len(function.values)
    return n * n_products * (n_products + 1) // 2 * max(1, len(function.columns))


def exact_variance(
    function: SumOfProducts, law: LimeLaw, points: Points, widths: Values
) -> Values | None:
    """Var_Q f = Σ_{l,l'} v_l v_l' Π_k E_Q[g_lk g_l'k] − (E_Q f)², (n,).

    None if two families of factors of one column have no mean in closed form.
    """
    tables, indices = [], []
    used = np.unique(function.paths[function.paths >= 0])
    for j in function.columns.tolist():
        tilt = law.columns[j].tilt(points[:, j], widths)
        # the factors that products use, by family
        parts = list(function.chosen(used[function.column[used] == j]))
        table = _pair_table([factors for _, factors in parts], tilt)
        if table is None:
            return None
        tables.append(table)
        numbers = np.concatenate([part_numbers for part_numbers, _ in parts])
        indices.append(_factor_indices(function, numbers, j))
    values = function.values
    return np.array(
        [
            _of_situation([table[..., n] for table in tables], indices, values)
            for n in range(len(points))
        ]
    )


def additive_variance(exact: ExactLimits, points: Points, widths: Values) -> Values:
    """Σ_j Var_Q E_Q[f | V_j], (n,), over the midpoints of 128 parts of equal weight.

    E_Q[f | V_j] = E_Q f + Σ_u (∂ E_Q f / ∂ E g_u) (g_u(V_j) − E g_u), u of column j.
    """
    columns, function = exact.law.columns, exact.function
    uniforms = ((np.arange(_NODES) + 0.5) / _NODES)[None, :, None]
    total = np.zeros(len(points))
    row_bytes = 16 * _NODES * (function.n_factors + 1)
    for block in BATCH_BUDGET.blocks(len(points), row_bytes):
        x, row_widths = points[block], widths[block]
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


def _of_situation(
    tables: Sequence[Array], indices: Sequence[Indices], values: Array
) -> float:
    """Σ_{l,l'} v_l m_l v_l' m_l' (Π_k E[g_lk g_l'k] / (E g_lk E g_l'k) − 1), m_l = E l.

    The ratio is one in columns that only one of both products has; most pairs of leaves
    share few columns.
    """
    columns = [
        (table, paths, np.flatnonzero(paths < len(table) - 1))
        for table, paths in zip(tables, indices, strict=True)
    ]
    means = np.ones(len(values))
    for table, paths, _ in columns:
        means *= table[paths, -1]
    if len(means) == 0:
        return 0.0
    if not (means != 0.0).all():
        return _with_zeros(tables, indices, values)
    ratios = []
    for table, paths, users in columns:
        used = np.unique(paths[users], return_inverse=True)
        part = table[np.ix_(used[0], used[0])]
        alone = table[used[0], -1]
        ratios.append((users, used[1], part / (alone[:, None] * alone)))

    def apart(block: slice, pairs: Array) -> None:
        for users, factor, ratio in ratios:
            first, end = np.searchsorted(users, [block.start, block.stop])
            rows, columns = users[first:end], users[first:]
            shared = ratio[factor[first:end]][:, factor[first:]]
            pairs[np.ix_(rows - block.start, columns - block.start)] *= shared
        pairs -= 1.0

    return _over_pairs(values * means, apart)


def _with_zeros(
    tables: Sequence[Array], indices: Sequence[Indices], values: Array
) -> float:
    """Σ over pairs of products, with −E f as one more product: E (f − E f)²."""
    columns = [
        (table, np.append(paths, len(table) - 1))
        for table, paths in zip(tables, indices, strict=True)
    ]
    means = np.ones(len(values) + 1)
    for table, paths in columns:
        means *= table[paths, -1]

    def together(block: slice, pairs: Array) -> None:
        for table, paths in columns:
            pairs *= table[paths[block]][:, paths[block.start :]]

    return _over_pairs(np.append(values, -(values @ means[:-1])), together)


def _over_pairs(v: Array, multiply: Callable[[slice, Array], None]) -> float:
    """Σ_{l,l'} v_l v_l' p_ll', where ``multiply`` fills p for blocks of products."""
    total = 0.0
    for block in BATCH_BUDGET.blocks(len(v), 16 * len(v)):
        # pairs with earlier products are in their blocks
        pairs = np.ones((block.stop - block.start, len(v) - block.start))
        multiply(block, pairs)
        weights = 2.0 * v[block.start :]
        weights[: len(pairs)] /= 2.0
        total += float(v[block] @ (pairs @ weights))
    return max(total, 0.0)


def _pair_table(parts: Sequence[Factors], tilt: Tilt) -> Array | None:
    """E_Q[g_u g_v] for the factors of a column, with 1 as the last, (U+1, U+1, n)."""
    rows = []
    for first in parts:
        row = [pair_means(tilt.pieces, first, second) for second in parts]
        means_of_pairs = [means for means in row if means is not None]
        if len(means_of_pairs) < len(row):
            return None
        rows.append(np.concatenate(means_of_pairs, axis=1))
    pairs = np.concatenate(rows)
    alone = np.concatenate([tilt.pieces.expect(factors) for factors in parts])
    chances = tilt.alpha * tilt.inside + tilt.complement * tilt.outside
    n = len(alone)
    table = np.ones((n + 1, n + 1, len(tilt.alpha)))
    # pieces are shared by all situations, or separate for each
    subscripts = "...b,bn->...n" if alone.ndim == 2 else "...bn,bn->...n"
    table[:n, :n] = np.einsum(subscripts, pairs, chances)
    table[:n, n] = table[n, :n] = np.einsum(subscripts, alone, chances)
    return table


def _factor_indices(function: SumOfProducts, numbers: Indices, j: int) -> Indices:
    """The index of the factor of column j in each product, (L,); the last if none."""
    positions = np.full(function.n_factors + 1, len(numbers))
    positions[numbers] = np.arange(len(numbers))
    of_column = np.append(function.column == j, False)[function.paths]
    factors = np.where(of_column, function.paths, function.n_factors)
    return positions[factors.min(axis=1, initial=function.n_factors)]
