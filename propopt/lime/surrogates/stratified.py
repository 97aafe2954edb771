"""Uniform numbers that fill each column evenly, and terms that are made of them."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt._typing import Array


MOST_OUTSIDE: Final = 3
"""Polynomials that are used."""

_FEWEST: Final = 20
"""Draws with a bit that a term needs, in the mean: fits to fewer add scatter."""


def stratified_uniforms(
    n_blocks: int, size: int, n_columns: int, rng: np.random.Generator
) -> Array:
    """Latin hypercubes: in each column one number from each of ``size`` equal parts.

    Each draw is uniform on the unit cube; blocks are independent (McKay et al. 1979).

    Returns
    -------
    array (n_blocks, size, n_columns)
    """
    shape = n_blocks, size, n_columns
    parts = np.broadcast_to(np.arange(size)[:, None], shape)
    return np.asarray((rng.permuted(parts, axis=1) + rng.random(shape)) / size)


def terms(uniforms: Array, alpha: Array, n_outside: int) -> Array:
    """What least squares on draws of Q is made of: bits, and what varies beside them.

    A draw has z_j = 1[u_j < α_j]; given the bit, u is uniform on the rest. So the terms

    (z − α) / √(α (1 − α)),  z P_1(u / α) / √α,
    (1 − z) P_k((u − α) / (1 − α)) / √(1 − α),  k = 1, ..., K

    have mean 0, variance 1 and no correlation, and those behind the first D of them
    have mean 0 given any bits: they take scatter off f and leave β alone.

    Parameters
    ----------
    uniforms : array (n, ..., D)
        The numbers u that were made samples.
    alpha : array (n, D)
        Q(z_j = 1).
    n_outside : int
        K, up to 3. With 0 there are bits alone.

    Returns
    -------
    array (n, ..., D), or (n, ..., (2 + K) D)
        Zeros for a column that has one bit only, and where a bit is rare.
    """
    n_draws = np.prod(uniforms.shape[1:-1])
    a = alpha.reshape(len(alpha), *(1,) * (uniforms.ndim - 2), -1)
    both = (a > 0.0) & (a < 1.0)
    inside = uniforms < a
    safe = np.where(both, a, 0.5)
    bits = both * (inside - safe) / np.sqrt(safe * (1.0 - safe))
    if n_outside == 0:
        return np.asarray(bits)
    one = np.where(a > 0.0, a, 1.0)
    rest = np.where(a < 1.0, 1.0 - a, 1.0)
    kept_in, kept_out = a * n_draws >= _FEWEST, (1.0 - a) * n_draws >= _FEWEST
    within = inside * kept_in / np.sqrt(one) * _polynomials(uniforms / one)[0]
    position = (uniforms - a) / rest
    scale = ~inside * kept_out / np.sqrt(rest)
    without = [scale * P for P in _polynomials(position)[:n_outside]]
    return np.concatenate([bits, within, *without], axis=-1)


def _polynomials(v: Array) -> tuple[Array, Array, Array]:
    """Legendre's on [0, 1]: of mean 0 and variance 1, without correlation."""
    line, parabola = 2.0 * v - 1.0, v * (v - 1.0)
    return (
        np.sqrt(3.0) * line,
        np.sqrt(5.0) * (6.0 * parabola + 1.0),
        np.sqrt(7.0) * line * (10.0 * parabola + 1.0),
    )
