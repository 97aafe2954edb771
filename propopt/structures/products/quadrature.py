"""Gauss-Legendre nodes for means under truncated normals."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from scipy.special import roots_legendre

from propopt._typing import Array
from propopt.structures.products.normals import Normals


LOG_TAIL: Final = 45.0
"""Densities are followed until they are e^−45 of their largest value."""

_NO_CUTS: Final = np.zeros(0)


def normal_nodes(
    normals: Normals,
    n_nodes: int = 64,
    log_tail: float = LOG_TAIL,
    cuts: Array = _NO_CUTS,
) -> tuple[Array, Array]:
    """Values x (S, Q) and weights w (S, Q), E g(V) ≈ Σ_q w_q g(x_q), Σ_q w_q = 1.

    They are between the ends, or as far from the most likely value as the density
    counts; distances from there keep their digits in the farthest tails.

    Parameters
    ----------
    normals : Normals (S)
        The laws.
    n_nodes : int
        In each part between cuts; Q of them in all.
    log_tail : float
        How far the logarithm of the density falls before it is left out.
    cuts : array (K,)
        Where one part ends and the next begins, increasing.
    """
    low, high = normals.standardised(normals.low), normals.standardised(normals.high)
    mode = np.clip(0.0, low, high)  # z of the most likely value
    # φ(mode + t) / φ(mode) = exp(−t (2 mode + t) / 2)
    reach = 2.0 * log_tail / (np.sqrt(mode**2 + 2.0 * log_tail) + np.abs(mode))
    nearest = np.clip(normals.mean, normals.low, normals.high)
    mode, reach, x0, sd = (v[..., None] for v in (mode, reach, nearest, normals.sd))
    start = np.maximum(low[..., None] - mode, -reach)
    stop = np.minimum(high[..., None] - mode, reach)
    ends = np.concatenate([start, np.clip((cuts - x0) / sd, start, stop), stop], -1)
    unit, lengths = _legendre(n_nodes)
    parts = np.diff(ends)[..., None]
    t = (ends[..., :-1, None] + parts * unit).reshape(*normals.shape, -1)
    weights = (parts * lengths).reshape(t.shape) * np.exp(-0.5 * t * (2.0 * mode + t))
    return x0 + sd * t, weights / weights.sum(axis=-1, keepdims=True)


@cache
def _legendre(n_nodes: int) -> tuple[Array, Array]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = roots_legendre(n_nodes)
    return 0.5 * (1.0 + nodes), 0.5 * weights
