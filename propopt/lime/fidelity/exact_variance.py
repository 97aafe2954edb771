"""The variance of a sum of products under the weighted law, by pairs of products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from propopt._typing import Array, Points, Positions, Values
from propopt.batches import Budget
from propopt.lime.expectations import ExactLimits
from propopt.lime.fidelity.pairs import numbered, pair_means
from propopt.lime.laws import LimeLaw, Tilt
from propopt.lime.laws.draws import draws_at
from propopt.structures.products import Factors, SumOfProducts


PAIRS_AT_MOST: Final = 2**27
"""Pairs of products, times columns and situations: some seconds."""

_AT_ONCE: Final = Budget(2**24)

_NODES: Final = 128
"""Of the law of a column: variances of steps are known to 1 % of themselves."""


def n_pairs(function: SumOfProducts, n: int) -> int:
    """What :func:`exact_variance` multiplies in n situations."""
    n_products = len(function.products.values)
    return n * n_products * (n_products + 1) // 2 * max(1, len(function.columns))


def exact_variance(
    function: SumOfProducts, law: LimeLaw, points: Points, widths: Values
) -> Values | None:
    """Var_Q f = Σ_{l,l'} v_l v_l' Π_k E_Q[g_lk g_l'k] − (E_Q f)², (n,).

    None where two families of factors of one column have no mean in closed form.
    """
    tables, places = [], []
    for j in function.columns.tolist():
        tilt = law.columns[j].tilt(points[:, j], widths)
        parts = _occurring(function, j)
        table = _pair_table([factors for _, factors in parts], tilt)
        if table is None:
            return None
        tables.append(table)
        places.append(_of_products(function, numbered(parts, function.n_factors), j))
    values = function.products.values
    return np.array(
        [
            _of_situation([table[..., n] for table in tables], places, values)
            for n in range(len(points))
        ]
    )


def additive_variance(exact: ExactLimits, points: Points, widths: Values) -> Values:
    """Σ_j Var_Q E_Q[f | V_j], (n,): what sums of functions of one column can hold.

    E_Q[f | V_j] = E_Q f + Σ_u (∂ E_Q f / ∂ E g_u) (g_u(V_j) − E g_u) over the factors
    of column j; its variance is that over the midpoints of 128 parts of equal weight.
    """
    columns, products = exact.law.columns, exact.function.products
    uniforms = ((np.arange(_NODES) + 0.5) / _NODES)[None, :, None]
    total = np.zeros(len(points))
    row_bytes = 8 * _NODES * (exact.function.n_factors + 1)
    for some in _AT_ONCE.blocks(len(points), row_bytes):
        x, own = points[some], widths[some]
        _, slopes = products.slopes(exact.factor_means(x, own).mean)
        for j in exact.function.columns.tolist():
            grid = np.broadcast_to(uniforms, (len(x), _NODES, 1))
            nodes = draws_at(columns[j : j + 1], x[:, j : j + 1], own, grid)
            values = nodes.samples[:, :, 0]
            moved = np.zeros(values.shape)
            for numbers, factors in exact.function.of_column(j):
                at = factors.at(values.ravel()).reshape(-1, *values.shape)
                moved += np.einsum("un,unq->nq", slopes[numbers], at)
            total[some] += moved.var(axis=1)
    return total


def _of_situation(
    tables: Sequence[Array], places: Sequence[Positions], values: Array
) -> float:
    """Σ_{l,l'} v_l m_l v_l' m_l' (Π_k E[g_lk g_l'k] / (E g_lk E g_l'k) − 1).

    m_l is the mean of product l. The ratio is one in columns that not both have, of
    which pairs of leaves have few in common.
    """
    own = [
        (table, paths, np.flatnonzero(paths < len(table) - 1))
        for table, paths in zip(tables, places, strict=True)
    ]
    means = np.ones(len(values))
    for table, paths, _ in own:
        means *= table[paths, -1]
    if len(means) == 0:
        return 0.0
    if not (means != 0.0).all():
        return _with_zeros(tables, places, values)
    v, total = values * means, 0.0
    ratios = []
    for table, paths, users in own:
        used = np.unique(paths[users], return_inverse=True)
        part = table[np.ix_(used[0], used[0])]
        alone = table[used[0], -1]
        ratios.append((users, used[1], part / (alone[:, None] * alone)))
    for some in _AT_ONCE.blocks(len(v), 8 * len(v)):
        # pairs with those before are pairs of those before
        pairs = np.ones((some.stop - some.start, len(v) - some.start))
        for users, factor, ratio in ratios:
            first, end = np.searchsorted(users, [some.start, some.stop])
            rows, columns = users[first:end], users[first:]
            shared = ratio[factor[first:end]][:, factor[first:]]
            pairs[np.ix_(rows - some.start, columns - some.start)] *= shared
        pairs -= 1.0
        weights = 2.0 * v[some.start :]
        weights[: len(pairs)] /= 2.0
        total += float(v[some] @ (pairs @ weights))
    return max(total, 0.0)


def _with_zeros(
    tables: Sequence[Array], places: Sequence[Positions], values: Array
) -> float:
    """Σ over pairs of products, and of −E f as one product more: E (f − E f)²."""
    paths = [
        np.append(own, len(table) - 1)
        for table, own in zip(tables, places, strict=True)
    ]
    means = np.ones(len(values) + 1)
    for table, own in zip(tables, paths, strict=True):
        means *= table[own, -1]
    v = np.append(values, -(values @ means[:-1]))
    total = 0.0
    for some in _AT_ONCE.blocks(len(v), 8 * len(v)):
        # pairs with those before are pairs of those before
        pairs = np.ones((some.stop - some.start, len(v) - some.start))
        for table, own in zip(tables, paths, strict=True):
            pairs *= table[own[some]][:, own[some.start :]]
        weights = 2.0 * v[some.start :]
        weights[: len(pairs)] /= 2.0
        total += float(v[some] @ (pairs @ weights))
    return max(total, 0.0)


def _occurring(function: SumOfProducts, j: int) -> list[tuple[Positions, Factors]]:
    """The factors of a column that are in products, by families."""
    used = np.unique(function.products.paths)
    families = []
    for numbers, factors in function.of_column(j):
        kept = np.isin(numbers, used)
        if kept.any():
            families.append((numbers[kept], factors.take(kept)))
    return families


def _pair_table(parts: Sequence[Factors], tilt: Tilt) -> Array | None:
    """E_Q[g_u g_v] of the factors of a column, and of 1 behind them, (U+1, U+1, n)."""
    rows = []
    for first in parts:
        row = [pair_means(tilt.pieces, first, second) for second in parts]
        known = [means for means in row if means is not None]
        if len(known) < len(row):
            return None
        rows.append(np.concatenate(known, axis=1))
    pairs = np.concatenate(rows)
    alone = np.concatenate([tilt.pieces.expect(factors) for factors in parts])
    chances = tilt.alpha * tilt.inside + tilt.complement * tilt.outside
    n = len(alone)
    table = np.ones((n + 1, n + 1, len(tilt.alpha)))
    # pieces are the same for all situations, or others for each
    subscripts = "...b,bn->...n" if alone.ndim == 2 else "...bn,bn->...n"
    table[:n, :n] = np.einsum(subscripts, pairs, chances)
    table[:n, n] = table[n, :n] = np.einsum(subscripts, alone, chances)
    return table


def _of_products(function: SumOfProducts, places: Positions, j: int) -> Positions:
    """The place of the factor of column j of each product; the last for none, (L,)."""
    products = function.products
    own = np.append(products.column == j, False)[products.paths]
    factors = np.where(own, products.paths, function.n_factors)
    return places[factors.min(axis=1, initial=function.n_factors)]
