"""Slopes of each block of draws, with a line that was fitted to the other blocks.

With z_j = (V_j − v̄_j)/√Var_j, independent, of mean 0 and variance 1 by the law itself,

slope_j = E f z_j / √Var_j = (γ_j + E (f − γ_0 − γᵀz) z_j) / √Var_j  for any γ

that does not depend on the draws. The least squares fit over the other blocks is such a
γ, and what is left of f scatters less than f, so each block is unbiased and has little
scatter. Of a linear f nothing is left. A function m whose mean and slopes are known
exactly is one more term, γ_m (m − E m), which adds γ_m times its slopes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from propopt._typing import Array


_RIDGE: Final = 1e-10
"""Of the scatter of each term: what makes terms solvable that move together."""

_STILL: Final = 1e-12
"""A term with less scatter, of its sum of squares, did not move but for rounding."""


class BlockSlopes(NamedTuple):
    """Estimates from each of B blocks, at n rows."""

    means: Array
    """Of f, (B, n)."""

    slopes: Array
    """E f z_j, (B, n, D)."""


class KnownTerm(NamedTuple):
    """A function m at the draws, and what is known of it exactly."""

    values: Array
    """m(V), (n, B, s)."""

    means: Array
    """E m, (n,)."""

    slopes: Array
    """E m z_j, (n, D)."""


def cross_fitted(z: Array, f: Array, known: KnownTerm | None = None) -> BlockSlopes:
    """Means and slopes of f from each block.

    Parameters
    ----------
    z : array (n, B, s, D)
        Draws, of mean 0 and variance 1 under the law; columns of zeros for those that
        have no slope.
    f : array (n, B, s)
        Values.
    known : KnownTerm, optional
        One more term of the fit.

    Returns
    -------
    BlockSlopes
        Each block unbiased.
    """
    n_features = z.shape[-1]
    terms = z if known is None else _with_known(z, known)
    level, gamma = _fits_of_others(terms, f)
    left = f - level[..., None] - (terms @ gamma[..., None])[..., 0]
    means = level + left.mean(axis=-1)
    slopes = gamma[..., :n_features] + _block_means(z, left)
    if known is not None:
        # m − E m has mean 0, and the slopes of m
        slopes = slopes + gamma[..., -1:] * known.slopes[:, None, :]
    return BlockSlopes(np.moveaxis(means, 1, 0), np.moveaxis(slopes, 1, 0))


def _with_known(z: Array, known: KnownTerm) -> Array:
    """Terms z and m − E m, (n, B, s, D + 1)."""
    centred = known.values - known.means[:, None, None]
    return np.concatenate([z, centred[..., None]], axis=-1)


def _fits_of_others(terms: Array, f: Array) -> tuple[Array, Array]:
    """γ_0 (n, B) and γ (n, B, p) for each block, by least squares over the others.

    A term that never moved in the others has no part in it.
    """
    n_blocks, n_draws = f.shape[1:]
    n_others = (n_blocks - 1) * n_draws
    transposed = np.swapaxes(terms, -1, -2)
    gram = _of_others(transposed @ terms)
    moments = _of_others((transposed @ f[..., None])[..., 0])
    centers = _of_others(terms.sum(axis=-2)) / n_others
    level = _of_others(f.sum(axis=-1)) / n_others
    squares = np.diagonal(gram, axis1=-2, axis2=-1).copy()
    gram -= n_others * centers[..., :, None] * centers[..., None, :]
    moments -= n_others * centers * level[..., None]
    scatter = np.diagonal(gram, axis1=-2, axis2=-1)
    moved = scatter > _STILL * squares
    gram *= moved[..., :, None] & moved[..., None, :]
    ridge = np.where(moved, _RIDGE * scatter, 1.0)
    gram += ridge[..., None] * np.eye(gram.shape[-1])
    moments = np.where(moved, moments, 0.0)
    gamma = np.asarray(np.linalg.solve(gram, moments[..., None])[..., 0])
    return level - (gamma * centers).sum(axis=-1), gamma


def _of_others(sums: Array) -> Array:
    """Sums over all other blocks than each, from those over each (n, B, ...)."""
    return np.asarray(sums.sum(axis=1, keepdims=True) - sums)


def _block_means(z: Array, left: Array) -> Array:
    """Mean of what is left times z_j, (n, B, D)."""
    products = np.swapaxes(z, -1, -2) @ left[..., None]
    return np.asarray(products[..., 0] / z.shape[-2])
