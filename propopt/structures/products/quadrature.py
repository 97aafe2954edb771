"""Gauss-Legendre nodes for means under truncated normals."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from propopt._typing import Array
from propopt.structures.products.normals import Normals


LOG_TAIL: Final = 45.0
"""Densities are followed until they are e^−45 of their largest value."""


def normal_nodes(
    normals: Normals, n_nodes: int = 64, log_tail: float = LOG_TAIL
) -> tuple[Array, Array]:
    """Values x (S, Q) and weights w (S, Q), E g(V) ≈ Σ_q w_q g(x_q), Σ_q w_q = 1.

    They are between the ends, or as far from the most likely value as the density
    counts; distances from there keep their digits in the farthest tails.

    Parameters
    ----------
    normals : Normals (S)
        The laws.
    n_nodes : int
        Q.
    log_tail : float
        How far the logarithm of the density falls before it is left out.
    """
    low, high = normals.standardised(normals.low), normals.standardised(normals.high)
    mode = np.clip(0.0, low, high)  # z of the most likely value
    # φ(mode + t) / φ(mode) = exp(−t (2 mode + t) / 2)
    reach = 2.0 * log_tail / (np.sqrt(mode**2 + 2.0 * log_tail) + np.abs(mode))
    start = np.maximum(low - mode, -reach)[..., None]
    stop = np.minimum(high - mode, reach)[..., None]
    unit, lengths = _legendre(n_nodes)
    t = start + (stop - start) * unit
    weights = lengths * np.exp(-0.5 * t * (2.0 * mode[..., None] + t))
    weights /= weights.sum(axis=-1, keepdims=True)
    nearest = np.clip(normals.mean, normals.low, normals.high)
    return nearest[..., None] + normals.sd[..., None] * t, weights


@cache
def _legendre(n_nodes: int) -> tuple[Array, Array]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return 0.5 * (1.0 + nodes), 0.5 * weights
