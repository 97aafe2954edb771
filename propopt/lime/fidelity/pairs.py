"""Means of products of two factors of one column."""

from __future__ import annotations

import numpy as np

from propopt._typing import Array, Positions
from propopt.structures.boxes import Sets
from propopt.structures.products import Bumps, Factors, Normals, Pieces, Powers
from propopt.structures.products.quadrature import LOG_TAIL, normal_nodes


_NODES = 64


def pair_means(pieces: Pieces, first: Factors, second: Factors) -> Array | None:
    """E g_u(V) g_v(V) in each piece, (U, V, B) or (U, V, B, n).

    None where the product of two such families has no mean in closed form.
    """
    shape = len(first), len(second), *pieces.mean.shape
    means = np.empty(shape)
    single = pieces.single
    values = pieces.mean[single]
    means[:, :, single] = first.at(values)[:, None] * second.at(values)[None]
    if not single.all():
        under = _under_normals(pieces.normals, first, second)
        if under is None:
            return None
        means[:, :, ~single] = under
    return means


def _under_normals(normals: Normals, first: Factors, second: Factors) -> Array | None:
    match first, second:
        case Sets(), Sets():
            return _common_share(normals, first, second)
        case Bumps(), Bumps():
            return _bump_of_two(normals, first, second)
        case Powers(), Powers():
            return _powers_of_both(normals, first, second)
    return None


def _common_share(normals: Normals, first: Sets, second: Sets) -> Array:
    """The indicator of both sets is that of what they have in common."""
    low = np.maximum.outer(first.low, second.low)
    high = np.minimum.outer(first.high, second.high)
    some = low < high
    if first is second:
        some &= np.tri(len(low), dtype=bool)
    shape = (-1, *(1,) * len(normals.shape))
    means = np.zeros((*low.shape, *normals.shape))
    means[some] = normals.shares(low[some].reshape(shape), high[some].reshape(shape))
    if first is second:
        one, other = np.nonzero(some)
        means[other, one] = means[one, other]
    return means


def _bump_of_two(normals: Normals, first: Bumps, second: Bumps) -> Array:
    """The product of two bumps is a bump, times what their centers are apart.

    1/w² = 1/w_1² + 1/w_2², c = w² (c_1/w_1² + c_2/w_2²), and the factor is
    exp(−(c_1 − c_2)² / (2 (w_1² + w_2²))).
    """
    c, d = first.center[:, None], second.center
    v, w = first.width[:, None] ** 2, second.width**2
    center = (c * w + d * v) / (v + w)
    width = np.sqrt(v * w / (v + w))
    apart = np.exp(-0.5 * (c - d) ** 2 / (v + w))
    both = Bumps(np.zeros(center.size, np.intp), center.ravel(), width.ravel())
    means = both.under(normals).reshape(*center.shape, *normals.shape)
    return means * apart.reshape(*center.shape, *(1,) * len(normals.shape))


def _powers_of_both(normals: Normals, first: Powers, second: Powers) -> Array:
    """By Gauss-Legendre nodes: centers may differ."""
    degree = int(first.degree.max() + second.degree.max())
    x, weights = normal_nodes(normals, _NODES + 2 * degree, LOG_TAIL + 2 * degree)
    return np.einsum("u...q,v...q,...q->uv...", first.at(x), second.at(x), weights)


def numbered(parts: list[tuple[Positions, Factors]], n_factors: int) -> Positions:
    """The place of each factor among those of a column, and behind them no factor."""
    numbers = np.concatenate([own for own, _ in parts])
    places = np.full(n_factors + 1, len(numbers))
    places[numbers] = np.arange(len(numbers))
    return places
